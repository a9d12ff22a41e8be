package import StratusModel
package import StratusQuery

/// Counts what one read costs, and says when it has cost enough.
///
/// A reader asks it only after a step that brings its page further, so that a page never ends where
/// it began: the cost of a page is its bound, and that of one step.
package final class ReadMeter {
    package private(set) var work = ReadWork()
    /// The work after which a page ends.
    package let touchCountMax: Int
    private let time: ReadTime?

    package init(touchCountMax: Int = RecordState.readTouchCountMax, within time: ReadTime? = nil) {
        self.touchCountMax = touchCountMax
        self.time = time
    }

    package var isSpent: Bool {
        self.work.touchCount >= self.touchCountMax || self.time?.isOver ?? false
    }

    /// The rows that may still be read, at least one.
    var restCount: Int { max(1, self.touchCountMax - self.work.touchCount) }

    /// Counts what is no row: what was cut, compiled and compared.
    func count(_ work: ReadWork) { self.work += work }

    func countSeek() { self.work.seekCount += 1 }

    func countRow(_ size: Int) {
        self.work.rowCount += 1
        self.work.byteCount += size
    }
}

/// Rows as a read sees them: its meter counts every seek, row and byte where they are read.
package struct MeteredRows<Rows: RowReader>: RowReader {
    private let rows: Rows
    private let meter: ReadMeter

    package init(_ rows: Rows, _ meter: ReadMeter) {
        self.rows = rows
        self.meter = meter
    }

    package func row(_ table: Table, _ key: borrowing RawSpan) throws(StoreError) -> Bytes? {
        self.meter.countSeek()
        let row = try self.rows.row(table, key)
        if let row { self.meter.countRow(key.byteCount + row.count) }
        return row
    }

    /// Counted as what was asked for, whatever the rest of the row has.
    package func head(
        _ table: Table, _ key: borrowing RawSpan, sizeMax: Int
    ) throws(StoreError) -> Bytes? {
        self.meter.countSeek()
        let head = try self.rows.head(table, key, sizeMax: sizeMax)
        if let head { self.meter.countRow(key.byteCount + head.count) }
        return head
    }

    package func scan(
        _ table: Table, from: borrowing RawSpan, to: borrowing RawSpan, descending: Bool,
        _ body: (_ key: borrowing RawSpan, _ row: borrowing RawSpan) -> ScanStep
    ) throws(StoreError) {
        let meter = self.meter
        meter.countSeek()
        try self.rows.scan(table, from: from, to: to, descending: descending) { key, row in
            meter.countRow(key.byteCount + row.byteCount)
            return body(key, row)
        }
    }
}
