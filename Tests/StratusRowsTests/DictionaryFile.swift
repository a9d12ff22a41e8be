import StratusModel
import StratusRows

/// A file of rows that is small, slow and plainly right: what was committed, and what a transaction
/// makes of it.
final class DictionaryFile: RowFile {
    private(set) var committed: [Table: [Bytes: Bytes]] = [:]
    private(set) var current: [Table: [Bytes: Bytes]] = [:]
    private(set) var isInTransaction = false
    private(set) var writeCount = 0
    private(set) var readCount = 0
    /// The next write fails, and takes the transaction with it.
    var failsNext = false

    func withRow(
        _ table: Table, _ key: borrowing RawSpan, _ body: (_ row: borrowing RawSpan) -> Void
    ) throws(StoreError) {
        self.readCount += 1
        if let row = self.current[table]?[Bytes(copying: key)] { body(row.span.bytes) }
    }

    func scan(
        _ table: Table, from: borrowing RawSpan, to: borrowing RawSpan, descending: Bool,
        _ body: (_ key: borrowing RawSpan, _ row: borrowing RawSpan) -> ScanStep
    ) throws(StoreError) {
        let (from, to) = (Bytes(copying: from), Bytes(copying: to))
        for row in Self.sorted(self.current[table] ?? [:], from, to, descending) {
            if body(row.key.span.bytes, row.value.span.bytes) == .stop { return }
        }
    }

    static func sorted(
        _ rows: [Bytes: Bytes], _ from: Bytes, _ to: Bytes, _ descending: Bool
    ) -> [(key: Bytes, value: Bytes)] {
        let found = rows.filter { row in
            !row.key.lexicographicallyPrecedes(from)
                && (to.isEmpty || row.key.lexicographicallyPrecedes(to))
        }.sorted { $0.key.lexicographicallyPrecedes($1.key) }
        return descending ? found.reversed() : found
    }

    func begin() {
        precondition(!self.isInTransaction, "a transaction in a transaction")
        self.isInTransaction = true
    }

    func write(_ changes: ArraySlice<RowChange>, to table: Table) throws(StoreError)
        -> StateDigest
    {
        precondition(self.isInTransaction, "a write without a transaction")
        if self.failsNext {
            self.failsNext = false
            try self.rollBack()
            throw StoreError(.full, "as it was told")
        }
        var unexpected = StateDigest.empty
        var last: Bytes?
        for change in changes {
            if let last {
                precondition(last.lexicographicallyPrecedes(change.key), "out of order")
            }
            last = change.key
            self.writeCount += 1
            let old = self.current[table]?[change.key]
            if change.isExpectedNew, let old {
                unexpected.add(RowHash.of(table, change.key.span.bytes, old.span.bytes))
            }
            self.current[table, default: [:]][change.key] = change.row
        }
        return unexpected
    }

    func commit() throws(StoreError) {
        precondition(self.isInTransaction, "a commit without a transaction")
        self.isInTransaction = false
        self.committed = self.current
    }

    func rollBack() throws(StoreError) {
        self.isInTransaction = false
        self.current = self.committed
    }
}
