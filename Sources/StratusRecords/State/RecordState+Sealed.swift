import StratusCoding
import StratusModel
import StratusRows

// Encrypted fields that are sealed anew.
extension RecordState {
    mutating func apply(_ reseal: ResealFields, of command: Command, over rows: Rows)
        throws(StoreError) -> RecordOutcome
    {
        guard command.principal.isStratus else { return .refused(RequestRefusal(.accessDenied)) }
        guard let database = try self.cache.database(reseal.database, over: rows.view),
            let newest = try AssetRows.newestKey(of: database.number, over: rows.view)
        else { return .resealed(ResealedFields(count: 0, olderKeyCount: 0)) }
        var count: UInt64 = 0
        if !reseal.items.isEmpty, newest.key != nil,
            let zone = try self.cache.zone(reseal.zone, in: database.number, over: rows.view),
            !zone.isDeleted
        {
            let id = ZoneID(name: reseal.zone, owner: reseal.database.owner)
            for item in reseal.items
            where try Self.replace(item, in: zone.number, id, under: newest.version, over: rows) {
                count += 1
            }
        }
        let older = try rows.view.keys(
            .key, from: AssetKeys.databaseKey(database.number, 1),
            to: AssetKeys.databaseKey(database.number, newest.version), limit: .max)
        return .resealed(ResealedFields(count: count, olderKeyCount: UInt64(older.count)))
    }

    /// - Returns: false where the record is not as it was when its values were sealed anew.
    private static func replace(
        _ item: ResealFields.Item, in number: ZoneNumber, _ zone: ZoneID, under version: UInt32,
        over rows: Rows
    ) throws(StoreError) -> Bool {
        let (row, size) = try StoredRows.record(item.record, of: number, in: zone, over: rows.view)
        guard var record = row?.live, record.tag == item.tag, !item.fields.isEmpty else {
            return false
        }
        for field in item.fields {
            guard case .sealed(let type, let new) = field.value,
                (try? SealedFieldCoding.keyVersion(of: new)) == version,
                let place = record.fields.firstIndex(where: { $0.name == field.name }),
                case .sealed(type, let old) = record.fields[place].value, old.count == new.count
            else { return false }
            record.fields[place].value = field.value
        }
        var writer = ByteWriter(reserving: size)
        writer.write(recordHead: record)
        writer.write(fields: record.fields)
        // What a zone holds is counted by the sizes of its rows.
        guard writer.bytes.count == size else { return false }
        try rows.put(.record, Keys.record(number, item.record), writer.bytes)
        return true
    }

    /// Records that one question looks at, and bytes of rows after which it ends.
    static let sealedRowCountMax = 1_000
    static let sealedSizeMax = 1 << 20
    private static let sealedStep = 4

    mutating func sealedRecords(
        _ ask: SealedAsk, _ principal: Principal, over rows: RowView
    ) throws(StoreError) -> RecordAnswer {
        guard principal.isStratus else { return .refused(RequestRefusal(.accessDenied)) }
        var page = SealedPage(records: [], next: nil)
        guard let database = try self.cache.database(ask.database, over: rows),
            let zone = try self.cache.zone(ask.zone, in: database.number, over: rows),
            !zone.isDeleted
        else { return .sealedRecords(page) }
        let id = ZoneID(name: ask.zone, owner: ask.database.owner)
        let start = Keys.zoneStart(zone.number)
        let end = Keys.end(of: start)
        var from = ask.after.map { Keys.record(zone.number, $0) + [0] } ?? start
        var (seen, size) = (0, 0)
        while seen < Self.sealedRowCountMax, size < Self.sealedSizeMax,
            page.records.count <= ResealFields.recordCountMax - Self.sealedStep
        {
            let found = try rows.rows(.record, from: from, to: end, limit: Self.sealedStep)
            for (key, row) in found {
                let name = String(decoding: key.dropFirst(start.count), as: UTF8.self)
                let record = try decodingRow("record") { () throws(DecodingError) in
                    try RecordRow(decoding: row, name: name, zone: id)
                }
                if let live = record.live, Self.hasOldValue(live, below: ask.below) {
                    page.records.append(live)
                }
                page.next = name
                size += row.count
            }
            seen += found.count
            guard found.count == Self.sealedStep, let last = found.last else {
                page.next = nil
                break
            }
            from = last.key + [0]
        }
        return .sealedRecords(page)
    }

    private static func hasOldValue(_ record: Record, below version: UInt32) -> Bool {
        record.fields.contains { field in
            guard case .sealed(_, let sealed) = field.value else { return false }
            return (try? SealedFieldCoding.keyVersion(of: sealed)).map { $0 < version } ?? true
        }
    }
}
