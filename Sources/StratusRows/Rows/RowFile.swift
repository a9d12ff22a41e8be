package import StratusModel

/// What lies beneath ``Rows``: ordered tables of rows that last.
///
/// Writes stand in one transaction, from ``begin()`` to ``commit()``. Reads see them before. The
/// digest is no business of a file.
package protocol RowFile: AnyObject {
    /// Hands the row under `key` to `body`, if there is one.
    func withRow(
        _ table: Table, _ key: borrowing RawSpan, _ body: (_ row: borrowing RawSpan) -> Void
    ) throws(StoreError)
    /// Visits the rows with `from <= key < to` in key order, or from the end when `descending`.
    /// An empty `to` means "to the end of the table".
    func scan(
        _ table: Table, from: borrowing RawSpan, to: borrowing RawSpan, descending: Bool,
        _ body: (_ key: borrowing RawSpan, _ row: borrowing RawSpan) -> ScanStep
    ) throws(StoreError)

    /// Says that reads follow, until ``endReads()``, which nothing is written between.
    func beginReads()
    func endReads() throws(StoreError)

    /// False also after an error with which the file has ended the transaction by itself.
    var isInTransaction: Bool { get }
    func begin() throws(StoreError)
    /// Writes changes of one table, which come in the order of their keys.
    ///
    /// - Returns: the sum of the hashes of rows that were there, though nobody expected them.
    func write(_ changes: ArraySlice<RowChange>, to table: Table) throws(StoreError) -> StateDigest
    func commit() throws(StoreError)
    /// Ends the transaction, if the file has not done so by itself after an error.
    func rollBack() throws(StoreError)
}

extension RowFile {
    package func beginReads() {}
    package func endReads() throws(StoreError) {}
}

/// One row that a file is to have or to lose.
package struct RowChange: Sendable, Equatable {
    package let key: Bytes
    /// Nil: removed.
    package let row: Bytes?
    /// Nobody has looked whether there is a row under this key: most likely there is none.
    package let isExpectedNew: Bool

    package init(key: Bytes, row: Bytes?, isExpectedNew: Bool = false) {
        self.key = key
        self.row = row
        self.isExpectedNew = isExpectedNew
    }
}
