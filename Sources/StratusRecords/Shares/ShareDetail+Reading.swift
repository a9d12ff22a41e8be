import StratusModel

// What of a share a reader may see. Whatever is left out here is seen by nobody who may not.

extension ShareDetail {
    /// A share for who may read in its zone.
    init(
        _ row: ShareRow, _ people: [UInt128: ParticipantRow], for standing: Standing,
        _ user: String, owner: String
    ) {
        self.init(row)
        let isOwner = standing == .owner
        self.reader = isOwner ? .owner : .participant
        self.participants = [ShareParticipant(ownerOf: row, owner, isShownAll: isOwner)]
        let all = people.sorted {
            ($0.value.addedMilliseconds, $0.key) < ($1.value.addedMilliseconds, $1.key)
        }
        let newest = Set(
            all.filter { $0.value.role == .publicUser }.suffix(Self.shownPublicCountMax).map(\.key))
        for (id, person) in all {
            let isSelf = !isOwner && person.status == .accepted && person.user == user
            let isSeen =
                isOwner
                ? person.role != .publicUser || newest.contains(id)
                : isSelf || person.role == .user && person.status == .accepted
            guard isSeen else { continue }
            let shown = ShareParticipant(id, person, row, isShownAll: isOwner || isSelf)
            self.participants.append(shown)
            if isSelf { self.caller = shown }
        }
        if isOwner {
            self.publicCount = UInt64(row.publicCount)
            self.caller = self.participants[0]
        }
    }

    fileprivate init(_ row: ShareRow) {
        self.init()
        self.recordName = row.recordName
        self.rootName = row.rootName
        self.link = row.link
        self.publicPermission = row.publicPermission
    }
}

extension LinkedShare {
    /// The share for who comes with its link: the owner of the zone and the caller.
    func detail(owner: String) -> ShareDetail {
        var detail = ShareDetail(self.row)
        let first = ShareParticipant(ownerOf: self.row, owner, isShownAll: self.caller == .owner)
        detail.participants = [first]
        switch self.caller {
        case .owner:
            detail.reader = .owner
            detail.caller = first
        case .participant, .invited:
            detail.reader = self.caller == .invited ? .invited : .participant
            guard let (id, person) = self.participant else { break }
            detail.caller = ShareParticipant(id, person, self.row, isShownAll: true)
            detail.participants.append(detail.caller)
        case .stranger:
            detail.reader = .invited
            detail.caller.role = .publicUser
            detail.caller.permission = self.row.publicPermission
        }
        // Only participants are told since when they are.
        if detail.reader == .invited {
            detail.caller.addedMilliseconds = 0
            for place in detail.participants.indices {
                detail.participants[place].addedMilliseconds = 0
            }
        }
        return detail
    }
}

extension ShareParticipant {
    fileprivate init(ownerOf row: ShareRow, _ owner: String, isShownAll: Bool) {
        self.init()
        self.id = row.ownerID
        self.user = owner
        self.role = .owner
        self.status = .accepted
        self.permission = .readWrite
        self.name = row.ownerName
        if isShownAll { self.addedMilliseconds = row.createdMilliseconds }
    }

    /// - Parameter isShownAll: with the address as it was typed, and the date.
    fileprivate init(
        _ id: UInt128, _ person: ParticipantRow, _ row: ShareRow, isShownAll: Bool
    ) {
        self.init()
        self.id = id
        self.user = person.user
        if person.user.isEmpty, case .user(let name)? = person.identity { self.user = name }
        self.role = person.role
        self.status = person.status
        self.permission =
            person.role == .publicUser ? row.publicPermission : person.permission
        self.name = person.name
        guard isShownAll else { return }
        self.identity = person.identity
        self.addedMilliseconds = person.addedMilliseconds
    }
}
