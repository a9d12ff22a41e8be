import StratusModel
import StratusRows

/// How much a database holds, and whether it may hold more.
extension RecordState {
    /// Exact, from at most four rows. The key-value store is not counted.
    mutating func held(by database: DatabaseRow, over rows: RowView)
        throws(StoreError) -> StorageUse
    {
        var held = database.heldElsewhere
        for name in [ZoneID.defaultName, ZoneID.documentsName, database.turnZone]
        where !name.isEmpty {
            if let zone = try self.cache.zone(name, in: database.number, over: rows) {
                held = held + zone.held
            }
        }
        return held
    }

    mutating func use(
        of id: DatabaseID, _ principal: Principal, over rows: RowView
    ) throws(StoreError) -> RecordAnswer {
        guard AccessRules.maySeeUse(of: id, principal) else {
            return .refused(RequestRefusal(.accessDenied))
        }
        guard let database = try self.cache.database(id, over: rows) else {
            return .use(.none, zoneCount: 0, assets: .none)
        }
        return .use(
            try self.held(by: database, over: rows), zoneCount: database.zoneCount,
            assets: try AssetRows.use(of: database.number, over: rows))
    }

    static let heldRecordsRowCountMax = 1_000

    /// The records of the next zones of this partition, whatever their database. Zones that are
    /// deleted are not counted, although jobs may still remove their records.
    func heldRecords(
        _ ask: HeldRecordsAsk, _ principal: Principal, over rows: RowView
    ) throws(StoreError) -> RecordAnswer {
        guard principal.kind == .system else { return .refused(RequestRefusal(.accessDenied)) }
        let limit = min(max(1, ask.limit), Self.heldRecordsRowCountMax)
        let found = try rows.rows(
            .zone, from: ask.after.map { $0 + [0] } ?? [], to: [], limit: limit)
        var held = HeldRecords(use: .none)
        for (key, row) in found where Keys.isZone(key) {
            let zone = try StoredRows.zone(decoding: row)
            if !zone.isDeleted { held.use = held.use + zone.held }
        }
        if found.count == limit { held.next = found.last?.key }
        return .heldRecords(held)
    }

    /// Bytes by which the zone of `edit` may grow; nil: there is no quota. Negative where the
    /// database holds more than its quota already.
    mutating func room(
        for modify: ModifyRecords, in edit: ZoneEdit, over rows: RowView
    ) throws(StoreError) -> Int64? {
        let most = modify.rules.databaseSizeMax
        if most == 0 { return nil }
        let held = try self.held(by: edit.database, over: rows)
        let assets = try AssetRows.use(of: edit.database.number, over: rows)
        return Int64(clamping: most) - Int64(clamping: held.size)
            - Int64(clamping: assets.size)
    }
}
