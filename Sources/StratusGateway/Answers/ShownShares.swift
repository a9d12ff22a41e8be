import StratusHTTP
import StratusModel
import StratusRecords

/// The people and settings of the shares whose records an answer holds, as its reader may see them.
/// They stand in rows of their own, so a share's record alone shows nothing of them.
struct ShownShares: Sendable {
    /// Whether the app may receive people's names.
    var receivesNames = false
    /// By the zone of a share: one has one share.
    private var details: [ZoneID: ShareDetail] = [:]
    /// Whether it was asked for shares: a record of one that is not here is there no more.
    private var isComplete = false

    static let none = ShownShares()

    init() {}

    /// - Parameter detail: nil: the zone is shared no more.
    init(_ detail: ShareDetail?, in zone: ZoneID, receivesNames: Bool) {
        self.isComplete = true
        self.details[zone] = detail
        self.receivesNames = receivesNames
    }

    /// Whether a record is of a share that has ended since the record was read.
    func isGone(_ record: Record) -> Bool {
        self.isComplete && record.type == ShareNames.type && self.detail(of: record) == nil
    }

    /// Nil for every record that is no share.
    func detail(of record: Record) -> ShareDetail? {
        // Hardly an answer has one.
        if self.details.isEmpty { return nil }
        guard record.type == ShareNames.type, let detail = self.details[record.zone],
            detail.recordName == record.name
        else { return nil }
        return detail
    }
}

extension JSONWriter {
    /// The members that a share's record has beside those of every record.
    mutating func writeShareMembers(of detail: ShareDetail, receivesNames: Bool) {
        self.member("publicPermission", Self.word(detail.publicPermission))
        if detail.reader == .owner, detail.publicCount > 0 {
            self.member("publicParticipantCount", Int64(clamping: detail.publicCount))
        }
        if let owner = detail.participants.first(where: { $0.role == .owner }) {
            self.key("owner")
            self.writeParticipant(owner, receivesNames: receivesNames)
        }
        self.key("currentUserParticipant")
        self.writeParticipant(detail.caller, receivesNames: receivesNames)
        self.key("participants")
        self.array { array in
            for participant in detail.participants {
                array.writeParticipant(participant, receivesNames: receivesNames)
            }
        }
    }

    private mutating func writeParticipant(_ person: ShareParticipant, receivesNames: Bool) {
        self.object {
            // Somebody with the link of a public share has none before accepting.
            if person.id != 0 { $0.member("participantId", ParticipantID.text(person.id)) }
            $0.member("type", Self.word(person.role))
            $0.member("acceptanceStatus", Self.word(person.status))
            $0.member("permission", Self.word(person.permission))
            if person.addedMilliseconds != 0 {
                $0.member("dateAddedToShare", person.addedMilliseconds)
            }
            $0.key("userIdentity")
            $0.writeIdentity(of: person, receivesNames: receivesNames)
        }
    }

    mutating func writeIdentity(of person: ShareParticipant, receivesNames: Bool) {
        self.object {
            if !person.user.isEmpty { $0.member("userRecordName", person.user) }
            if receivesNames, !person.name.isEmpty {
                $0.key("nameComponents")
                $0.object {
                    $0.member("givenName", person.name.given)
                    $0.member("familyName", person.name.family)
                }
            }
        }
    }

    static func word(_ permission: SharePermission) -> String {
        switch permission {
        case .none: "NONE"
        case .readOnly: "READ_ONLY"
        case .readWrite: "READ_WRITE"
        }
    }

    static func word(_ status: ShareStatus) -> String {
        switch status {
        case .invited: "INVITED"
        case .accepted: "ACCEPTED"
        }
    }

    /// Older clients stop at `ADMINISTRATOR`.
    static func word(_ role: ShareRole) -> String {
        switch role {
        case .owner: "OWNER"
        case .administrator, .user: "USER"
        case .publicUser: "PUBLIC_USER"
        }
    }
}
