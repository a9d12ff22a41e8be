import StratusCoding
import StratusModel
import StratusQuery
import StratusRecords

/// Zones of records with their index rows, in memory: what a partition holds, kept by
/// ``IndexMaintenance`` alone.
struct QueryShelf: RowStore, RecordSource {
    static let containerZone = ZoneID(name: "Shelves", owner: "_owner")

    private struct Row {
        var key: Bytes
        var row: Bytes
    }
    private var index: [Row] = []
    private var records: [Row] = []
    private(set) var live: [[String: Record]]
    var schema: IndexedSchema
    let zones: [ZoneScope]

    init(_ schema: IndexedSchema, zoneCount: Int = 1) {
        self.schema = schema
        self.zones = (0..<zoneCount).map { number in
            ZoneScope(
                id: ZoneID(name: "Zone\(number)", owner: "_owner"),
                prefix: [0, 0, 1, UInt8(number)])
        }
        self.live = Array(repeating: [:], count: zoneCount)
    }

    mutating func set(_ name: String, to record: Record?, zone: Int) {
        let old = self.live[zone][name]
        let key = self.zones[zone].prefix + name.utf8
        if let record {
            var writer = ByteWriter()
            writer.write(recordBody: record)
            try! self.put(.record, key.span.bytes, writer.bytes.span.bytes)
        } else {
            try! self.remove(.record, key.span.bytes)
        }
        self.live[zone][name] = record
        let schema = self.schema
        try! IndexMaintenance.update(
            in: schema, zone: self.zones[zone], from: old, to: record, rows: &self)
    }

    /// The index rows that the live records should have: what maintenance must have arrived at.
    func indexFromScratch() -> [Bytes] {
        var keys: [Bytes] = []
        for (zone, records) in zip(self.zones, self.live) {
            for record in records.values {
                keys += IndexMaintenance.rows(of: record, in: self.schema, zone: zone).map(\.key)
            }
        }
        return keys.sorted { Bytes.isOrdered($0, before: $1) }
    }

    var indexKeys: [Bytes] { self.index.map(\.key) }

    // MARK: RecordSource

    func typeAndCreator(of row: Bytes) throws(StoreError) -> (type: String, creator: String)? {
        guard
            let record = try self.record(
                row, name: "", zone: Self.containerZone, wanted: WantedParts(fields: []))
        else { return nil }
        return (record.type, record.created.userRecordName)
    }

    func record(_ row: Bytes, name: String, zone: ZoneID, wanted: WantedParts)
        throws(StoreError) -> Record?
    {
        var reader = ByteReader(row)
        do {
            return try reader.recordBody(name: name, zone: zone, wanted: wanted)
        } catch {
            throw StoreError(.unreadable, "\(error)")
        }
    }

    // MARK: RowStore

    func row(_ table: Table, _ key: borrowing RawSpan) throws(StoreError) -> Bytes? {
        let key = Bytes(copying: key)
        let rows = table == .index ? self.index : self.records
        let position = Self.position(of: key, in: rows)
        return position < rows.count && rows[position].key == key ? rows[position].row : nil
    }

    func scan(
        _ table: Table, from: borrowing RawSpan, to: borrowing RawSpan, descending: Bool,
        _ body: (_ key: borrowing RawSpan, _ row: borrowing RawSpan) -> ScanStep
    ) throws(StoreError) {
        let rows = table == .index ? self.index : self.records
        let start = Self.position(of: Bytes(copying: from), in: rows)
        let end = Bytes(copying: to)
        let stop = end.isEmpty ? rows.count : Self.position(of: end, in: rows)
        precondition(start <= stop, "a scan from beyond its end")
        for step in 0..<(stop - start) {
            let row = rows[descending ? stop - 1 - step : start + step]
            if body(row.key.span.bytes, row.row.span.bytes) == .stop { return }
        }
    }

    mutating func put(
        _ table: Table, _ key: borrowing RawSpan, _ row: borrowing RawSpan
    ) throws(StoreError) {
        let row = Row(key: Bytes(copying: key), row: Bytes(copying: row))
        if table == .index {
            Self.put(row, in: &self.index)
        } else {
            Self.put(row, in: &self.records)
        }
    }

    private static func put(_ row: Row, in rows: inout [Row]) {
        let position = Self.position(of: row.key, in: rows)
        if position < rows.count, rows[position].key == row.key {
            rows[position] = row
        } else {
            rows.insert(row, at: position)
        }
    }

    mutating func remove(_ table: Table, _ key: borrowing RawSpan) throws(StoreError) {
        let key = Bytes(copying: key)
        if table == .index {
            Self.remove(key, in: &self.index)
        } else {
            Self.remove(key, in: &self.records)
        }
    }

    private static func remove(_ key: Bytes, in rows: inout [Row]) {
        let position = Self.position(of: key, in: rows)
        if position < rows.count, rows[position].key == key { rows.remove(at: position) }
    }

    private static func position(of key: Bytes, in rows: [Row]) -> Int {
        var low = 0
        var high = rows.count
        while low < high {
            let middle = (low + high) / 2
            if Bytes.isOrdered(rows[middle].key, before: key) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return low
    }
}
