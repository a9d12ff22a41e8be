import StratusRecords
package import StratusRuntime

/// Counts what became of changes to key-value stores.
package struct KeyValueCounters: Sendable {
    private let taken: Counter
    private let superseded: Counter
    private let refused: Counter
    private let repeated: Counter

    package init(_ metrics: Metrics) {
        func counter(_ outcome: String) -> Counter {
            metrics.counter(
                "stratus_key_value_changes_total",
                "Changes of key-value stores, by what became of them", ["outcome": outcome])
        }
        self.taken = counter("taken")
        self.superseded = counter("superseded")
        self.refused = counter("refused")
        self.repeated = counter("repeated")
    }

    /// - Parameter count: the changes of the batch.
    func note(_ modified: ModifiedKeyValues, count: Int) {
        if modified.isRepeat { self.repeated.add(count) }
        for result in modified.results {
            switch result {
            case .taken: self.taken.add()
            case .superseded: self.superseded.add()
            case .refused: self.refused.add()
            }
        }
    }
}
