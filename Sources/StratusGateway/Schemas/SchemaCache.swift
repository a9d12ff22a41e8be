import StratusModel
import Synchronization

/// The schemas a gateway compiled requests with lately. A stale one costs a second look, never a
/// wrong answer: commands carry the version they were compiled for, and partitions check.
final class SchemaCache: Sendable {
    private struct Entry {
        var schema: Schema
        var readAt: MonotonicTime
    }
    private let entries = Mutex<[ContainerReference: Entry]>([:])
    private let countMax: Int

    init(countMax: Int = 1_024) { self.countMax = countMax }

    func schema(
        of container: ContainerReference, at now: MonotonicTime, lifetime: Duration
    ) -> Schema? {
        self.entries.withLock { entries in
            guard let entry = entries[container], now < entry.readAt + lifetime else { return nil }
            return entry.schema
        }
    }

    func keep(_ schema: Schema, of container: ContainerReference, at now: MonotonicTime) {
        self.entries.withLock { entries in
            // Full is rare, and everything is read again within a second anyway.
            if entries.count >= self.countMax, entries[container] == nil { entries = [:] }
            entries[container] = Entry(schema: schema, readAt: now)
        }
    }
}
