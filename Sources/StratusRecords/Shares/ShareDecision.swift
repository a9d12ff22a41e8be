import StratusCoding
import StratusModel

/// What a save of a share makes of it: a value that reads nothing.
struct ShareDecision {
    /// Private people of a share, the owner included.
    static let privateCountMax = 100
    /// Public users of a share. All of them go in one entry where the share ends.
    static let publicCountMax = 400

    let draft: ShareDraft
    /// The record name of the zone's owner.
    let owner: String
    let milliseconds: Int64
    private var content: ShareEdit.Content
    private var row: ShareRow
    /// Who goes because the share becomes public, or private again.
    private var dropped: [UInt128: ParticipantRow] = [:]

    /// The share after a save; or why it is refused.
    static func decide(
        _ draft: ShareDraft, on content: ShareEdit.Content, owner: String, at milliseconds: Int64
    ) -> Result<ShareEdit.Content, ShareRefused> {
        var decision = ShareDecision(draft, content, owner: owner, at: milliseconds)
        return Result { () throws(ShareRefused) in try decision.decide() }
    }

    private init(
        _ draft: ShareDraft, _ content: ShareEdit.Content, owner: String, at milliseconds: Int64
    ) {
        self.draft = draft
        self.owner = owner
        self.milliseconds = milliseconds
        self.content = content
        self.row = content.row ?? ShareRow()
    }

    private mutating func decide() throws(ShareRefused) -> ShareEdit.Content {
        try self.begin()
        if self.draft.asksForNewLink {
            guard let link = self.draft.drawnLink else { throw ShareRefused(.ownerUnnameable) }
            self.row.link = link
        }
        if !self.draft.ownerName.isEmpty { self.row.ownerName = self.draft.ownerName }
        self.open()
        if self.draft.statesInvitations { try self.invite() }
        let publicCount = self.content.people.values.count { $0.role == .publicUser }
        let privateCount = self.content.people.count - publicCount
        guard privateCount < Self.privateCountMax else {
            throw ShareRefused(.tooManyParticipants, String(Self.privateCountMax))
        }
        self.row.publicCount = UInt32(publicCount)
        self.row.privateCount = UInt32(privateCount)
        self.content.row = self.row
        self.content.sharing.link = self.row.link
        self.content.sharing.version += 1
        return self.content
    }

    /// A new share takes the next number, and the link that the zone had before.
    private mutating func begin() throws(ShareRefused) {
        guard self.content.row == nil else { return }
        guard let link = self.content.sharing.link ?? self.draft.drawnLink else {
            throw ShareRefused(.ownerUnnameable)
        }
        self.content.number = self.content.sharing.nextShare
        self.content.sharing.nextShare += 1
        self.content.sharing.zoneWide = self.content.number
        self.content.people = [:]
        self.row.recordName = ShareNames.zoneWide
        self.row.link = link
        self.row.ownerID = self.draft.drawnOwnerID
        self.row.createdMilliseconds = self.milliseconds
    }

    /// A share that becomes public drops who has not accepted. One that becomes private again drops
    /// everybody.
    private mutating func open() {
        guard let permission = self.draft.publicPermission,
            permission != self.row.publicPermission
        else { return }
        let isClosed = permission == .none
        self.row.publicPermission = permission
        self.dropped = self.content.people.filter { isClosed || $0.value.status == .invited }
        for id in self.dropped.keys { self.content.people[id] = nil }
    }

    // MARK: The list

    private mutating func invite() throws(ShareRefused) {
        var mentioned: Set<UInt128> = []
        for entry in self.draft.invitations where !self.isOwner(entry) {
            if entry.role == .administrator, !entry.isRemoved {
                throw ShareRefused(.roleUnavailable)
            }
            if entry.role == .owner { throw ShareRefused(.participantUnknown) }
            guard let id = try self.participant(of: entry) else {
                // A client that lists whom this very save drops does not invite them again.
                if entry.isRemoved || self.isDropped(entry) { continue }
                // Nobody is invited as somebody who comes by the link.
                if entry.role == .publicUser { throw ShareRefused(.participantUnknown) }
                mentioned.insert(try self.add(entry))
                continue
            }
            guard mentioned.insert(id).inserted else {
                throw ShareRefused(.participantTwice, entry.identity?.text ?? "")
            }
            if entry.isRemoved {
                self.content.people[id] = nil
            } else if self.content.people[id]?.role == .user, let permission = entry.permission {
                self.content.people[id]?.permission = permission
            }
        }
        // The list takes the place of the private people. Public users go by their removal only.
        self.content.people = self.content.people.filter {
            mentioned.contains($0.key) || $0.value.role == .publicUser
        }
    }

    private func isOwner(_ entry: ShareInvitation) -> Bool {
        entry.participantID == self.row.ownerID && entry.participantID != 0
            || entry.identity == .user(self.owner)
            || (entry.role == .owner && entry.identity == nil)
    }

    private func participant(of entry: ShareInvitation) throws(ShareRefused) -> UInt128? {
        if let known = self.content.people[entry.participantID] {
            // An entry that means two people means neither.
            if case .user(let name)? = entry.identity, !known.isMeant(by: .user(name)) {
                throw ShareRefused(.participantUnknown)
            }
            return entry.participantID
        }
        guard let identity = entry.identity else { return nil }
        // Of several the least, so that every replica finds the same.
        return self.content.people.filter { $0.value.isMeant(by: identity) }.keys.min()
    }

    private func isDropped(_ entry: ShareInvitation) -> Bool {
        if self.dropped[entry.participantID] != nil { return true }
        guard let identity = entry.identity else { return false }
        return self.dropped.values.contains { $0.isMeant(by: identity) }
    }

    private mutating func add(_ entry: ShareInvitation) throws(ShareRefused) -> UInt128 {
        let id = entry.drawnID
        guard let identity = entry.identity, !identity.text.isEmpty,
            !identity.text.utf8.contains(0), id != 0, id != self.row.ownerID,
            self.content.people[id] == nil
        else { throw ShareRefused(.participantUnknown) }
        guard self.row.publicPermission == .none else { throw ShareRefused(.shareIsPublic) }
        self.content.people[id] = ParticipantRow {
            $0.identity = identity
            $0.permission = entry.permission ?? .readOnly
            $0.addedMilliseconds = self.milliseconds
        }
        return id
    }
}

struct ShareRefused: Error {
    let refusal: RecordRefusal

    init(_ reason: RecordRefusal.Reason, _ subject: String = "") {
        self.refusal = RecordRefusal(reason, subject)
    }
}
