import StratusModel
import StratusRows

extension RecordState {
    /// `zones/modify`: in order, each on its own.
    mutating func apply(
        _ modify: ModifyZones, of command: Command, at time: HybridTime, over rows: Rows
    ) throws(StoreError) -> RecordOutcome {
        if modify.operations.isEmpty { return .refused(RequestRefusal(.empty)) }
        if modify.operations.count > Self.operationCountMax {
            return .refused(RequestRefusal(.tooManyItems, String(Self.operationCountMax)))
        }
        if let refusal = try self.checkPlaces(modify, over: rows.view) { return .refused(refusal) }
        var named: Set<String> = []
        var results: [ZoneResult] = []
        for operation in modify.operations {
            if let refusal = Self.check(operation, in: modify.database, named: &named) {
                results.append(.refused(refusal))
                continue
            }
            switch operation.kind {
            case .create: results.append(try self.create(operation, modify, over: rows))
            case .delete:
                let end = ZoneEnd(
                    reason: operation.reason, user: command.principal.userRecordName,
                    request: command.identity, milliseconds: time.milliseconds)
                results.append(try self.delete(operation, modify, end, over: rows))
            }
        }
        return .zones(results)
    }

    /// Refuses zones that are in another part of the database.
    private mutating func checkPlaces(
        _ modify: ModifyZones, over rows: RowView
    ) throws(StoreError) -> RequestRefusal? {
        let database = modify.database
        for operation in modify.operations {
            if let refusal = Self.check(database, holds: operation.zone) { return refusal }
        }
        // The home of a spread database has no custom zones.
        guard database.scope == .private, database.bucket == nil,
            let home = try self.cache.database(database, over: rows), let buckets = home.buckets,
            let creation = modify.operations.first(where: {
                $0.kind == .create && $0.zone != ZoneID.defaultName
            }),
            modify.tagFloor <= buckets.tagFloor
        else { return nil }
        return RequestRefusal(.zoneElsewhere, creation.zone)
    }

    private static func check(
        _ operation: ModifyZones.Operation, in database: DatabaseID, named: inout Set<String>
    ) -> ZoneRefusal? {
        if database.scope == .public { return .customZonesUnavailable }
        guard NameRules.isCustomZoneName(operation.zone, limit: Self.nameLengthMax),
            named.insert(operation.zone).inserted
        else { return .nameInvalid }
        return nil
    }

    private mutating func create(
        _ operation: ModifyZones.Operation, _ modify: ModifyZones, over rows: Rows
    ) throws(StoreError) -> ZoneResult {
        var numbers = NumberDraw()
        var database: DatabaseRow
        if let known = try self.cache.database(modify.database, over: rows.view) {
            database = known
        } else {
            database = try numbers.database(over: rows.view)
        }
        let before = try self.cache.zone(operation.zone, in: database.number, over: rows.view)
        if let before, !before.isDeleted {
            if let scope = operation.scope, scope != before.scope { return .refused(.scopeFixed) }
            return modify.rules.flags.contains(.existingZoneIsRefused)
                ? .refused(.exists) : .created(before.summary(name: operation.zone))
        }
        if database.zoneCount >= DatabaseRow.zoneCountMax { return .refused(.tooManyZones) }
        // Tags start above every tag the name's earlier incarnations had: an old tag in a client's
        // hand must match nothing.
        let base = max(before?.lastTag ?? 0, database.tagFloor, modify.tagFloor)
        var zone = ZoneRow(
            number: try numbers.zone(over: rows.view), incarnation: operation.drawnIncarnation,
            baseTag: base)
        zone.scope = operation.scope ?? .perRecord
        zone.turn = before?.turn ?? 0
        zone.earlierReason = before?.end?.reason
        zone.earlierTurn = zone.turn
        zone.purgeTurn = before?.purgeTurn ?? 0
        database.zoneCount += 1
        if before != nil { database.deletedZoneCount -= 1 }
        try database.advance(to: operation.zone, &zone, in: rows)
        try numbers.write(into: rows)
        try self.write(zone, operation.zone, database, modify.database, into: rows)
        return .created(zone.summary(name: operation.zone))
    }

