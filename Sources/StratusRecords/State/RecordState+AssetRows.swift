import StratusCoding
import StratusModel
import StratusRows

// What the rows of a partition say of files, compared with each other: an audit.
//
// It goes through three ranges of rows, one after the other: of assets, of their holders, and of
// records. A place in it is the number of the range and the last key that was looked at. All that
// one row is compared with is read with it, so changes between two pages make no difference.
extension RecordState {
    /// Rows that one question looks at, and bytes of rows after which it ends.
    private static let auditedRowCountMax = 200
    private static let auditedSizeMax = 1 << 20
    /// Faults after which it ends: a name is looked for in each row that has some.
    private static let auditFaultCountMax = 20
    /// Databases and zones that one question looks through for the name of one.
    private static let auditedZoneCountMax = 10_000

    private enum AuditRange: UInt8 {
        case assets = 0
        case holders = 1
        case records = 2

        var rows: (table: Table, start: Bytes, end: Bytes) {
            switch self {
            case .assets: (.asset, AssetKeys.assets, Keys.end(of: AssetKeys.assets))
            case .holders: (.asset, AssetKeys.holders, Keys.end(of: AssetKeys.holders))
            case .records: (.record, [], [])
            }
        }
    }

    func assetRows(
        _ ask: AssetRowsAsk, _ principal: Principal, over rows: RowView
    ) throws(StoreError) -> RecordAnswer {
        guard principal.isStratus, let range = AuditRange(rawValue: ask.after?.first ?? 0) else {
            return .refused(RequestRefusal(.accessDenied))
        }
        let (table, start, end) = range.rows
        let last = ask.after.map { Bytes($0.dropFirst()) } ?? []
        let found = try rows.rows(
            table, from: last.isEmpty ? start : last + [0], to: end,
            limit: Self.auditedRowCountMax, sizeMax: Self.auditedSizeMax)
        var faults: [AssetRowFault] = []
        var (place, size) = (last, 0)
        for (key, row) in found {
            place = key
            switch range {
            case .assets: size += try Self.auditAsset(key, row, &faults, over: rows)
            case .holders: size += try Self.auditHolder(key, &faults, over: rows)
            case .records: try Self.auditRecord(key, row, &faults, over: rows)
            }
            // What the row was compared with may be large.
            if size >= Self.auditedSizeMax || faults.count >= Self.auditFaultCountMax { break }
        }
        let next =
            found.isEmpty
            ? AuditRange(rawValue: range.rawValue + 1).map { [$0.rawValue] }
            : [range.rawValue] + place
        return .assetRows(AssetRowFaults(faults: faults, next: next))
    }

    /// - Returns: the bytes that were read.
    private static func auditAsset(
        _ key: Bytes, _ row: Bytes, _ faults: inout [AssetRowFault],
        over rows: RowView
    ) throws(StoreError) -> Int {
        let asset = try AssetKeys.asset(decoding: key)
        let known = try decodingRow("asset") { () throws(DecodingError) in
            try AssetRow(decoding: row)
        }
        var kinds: [AssetRowFault.Kind] = []
        let body = try AssetRows.body(known.body, over: rows)
        if body?.size != known.size || body?.database != known.database.raw
            || body?.keyVersion != known.keyVersion
        {
            kinds.append(.noBody)
        }
        let holders = AssetKeys.holders(of: asset)
        let isHeld = try !rows.keys(
            .asset, from: holders, to: Keys.end(of: holders), limit: 1
        ).isEmpty
        if isHeld != known.isHeld { kinds.append(.heldWrongly) }
        if let end = known.end {
            if try rows.row(.asset, AssetKeys.end(end, of: asset)) == nil { kinds.append(.noEnd) }
        } else if !isHeld {
            kinds.append(.neverEnds)
        }
        if !kinds.isEmpty {
            let database = try Self.name(of: known.database, over: rows)
            faults += kinds.map { AssetRowFault($0, of: asset, database: database) }
        }
        return row.count + (body?.chunks.count ?? 0) * Self.storedChunkSize
    }

    /// About what a chunk takes in the row of a body.
    private static let storedChunkSize = 8

    /// - Returns: the bytes that were read.
    private static func auditHolder(
        _ key: Bytes, _ faults: inout [AssetRowFault], over rows: RowView
    ) throws(StoreError) -> Int {
        let zone = try AssetKeys.zone(ofHolder: key)
        let asset = AssetKeys.asset(ofHolder: key)
        let name = String(decoding: key.dropFirst(21), as: UTF8.self)
        var found: [AssetRowFault] = []
        if try rows.row(.asset, AssetKeys.asset(asset)) == nil {
            found.append(AssetRowFault(.noAsset, of: asset, record: name))
        }
        let (record, size) = try StoredRows.record(
            name, of: zone, in: Self.unnamedZone, over: rows)
        if record?.live?.assets.contains(asset) != true {
            found.append(AssetRowFault(.notInRecord, of: asset, record: name))
        }
        faults += try Self.placed(found, in: zone, over: rows)
        return size
    }

    private static func auditRecord(
        _ key: Bytes, _ row: Bytes, _ faults: inout [AssetRowFault],
        over rows: RowView
    ) throws(StoreError) {
        guard try RecordRow.isLive(row) else { return }
        let zone = ZoneNumber(key[0..<4].reduce(0) { $0 << 8 | UInt32($1) })
        let name = String(decoding: key.dropFirst(4), as: UTF8.self)
        let record = try decodingRow("record") { () throws(DecodingError) in
            try RecordRow(decoding: row, name: name, zone: Self.unnamedZone)
        }
        var found: [AssetRowFault] = []
        for asset in record.live?.assets ?? [] {
            if try rows.row(.asset, AssetKeys.asset(asset)) == nil {
                found.append(AssetRowFault(.noAsset, of: asset, record: name))
            }
            if try rows.row(.asset, AssetKeys.holder(of: asset, zone, name)) == nil {
                found.append(AssetRowFault(.noHolder, of: asset, record: name))
            }
        }
        faults += try Self.placed(found, in: zone, over: rows)
    }

    /// The name matters to nobody who looks at files only.
    private static let unnamedZone = ZoneID(name: "", owner: "")

    /// The faults of one record with its database and zone, which are looked for once.
    private static func placed(
        _ faults: [AssetRowFault], in number: ZoneNumber, over rows: RowView
    ) throws(StoreError) -> [AssetRowFault] {
        if faults.isEmpty { return [] }
        let zones = try rows.rows(.zone, from: [], to: [], limit: Self.auditedZoneCountMax)
        for (key, row) in zones where Keys.isZone(key) {
            guard try StoredRows.zone(decoding: row).number == number else { continue }
            let number = DatabaseNumber(key[0..<4].reduce(0) { $0 << 8 | UInt32($1) })
            let database = try Self.name(of: number, over: rows)
            return faults.map { fault in
                AssetRowFault(
                    fault.kind, of: fault.asset, database: database,
                    zone: String(decoding: key.dropFirst(5), as: UTF8.self), record: fault.record)
            }
        }
        return faults
    }

    private static func name(of number: DatabaseNumber, over rows: RowView)
        throws(StoreError) -> DatabaseID?
    {
        for (key, row) in try rows.rows(
            .database, from: Keys.allDatabases, to: Keys.end(of: Keys.allDatabases),
            limit: Self.auditedZoneCountMax)
        {
            let known = try decodingRow("database") { () throws(DecodingError) in
                try DatabaseRow(decoding: row)
            }
            if known.number == number { return Keys.database(decoding: key) }
        }
        return nil
    }
}
