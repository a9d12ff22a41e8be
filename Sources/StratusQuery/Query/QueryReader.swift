import StratusCoding
import StratusModel
import StratusRows

/// Reads index rows and records for one page, and counts them.
struct QueryReader {
    // Reads through existentials, so that everything built on it has one type that the compiler can
    // specialise. A page costs a dozen calls through them; unspecialised code made hundreds of
    // copies.
    let rows: RowView
    let source: any RecordSource
    var counters = QueryCounters()
    /// The row that ``record(_:in:)`` read last.
    private(set) var recordRow: Bytes = []
    private let time: ReadTime?

    init(_ rows: RowView, _ source: any RecordSource, within time: ReadTime?) {
        self.rows = rows
        self.source = source
        self.time = time
    }

    /// All the work so far.
    var touchCount: Int { self.counters.work.touchCount }
    var isLate: Bool { self.time?.isOver ?? false }

    /// Returns up to `limit` rows of `[lower, upper)` in key order, or from the end; the row that
    /// reaches `sizeMax` bytes is the last.
    mutating func indexRows(
        from lower: Bytes, to upper: Bytes, descending: Bool = false, limit: Int,
        sizeMax: Int = .max
    ) throws(StoreError) -> [IndexRow] {
        // An empty range must not become "to the end of the table".
        guard limit > 0, upper.isEmpty || Bytes.isOrdered(lower, before: upper) else { return [] }
        var found: [IndexRow] = []
        var size = 0
        try unsafe self.rows.scan(
            .index, from: lower.span.bytes, to: upper.span.bytes, descending: descending
        ) { key, row in
            found.append(IndexRow(key: Bytes(copying: key), row: Bytes(copying: row)))
            size += key.byteCount + row.byteCount
            return found.count < limit && size < sizeMax ? .next : .stop
        }
        self.counters.indexRowCount += found.count
        self.counters.work.seekCount += 1
        self.counters.work.rowCount += found.count
        self.counters.work.byteCount += size
        return found
    }

    /// How many rows `ranges` hold, `cap` at most; `cap` too where counting has come to
    /// `touchCountMax`.
    mutating func count(
        _ ranges: [KeyRange], cap: Int, touchCountMax: Int
    ) throws(StoreError) -> Int {
        var count = 0
        for range in ranges where count < cap {
            guard Bytes.isOrdered(range.lower, before: range.upper) else { continue }
            guard self.touchCount < touchCountMax, !self.isLate else { return cap }
            let before = count
            let sizeMax = (touchCountMax - self.touchCount) * ReadWork.bytesPerTouch
            var size = 0
            try unsafe self.rows.scan(
                .index, from: range.lower.span.bytes, to: range.upper.span.bytes,
                descending: false
            ) { _, row in
                count += 1
                size += row.byteCount
                return count < cap && size < sizeMax ? .next : .stop
            }
            self.counters.work.seekCount += 1
            self.counters.work.byteCount += size
            self.counters.work.rowCount += count - before
            if size >= sizeMax { return cap }
            self.counters.indexRowCount += count - before
        }
        return count
    }

    /// Nil for none, and for one that the caller may not read, of which nothing more is looked at.
    mutating func record(_ name: Bytes, for target: QueryTarget) throws(StoreError) -> Record? {
        self.counters.recordCount += 1
        self.counters.work.seekCount += 1
        var key = Bytes()
        key.reserveCapacity(target.zone.prefix.count + name.count)
        key.append(contentsOf: target.zone.prefix)
        key.append(contentsOf: name)
        guard let row = try self.visibleRow(key, for: target) else { return nil }
        self.counters.work.byteCount += key.count + row.count
        self.recordRow = row
        return try self.decoded(row, name, for: target)
    }

    /// Nil also for a row that the caller may not read: its head says so, and its size does not
    /// show.
    private func visibleRow(_ key: Bytes, for target: QueryTarget) throws(StoreError) -> Bytes? {
        if case .created(let user) = target.visible {
            guard let head = try self.rows.head(.record, key, sizeMax: VisibleRecords.headSizeMax),
                let found = try self.source.typeAndCreator(of: head), found.creator == user,
                found.type == target.query.recordType.name
            else { return nil }
            if head.count < VisibleRecords.headSizeMax { return head }
        }
        return try unsafe self.rows.row(.record, key.span.bytes)
    }

    private func decoded(
        _ row: Bytes, _ name: Bytes, for target: QueryTarget
    ) throws(StoreError) -> Record? {
        try self.source.record(
            row, name: String(decoding: name, as: UTF8.self), zone: target.zone.id,
            wanted: target.query.wanted)
    }

    /// Up to `limit` rows of the zone's records after a name, or about `sizeMax` bytes of them;
    /// tombstones are skipped. For callers who may read all of them.
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
        self.counters.work.seekCount += 1
        self.counters.work.rowCount += found.count
        self.counters.work.byteCount += size
        var records: [(record: Record, row: Bytes)] = []
        for (name, row) in found {
            if let record = try self.decoded(row, name, for: target) {
                records.append((record, row))
            }
        }
        return (records, found.count == limit || size >= sizeMax ? found.last?.name : nil)
    }
}
