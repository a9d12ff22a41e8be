import StratusCoding
import StratusModel
import StratusRows

// The rows of sharing. Each is 1 byte of format, 1, and then its fields as they are laid.
//
// | table | key                                                             | row                |
// | ----- | --------------------------------------------------------------- | ------------------ |
// | share | 4 zone, 0x01                                                    | `ZoneSharing`      |
// |       | 4 zone, 0x02, 4 share                                           | `ShareRow`         |
// |       | 4 zone, 0x03, 4 share, 16 participant                           | `ParticipantRow`   |
// |       | 4 zone, 0x04, user                                              | `StandingRow`      |
// |       | 4 zone, 0x09, 4 share, 1 kind of identity, user or hash         | `InvitedRow`       |
// | zone  | 4 database, 0x02, 33 link                                       | `LinkRow`          |
// |       | 4 database, 0x03, owner, 0x00, zone                             | `SharedZoneRow`    |
// |       | 4 database, 0x04, 8 turn                                        | `SharedTurnRow`    |
// |       | 4 database, 0x05                                                | `SharedFeedRow`    |
//
// The first six belong to the zone's owner. The last three are the list of a participant: zones of
// others, in the participant's own database.

enum ShareKeys {
    static func sharing(_ zone: ZoneNumber) -> Bytes { Self.key(zone, 0x01) }

    static func share(_ zone: ZoneNumber, _ share: UInt32) -> Bytes {
        Self.key(zone, 0x02) + Keys.bytes(share, reserving: 0)
    }

    static func participants(_ zone: ZoneNumber, _ share: UInt32) -> Bytes {
        Self.key(zone, 0x03) + Keys.bytes(share, reserving: 16)
    }

    static func participant(_ zone: ZoneNumber, _ share: UInt32, _ id: UInt128) -> Bytes {
        var key = Self.participants(zone, share)
        Keys.append(UInt64(truncatingIfNeeded: id >> 64), to: &key)
        Keys.append(UInt64(truncatingIfNeeded: id), to: &key)
        return key
    }

    /// The participant of the key that ends a key of ``participants(_:_:)``.
    static func participant(in key: Bytes) throws(StoreError) -> UInt128 {
        guard key.count == 25 else { throw StoreError(.unreadable, "participant key") }
        return key[9...].reduce(0) { $0 << 8 | UInt128($1) }
    }

    static func standing(_ zone: ZoneNumber, _ user: String) -> Bytes {
        Self.key(zone, 0x04) + Bytes(user.utf8)
    }

    /// Nil: nobody can be recognised by such an identity.
    static func invited(
        _ zone: ZoneNumber, _ share: UInt32, _ identity: ShareIdentity
    ) -> Bytes? {
        let name: Bytes
        switch identity {
        case .user(let user): name = Bytes(user.utf8)
        case .address(_, let hash): name = hash
        case .phone: return nil
        }
        return Self.key(zone, 0x09) + Keys.bytes(share, reserving: 64) + [identity.number] + name
    }

    static func link(_ database: DatabaseNumber, _ link: ShareLink) -> Bytes {
        Keys.bytes(database.raw, reserving: 34) + [0x02] + link.bytes
    }

    static func sharedZones(_ database: DatabaseNumber) -> Bytes {
        Keys.bytes(database.raw, reserving: 64) + [0x03]
    }

    static func sharedZone(_ database: DatabaseNumber, _ name: SharedZoneName) -> Bytes {
        Self.sharedZones(database) + Bytes(name.owner.utf8) + [0] + Bytes(name.zone.utf8)
    }

    static func sharedZone(in key: Bytes) throws(StoreError) -> SharedZoneName {
        let rest = key.dropFirst(5)
        guard let end = rest.firstIndex(of: 0),
            let owner = String(validating: rest[..<end], as: UTF8.self),
            let zone = String(validating: rest[(end + 1)...], as: UTF8.self)
        else { throw StoreError(.unreadable, "shared zone key") }
        return SharedZoneName {
            $0.owner = owner
            $0.zone = zone
        }
    }

    static func sharedTurn(_ database: DatabaseNumber, _ turn: UInt64) -> Bytes {
        var key = Keys.bytes(database.raw, reserving: 9) + [0x04]
        Keys.append(turn, to: &key)
        return key
    }

    static func sharedFeed(_ database: DatabaseNumber) -> Bytes {
        Keys.bytes(database.raw, reserving: 1) + [0x05]
    }

    /// All rows of a database's list of zones of others, in the zone table.
    static func list(_ database: DatabaseNumber) -> (from: Bytes, to: Bytes) {
        let start = Keys.bytes(database.raw, reserving: 1)
        return (start + [0x03], start + [0x06])
    }

    private static func key(_ zone: ZoneNumber, _ kind: UInt8) -> Bytes {
        Keys.bytes(zone.raw, reserving: 48) + [kind]
    }
}

