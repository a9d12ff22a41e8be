import StratusModel

/// Rows in sorted arrays: small, slow, and plainly right.
struct SortedRows: RowStore, Equatable {
    private struct Row: Equatable {
        var key: Bytes
        var row: Bytes
    }

    private var tables: [[Row]] = Array(repeating: [], count: 256)

    func row(_ table: Table, _ key: borrowing RawSpan) -> Bytes? {
        let key = Bytes(copying: key)
        let index = self.index(of: key, in: table)
        let rows = self.tables[Int(table.rawValue)]
        return index < rows.count && rows[index].key == key ? rows[index].row : nil
    }

    func scan(
        _ table: Table, from: borrowing RawSpan, to: borrowing RawSpan, descending: Bool,
        _ body: (_ key: borrowing RawSpan, _ row: borrowing RawSpan) -> ScanStep
    ) {
        let start = self.index(of: Bytes(copying: from), in: table)
        let end = Bytes(copying: to)
        let stop =
            end.isEmpty
            ? self.tables[Int(table.rawValue)].count : max(start, self.index(of: end, in: table))
        let rows = self.tables[Int(table.rawValue)]
        for offset in 0..<(stop - start) {
            let row = rows[descending ? stop - 1 - offset : start + offset]
            if body(row.key.span.bytes, row.row.span.bytes) == .stop { return }
        }
    }

    mutating func put(_ table: Table, _ key: borrowing RawSpan, _ row: borrowing RawSpan) {
        let row = Row(key: Bytes(copying: key), row: Bytes(copying: row))
        let index = self.index(of: row.key, in: table)
        let isThere =
            index < self.count(table) && self.tables[Int(table.rawValue)][index].key == row.key
        if isThere {
            self.tables[Int(table.rawValue)][index] = row
        } else {
            self.tables[Int(table.rawValue)].insert(row, at: index)
        }
    }

    mutating func remove(_ table: Table, _ key: borrowing RawSpan) {
        let key = Bytes(copying: key)
        let index = self.index(of: key, in: table)
        if index < self.count(table), self.tables[Int(table.rawValue)][index].key == key {
            self.tables[Int(table.rawValue)].remove(at: index)
        }
    }

    func count(_ table: Table) -> Int { self.tables[Int(table.rawValue)].count }

    private func index(of key: Bytes, in table: Table) -> Int {
        let rows = self.tables[Int(table.rawValue)]
        var low = 0
        var high = rows.count
        while low < high {
            let middle = (low + high) / 2
            if rows[middle].key.lexicographicallyPrecedes(key) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return low
    }
}
