import StratusModel
import StratusRecords
import StratusRuntime
import Synchronization

/// The number of links between buckets that audits repaired, as far as this node submitted the
/// repairing commands.
final class MendedCount: Sendable {
    private let log: Log
    private let count = Atomic<Int>(0)

    init(_ log: Log) { self.log = log }

    var value: Int { self.count.load(ordering: .relaxed) }

    /// - Parameter outcome: of a mail command or a slice of jobs.
    func note(_ outcome: Outcome) {
        let mended = MendedLinks(detail: outcome.detail).count
        guard mended > 0 else { return }
        let all = self.count.wrappingAdd(mended, ordering: .relaxed).newValue
        self.log.warning(
            "an audit has repaired references between buckets",
            ["count": .count(mended), "all": .count(all)])
    }
}
