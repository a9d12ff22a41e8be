import StratusModel

/// Rows in hash tables: the cost of the records' state without a store beneath it.
///
/// A final class so that handing it over copies nothing. A scan sorts the keys once after each
/// write.
final class HashRows: RowStore {
    private var tables: [[Bytes: Bytes]] = Array(repeating: [:], count: 16)
    private var sorted: [[Bytes]?] = Array(repeating: nil, count: 16)
    private(set) var writeCount = 0
    private(set) var readCount = 0

    func row(_ table: Table, _ key: borrowing RawSpan) -> Bytes? {
        self.readCount += 1
        return self.tables[Int(table.rawValue)][Bytes(copying: key)]
    }

    func put(_ table: Table, _ key: borrowing RawSpan, _ row: borrowing RawSpan) {
        self.writeCount += 1
        self.sorted[Int(table.rawValue)] = nil
        self.tables[Int(table.rawValue)][Bytes(copying: key)] = Bytes(copying: row)
    }

    func remove(_ table: Table, _ key: borrowing RawSpan) {
        self.writeCount += 1
        self.sorted[Int(table.rawValue)] = nil
        self.tables[Int(table.rawValue)][Bytes(copying: key)] = nil
    }

    func scan(
        _ table: Table, from: borrowing RawSpan, to: borrowing RawSpan, descending: Bool,
        _ body: (_ key: borrowing RawSpan, _ row: borrowing RawSpan) -> ScanStep
    ) {
        let number = Int(table.rawValue)
        let keys =
            self.sorted[number]
            ?? self.tables[number].keys.sorted { $0.lexicographicallyPrecedes($1) }
        self.sorted[number] = keys
        let start = Self.position(of: Bytes(copying: from), in: keys)
        let end =
            to.byteCount == 0 ? keys.count : Self.position(of: Bytes(copying: to), in: keys)
        guard start < end else { return }
        for offset in 0..<(end - start) {
            let key = keys[descending ? end - 1 - offset : start + offset]
            guard let row = self.tables[number][key] else { continue }
            if body(key.span.bytes, row.span.bytes) == .stop { return }
        }
    }

    private static func position(of key: Bytes, in keys: [Bytes]) -> Int {
        var low = 0
        var high = keys.count
        while low < high {
            let middle = (low + high) / 2
            if keys[middle].lexicographicallyPrecedes(key) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return low
    }
}
