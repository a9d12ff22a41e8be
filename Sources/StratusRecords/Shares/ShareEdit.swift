import StratusCoding
import StratusModel
import StratusRows

/// One share as one command changes it: what is stored, and what will be. An edit that is dropped
/// has changed nothing.
struct ShareEdit {
    /// The share with its people, or those of them that the command is about.
    struct Content: Equatable {
        var sharing = ZoneSharing()
        var number: UInt32 = 0
        /// Nil: there is no share.
        var row: ShareRow?
        var people: [UInt128: ParticipantRow] = [:]
    }

    let zone: ZoneNumber
    let original: Content
    var current: Content

    init(zone: ZoneNumber, _ content: Content) {
        self.zone = zone
        self.original = content
        self.current = content
    }

    // MARK: Reading

    /// The zone-wide share of a zone with everybody in it, or without anybody.
    static func load(
        _ zone: ZoneNumber, hasPeople: Bool, over rows: RowView
    ) throws(StoreError) -> ShareEdit {
        var content = Content()
        if let sharing = try ZoneSharing.stored(.share, ShareKeys.sharing(zone), over: rows) {
            content.sharing = sharing
        }
        content.number = content.sharing.zoneWide
        if content.number != 0 {
            content.row = try ShareRow.stored(
                .share, ShareKeys.share(zone, content.number), over: rows)
            if hasPeople {
                content.people = try Self.people(of: content.number, in: zone, over: rows)
            }
        }
        return ShareEdit(zone: zone, content)
    }

    static func people(
        of share: UInt32, in zone: ZoneNumber, over rows: RowView
    ) throws(StoreError) -> [UInt128: ParticipantRow] {
        let start = ShareKeys.participants(zone, share)
        var people: [UInt128: ParticipantRow] = [:]
        for (key, row) in try rows.rows(
            .share, from: start, to: Keys.end(of: start), limit: .max)
        {
            people[try ShareKeys.participant(in: key)] = try decodingRow("participant") {
                () throws(DecodingError) in try ParticipantRow(decoding: row)
            }
        }
        return people
    }

    /// One of the people, who is read with the share.
    mutating func add(_ id: UInt128, _ row: ParticipantRow) {
        var content = self.original
        content.people[id] = row
        self = ShareEdit(zone: self.zone, content)
    }

    // MARK: Changing

    /// Ends the share. Its number and its link stay those of the zone.
    mutating func end() {
        self.current.row = nil
        self.current.people = [:]
        self.current.sharing.zoneWide = 0
        self.current.sharing.version += 1
    }

    mutating func remove(_ id: UInt128) {
        guard let row = self.current.people.removeValue(forKey: id) else { return }
        if row.role == .publicUser {
            self.current.row?.publicCount -= 1
        } else {
            self.current.row?.privateCount -= 1
        }
        self.current.sharing.version += 1
    }

    /// What the list of somebody is to be told.
    func note(
        _ state: SharedZoneState, of zone: ZoneRow, named name: String
    ) -> SharedZoneNote {
        SharedZoneNote {
            $0.zone = name
            $0.incarnation = zone.incarnation
            $0.version.baseTag = zone.baseTag
            $0.version.number = self.current.sharing.version
            $0.state = state
        }
    }

    // MARK: Writing

    /// - Parameter name: the zone's.
    func flush(
        _ name: String, in database: DatabaseNumber, bugs: PlantedBugs, into rows: Rows
    ) throws(StoreError) {
        let (old, new) = (self.original, self.current)
        let ids = Set(old.people.keys).union(new.people.keys).sorted()
        // What goes before what comes: an identity or a user may pass from one to another.
        for id in ids where old.people[id] != new.people[id] {
            if bugs.contains(.removedParticipantReads), new.people[id] == nil { continue }
            try self.remove(id, old.people[id], staying: new.people[id], from: rows)
        }
        for id in ids where old.people[id] != new.people[id] {
            try self.put(id, new.people[id], into: rows)
        }
        if let link = old.row?.link, link != new.row?.link, !bugs.contains(.linkOutlivesShare) {
            try rows.remove(.zone, ShareKeys.link(database, link))
        }
        if let row = new.row {
            let link = LinkRow {
                $0.zone = name
                $0.number = self.zone.raw
                $0.share = new.number
            }
            if row.link != old.row?.link {
                try rows.put(.zone, ShareKeys.link(database, row.link), link.encoded())
            }
            if row != old.row {
                try rows.put(.share, ShareKeys.share(self.zone, new.number), row.encoded())
            }
        } else if old.row != nil {
            try rows.remove(.share, ShareKeys.share(self.zone, old.number))
        }
        if new.sharing != old.sharing {
            try rows.put(.share, ShareKeys.sharing(self.zone), new.sharing.encoded())
        }
    }

    private func remove(
        _ id: UInt128, _ row: ParticipantRow?, staying: ParticipantRow?, from rows: Rows
    ) throws(StoreError) {
        guard let row else { return }
        let number = self.original.number
        if staying == nil {
            try rows.remove(.share, ShareKeys.participant(self.zone, number, id))
        }
        if row.status == .invited, let identity = row.identity,
            let key = ShareKeys.invited(self.zone, number, identity)
        {
            try rows.remove(.share, key)
        }
        if row.status == .accepted {
            try self.changeStanding(of: row.user, to: nil, number, in: rows)
        }
    }

    private func put(_ id: UInt128, _ row: ParticipantRow?, into rows: Rows) throws(StoreError) {
        guard let row else { return }
        let number = self.current.number
        try rows.put(.share, ShareKeys.participant(self.zone, number, id), row.encoded())
        if row.status == .invited, let identity = row.identity,
            let key = ShareKeys.invited(self.zone, number, identity)
        {
            try rows.put(.share, key, InvitedRow { $0.participant = id }.encoded())
        }
        if row.status == .accepted {
            let share = StandingRow.Share {
                $0.number = number
                $0.participant = id
                $0.permission = row.permission
                $0.role = row.role
            }
            try self.changeStanding(of: row.user, to: share, number, in: rows)
        }
    }

    private func changeStanding(
        of user: String, to share: StandingRow.Share?, _ number: UInt32, in rows: Rows
    ) throws(StoreError) {
        let key = ShareKeys.standing(self.zone, user)
        var standing = try StandingRow.stored(.share, key, over: rows.view) ?? StandingRow()
        standing.shares.removeAll { $0.number == number }
        if let share {
            let place = standing.shares.firstIndex { $0.number > number }
            standing.shares.insert(share, at: place ?? standing.shares.endIndex)
        }
        standing.version = self.current.sharing.version
        if standing.shares.isEmpty {
            try rows.remove(.share, key)
        } else {
            try rows.put(.share, key, standing.encoded())
        }
    }
}
