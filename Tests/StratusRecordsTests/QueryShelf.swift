import StratusCoding
import StratusDoubles
import StratusModel
import StratusQuery
import StratusRecords
import StratusRows

/// Zones of records with their index rows, in memory: what a partition holds, kept by
/// ``IndexMaintenance`` alone.
struct QueryShelf {
    static let containerZone = ZoneID(name: "Shelves", owner: "_owner")

    let rows = Rows()
    let source = ShelfSource()
    private(set) var live: [[String: Record]]
    var schema: IndexedSchema
    let zones: [ZoneScope]

    /// - Parameter owner: empty for zones of a public database.
    init(_ schema: IndexedSchema, zoneCount: Int = 1, owner: String = "_owner") {
        self.schema = schema
        self.zones = (0..<zoneCount).map { number in
            ZoneScope(
                id: ZoneID(name: "Zone\(number)", owner: owner),
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
            try! self.rows.put(.record, key, writer.bytes)
        } else {
            try! self.rows.remove(.record, key)
        }
        self.live[zone][name] = record
        let schema = self.schema
        try! IndexMaintenance.update(
            in: schema, zone: self.zones[zone], from: old, to: record, rows: self.rows)
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

    var indexKeys: [Bytes] { self.rows.contents(of: .index).map(\.key) }
}

/// Reads the records that a shelf has written.
struct ShelfSource: RecordSource {
    func typeAndCreator(of row: Bytes) throws(StoreError) -> (type: String, creator: String)? {
        var reader = ByteReader(row)
        do {
            return try reader.recordTypeAndCreator()
        } catch {
            throw StoreError(.unreadable, "\(error)")
        }
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
}
