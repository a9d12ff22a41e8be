import StratusModel
import StratusRows

extension RecordState {
    /// Takes zones out of a database, a bounded number of them. Their rows lose their owner at once
    /// and are purged by jobs, as those of deleted zones are.
    mutating func apply(
        _ erase: EraseDatabase, of command: Command, over rows: Rows
    ) throws(StoreError) -> RecordOutcome {
        guard command.principal.kind == .system || command.principal.kind == .administrator
        else { return .refused(RequestRefusal(.accessDenied)) }
        var progress = ErasureProgress(zoneCount: 0, recordCount: 0, hasMore: false)
        guard var database = try self.cache.database(erase.database, over: rows.view) else {
            return .erased(progress)
        }
        self.hasErased = true
        try self.destroyKeys(of: database.number, erase.database, over: rows)
        let limit = min(max(erase.zoneCount, 1), EraseDatabase.zoneCountMax)
        let start = Keys.zonePrefix(database.number)
        let found = try rows.view.rows(
            .zone, from: start, to: Keys.end(of: start), limit: limit + 1)
        if found.isEmpty {
            progress.hasMore = try self.eraseSharedZones(
                of: database.number, limit: limit, over: rows)
            if progress.hasMore { return .erased(progress) }
            progress.hasMore = try self.eraseSubscriptions(
                of: database.number, limit: limit, over: rows)
            return .erased(progress)
        }
        // The list of zones of others, and what watches the database, go last.
        let isWatched = try StoredRows.isWatched(database.number, over: rows.view)
        let list = ShareKeys.list(database.number)
        let hasList = try !rows.view.keys(.zone, from: list.from, to: list.to, limit: 1).isEmpty
        progress.hasMore = found.count > limit || isWatched || hasList
        // Nobody's turn: every zone that goes is one of the others.
        try database.settle(over: rows.view)
        for (key, row) in found.prefix(limit) {
            guard let name = String(validating: key.dropFirst(start.count), as: UTF8.self) else {
                throw StoreError(.unreadable, "zone")
            }
            var zone = try StoredRows.zone(decoding: row)
            try Self.endSharing(of: &zone, in: database.number, over: rows)
            if zone.isDeleted {
                database.deletedZoneCount -= 1
            } else {
                // A deleted zone has its job already.
                let purge = Job.purge(zone.number, hasAssets: zone.assetRecordCount > 0)
                try rows.put(.job, purge.key, purge.encoded())
                progress.recordCount += zone.recordCount
                // These three are in nobody's count of zones.
                if name != ZoneID.defaultName, !ZoneID.isReserved(name) {
                    database.heldElsewhere = database.heldElsewhere - zone.held
                    database.zoneCount -= 1
                    progress.zoneCount += 1
                }
            }
            database.tagFloor = max(database.tagFloor, zone.lastTag)
            if zone.turn != 0 { try rows.remove(.zone, Keys.turn(database.number, zone.turn)) }
            try rows.remove(.zone, key)
            self.cache.forgetZone(name, in: database.number)
        }
        // A turn of nobody: every position in the feed was before it, and has expired.
        database.turn += 1
        database.oldestTurn = database.turn
        if self.bugs.contains(.bitsErased) { database.buckets?.mask = BucketMask() }
        try rows.put(.database, Keys.database(erase.database), database.encoded())
        self.cache.remember(database, of: erase.database)
        return .erased(progress)
    }

    /// Removes a bounded number of the rows of zones of others.
    /// - Returns: whether some remain.
    private func eraseSharedZones(
        of database: DatabaseNumber, limit: Int, over rows: Rows
    ) throws(StoreError) -> Bool {
        let list = ShareKeys.list(database)
        let keys = try rows.view.keys(.zone, from: list.from, to: list.to, limit: limit)
        for key in keys { try rows.remove(.zone, key) }
        return keys.count == limit
    }

    /// Removes a bounded number of the rows that watch a database: subscriptions, events, and who
    /// follows them.
    /// - Returns: whether some remain.
    private mutating func eraseSubscriptions(
        of database: DatabaseNumber, limit: Int, over rows: Rows
    ) throws(StoreError) -> Bool {
        // The cache may not know what is half gone.
        let floor = try StoredRows.counters(over: rows.view).eventFloor
        self.cache.remember(WatchRow(above: floor), of: database)
        self.cache.forgetNews(of: database)
        var left = limit
        for (table, start) in StoredRows.watchedRanges(database) {
            let keys = try rows.view.keys(table, from: start, to: Keys.end(of: start), limit: left)
            for key in keys { try rows.remove(table, key) }
            left -= keys.count
            if left == 0 { return try StoredRows.isWatched(database, over: rows.view) }
        }
        return false
    }
}

extension RecordState {
    mutating func takeErased() -> Bool {
        defer { self.hasErased = false }
        return self.hasErased
    }

    /// The numbers of the zones that jobs have still to purge: the least and the greatest.
    static func removing(over rows: RowView) throws(StoreError)
        -> ClosedRange<UInt64>?
    {
        var numbers: [UInt64] = []
        let (start, end) = ([Job.purgeKind] as Bytes, [Job.purgeKind + 1] as Bytes)
        for descending in [false, true] {
            guard
                let found = try rows.rows(
                    .job, from: start, to: end, descending: descending, limit: 1
                ).first?.key
            else { break }
            guard found.count == 5 else { throw StoreError(.unreadable, "job") }
            numbers.append(found[1...].reduce(0) { $0 << 8 | UInt64($1) })
        }
        guard let least = numbers.min(), let greatest = numbers.max() else { return nil }
        return least...greatest
    }
}

extension StoredRows {
    /// Everything that watches a database. What is counted goes first, so that nothing is written
    /// for subscriptions that are gone.
    static func watchedRanges(_ database: DatabaseNumber) -> [(Table, Bytes)] {
        Keys.SubscriptionKind.allCases.map {
            (Table.subscription, Keys.subscriptionRows($0, of: database))
        } + [(Table.event, Keys.bytes(database.raw, reserving: 0))]
    }

    static func isWatched(
        _ database: DatabaseNumber, over rows: RowView
    ) throws(StoreError) -> Bool {
        for (table, start) in Self.watchedRanges(database) {
            if try !rows.keys(table, from: start, to: Keys.end(of: start), limit: 1).isEmpty {
                return true
            }
        }
        return false
    }
}
