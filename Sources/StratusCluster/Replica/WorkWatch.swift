package import StratusModel
package import StratusRuntime
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
    private let times: PieceTimes?
    private let namer = Mutex<@Sendable (Work.Kind) -> String>({ kind in
        if case .read = kind { "a read" } else { "entries" }
    })

    package init(times: PieceTimes? = .ofProcess) { self.times = times }

    /// Reads and entries have these names in a report of long pieces.
    package func name(by namer: @escaping @Sendable (Work.Kind) -> String) {
        self.namer.withLock { $0 = namer }
    }

    /// Nil while nothing is being read or applied.
    package var work: Work? { self.current.withLock { $0 } }

    func begin(_ kind: Work.Kind, in group: GroupID, at time: MonotonicTime) {
        self.current.withLock { $0 = Work(kind: kind, group: group, since: time) }
        self.times?.beginPart { self.namer.withLock { $0 }(kind) }
    }

    func end() {
        self.times?.endPart()
        self.current.withLock { $0 = nil }
    }
}
