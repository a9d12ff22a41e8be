import StratusCoding
import StratusModel
import StratusRows

/// Recovery of a partition that goes on from one replica after its majority was lost (decision
/// 0220).
///
/// Others may have seen changes that are not here: tags were given, positions handed out, mail
/// received. None of those may ever fit what comes from now on. So every counter moves far beyond
/// what can have been lost, and what remembers the old ones is told that it may have missed
/// something.
extension RecordState {
    /// How far tags and numbers of mail move: nobody changes a zone so often between two
    /// recoveries.
    static let tagStride: UInt64 = 1 << 40
    static let turnStride: UInt64 = 1 << 32
    private static let keyStride: UInt32 = 1 << 16
    /// How far everything moves that counts by the numbers of events. All of it moves by the same:
    /// so a follower stands where it stood, and what it was not told it still is.
    private static let eventStride: UInt64 = 1 << 40
    private static let rowPage = 500

    /// The beginning of the next stride.
    static func lifted(_ number: UInt64, by stride: UInt64 = tagStride) -> UInt64 {
        (number / stride + 1) * stride
    }

    /// One entry, however many zones there are: until it is done nothing may be read or written.
    mutating func recover(
        _ command: Command, over rows: Rows
    ) throws(StoreError) -> RecordOutcome {
        guard command.principal.kind == .system else {
            return .refused(RequestRefusal(.accessDenied))
        }
        self.cache.forget()
        var counters = try StoredRows.counters(over: rows.view)
        counters.tagFloor = Self.lifted(counters.tagFloor)
        if !self.bugs.contains(.newDatabaseNotLifted) {
            // As far as a database comes that every recovery so far has lifted.
            counters.turnFloor = counters.tagFloor / Self.tagStride * Self.turnStride
        }
        counters.eventFloor += Self.eventStride
        try rows.put(.database, Keys.counters, counters.encoded())
        let start = Keys.allDatabases
        for (key, row) in try rows.view.rows(
            .database, from: start, to: Keys.end(of: start), limit: .max)
        {
            var database = try decodingRow("database") { () throws(DecodingError) in
                try DatabaseRow(decoding: row)
            }
            guard let id = Keys.database(decoding: key) else {
                throw StoreError(.unreadable, "database")
            }
            try self.recover(&database, id, over: rows)
            try Self.liftEvents(of: database.number, over: rows)
            try rows.put(.database, key, database.encoded())
        }
        try self.office.recover(over: rows)
        return .recovered
    }

    private func recover(
        _ database: inout DatabaseRow, _ id: DatabaseID, over rows: Rows
    ) throws(StoreError) {
        let start = Keys.zonePrefix(database.number)
        for (key, row) in try rows.view.rows(
            .zone, from: start, to: Keys.end(of: start), limit: .max)
        {
            guard let name = String(validating: key.dropFirst(start.count), as: UTF8.self) else {
                throw StoreError(.unreadable, "zone")
            }
            var zone = try StoredRows.zone(decoding: row)
            if self.bugs.contains(.lostTokensHonoured) { continue }
            zone.lastTag = Self.lifted(zone.lastTag)
            if name != ZoneID.defaultName { try self.expire(&zone, name, of: id, over: rows) }
            try Self.liftSharing(of: zone.number, over: rows)
            if zone.turn != 0 {
                try rows.remove(.zone, Keys.turn(database.number, zone.turn))
                zone.turn += Self.turnStride
                try rows.put(.zone, Keys.turn(database.number, zone.turn), Bytes(name.utf8))
            }
            try rows.put(.zone, key, zone.encoded())
        }
        try Self.liftSharedZones(of: database.number, over: rows)
        try self.liftKeys(of: database.number, id, over: rows)
        database.oldestTurn = Self.lifted(database.turn, by: Self.turnStride)
        database.turn += Self.turnStride
        database.tagFloor = Self.lifted(database.tagFloor)
    }

