package import StratusModel

/// Rows as a ``PointQuestion`` reads them: one at a time, and never a scan.
package struct PointReader {
    private let view: RowView

    package init(_ view: RowView) { self.view = view }

    package func row(_ table: Table, _ key: Bytes) throws(StoreError) -> Bytes? {
        try self.view.row(table, key)
    }

    /// The row with the greatest key of `[start, end)`.
    package func last(_ table: Table, from start: Bytes, to end: Bytes) throws(StoreError)
        -> (key: Bytes, row: Bytes)?
    {
        try self.view.rows(table, from: start, to: end, descending: true, limit: 1).first
    }
}
