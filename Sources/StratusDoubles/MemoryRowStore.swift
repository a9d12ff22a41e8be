package import StratusModel

/// Rows in sorted arrays: the store that needs no disk, and the model that the store on disk is
/// compared with.
package struct MemoryRowStore: RowStore, Sendable, Equatable {
    package struct Row: Sendable, Equatable {
        package let key: Bytes
        package var row: Bytes
    }

    /// One sorted array for each table, by the table's number.
    private var tables: [[Row]]

    package init() { self.tables = Array(repeating: [], count: Table.slotCount) }

    /// Every row of a table, in key order.
    package func rows(_ table: Table) -> [Row] { self.tables[Int(table.rawValue)] }

    package func row(_ table: Table, _ key: borrowing RawSpan) -> Bytes? {
        let key = Bytes(copying: key)
        let rows = self.rows(table)
        let position = Self.position(of: key, in: rows)
        return position < rows.count && rows[position].key == key ? rows[position].row : nil
    }

    package mutating func put(_ table: Table, _ key: borrowing RawSpan, _ row: borrowing RawSpan) {
        let new = Row(key: Bytes(copying: key), row: Bytes(copying: row))
        let number = Int(table.rawValue)
        let position = Self.position(of: new.key, in: self.tables[number])
        if position < self.tables[number].count, self.tables[number][position].key == new.key {
            self.tables[number][position] = new
        } else {
            self.tables[number].insert(new, at: position)
        }
    }

    package mutating func remove(_ table: Table, _ key: borrowing RawSpan) {
        let key = Bytes(copying: key)
        let number = Int(table.rawValue)
        let position = Self.position(of: key, in: self.tables[number])
        guard position < self.tables[number].count, self.tables[number][position].key == key else {
            return
        }
        self.tables[number].remove(at: position)
    }

    package func scan(
        _ table: Table, from: borrowing RawSpan, to: borrowing RawSpan, descending: Bool,
        _ body: (_ key: borrowing RawSpan, _ row: borrowing RawSpan) -> ScanStep
    ) {
        let rows = self.rows(table)
        let first = Self.position(of: Bytes(copying: from), in: rows)
        let end = to.byteCount == 0 ? rows.count : Self.position(of: Bytes(copying: to), in: rows)
        guard first < end else { return }
        for offset in 0..<(end - first) {
            let row = rows[descending ? end - 1 - offset : first + offset]
            if body(row.key.span.bytes, row.row.span.bytes) == .stop { return }
        }
    }

    /// The position of `key`, or the one it would have.
    private static func position(of key: Bytes, in rows: [Row]) -> Int {
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
