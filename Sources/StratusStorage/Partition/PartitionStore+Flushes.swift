package import StratusModel
import StratusRows
import StratusSQLite

/// What a store knows of the rows that are in memory only.
struct RecentWork {
    let share: FlushTurns.Share?
    /// Entries were applied that no flush has set aside.
    var isWaiting = false
    /// Since when, as far as anybody has asked.
    var waitingSince: MonotonicTime?
    /// Where the rows stand that were set aside.
    var frozen: AppliedPosition?
    /// Not yet taken, and not all exact; the oldest is dropped where there are too many.
    var digests: [NotedDigest] = []
    /// Held from the first slice to the last.
    var turn: FlushTurns.Turn?

    init(_ share: FlushTurns.Share?) { self.share = share }

    mutating func forget() {
        self.isWaiting = false
        self.waitingSince = nil
        self.frozen = nil
        self.digests = []
        self.turn = nil
        self.share?.note(0, 0)
    }
}

/// Rows go from memory to the file in flushes, in slices, or at once where somebody needs the file.
extension PartitionStore {
    /// While another partition has the turn.
    private static var turnDelay: Duration { .milliseconds(2) }

    private static var digestCountMax: Int { 16 }

    package var isFull: Bool {
        guard let rows = self.open?.rows else { return false }
        return self.limits.flush.isFull(rows.freshCount, rows.freshSize)
    }

    package func flushIfDue(at now: MonotonicTime) throws(StoreError) -> MonotonicTime? {
        guard let open, !self.mustReset, !open.rows.isInBatch else { return nil }
        if self.recent.isWaiting, self.recent.waitingSince == nil { self.recent.waitingSince = now }
        if self.recent.frozen == nil {
            guard let due = self.due(of: open.rows) else { return nil }
            if now < due { return due }
        }
        if self.recent.turn == nil, let turns = self.limits.turns {
            self.recent.turn = turns.take()
            if self.recent.turn == nil { return now + Self.turnDelay }
        }
        try self.flushing { () throws(StoreError) in
            if self.recent.frozen == nil { try self.beginFlush(open.rows) }
            if try open.rows.writeFrozen(upTo: self.limits.flush.sliceCount) {
                try self.endFlush(open.rows)
            }
        }
        return self.recent.frozen == nil ? self.due(of: open.rows) : now
    }

    package func noteDigest() {
        if self.recent.digests.count == Self.digestCountMax { self.recent.digests.removeFirst() }
        self.recent.digests.append(NotedDigest(index: self.applied, digest: self.digest))
    }

    package func takeDigests() -> [NotedDigest] {
        let count = self.recent.digests.prefix { $0.index <= self.committed.index }.count
        defer { self.recent.digests.removeFirst(count) }
        return Array(self.recent.digests.prefix(count))
    }

    private func due(of rows: Rows) -> MonotonicTime? {
        guard let since = self.recent.waitingSince else { return nil }
        if self.recent.share?.isTooMuch == true { return since }
        return self.limits.flush.due(rows.freshCount, rows.freshSize, from: since)
    }

    package func commit() throws(StoreError) {
        try self.publish()
        guard let open else { return }
        try self.flushing { () throws(StoreError) in
            if self.recent.frozen != nil {
                _ = try open.rows.writeFrozen()
                try self.endFlush(open.rows)
            }
            guard self.recent.isWaiting else { return }
            try self.beginFlush(open.rows)
            _ = try open.rows.writeFrozen()
            try self.endFlush(open.rows)
        }
    }

    private func beginFlush(_ rows: Rows) throws(StoreError) {
        if self.walSize > self.limits.walSizeMax, !self.mayGrowFurther() {
            guard try self.copyWAL() else {
                throw StoreError(.busy, "a reader holds back the checkpoint of a full WAL")
            }
        }
        rows.freeze()
        self.recent.frozen = self.position
        self.recent.isWaiting = false
        self.recent.waitingSince = nil
        if self.limits.bugs.contains(.durableAtFlushBegin) {
            self.gate.note(self.position.index)
        }
    }

    private func endFlush(_ rows: Rows) throws(StoreError) {
        guard var position = self.recent.frozen else { return }
        if self.limits.bugs.contains(.positionOfLaterRows) { position = self.position }
        position.digest = rows.frozenDigest
        // What was noted before a row was found that nobody had expected is wrong.
        if rows.hasFoundUnexpected { self.recent.digests = [] }
        try self.gate.commit(through: position.index) { () throws(StoreError) in
            try rows.endFlush([position.change])
        }
        self.committed = position
        self.recent.frozen = nil
        self.recent.turn = nil
        self.recent.share?.note(rows.freshCount, rows.freshSize)
        if self.limits.bugs.contains(.durableAtCommit) { self.durable = self.committed.index }
    }

    /// After an error the rows stay in memory, unless the file has to be opened anew.
    private func flushing(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        do throws(StoreError) { try body() } catch {
            self.recent.turn = nil
            let canGoOn = (try? self.open?.rows.backOff()) != nil
            if !canGoOn || error.kind == .corrupt || self.system.hasFailedSync(self.path) {
                self.mustReset = true
            }
            throw error
        }
    }
}
