import StratusCoding
package import StratusModel

/// A group's view of its own log without reading the disk. It knows where the log starts and ends,
/// the term of every entry, the configurations, and the most recent entries themselves.
///
/// Invariants:
/// - Indices are contiguous from `base.next` through `last`; terms never fall.
/// - `tail` is a suffix of that range; what is older must be read from the shared log.
package struct ReplicatedLog: Sendable, Equatable {
    private struct TermRun: Sendable, Equatable {
        var first: LogIndex
        var term: Term
    }
    private struct Change: Sendable, Equatable {
        var index: LogIndex
        var configuration: Configuration
    }

    /// Everything through here is in the state or a snapshot; the log may no longer hold it.
    package private(set) var base: LogPoint
    package private(set) var last: LogIndex
    /// The time of the latest entry ever appended. Entries cut off later still count, which can
    /// only delay.
    package private(set) var lastTime: HybridTime
    /// Terms since `base`, oldest first. A run ends where the next begins.
    private var runs: [TermRun] = []
    /// Configurations in force, oldest first: one at or before `base`, then one per entry of the
    /// kind.
    private var changes: [Change]
    /// The recent entries; those before `tailHead` are already dropped and wait to be removed.
    private var tail: [Entry] = []
    private var tailHead = 0
    package private(set) var tailSize = 0

    package init(base: LogPoint, configuration: Configuration, time: HybridTime) {
        self.base = base
        self.last = base.index
        self.lastTime = time
        self.changes = [Change(index: base.index, configuration: configuration)]
    }

    // MARK: Looking

    package var lastPoint: LogPoint {
        LogPoint(index: self.last, term: self.runs.last?.term ?? self.base.term)
    }

    /// The configuration in force: the last in the log, committed or not (thesis §4.1).
    package var configuration: Configuration { self.changes[self.changes.count - 1].configuration }
    package var configurationIndex: LogIndex { self.changes[self.changes.count - 1].index }

    /// The configuration in force at `index`, for a snapshot taken there.
    package func configuration(at index: LogIndex) -> Configuration {
        let change = self.changes.last { $0.index <= index } ?? self.changes[0]
        return change.configuration
    }

    /// Whether the node is a member in the configuration in force at `index` and in each one since,
    /// committed or not. False where the log cannot tell.
    ///
    /// A node that was removed and came back has deleted what it stored before. So what it stored
    /// counts only if it has been a member ever since.
    package func isMember(_ node: NodeID, since index: LogIndex) -> Bool {
        guard index <= self.last else { return false }
        // Nothing has changed behind it, whatever was in force before.
        if index >= self.configurationIndex { return self.configuration.members.contains(node) }
        // The oldest one that is known may have been in force only from its own index on.
        guard let first = self.changes.lastIndex(where: { $0.index <= index }) else {
            return false
        }
        return self.changes[first...].allSatisfy { $0.configuration.members.contains(node) }
    }

    /// The term of the entry at `index`; nil when it is before `base` or after `last`.
    package func term(at index: LogIndex) -> Term? {
        if index == self.base.index { return self.base.term }
        guard index > self.base.index, index <= self.last else { return nil }
        let run = self.runs.last { $0.first <= index }
        return run?.term
    }

    package func holds(_ point: LogPoint) -> Bool { self.term(at: point.index) == point.term }

    /// The latest point at or before `point.index` whose term is not later than `point.term`: where
    /// two logs may still agree (thesis §3.5, the faster search for the point of divergence).
    package func latestPoint(notAfter point: LogPoint) -> LogPoint {
        var index = min(point.index, self.last)
        for run in self.runs.reversed() where run.first <= index {
            if run.term <= point.term { return LogPoint(index: index, term: run.term) }
            index = run.first.previous
        }
        return index < self.base.index ? self.base : LogPoint(index: index, term: self.base.term)
    }

    package var tailFirst: LogIndex {
        LogIndex(self.last.raw - UInt64(self.tail.count - self.tailHead) + 1)
    }

    /// The entries `from…through` from memory, fewer where `sizeMax` is reached (but never none);
    /// nil when they must be read from the shared log.
    package func entries(from: LogIndex, through: LogIndex, sizeMax: Int) -> ArraySlice<Entry>? {
        guard from >= self.tailFirst, from <= through, through <= self.last else { return nil }
        let start = self.tailHead + Int(from.raw - self.tailFirst.raw)
        let limit = start + Int(through.raw - from.raw) + 1
        var end = start + 1
        var size = self.tail[start].cost
        while end < limit {
            size += self.tail[end].cost
            if size > sizeMax { break }
            end += 1
        }
        return self.tail[start..<end]
    }

    // MARK: Changing

    /// An entry that a start need not read back, because the state stands for it: its term is all
    /// that is kept. Only before any other.
    package mutating func pass(
        _ index: LogIndex, term: Term, configuration: Configuration? = nil
    ) {
        precondition(self.tail.isEmpty, "an entry is passed behind one that was read")
        precondition(index == self.last.next, "a gap in the log at \(index)")
        precondition(term >= self.lastPoint.term, "terms fall at \(index)")
        if term != self.lastPoint.term || self.runs.isEmpty {
            self.runs.append(TermRun(first: index, term: term))
        }
        if let configuration {
            self.changes.append(Change(index: index, configuration: configuration))
        }
        self.last = index
    }

    package mutating func append(_ entry: Entry) {
        precondition(entry.index == self.last.next, "a gap in the log at \(entry.index)")
        let lastTerm = self.lastPoint.term
        precondition(entry.term >= lastTerm, "terms fall at \(entry.index)")
        if entry.term != lastTerm || self.runs.isEmpty {
            self.runs.append(TermRun(first: entry.index, term: entry.term))
        }
        if entry.kind == .configuration, let new = try? Configuration(decoding: entry.payload) {
            self.changes.append(Change(index: entry.index, configuration: new))
        }
        self.last = entry.index
        self.lastTime = max(self.lastTime, entry.time)
        self.tail.append(entry)
        self.tailSize += entry.cost
    }

    /// Removes the entries from `index` on.
    package mutating func cut(from index: LogIndex) {
        precondition(index > self.base.index, "cutting what a snapshot stands for")
        guard index <= self.last else { return }
        let first = self.tailFirst
        if index >= first {
            let keep = self.tailHead + Int(index.raw - first.raw)
            for entry in self.tail[keep...] { self.tailSize -= entry.cost }
            self.tail.removeSubrange(keep...)
        } else {
            self.dropTail()
        }
        self.last = index.previous
        while let run = self.runs.last, run.first > self.last { self.runs.removeLast() }
        while self.changes.count > 1, self.configurationIndex > self.last {
            self.changes.removeLast()
        }
    }

    /// Forgets the entries through `index`: the shared log may have let them go.
    package mutating func compact(through index: LogIndex) {
        guard index > self.base.index else { return }
        precondition(index <= self.last, "compacting past the end")
        self.base = LogPoint(index: index, term: self.term(at: index) ?? self.base.term)
        while self.runs.count > 1, self.runs[1].first <= index { self.runs.removeFirst() }
        if let run = self.runs.first, run.first <= index {
            self.runs[0].first = index.next
            if index == self.last { self.runs.removeAll() }
        }
        while self.changes.count > 1, self.changes[1].index <= index { self.changes.removeFirst() }
        self.forgetTail(before: index.next)
    }

    /// A snapshot stands for what is at or before its index, which this log holds; what follows
    /// stays.
    package mutating func rebase(on snapshot: SnapshotIdentity) {
        self.compact(through: snapshot.index)
        self.changes[0].configuration = snapshot.configuration
        self.lastTime = max(self.lastTime, snapshot.time)
    }

    /// Replaces everything by a snapshot.
    package mutating func restart(after snapshot: SnapshotIdentity) {
        self.base = LogPoint(index: snapshot.index, term: snapshot.term)
        self.last = snapshot.index
        self.lastTime = max(self.lastTime, snapshot.time)
        self.runs = []
        self.changes = [Change(index: snapshot.index, configuration: snapshot.configuration)]
        self.dropTail()
    }

    /// Drops entries before `index` from memory, as far as `sizeMax` asks for it. Nothing is
    /// forgotten: they can be read from the shared log.
    package mutating func trimTail(to sizeMax: Int, before index: LogIndex) {
        while self.tailSize > sizeMax, self.tailHead < self.tail.count,
            self.tail[self.tailHead].index < index
        {
            self.dropFirstOfTail()
        }
        self.reclaim()
    }

    private mutating func forgetTail(before index: LogIndex) {
        while self.tailHead < self.tail.count, self.tail[self.tailHead].index < index {
            self.dropFirstOfTail()
        }
        self.reclaim()
    }

    private mutating func dropFirstOfTail() {
        self.tailSize -= self.tail[self.tailHead].cost
        self.tail[self.tailHead].payload = []
        self.tailHead += 1
    }

    private mutating func dropTail() {
        self.tail = []
        self.tailHead = 0
        self.tailSize = 0
    }

    /// Removing from the front of an array moves the rest: done once half of it is dead.
    private mutating func reclaim() {
        if self.tailHead == self.tail.count {
            self.tail.removeAll(keepingCapacity: true)
            self.tailHead = 0
        } else if self.tailHead > 64, self.tailHead > self.tail.count / 2 {
            self.tail.removeSubrange(..<self.tailHead)
            self.tailHead = 0
        }
    }
}

extension Entry {
    /// The size that the entry counts for in every limit by size.
    package var cost: Int { self.payload.count + 40 }
}
