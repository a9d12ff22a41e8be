import StratusHTTP
import StratusModel
import StratusRecords
import StratusRuntime

/// Reads the settings of a share from the record that a client saves: who is invited, and who may
/// come by the link. What depends on the stored share, the partition decides.
///
/// Clients send back what they were answered, with a change in it. So what repeats an answer is
/// understood, and what says nothing here is passed over.
struct ShareReader {
    let record: Input

    /// Whether an operation is about a share. A deletion needs no more than the record's name.
    static func isShare(_ operation: ModifyRequest.Operation) -> Bool {
        !operation.kind.isDelete
            && (operation.recordType == ShareNames.type
                || operation.recordName == ShareNames.zoneWide)
    }

    /// The draft, all but its link.
    func draft(
        of operation: ModifyRequest.Operation, draws: inout Draws
    ) throws(InputRefusal) -> ShareDraft {
        try self.requireZoneWide(operation)
        var draft = ShareDraft()
        draft.drawnOwnerID = draws.name()
        draft.publicPermission = try self.permission(
            self.record, "publicPermission", mayBeNone: true)
        draft.asksForNewLink = try self.record.flag("newShortGUID") ?? false
        try self.refuseUnavailable()
        guard let list = try self.record.array("participants") else { return draft }
        draft.statesInvitations = true
        for element in list {
            let invitation = try self.invitation(
                try Input(element, at: "participants"), draws: &draws)
            switch invitation.role {
            // The owner stays, whatever a list says, and public users go by `REMOVED` only.
            case .owner where invitation.identity == nil: continue
            case .publicUser where !invitation.isRemoved && invitation.participantID != 0: continue
            case .owner, .administrator, .publicUser, .user, nil:
                draft.invitations.append(invitation)
            }
            guard draft.invitations.count <= ShareDraft.invitationCountMax else {
                throw .tooMany(
                    key: "participants", count: list.count, limit: ShareDraft.invitationCountMax)
            }
        }
        return draft
    }

    /// A share of a zone has a name of its own, and names no record. Nothing else has that name.
    private func requireZoneWide(
        _ operation: ModifyRequest.Operation
    ) throws(InputRefusal) {
        let isNamed = operation.recordName == ShareNames.zoneWide
        guard operation.recordType ?? ShareNames.type == ShareNames.type else {
            throw .nothingToShare
        }
        if self.record["forRecord"] != nil {
            throw isNamed ? .nothingToShare : .recordShareUnavailable
        }
        guard isNamed else { throw .nothingToShare }
    }

    /// Who asks for something that there is not yet must not believe that it holds.
    private func refuseUnavailable() throws(InputRefusal) {
        if try self.record.flag("denyAccessRequests") == false {
            throw .keyUnavailable("denyAccessRequests")
        }
        for key in ["allowsAccessRequests", "publicAnonymousAccess"]
        where try self.record.flag(key) == true {
            throw .keyUnavailable(key)
        }
        for key in ["blocked", "requesters"]
        where try self.record.array(key).map({ Array($0).isEmpty }) == false {
            throw .keyUnavailable(key)
        }
    }

    private func invitation(
        _ entry: Input, draws: inout Draws
    ) throws(InputRefusal) -> ShareInvitation {
        var invitation = ShareInvitation()
        invitation.drawnID = max(1, draws.name())
        if let text = try entry.string("participantId") {
            invitation.participantID = ParticipantID.number(text)
        }
        invitation.role = try self.role(entry)
        if invitation.role != .owner {
            invitation.permission = try self.permission(entry, "permission", mayBeNone: false)
        }
        switch try entry.string("acceptanceStatus") {
        case nil, "INVITED", "PENDING", "ACCEPTED", "UNKNOWN": break
        case "REMOVED": invitation.isRemoved = true
        default: throw .unexpectedInput(key: "acceptanceStatus")
        }
        if let identity = entry["userIdentity"] {
            invitation.identity = try self.identity(try Input(identity, at: "userIdentity"))
        }
        return invitation
    }

    private func role(_ entry: Input) throws(InputRefusal) -> ShareRole? {
        switch try entry.string("type") {
        case nil, "UNKNOWN": nil
        case "OWNER": .owner
        case "ADMINISTRATOR": .administrator
        case "USER": .user
        case "PUBLIC_USER": .publicUser
        default: throw .unexpectedInput(key: "type")
        }
    }

    private func permission(
        _ input: Input, _ key: String, mayBeNone: Bool
    ) throws(InputRefusal) -> SharePermission? {
        switch try input.string(key) {
        case nil, "UNKNOWN": nil
        case "NONE" where mayBeNone: SharePermission.none
        case "READ_ONLY": .readOnly
        case "READ_WRITE": .readWrite
        default: throw .unexpectedInput(key: key)
        }
    }

    /// Nil: the entry names nobody beside its participant.
    private func identity(_ identity: Input) throws(InputRefusal) -> ShareIdentity? {
        var name = try identity.string("userRecordName")
        if name == nil, let given = identity["lookupInfo"] {
            let lookUp = try Input(given, at: "lookupInfo")
            name = try lookUp.string("userRecordName")
            if name == nil {
                for key in ["emailAddress", "phoneNumber"] where try lookUp.string(key) != nil {
                    throw .invitationUnavailable
                }
            }
        }
        guard let name else { return nil }
        guard NameRules.isUserRecordName(name) else {
            throw .unexpectedInput(key: "userRecordName")
        }
        return .user(name)
    }
}

/// The ID of a participant as clients have it: 128 bits as an upper-case UUID.
enum ParticipantID {
    static func text(_ number: UInt128) -> String {
        RequestIdentity(
            high: UInt64(truncatingIfNeeded: number >> 64), low: UInt64(truncatingIfNeeded: number)
        ).uuid.uppercased()
    }

    /// 0 for text that is nobody's.
    static func number(_ text: String) -> UInt128 {
        let groups = text.split(separator: "-", omittingEmptySubsequences: false)
        guard groups.map(\.utf8.count) == [8, 4, 4, 4, 12],
            groups.allSatisfy({ $0.allSatisfy(\.isHexDigit) })
        else { return 0 }
        return UInt128(groups.joined(), radix: 16) ?? 0
    }
}
