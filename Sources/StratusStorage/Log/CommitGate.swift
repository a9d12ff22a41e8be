import StratusModel
import Synchronization

/// Keeps the COMMITs and the checkpoints of one database apart, and tells the checkpoints what was
/// committed.
///
/// SQLite 3.40 loses committed rows if a COMMIT restarts the WAL during a checkpoint (fixed in
/// 3.51.3): neither may run while the other does. The VFS asserts it.
final class CommitGate: Sendable {
    private struct State {
        var committed = LogIndex.zero
    }
    private let state = Mutex(State())

    init() {}

    func commit(through index: LogIndex, _ body: () throws(StoreError) -> Void) throws(StoreError) {
        try self.state.withLock { (state) throws(StoreError) in
            try body()
            state.committed = index
        }
    }

    /// Plants a bug: a checkpoint counts what is not committed.
    func note(_ index: LogIndex) { self.state.withLock { $0.committed = index } }

    /// Runs a checkpoint and, if it copied every frame, returns the index it made durable.
    func checkpoint(_ body: () throws(StoreError) -> Bool) throws(StoreError) -> LogIndex? {
        try self.state.withLock { (state) throws(StoreError) in
            try body() ? state.committed : nil
        }
    }
}
