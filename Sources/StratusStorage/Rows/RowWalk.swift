import StratusModel
import StratusRows

/// Reads the rows of a view in the order of their tables and keys, a piece at a time, and adds up
/// their digest. Snapshots and checks of the rows read them by it.
struct RowWalk {
    /// Nil where there are no rows, and when nobody holds them any longer.
    private(set) var view: RowDatabase?
    /// The tables whose rows are not all read.
    private var tables: ArraySlice<Table>
    /// The key where the first of them continues.
    private var nextKey = Bytes()
    /// The digest of the rows that were read.
    private(set) var digest = StateDigest.empty

    /// - Parameters:
    ///   - view: in a transaction that has read already.
    ///   - leftOut: a table that is not read.
    init(_ view: RowDatabase?, leavingOut leftOut: Table? = nil) {
        self.view = view
        self.tables = Table.all.filter { $0 != .meta && $0 != leftOut }[...]
    }

    /// Ends the transaction.
    mutating func close() { self.view = nil }

    /// Reads rows up to this size, and the one that goes beyond it.
    ///
    /// - Returns: their size; 0 when there are no more.
    mutating func next(
        _ sizeMax: Int,
        _ body: (Table, _ key: borrowing RawSpan, _ row: borrowing RawSpan) -> Void
    ) throws(StoreError) -> Int {
        let end = Bytes()
        while let table = self.tables.first, let view {
            let from = self.nextKey
            var (size, digest, last) = (0, self.digest, Bytes())
            try view.scan(table, from: from.span.bytes, to: end.span.bytes, descending: false) {
                key, row in
                digest.add(RowHash.of(table, key, row))
                body(table, key, row)
                size += key.byteCount + row.byteCount + 8
                guard size >= sizeMax else { return .next }
                last = Bytes(copying: key)
                return .stop
            }
            self.digest = digest
            if size >= sizeMax {
                // The first key there can be behind it.
                self.nextKey = last + [0]
                return size
            }
            self.tables.removeFirst()
            self.nextKey = []
            if size > 0 { return size }
        }
        return 0
    }
}
