package import StratusRows

/// The cost of answering a page, and the way it was answered. Tests prove with it that indexes are
/// used.
package struct QueryCounters: Sendable, Equatable {
    /// How the records were found.
    package enum Plan: UInt8, Sendable, Equatable, CaseIterable {
        /// By their names.
        case names
        /// From the rows of one filter's index, in its order.
        case index
        /// In the order of the sorts, from their indexes.
        case ordered
        /// All that one filter's index names, then sorted.
        case gathered
        /// From every record of the type, by the index of their names.
        case extent
        /// From every record of the zone: only where no index is required.
        case scan
    }

    /// All that the page has cost.
    package var work = ReadWork()
    /// Index rows read.
    package var indexRowCount = 0
    /// Records looked at.
    package var recordCount = 0
    /// The plan for the last zone that was asked.
    package var plan: Plan?

    package init() {}
}
