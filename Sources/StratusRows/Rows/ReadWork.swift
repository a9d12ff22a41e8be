/// The cost of reading so far. It is counted while reading, so that a page can end before it takes
/// too long.
///
/// Rows alone do not tell: one record may hold a megabyte of text, and one filter may name hundreds
/// of values.
package struct ReadWork: Sendable, Equatable {
    /// Keys that the store was asked to find, whether or not something was there.
    package var seekCount = 0
    /// Rows that scans went through.
    package var rowCount = 0
    /// Bytes of keys and rows that were read.
    package var byteCount = 0
    /// Bytes of text that were folded or cut into words.
    package var cutByteCount = 0
    /// Values and keys that were compared.
    package var comparisonCount = 0

    package static let bytesPerTouch = 2_048
    package static let cutBytesPerTouch = 32
    package static let comparisonsPerTouch = 16

    package init(comparisonCount: Int = 0) { self.comparisonCount = comparisonCount }

    package static func += (work: inout Self, more: Self) {
        work.seekCount += more.seekCount
        work.rowCount += more.rowCount
        work.byteCount += more.byteCount
        work.cutByteCount += more.cutByteCount
        work.comparisonCount += more.comparisonCount
    }

    /// All of it in one measure. A touch is about what a seek costs: some microseconds of the
    /// storage thread.
    package var touchCount: Int {
        self.seekCount + self.rowCount + self.byteCount / Self.bytesPerTouch
            + self.cutByteCount / Self.cutBytesPerTouch
            + self.comparisonCount / Self.comparisonsPerTouch
    }
}
