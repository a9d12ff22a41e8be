import StratusCoding
import StratusModel

/// Rows in one sorted array each: small, slow, and plainly right.
struct SortedRows: RowStore, Equatable {
    struct Row: Equatable {
        var key: Bytes
        var row: Bytes
    }

    private(set) var tables: [UInt8: [Row]] = [:]

    /// The position of `key`, or the one it would have.
    private func place(of key: Bytes, in rows: [Row]) -> Int {
        var (low, high) = (0, rows.count)
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

    func row(_ table: Table, _ key: borrowing RawSpan) -> Bytes? {
        let key = Bytes(copying: key)
        let rows = self.tables[table.rawValue] ?? []
        let place = self.place(of: key, in: rows)
        return place < rows.count && rows[place].key == key ? rows[place].row : nil
    }

    func scan(
        _ table: Table, from: borrowing RawSpan, to: borrowing RawSpan, descending: Bool,
        _ body: (_ key: borrowing RawSpan, _ row: borrowing RawSpan) -> ScanStep
    ) {
        let (start, end) = (Bytes(copying: from), Bytes(copying: to))
        let rows = self.tables[table.rawValue] ?? []
        let first = self.place(of: start, in: rows)
        let last = end.isEmpty ? rows.count : max(first, self.place(of: end, in: rows))
        let found = rows[first..<last]
        for row in descending ? Array(found.reversed()) : Array(found) {
            if body(row.key.span.bytes, row.row.span.bytes) == .stop { return }
        }
    }

    mutating func put(_ table: Table, _ key: borrowing RawSpan, _ row: borrowing RawSpan) {
        let new = Row(key: Bytes(copying: key), row: Bytes(copying: row))
        let place = self.place(of: new.key, in: self.tables[table.rawValue] ?? [])
        if place < self.tables[table.rawValue, default: []].count,
            self.tables[table.rawValue]?[place].key == new.key
        {
            self.tables[table.rawValue]?[place] = new
        } else {
            self.tables[table.rawValue, default: []].insert(new, at: place)
        }
    }

    mutating func remove(_ table: Table, _ key: borrowing RawSpan) {
        let key = Bytes(copying: key)
        let place = self.place(of: key, in: self.tables[table.rawValue] ?? [])
        guard let rows = self.tables[table.rawValue], place < rows.count, rows[place].key == key
        else { return }
        self.tables[table.rawValue]?.remove(at: place)
    }
}
