package import StratusRuntime

/// Counts the records that clients saved and deleted through this node, for metrics.
package final class RecordCounts: Sendable, Equatable {
    package let saved = Counter()
    package let deleted = Counter()

    package init() {}

    package static func == (one: RecordCounts, other: RecordCounts) -> Bool { one === other }
}
