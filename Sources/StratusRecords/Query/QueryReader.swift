import StratusCoding
import StratusModel

/// Reads index rows and records for one page, and counts them.
struct QueryReader {
    // Behind existentials, so that everything built of what is read is of one type that the compiler sees whole:
    // a page costs a dozen calls through them, and was hundreds of copies by unspecialised code.
    let rows: any RowReader
    let source: any RecordSource
    var counters = QueryCounters()
    /// The row that ``record(_:in:)`` read last.
    private(set) var recordRow: Bytes = []

    init(_ rows: any RowReader, _ source: any RecordSource) {
        self.rows = rows
        self.source = source
    }

    var touchCount: Int { self.counters.indexRowCount + self.counters.recordCount }

    /// Up to `limit` rows of `[lower, upper)` in key order, or from the end.
    mutating func indexRows(
        from lower: Bytes, to upper: Bytes, descending: Bool = false, limit: Int
    ) throws(StoreError) -> [IndexRow] {
        // An empty range must not become "to the end of the table".
        guard limit > 0, upper.isEmpty || Bytes.isOrdered(lower, before: upper) else { return [] }
        var found: [IndexRow] = []
        try unsafe self.rows.scan(
            .index, from: lower.span.bytes, to: upper.span.bytes, descending: descending
        ) { key, row in
            found.append(IndexRow(key: Bytes(copying: key), row: Bytes(copying: row)))
            return found.count < limit ? .next : .stop
        }
        self.counters.indexRowCount += found.count
        return found
    }

    /// How many rows `ranges` hold, `cap` at most.
    mutating func count(_ ranges: [KeyRange], cap: Int) throws(StoreError) -> Int {
        var count = 0
        for range in ranges where count < cap {
            guard Bytes.isOrdered(range.lower, before: range.upper) else { continue }
            try unsafe self.rows.scan(
                .index, from: range.lower.span.bytes, to: range.upper.span.bytes,
                descending: false
            ) { _, _ in
                count += 1
                return count < cap ? .next : .stop
            }
        }
        self.counters.indexRowCount += count
        return count
    }

    mutating func record(_ name: Bytes, for target: QueryTarget) throws(StoreError) -> Record? {
        let zone = target.zone
        self.counters.recordCount += 1
        let key = zone.prefix + name
        guard let row = try unsafe self.rows.row(.record, key.span.bytes) else { return nil }
        self.recordRow = row
        return try self.source.record(
            row, name: String(decoding: name, as: UTF8.self), zone: zone.id,
            wanted: target.query.wanted)
    }

    /// Up to `limit` rows of the zone's records after a name, or about `sizeMax` bytes of them;
    /// tombstones are skipped.
    ///
    /// - Returns: the records, and the last name looked at; nil when there are no more.
    mutating func records(
        for target: QueryTarget, after name: Bytes?, limit: Int, sizeMax: Int
    ) throws(StoreError) -> (records: [(record: Record, row: Bytes)], last: Bytes?) {
        let zone = target.zone
        let start = zone.prefix + (name.map { $0 + [0] } ?? [])
        let end = OrderedKey.successor(ofPrefix: zone.prefix)
        var found: [(name: Bytes, row: Bytes)] = []
        var size = 0
        try unsafe self.rows.scan(
            .record, from: start.span.bytes, to: end.span.bytes, descending: false
        ) { key, row in
            found.append(
                (Bytes(Bytes(copying: key).dropFirst(zone.prefix.count)), Bytes(copying: row)))
            size += row.byteCount
            return found.count < limit && size < sizeMax ? .next : .stop
        }
        self.counters.recordCount += found.count
        var records: [(record: Record, row: Bytes)] = []
        for (name, row) in found {
            if let record = try self.source.record(
                row, name: String(decoding: name, as: UTF8.self), zone: zone.id,
                wanted: target.query.wanted)
            {
                records.append((record, row))
            }
        }
        return (records, found.count == limit || size >= sizeMax ? found.last?.name : nil)
    }
}
