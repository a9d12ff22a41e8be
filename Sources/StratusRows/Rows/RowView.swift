package import StratusModel

/// Rows as something sees them that only reads. Its meter, if it has one, counts every seek, row
/// and byte where they are read.
package struct RowView {
    private let rows: Rows
    private let meter: ReadMeter?

    package init(_ rows: Rows, meter: ReadMeter?) {
        self.rows = rows
        self.meter = meter
    }

    /// The same rows, read on another account.
    package func metered(by meter: ReadMeter) -> RowView { RowView(self.rows, meter: meter) }

    package func row(_ table: Table, _ key: borrowing RawSpan) throws(StoreError) -> Bytes? {
        self.meter?.countSeek()
        let row = try self.rows.row(table, key)
        if let row { self.meter?.countRow(key.byteCount + row.count) }
        return row
    }

    /// The first bytes of a row, at most `sizeMax` of them. Counted as what was asked for, whatever
    /// the rest of the row has.
    package func head(
        _ table: Table, _ key: borrowing RawSpan, sizeMax: Int
    ) throws(StoreError) -> Bytes? {
        self.meter?.countSeek()
        let head = try self.rows.head(table, key, sizeMax: sizeMax)
        if let head { self.meter?.countRow(key.byteCount + head.count) }
        return head
    }

    /// Visits the rows with `from <= key < to` in key order, or from the end when `descending`.
    /// An empty `to` means "to the end of the table".
    package func scan(
        _ table: Table, from: borrowing RawSpan, to: borrowing RawSpan, descending: Bool,
        _ body: (_ key: borrowing RawSpan, _ row: borrowing RawSpan) -> ScanStep
    ) throws(StoreError) {
        guard let meter else {
            return try self.rows.scan(table, from: from, to: to, descending: descending, body)
        }
        meter.countSeek()
        try self.rows.scan(table, from: from, to: to, descending: descending) { key, row in
            meter.countRow(key.byteCount + row.byteCount)
            return body(key, row)
        }
    }
}