    private mutating func delete(
        _ operation: ModifyZones.Operation, _ modify: ModifyZones, _ end: ZoneEnd,
        over rows: Rows
    ) throws(StoreError) -> ZoneResult {
        guard var database = try self.cache.database(modify.database, over: rows.view),
            var zone = try self.cache.zone(operation.zone, in: database.number, over: rows.view),
            !zone.isDeleted
        else { return .refused(.notFound) }
        let purge = Job.purge(zone.number, hasAssets: zone.assetRecordCount > 0)
        try rows.put(.job, purge.key, purge.encoded())
        try database.advance(to: operation.zone, &zone, in: rows)
        try Self.endSharing(of: &zone, in: database.number, over: rows)
        zone.end = end
        if self.bugs.contains(.purgeReasonLost) { zone.end?.reason = .deleted }
        if zone.end?.reason == .purged { zone.purgeTurn = zone.turn }
        zone.held = .none
        zone.assetRecordCount = 0
        zone.tombstoneCount = 0
        database.zoneCount -= 1
        database.deletedZoneCount += 1
        if database.deletedZoneCount > self.bounds.deletedZoneCountMax {
            try self.forgetOldestDeleted(&database, over: rows)
        }
        try self.write(zone, operation.zone, database, modify.database, into: rows)
        return .deleted
    }

    /// The zone goes, and its share with it: nobody finds it by its link, and nobody stands there
    /// any more. The other rows go with those of the zone.
    static func endSharing(
        of zone: inout ZoneRow, in database: DatabaseNumber, over rows: Rows
    ) throws(StoreError) {
        guard zone.isShared else { return }
        zone.isShared = false
        let sharing = try ZoneSharing.stored(
            .share, ShareKeys.sharing(zone.number), over: rows.view)
        guard let link = sharing?.link else { return }
        try rows.remove(.zone, ShareKeys.link(database, link))
    }

    private mutating func write(
        _ zone: ZoneRow, _ name: String, _ database: DatabaseRow, _ id: DatabaseID,
        into rows: Rows
    ) throws(StoreError) {
        try rows.put(.zone, Keys.zone(database.number, name), zone.encoded())
        try rows.put(.database, Keys.database(id), database.encoded())
        self.cache.remember(zone, name, in: database.number)
        self.cache.remember(database, of: id)
        guard
            var news = try NewsEdit(
                database.number, cache: &self.cache, bugs: self.bugs, over: rows.view)
        else {
            return
        }
        try news.mark(name, zone.lastTag, into: rows)
        try news.flush(into: rows, cache: &self.cache)
    }

    /// Drops the oldest deleted zone from the feed; positions that have not seen it expire.
    private mutating func forgetOldestDeleted(
        _ database: inout DatabaseRow, over rows: Rows
    ) throws(StoreError) {
        // Zones that live on where they last changed lie between. A bound on how many are passed
        // keeps a delete's cost bounded, and a later delete finds what this one does not.
        let turns = try rows.view.rows(
            .zone, from: Keys.turn(database.number, database.oldestTurn),
            to: Keys.turn(database.number, database.turn), limit: 1_000)
        for (key, row) in turns {
            guard let name = String(validating: row, as: UTF8.self) else {
                throw StoreError(.unreadable, "turn")
            }
            guard let zone = try StoredRows.zone(name, in: database.number, over: rows.view),
                zone.isDeleted
            else { continue }
            try rows.remove(.zone, key)
            try rows.remove(.zone, Keys.zone(database.number, name))
            self.cache.forgetZone(name, in: database.number)
            if !self.bugs.contains(.forgottenZoneExpiresNothing) { database.oldestTurn = zone.turn }
            database.tagFloor = max(database.tagFloor, zone.lastTag)
            database.deletedZoneCount -= 1
            return
        }
    }
}
