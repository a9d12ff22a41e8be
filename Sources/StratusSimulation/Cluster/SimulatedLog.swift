import StratusConsensus
package import StratusModel
package import StratusStorage

/// A node's log as a list of operations, of which a crash leaves a prefix: what a log that checks its
/// frames and cuts its torn tail guarantees, without the bytes.
///
/// Syncs take as long as the simulation says; what was submitted before a sync began is durable when it
/// ends.
package final class SimulatedLog: SharedLog {
    package struct GroupLog: Sendable, Equatable {
        package var hardState = HardState(term: .zero, vote: nil)
        package var base = LogPoint.zero
        package var entries: [Entry] = []

        package var last: LogPoint {
            self.entries.last.map { LogPoint(index: $0.index, term: $0.term) } ?? self.base
        }

        func term(at index: LogIndex) -> Term? {
            if index == self.base.index { return self.base.term }
            guard index > self.base.index, index <= self.last.index else { return nil }
            return self.entries[Int(index.raw - self.base.index.raw) - 1].term
        }

        mutating func cut(from index: LogIndex) {
            guard index <= self.last.index else { return }
            let keep = index > self.base.index ? Int(index.raw - self.base.index.raw) - 1 : 0
            self.entries.removeSubrange(keep...)
        }
    }

    private enum Operation {
        case batch(LogBatch)
        case restart(GroupID, LogPoint)
        case release(GroupID, LogIndex)

        var group: GroupID {
            switch self {
            case .batch(let batch): batch.group
            case .restart(let group, _), .release(let group, _): group
            }
        }
    }

    /// What a power cut leaves.
    package private(set) var medium: [GroupID: GroupLog]
    /// What reads see.
    private var current: [GroupID: GroupLog]
    private var unsynced: [Operation] = []
    private var inSyncCount = 0
    /// When the oldest write that still waits was submitted, in simulated time.
    package private(set) var oldestUnsyncedAt: MonotonicTime?
    private var secondOldestAt: MonotonicTime?
    /// Set by the simulation before each call into the node.
    package var now = MonotonicTime(nanoseconds: 0)
    package private(set) var wantsSync = false

    package init(medium: [GroupID: GroupLog] = [:]) {
        self.medium = medium
        self.current = medium
    }

    // MARK: SharedLog

    package func submit(_ batches: [LogBatch]) {
        for batch in batches {
            self.current[batch.group, default: GroupLog()].take(batch)
            self.unsynced.append(.batch(batch))
        }
        if self.oldestUnsyncedAt == nil { self.oldestUnsyncedAt = self.now }
        if self.secondOldestAt == nil, self.inSyncCount > 0 { self.secondOldestAt = self.now }
        self.wantsSync = true
    }

    package func read(_ group: GroupID, from: LogIndex, limit: ByteCount) throws(LogError)
        -> [Entry]
    {
        guard let log = self.current[group], from <= log.last.index else { return [] }
        guard from > log.base.index else { throw LogError(.released, "entry \(from) is released") }
        var entries: [Entry] = []
        var size = 0
        for entry in log.entries[(Int(from.raw - log.base.index.raw) - 1)...] {
            size += entry.cost
            if size > limit.raw, !entries.isEmpty { break }
            entries.append(entry)
        }
        return entries
    }

    package func restart(_ group: GroupID, after snapshot: SnapshotIdentity) {
        let point = LogPoint(index: snapshot.index, term: snapshot.term)
        self.current[group, default: GroupLog()].restart(after: point)
        self.unsynced.append(.restart(group, point))
        self.wantsSync = true
    }

    package func release(_ group: GroupID, through index: LogIndex) {
        self.current[group]?.release(through: index)
        self.unsynced.append(.release(group, index))
    }

    // MARK: What the simulation does

    /// A sync begins, if there is something to sync and none is under way.
    package func beginSync() -> Bool {
        guard self.wantsSync, self.inSyncCount == 0 else { return false }
        self.wantsSync = false
        self.inSyncCount = self.unsynced.count
        return true
    }

    /// The sync that began has ended: one report for each group it held something of.
    package func endSync() -> [LogEvent] {
        var groups: Set<GroupID> = []
        for operation in self.unsynced[..<self.inSyncCount] {
            Self.apply(operation, to: &self.medium)
            groups.insert(operation.group)
        }
        self.unsynced.removeFirst(self.inSyncCount)
        self.inSyncCount = 0
        // Releases may wait for somebody else's sync: nobody is held up by them.
        self.oldestUnsyncedAt = self.wantsSync ? self.secondOldestAt ?? self.now : nil
        self.secondOldestAt = nil
        return groups.sorted().map { group in
            let log = self.medium[group] ?? GroupLog()
            return .durable(
                group, through: log.last.index, term: log.last.term, hardState: log.hardState)
        }
    }

    /// The process is gone: what was written and not synced is there up to some point, and no further.
    package func crash(_ random: inout SeededGenerator) -> [GroupID: GroupLog] {
        let kept = Int.random(in: 0...self.unsynced.count, using: &random)
        for operation in self.unsynced[..<kept] { Self.apply(operation, to: &self.medium) }
        return self.medium
    }

    private static func apply(_ operation: Operation, to logs: inout [GroupID: GroupLog]) {
        switch operation {
        case .batch(let batch): logs[batch.group, default: GroupLog()].take(batch)
        case .restart(let group, let point):
            logs[group, default: GroupLog()].restart(after: point)
        case .release(let group, let index): logs[group]?.release(through: index)
        }
    }
}

extension SimulatedLog.GroupLog {
    fileprivate mutating func take(_ batch: LogBatch) {
        if let hardState = batch.hardState { self.hardState = hardState }
        if let from = batch.truncateFrom { self.cut(from: from) }
        guard let first = batch.entries.first else { return }
        if first.index != self.last.index.next {
            // Only a planted bug appends where the log does not end.
            self.cut(from: first.index)
            if first.index != self.last.index.next { return }
        }
        self.entries += batch.entries
    }

    fileprivate mutating func restart(after point: LogPoint) {
        self.base = point
        self.entries = []
    }

    fileprivate mutating func release(through index: LogIndex) {
        guard let term = self.term(at: index), index > self.base.index else { return }
        self.entries.removeFirst(Int(index.raw - self.base.index.raw))
        self.base = LogPoint(index: index, term: term)
    }
}