    /// Passes over the versions of keys that may have been lost: a gateway may still seal under one
    /// of them, and no other key may ever have its number.
    private func liftKeys(
        of database: DatabaseNumber, _ id: DatabaseID, over rows: Rows
    ) throws(StoreError) {
        let start = AssetKeys.databaseKeys(database)
        let isKeyed = try !rows.view.keys(.key, from: start, to: Keys.end(of: start), limit: 1)
            .isEmpty
        let newest = try AssetRows.newestKey(of: database, over: rows.view)?.version ?? 0
        guard isKeyed, newest < .max - Self.keyStride else { return }
        try rows.put(
            .key, AssetKeys.databaseKey(database, (newest / Self.keyStride + 1) * Self.keyStride),
            KeyRow(database: id, key: nil).encoded())
    }

    /// Expires every position in the zone's feed, as if a tombstone had been dropped just now:
    /// every client begins again. The existing tombstones no longer tell anybody anything.
    private func expire(
        _ zone: inout ZoneRow, _ name: String, of database: DatabaseID,
        over rows: Rows
    ) throws(StoreError) {
        if !zone.isDeleted, zone.tombstoneCount > 0 {
            let trim = Job.trim(
                zone.number, JobPlace(database: database, zone: name), keep: 0,
                cursor: ChangeTag(zone.baseTag))
            try rows.put(.job, trim.key, trim.encoded())
        }
        zone.oldestTag = zone.lastTag
    }

    /// Moves the events of a database, and what stands at them, beyond all that may have been lost.
    private static func liftEvents(
        of database: DatabaseNumber, over rows: Rows
    ) throws(StoreError) {
        if let row = try rows.row(.subscription, Keys.watch(database)) {
            var watch = try decodingRow("watch") { () throws(DecodingError) in
                try WatchRow(decoding: row)
            }
            // Above the last one: what was moved already is not met again.
            let end = Keys.event(database, watch.nextEvent)
            try Self.eachRow(.event, Keys.event(database, 0), end, over: rows) {
                (key, row, rows) throws(StoreError) in
                let number = try Keys.number(key, at: 4)
                try rows.remove(.event, key)
                try rows.put(.event, Keys.event(database, number + Self.eventStride), row)
            }
            watch.nextEvent += Self.eventStride
            watch.oldestEvent += Self.eventStride
            watch.front += Self.eventStride
            watch.oldestMark += Self.eventStride
            try rows.put(.subscription, Keys.watch(database), watch.encoded())
        }
        for kind in Keys.SubscriptionKind.allCases {
            let lift: (Bytes) throws(DecodingError) -> Bytes
            switch kind {
            case .watch, .interest: continue
            case .subscription:
                lift = { (row) throws(DecodingError) in
                    var subscription = try SubscriptionRow(decoding: row)
                    subscription.since += Self.eventStride
                    return subscription.encoded()
                }
            case .mark:
                lift = { (row) throws(DecodingError) in
                    let marks = try ZoneMarksRow(decoding: row)
                    return ZoneMarksRow(numbers: marks.numbers.map { $0 + Self.eventStride })
                        .encoded()
                }
            case .follower, .deviceFollower:
                lift = { (row) throws(DecodingError) in
                    var follower = try FollowerRow(decoding: row)
                    follower.position.number += Self.eventStride
                    return follower.encoded()
                }
            }
            let start = Keys.subscriptionRows(kind, of: database)
            try Self.eachRow(.subscription, start, Keys.end(of: start), over: rows) {
                (key, row, rows) throws(StoreError) in
                let lifted = try decodingRow("subscription") { () throws(DecodingError) in
                    try lift(row)
                }
                try rows.put(.subscription, key, lifted)
            }
        }
    }

    /// All rows of a range, a page at a time.
    private static func eachRow(
        _ table: Table, _ start: Bytes, _ end: Bytes, over rows: Rows,
        _ change: (_ key: Bytes, _ row: Bytes, _ rows: Rows) throws(StoreError) -> Void
    ) throws(StoreError) {
        var next = start
        while true {
            let page = try rows.view.rows(table, from: next, to: end, limit: Self.rowPage)
            for (key, row) in page { try change(key, row, rows) }
            guard page.count == Self.rowPage, let last = page.last else { return }
            next = last.key + [0]
        }
    }
}