/// The sharing of one incarnation of a zone. It outlives the shares, so that their numbers, the
/// link and the version go on where they were.
struct ZoneSharing: FormRow, Equatable {
    var nextShare: UInt32 = 1
    /// The share of the whole zone; 0: none.
    var zoneWide: UInt32 = 0
    /// Grows with every change of who stands in the zone.
    var version: UInt64 = 0
    /// The link of the zone-wide share: a zone that is shared again keeps it.
    var link: ShareLink?

    init() {}

    mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.nextShare)
        try form.lay(&self.zoneWide)
        try form.lay(&self.version)
        try form.lay(&self.link)
    }
}

/// One share.
struct ShareRow: FormRow, Equatable {
    var recordName = ""
    /// Empty: the share is of the whole zone.
    var rootName = ""
    var link = ShareLink()
    var publicPermission = SharePermission.none
    var ownerID: UInt128 = 0
    var ownerName = ShownName()
    var createdMilliseconds: Int64 = 0
    /// Private people, the owner left out.
    var privateCount: UInt32 = 0
    var publicCount: UInt32 = 0

    init() {}

    mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.recordName)
        try form.lay(&self.rootName)
        try form.lay(&self.link)
        try form.lay(&self.publicPermission)
        try form.lay(name: &self.ownerID)
        try form.lay(&self.ownerName)
        try form.lay(&self.createdMilliseconds)
        try form.lay(&self.privateCount)
        try form.lay(&self.publicCount)
    }
}

/// Somebody else than the owner in a share.
struct ParticipantRow: FormRow, Equatable {
    /// As the invitation gave it; nil: there was none.
    var identity: ShareIdentity?
    /// Who has accepted; empty while nobody has.
    var user = ""
    /// What the owner gave; of public users it is the share's.
    var permission = SharePermission.readOnly
    var role = ShareRole.user
    var status = ShareStatus.invited
    var name = ShownName()
    var addedMilliseconds: Int64 = 0

    init() {}

    mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.identity)
        try form.lay(&self.user)
        try form.lay(&self.permission)
        try form.lay(&self.role)
        try form.lay(&self.status)
        try form.lay(&self.name)
        try form.lay(&self.addedMilliseconds)
    }

    /// Whether an entry that names `identity` means this participant.
    func isMeant(by identity: ShareIdentity) -> Bool {
        if let own = self.identity, own.isSame(as: identity) { return true }
        if case .user(let name) = identity { return !name.isEmpty && name == self.user }
        return false
    }
}

/// Where a user stands in a zone: the shares that the user has accepted.
struct StandingRow: FormRow, Equatable {
    /// Shares of one zone that one user may have accepted.
    static let shareCountMax = 64

    struct Share: FormValue, Equatable {
        var number: UInt32 = 0
        var participant: UInt128 = 0
        var permission = SharePermission.readOnly
        var role = ShareRole.user

        init() {}

        mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
            try form.lay(&self.number)
            try form.lay(name: &self.participant)
            try form.lay(&self.permission)
            try form.lay(&self.role)
        }
    }

    /// By their numbers.
    var shares: [Share] = []
    /// The zone's version at the last change of this row.
    var version: UInt64 = 0

    init() {}

    mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.shares, atMost: Self.shareCountMax)
        try form.lay(&self.version)
    }
}

/// Whom an identity was invited as.
struct InvitedRow: FormRow, Equatable {
    var participant: UInt128 = 0

    init() {}

    mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(name: &self.participant)
    }
}

/// The share of a link.
struct LinkRow: FormRow, Equatable {
    var zone = ""
    var number: UInt32 = 0
    var share: UInt32 = 0

    init() {}

    mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.zone)
        try form.lay(&self.number)
        try form.lay(&self.share)
    }
}

/// A zone of somebody else's in a participant's list.
struct SharedZoneRow: FormRow, Equatable {
    var incarnation = ZoneIncarnation(0)
    var state = SharedZoneState.accepted
    var version = ShareVersion()
    var turn: UInt64 = 0

    init() {}

    mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(fixed: &self.incarnation.raw)
        try form.lay(&self.state)
        try form.lay(&self.version)
        try form.lay(&self.turn)
    }
}

/// The zone of a turn in a participant's list.
struct SharedTurnRow: FormRow, Equatable {
    var name = SharedZoneName()

    init() {}

    mutating func lay<F: Form>(in form: inout F) throws(F.Problem) { try form.lay(&self.name) }
}

/// The counters of a participant's list.
struct SharedFeedRow: FormRow, Equatable {
    var turn: UInt64 = 0
    /// Rows of zones that the participant may use, and of zones that are gone.
    var acceptedCount: UInt64 = 0
    var goneCount: UInt64 = 0

    init() {}

    mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.turn)
        try form.lay(&self.acceptedCount)
        try form.lay(&self.goneCount)
    }
}
