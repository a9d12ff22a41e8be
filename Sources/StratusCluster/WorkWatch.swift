package import StratusModel
import Synchronization

/// The work of the storage thread, shown to other threads: one read, or one run of entries.
package final class WorkWatch: Sendable {
    package struct Work: Sendable {
        package enum Kind: Sendable {
            case read(Query)
            case apply(ArraySlice<Entry>)
        }
        package var kind: Kind
        package var group: GroupID
        package var since: MonotonicTime
    }

    private let current = Mutex<Work?>(nil)

    package init() {}

    /// Nil while nothing is being read or applied.
    package var work: Work? { self.current.withLock { $0 } }

    func begin(_ kind: Work.Kind, in group: GroupID, at time: MonotonicTime) {
        self.current.withLock { $0 = Work(kind: kind, group: group, since: time) }
    }

    func end() { self.current.withLock { $0 = nil } }
}
