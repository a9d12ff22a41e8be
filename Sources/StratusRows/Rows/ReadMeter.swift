package import StratusModel

/// Counts what one read costs, and says when it has cost enough.
///
/// A reader asks it only after a step that brings its page further, so that a page never ends where
/// it began: the cost of a page is its bound, and that of one step.
package final class ReadMeter {
    /// The work, as ``ReadWork`` counts it, after which a read that comes in pages ends its page.
    package static let pageTouchCountMax = WorkBound.pageUnits

    package private(set) var work = ReadWork()
    /// The work after which a page ends.
    package let touchCountMax: Int
    private let time: ReadTime?

    package init(touchCountMax: Int = ReadMeter.pageTouchCountMax, within time: ReadTime? = nil) {
        self.touchCountMax = touchCountMax
        self.time = time
    }

    package var isSpent: Bool {
        self.work.touchCount >= self.touchCountMax || self.time?.isOver ?? false
    }

    /// The rows that may still be read, at least one.
    package var restCount: Int { max(1, self.touchCountMax - self.work.touchCount) }

    /// Counts what is no row: what was cut, compiled and compared.
    package func count(_ work: ReadWork) { self.work += work }

    package func countSeek() { self.work.seekCount += 1 }

    package func countRow(_ size: Int) {
        self.work.rowCount += 1
        self.work.byteCount += size
    }
}
