import CShims
package import StratusModel
import Synchronization

/// One log for all groups of a node: waiting items are written as one batch and synced once.
///
/// ``submit(_:)`` queues and returns. ``flush()`` writes: on the log's own thread in a node, on the
/// simulator's order in a simulation. The file format stands in `LogFormat.swift`.
///
/// Promises:
/// - An event says "durable" only after the sync that covers everything submitted for its group up
///   to there. A failed write or sync is final: one ``LogEvent/failed(_:)``, then nothing.
/// - A batch is written only after the one before it was synced. So everything before a sound batch
///   was on stable storage, and if it is not sound it is damage, never a tear.
/// - A segment is used again only when every entry in it is released or cut, and the record of that
///   is itself synced.
/// - A submitted entry can be read back at once, whether durable yet or not.
///
/// `@unchecked Sendable`: `lock` guards all state except what only the flushing thread touches
/// (`encoder`, `written`, and writing to the active segment). Remove this once a mutex can hold
/// non-`Sendable` files.
package final class SegmentedLog: SharedLog, @unchecked Sendable {
    package struct Limits: Sendable, Equatable {
        /// The size of segments that are made from now on. Each segment's header holds its own
        /// size.
        package var segmentSize: ByteCount = .mebibytes(64)
        /// More waits for the next sync. A single larger entry goes alone.
        package var batchSizeMax: ByteCount = .mebibytes(4)
        /// Segments kept for the next use; more are removed.
        package var spareCountMax = 2
        /// The size of the queue at which callers stop submitting entries of other nodes: see
        /// ``takesMore``.
        package var queueSizeMax: ByteCount = .mebibytes(64)
        package var bugs = PlantedBugs()
        package init() {}
    }

    /// The damage found when the log was opened. Nothing of it was cut.
    package struct Damage: Sendable, Equatable {
        package struct Entries: Sendable, Equatable {
            package var group: GroupID
            package var indexes: [LogIndex]

            package init(group: GroupID, indexes: [LogIndex]) {
                self.group = group
                self.indexes = indexes
            }
        }
        /// Entries known to be missing or damaged: the replica must fetch them from a peer and
        /// submit them again before it votes or serves.
        package var entries: [Entries] = []
        /// A batch is gone with the list of its items, and no state of the groups follows it: any
        /// group may have lost entries or a vote. See ``SegmentedLog/settleLoss()``.
        package var hasUnknownLoss = false
        /// The first dropped entry of each group and its term, if the last batch was not whole: a
        /// tear, unless the medium rotted just there. Nobody can tell the two apart: a torn entry
        /// was never acknowledged, a rotten one may have been. The replica takes it for torn, and a
        /// leader that had received its acknowledgement raises an alarm
        /// (``RaftGroup/Alarm/acknowledgedGone(through:at:)``).
        package var suspectTail: [Suspect] = []
        package struct Suspect: Sendable, Equatable {
            package var group: GroupID
            package var index: LogIndex
            package var term: Term
        }
        package var isNone: Bool { self.entries.isEmpty && !self.hasUnknownLoss }
        package init() {}
    }

    /// How far a start has read the log back.
    package struct RecoveryProgress: Sendable, Equatable {
        package var segmentsRead: Int
        package var segmentCount: Int

        package init(segmentsRead: Int, segmentCount: Int) {
            self.segmentsRead = segmentsRead
            self.segmentCount = segmentCount
        }
    }

    package let damage: Damage
    let world: any World
    package let directory: DiskPath
    let limits: Limits
    private let onEvent: @Sendable (LogEvent) -> Void
    private let lock = Mutex(())
    private var groups: [GroupID: GroupTail]
    private var queue: [QueuedItem] = []
    private var queueSize = 0
    /// When what waits longest was submitted: in the queue, and in the batch being synced.
    private var queuedSince: MonotonicTime?
    private var syncingSince: MonotonicTime?
    private var tokenCount: UInt64 = 0
    private var segments: SegmentPool
    /// The place of the next batch in the active segment, and its number.
    private var position: Int
    private var batchNumber: UInt64
    private var failure: LogError?
    /// The state of all groups goes with the next batch; and with the batch that is being written.
    private var wantsState = false
    private var writesState = false
    /// Written since the state was, or since the start.
    private var sizeSinceState = 0
    /// See ``Damage/hasUnknownLoss``: no state may be written that says what nobody knows.
    private var isInDoubt: Bool
    /// The last batch found no room for the segment that it needed.
    private var hasNoRoom = false
    /// The same, for the thread that flushes.
    private var lacksRoom = false
    private var encoder = BatchEncoder()
    /// Written and not yet synced.
    private var written: Written?
    private var executor: (any TaskExecutor)?
    private var isScheduled = false
    /// Hears how long each sync took, for metrics.
    private var syncTook: (@Sendable (Duration) -> Void)?

    /// Opens the log in `directory` and reads it back, or makes an empty one.
    ///
    /// - Parameter isNew: whether there may be none. A missing log is never begun afresh under an
    ///   old identity. So the caller remembers durably, after this has returned once, that there is
    ///   one.
    /// - Parameter progress: called while the log is read back, which takes about a second per
    ///   gigabyte.
    package init(
        in directory: DiskPath, of world: any World, isNew: Bool, limits: Limits = Limits(),
        onEvent: @escaping @Sendable (LogEvent) -> Void,
        progress: (RecoveryProgress) -> Void = { _ in }
    ) throws(LogError) {
        precondition(
            LogSegment.isPossible(size: UInt64(max(0, limits.segmentSize.raw))),
            "a segment of \(limits.segmentSize)")
        var recovery = LogRecovery(in: directory, of: world, limits: limits)
        do throws(DiskError) { try recovery.run(isNew: isNew, progress: progress) } catch {
            throw LogError(error.kind == .full ? .full : .disk, error.description)
        }
        if let refusal = recovery.refusal { throw refusal }
        self.world = world
        self.directory = directory
        self.limits = limits
        self.onEvent = onEvent
        self.groups = recovery.groups
        self.segments = SegmentPool(
            inUse: recovery.segments, spares: recovery.spares, limits: limits)
        self.position = recovery.position
        self.batchNumber = recovery.batchNumber
        self.damage = recovery.damage
        self.isInDoubt = recovery.damage.hasUnknownLoss
        for cut in recovery.unwrittenCuts {
            if case .cut(let group, _) = cut { self.groups[group]?.unsyncedCutCount += 1 }
            self.enqueue(cut)
        }
        if self.segments.active == nil { try self.begin() }
    }

    /// Begins a new log with a segment that holds an empty batch: from then on a directory without
    /// one has lost it.
    private func begin() throws(LogError) {
        do throws(DiskError) {
            let written = try self.write([])
            try written.segment.file.sync()
            _ = self.lock.withLock { _ in self.finish(written) }
        } catch { throw LogError(error.kind == .full ? .full : .disk, error.description) }
    }

    // MARK: What it holds

    /// Every group with entries or a hard state, in order.
    package var groupIDs: [GroupID] { self.lock.withLock { _ in self.groups.keys.sorted() } }

    package func hardState(of group: GroupID) -> HardState? {
        self.lock.withLock { _ in self.groups[group]?.hardState }
    }
    /// Which of the entries from `from` through `through` change who votes.
    package func configurationIndexes(
        of group: GroupID, from: LogIndex, through: LogIndex
    ) -> [LogIndex] {
        self.lock.withLock { _ in
            guard let tail = self.groups[group] else { return [] }
            var found: [LogIndex] = []
            var index = from
            while index <= through, let slot = tail.slot(at: index) {
                switch slot.place {
                case .located(let location) where location.kind == .configuration:
                    found.append(index)
                case .pending(let entry, _, _) where entry.kind == .configuration:
                    found.append(index)
                default: break
                }
                index = index.next
            }
            return found
        }
    }

    /// The index before the first entry kept, and its term.
    package func start(of group: GroupID) -> (index: LogIndex, term: Term) {
        self.lock.withLock { _ in
            let start = (self.groups[group] ?? GroupTail()).start
            return (start.index, start.term)
        }
    }
    package func last(of group: GroupID) -> (index: LogIndex, term: Term) {
        self.lock.withLock { _ in
            let tail = self.groups[group] ?? GroupTail()
            return (tail.last, tail.term(at: tail.last) ?? .zero)
        }
    }
    /// The term of the entry; nil for an index outside the log, zero for a damaged entry of unknown
    /// term.
    package func term(of group: GroupID, at index: LogIndex) -> Term? {
        self.lock.withLock { _ in self.groups[group]?.term(at: index) }
    }
    /// Entries of the group through here are on stable storage, as far as they were reported.
    package func durable(of group: GroupID) -> LogIndex {
        self.lock.withLock { _ in self.groups[group]?.durableThrough ?? .zero }
    }
    /// The time when the longest-waiting item was submitted; nil if none waits. Heartbeats report
    /// the disk by it.
    package var oldestUnsyncedAt: MonotonicTime? {
        self.lock.withLock { _ in self.syncingSince ?? self.queuedSince }
    }
    package var hasWork: Bool { self.lock.withLock { _ in self.hasItems } }
    private var hasItems: Bool { !self.queue.isEmpty || self.wantsState }
    /// Whether some group may have lost something that nobody can name, and nobody has settled it.
    package var hasUnknownLoss: Bool { self.lock.withLock { _ in self.isInDoubt } }
    package var queuedSize: ByteCount { self.lock.withLock { _ in ByteCount(self.queueSize) } }
    package var takesMore: Bool {
        self.lock.withLock { _ in
            !self.hasNoRoom && self.queueSize < self.limits.queueSizeMax.raw
        }
    }
    package func held(of group: GroupID) -> (size: ByteCount, count: Int) {
        self.lock.withLock { _ in
            guard let tail = self.groups[group] else { return (ByteCount(0), 0) }
            return (ByteCount(tail.heldSize), tail.slots.count)
        }
    }
    /// The size of the segments that hold something.
    package var sizeInUse: ByteCount {
        self.lock.withLock { _ in ByteCount(self.segments.inUse.reduce(0) { $0 + $1.size }) }
    }
    /// Whether the content of the oldest segment is small enough to be written again at the end:
    /// half of it at most. More would fill as much as it frees, and the log would go round in
    /// circles.
    package var isOldestWorthMoving: Bool {
        self.lock.withLock { _ in
            guard let oldest = self.segments.oldest else { return false }
            let holders = self.segments.holders(of: oldest, among: self.groups)
            let size = holders.reduce(0) {
                $0 + (self.groups[$1]?.size(in: oldest.number) ?? 0)
            }
            return size <= oldest.size / 2
        }
    }
    package var segmentCount: Int { self.lock.withLock { _ in self.segments.inUse.count } }
    package var fault: LogError? { self.lock.withLock { _ in self.failure } }

    /// The groups whose entries keep the oldest segment from being used again. They are to be
    /// checkpointed or, if their entries are not committed, moved by ``moveForward(_:)``.
    package var holdersOfOldest: [GroupID] {
        self.lock.withLock { _ in
            self.segments.oldest.map { self.segments.holders(of: $0, among: self.groups) } ?? []
        }
    }

    // MARK: SharedLog

    package func submit(_ batches: [LogBatch]) {
        let executor = self.lock.withLock { _ -> (any TaskExecutor)? in
            if self.failure != nil { return nil }
            for batch in batches { self.accept(batch) }
            self.noteWaiting()
            return self.claimSchedule()
        }
        self.schedule(on: executor)
    }

    /// Releases do not count: nobody waits for them.
    private func noteWaiting() {
        if self.queuedSince == nil, !self.queue.isEmpty { self.queuedSince = self.world.now }
    }

    private func accept(_ batch: LogBatch) {
        var tail = self.groups[batch.group] ?? GroupTail()
        // One place for the tail while it is changed: the array inside must not be copied.
        self.groups[batch.group] = nil
        defer { self.groups[batch.group] = tail }
        if let from = batch.truncateFrom, from <= tail.last {
            self.cut(&tail, of: batch.group, from: from)
        }
        for entry in batch.entries {
            precondition(
                entry.index <= tail.last.next,
                "\(batch.group): entry \(entry.index) after \(tail.last)")
            self.cutFollowers(of: entry, in: &tail, of: batch.group)
            self.tokenCount += 1
            tail.put(
                GroupTail.Slot(term: entry.term, place: .pending(entry, token: self.tokenCount)),
                at: entry.index, bugs: self.limits.bugs)
            self.enqueue(.entry(batch.group, entry, token: self.tokenCount))
        }
        if let hardState = batch.hardState {
            tail.hardState = hardState
            self.enqueue(.hardState(batch.group, hardState))
        }
    }

    private func cut(_ tail: inout GroupTail, of group: GroupID, from index: LogIndex) {
        tail.cut(from: index)
        tail.unsyncedCutCount += 1
        self.enqueue(.cut(group, from: index))
    }

    /// Cuts the followers of a damaged entry that is replaced, if they may have followed only from
    /// the damaged one. They stay owed unless they are known not to be the leader's: the replica
    /// may have acknowledged them.
    private func cutFollowers(of entry: Entry, in tail: inout GroupTail, of group: GroupID) {
        let followers = tail.followers(of: entry.index, as: entry.term)
        guard followers != .stay, !self.limits.bugs.contains(.tailBehindDamageKept) else { return }
        let owed = tail.owedThrough
        self.cut(&tail, of: group, from: entry.index.next)
        guard followers == .inDoubt, owed.index > entry.index else { return }
        tail.owe(through: owed)
        self.enqueue(.last(group, owed))
    }

    package func read(_ group: GroupID, from: LogIndex, limit: ByteCount) throws(LogError)
        -> [Entry]
    {
        let wanted = try self.slots(of: group, from: from, limit: limit)
        var entries: [Entry] = []
        entries.reserveCapacity(wanted.count)
        for (number, slot) in wanted.enumerated() {
            let index = LogIndex(from.raw + UInt64(number))
            switch slot.place {
            case .pending(let entry, _, _): entries.append(entry)
            case .located(let location):
                entries.append(try self.read(group, index, slot.term, at: location))
            case .damaged:
                if entries.isEmpty { throw LogError(.corrupt, "\(group): entry \(index)") }
                return entries
            }
        }
        return entries
    }

    /// The first entry at or behind `index` that was on this disk and is gone, and the last that
    /// ever was. An entry's term may be unknown: zero.
    package func loss(of group: GroupID, from index: LogIndex) -> (
        first: LogIndex, last: LogIndex, lastTerm: Term
    )? {
        self.lock.withLock { _ in
            guard let tail = self.groups[group],
                let first = tail.damagedIndexes.first(where: { $0 >= index })
            else { return nil }
            let last = tail.owedThrough
            return (first, last.index, last.term)
        }
    }

    package func restart(
        _ group: GroupID, after snapshot: SnapshotIdentity, owing last: (LogIndex, Term)? = nil
    ) {
        let executor = self.lock.withLock { _ -> (any TaskExecutor)? in
            if self.failure != nil { return nil }
            let start = GroupTail.LogPoint(index: snapshot.index, term: snapshot.term)
            self.groups[group, default: GroupTail()].restart(after: start)
            self.groups[group]!.unsyncedCutCount += 1
            self.enqueue(.cut(group, from: LogIndex(1)))
            self.enqueue(.start(group, start))
            if let last, last.0 > snapshot.index {
                let point = GroupTail.LogPoint(index: last.0, term: last.1)
                self.groups[group]!.owe(through: point)
                self.enqueue(.last(group, point))
            }
            self.noteWaiting()
            return self.claimSchedule()
        }
        self.schedule(on: executor)
    }

    /// Forgets all entries of the group, for good: its replica here is deleted. Its vote is kept.
    package func forget(_ group: GroupID) {
        guard self.start(of: group).index > .zero || self.last(of: group).index > .zero else {
            return
        }
        self.restart(
            group,
            after: SnapshotIdentity(
                index: .zero, term: .zero, configuration: Configuration(voters: []),
                digest: .empty))
    }

    /// Whether a cut or ``forget(_:)`` of the group is not on stable storage yet.
    package func hasUnsyncedCut(of group: GroupID) -> Bool {
        self.lock.withLock { _ in (self.groups[group]?.unsyncedCutCount ?? 0) > 0 }
    }

    package func release(_ group: GroupID, through index: LogIndex) {
        // The record of it goes with the next batch: nobody waits for it.
        self.lock.withLock { _ in
            guard self.failure == nil, var tail = self.groups[group], index > tail.start.index
            else { return }
            self.groups[group] = nil
            tail.release(through: index)
            self.groups[group] = tail
            self.enqueue(.start(group, tail.start))
        }
    }

    /// Writes the group's entries in the oldest segment again, at the log's end, so that the
    /// segment can be freed. For uncommitted tails, which no checkpoint releases.
    package func moveForward(_ group: GroupID) throws(LogError) {
        let indexes = self.lock.withLock { _ -> [LogIndex] in
            guard let oldest = self.segments.oldest, let tail = self.groups[group] else {
                return []
            }
            return tail.indexes(in: oldest.number)
        }
        for index in indexes {
            guard let entry = try self.read(group, from: index, limit: 1).first else { continue }
            self.submit([LogBatch(group: group, entries: [entry])])
        }
    }

    // MARK: Flushing

    /// From now on every submit wakes `executor`, which owns a thread that may block, to flush.
    ///
    /// - Parameter syncTook: hears how long each sync took. It must not wait.
    package func start(
        on executor: any TaskExecutor, syncTook: (@Sendable (Duration) -> Void)? = nil
    ) {
        let executor = self.lock.withLock { _ -> (any TaskExecutor)? in
            self.executor = executor
            self.syncTook = syncTook
            return self.claimSchedule()
        }
        self.schedule(on: executor)
    }

    /// Writes and syncs what waits, as one batch, and reports it. Returns whether more waits.
    ///
    /// Only ever called by one thread at a time.
    @discardableResult
    package func flush() -> Bool {
        guard self.beginFlush() else { return false }
        return self.endFlush()
    }

    /// The first half of ``flush()``: takes the waiting items and writes them. Returns whether
    /// there is anything to sync. If so, ``endFlush()`` must follow, and items submitted until then
    /// wait for the next flush.
    package func beginFlush() -> Bool {
        precondition(self.written == nil, "a flush begins before the one before has ended")
        let (taken, withState, failed) = self.lock.withLock { _ in
            self.writesState = self.wantsState && !self.isInDoubt
            self.wantsState = false
            return (self.takeBatch(), self.writesState, self.failure != nil)
        }
        if taken.isEmpty && !withState || failed { return false }
        do throws(DiskError) {
            self.written = try self.write(taken)
        } catch {
            // A segment that finds no room is no fault: nothing was written, and nothing is lost.
            if error.kind == .full, self.lacksRoom { self.putBack(taken) } else { self.fail(error) }
        }
        return self.written != nil
    }

    /// Whether the disk has no room for a segment, so that nothing is written. Items then go on
    /// waiting, and the node's peers hear of their age. ``retryIfFull()`` looks for room again.
    package var isFull: Bool { self.lock.withLock { _ in self.hasNoRoom } }

    /// Tries again to write what waits for room, if anything does.
    package func retryIfFull() {
        let executor = self.lock.withLock { _ in
            self.hasNoRoom ? self.claimSchedule(thoughFull: true) : nil
        }
        self.schedule(on: executor)
    }

    // MARK: State

    /// A state is left out while less than so many times its size was written since the last one.
    private static let stateShare = 16

    /// Writes the state of all groups with the next batch, so that damage to what was written until
    /// now can be named by the next start. It may be left out, since it is written often: it takes
    /// no more than a sixteenth of the log.
    package func noteState() {
        let executor = self.lock.withLock { _ -> (any TaskExecutor)? in
            let size = self.groups.count * 3 * LogFormat.itemSize
            guard self.failure == nil, !self.isInDoubt,
                self.sizeSinceState >= Self.stateShare * size
            else { return nil }
            self.wantsState = true
            return self.claimSchedule()
        }
        self.schedule(on: executor)
    }

    /// Writes what waits and the state of all groups, and returns when they are on the disk, or
    /// cannot be written. For a clean stop, when nothing else is submitted any more.
    package func close() async {
        guard let executor = self.lock.withLock({ _ in self.executor }) else {
            return self.flushWithState()
        }
        await Task(executorPreference: executor) { [self] in self.flushWithState() }.value
    }

    /// The state in a batch of its own: what rots in that is taken for torn, and nothing is lost.
    private func flushWithState() {
        while self.flush() {}
        self.lock.withLock { _ in self.wantsState = self.failure == nil }
        while self.flush() {}
    }

    /// The owner has decided for every group what becomes of a loss that nobody can name, and has
    /// submitted that: from now on what the log holds is what it must hold. Whoever votes by this
    /// log must not call it.
    package func settleLoss() {
        self.lock.withLock { _ in
            self.isInDoubt = false
            self.wantsState = true
        }
    }

    // MARK: Expiring

    func withSegments<Result>(_ body: (inout SegmentPool) -> Result) -> Result {
        self.lock.withLock { _ in body(&self.segments) }
    }

    /// Removes files that nobody needs. What cannot be removed is tried again. With the lock held.
    private func removeCondemned() {
        let failed = self.segments.takeCondemned().filter { segment in
            do throws(DiskError) {
                if try self.world.files.exists(segment.path) {
                    try self.world.files.remove(segment.path)
                }
                return false
            } catch { return true }
        }
        self.segments.condemn(failed)
    }

    /// Removes files that nobody needs, and writes what waits, or else the hard state of one group
    /// once more: a segment begins with it if one is due. Call it again and again until
    /// ``hasExpired``.
    package func advanceExpiry() {
        let executor = self.lock.withLock { _ -> (any TaskExecutor)? in
            guard self.failure == nil else { return nil }
            self.removeCondemned()
            let known = self.groups.filter { $0.value.hardState != nil }.keys.min()
            if self.queue.isEmpty, let group = known, let state = self.groups[group]?.hardState {
                self.enqueue(.hardState(group, state))
            }
            return self.claimSchedule()
        }
        self.schedule(on: executor)
    }

    private func putBack(_ items: [QueuedItem]) {
        self.lock.withLock { _ in
            self.hasNoRoom = true
            self.wantsState = self.wantsState || self.writesState
            self.queue.insert(contentsOf: items, at: 0)
            self.queueSize += items.reduce(0) { $0 + $1.size }
            self.queuedSince = self.syncingSince ?? self.queuedSince
            self.syncingSince = nil
        }
    }

    /// The second half: syncs and reports. Returns whether more waits.
    @discardableResult
    package func endFlush() -> Bool {
        guard let written = self.written else { return false }
        self.written = nil
        let began = self.world.now
        do throws(DiskError) { try self.sync(written.segment) } catch {
            self.fail(error)
            return false
        }
        let (events, more, syncTook) = self.lock.withLock { _ in
            (self.finish(written), self.hasItems, self.syncTook)
        }
        syncTook?(self.world.now - began)
        if !more { self.close(written) }
        for event in events { self.onEvent(event) }
        return more
    }

    /// Writes an empty batch behind a synced one that no other follows yet, before anybody hears of
    /// it. So a start after the end of the process alone knows that the synced one was whole, and
    /// takes what has rotted in it for damage, not for a tear. The next batch takes its place, so
    /// what is not synced stands behind what is. Nothing closes a state alone, which may be lost:
    /// it says only what stands before it.
    private func close(_ written: Written) {
        if written.items.isEmpty || self.limits.bugs.contains(.syncedBatchLeftOpen) { return }
        let header = LogFormat.BatchHeader(
            sequence: written.segment.header!.sequence, salt: written.segment.header!.salt,
            position: written.next.position, number: written.next.number, itemCount: 0,
            payloadSize: 0)
        guard header.position + header.size <= written.segment.size else { return }
        _ = self.encoder.encode([], after: [], header, segmentHeader: nil)
        // A disk that fails here fails the next batch too.
        try? written.segment.file.write(self.encoder.bytes, at: UInt64(header.position))
    }

    private func sync(_ segment: LogSegment) throws(DiskError) {
        if self.limits.bugs.contains(.durableBeforeSync) { return }
        do throws(DiskError) { try segment.file.sync() } catch {
            guard self.limits.bugs.contains(.failedSyncTriedAgain) else { throw error }
            try segment.file.sync()
        }
    }

    /// Final: what is on the medium is not known any more.
    private func fail(_ error: DiskError) {
        let failure = LogError(error.kind == .full ? .full : .disk, error.description)
        self.lock.withLock { _ in
            self.failure = failure
            self.queue = []
            self.queueSize = 0
        }
        self.onEvent(.failed(failure))
    }

    /// Makes a spare segment if there is none, so that no batch waits while one is filled with
    /// zeros.
    package func prepareSpare() {
        let number = self.lock.withLock { _ -> UInt32? in
            if self.failure != nil { return nil }
            if let doubtful = self.segments.takeDoubtfulSpare() { return doubtful.number }
            return self.segments.spares.isEmpty ? self.segments.freeNumber : nil
        }
        guard let number else { return }
        // A full disk here is no fault yet: the batch that needs the segment will say so.
        guard
            let segment = try? LogSegment.make(
                number, in: self.directory, size: self.limits.segmentSize.raw, of: self.world.files)
        else { return }
        self.lock.withLock { _ in self.segments.addSpare(segment) }
    }

    private func enqueue(_ item: QueuedItem) {
        self.queue.append(item)
        self.queueSize += item.size
    }

    /// - Parameter thoughFull: whether to look for room even if the disk was full. That fills all
    ///   remaining room with zeros, so do not do it for every submission.
    private func claimSchedule(thoughFull: Bool = false) -> (any TaskExecutor)? {
        guard let executor, !self.isScheduled, self.hasItems, thoughFull || !self.hasNoRoom
        else { return nil }
        self.isScheduled = true
        return executor
    }

    private func schedule(on executor: (any TaskExecutor)?) {
        guard let executor else { return }
        Task(executorPreference: executor) { [self] in self.drain() }
    }

    private func drain() {
        repeat {
            while self.flush() {}
            self.prepareSpare()
        } while self.lock.withLock { _ in
            // Without room there is nothing to do but wait for somebody to ask again.
            self.isScheduled = self.hasItems && !self.hasNoRoom
            return self.isScheduled
        }
    }

    private func takeBatch() -> [QueuedItem] {
        var size = 0
        var count = 0
        for item in self.queue {
            size += item.size
            let sizeMax = min(self.limits.batchSizeMax.raw, self.limits.segmentSize.raw / 2)
            // The record of owed entries is written in one batch with the item that lost them.
            if count > 0, size > sizeMax, !item.isOwed { break }
            count += 1
        }
        let taken = Array(self.queue.prefix(count))
        self.queue.removeFirst(count)
        self.queueSize -= taken.reduce(0) { $0 + $1.size }
        // The rest of the queue is not older than that.
        self.syncingSince = taken.isEmpty ? nil : self.queuedSince
        if self.queue.isEmpty { self.queuedSince = nil }
        return taken
    }

    private struct Written {
        var items: [QueuedItem]
        var places: BatchEncoder.Places
        var segment: LogSegment
        var isNewSegment: Bool
        var holdsState: Bool
        var size: Int
        /// The place of the next batch, and its number.
        var next: (position: Int, number: UInt64)
    }

    private func write(_ items: [QueuedItem]) throws(DiskError) -> Written {
        let payloadSize = items.reduce(0) { $0 + $1.payloadSize }
        var header = LogFormat.BatchHeader(
            sequence: 0, salt: 0, position: self.position, number: self.batchNumber,
            itemCount: items.count, payloadSize: payloadSize)
        let active = self.lock.withLock { _ in self.segments.active }
        let isExpired = self.lock.withLock { _ in self.segments.isActiveExpired }
        var state: [LogFormat.Item] = []
        if self.lock.withLock({ _ in self.writesState }) {
            state = self.lock.withLock { _ in self.stateItems() }
            header.itemCount += state.count
        }
        // With room for the batch that closes it.
        let end = self.position + header.size + LogFormat.batchHeaderSize
        let mustRotate = active.map { end > $0.size || isExpired } ?? true
        let segment: LogSegment
        if mustRotate {
            segment = try self.nextSegment()
            state = self.lock.withLock { _ in self.stateItems() }
            header.position = LogFormat.segmentHeaderSize
            header.itemCount = items.count + state.count
            precondition(
                header.position + header.size <= segment.size,
                "an entry of \(payloadSize) bytes in segments of \(segment.size)")
        } else {
            segment = active!
        }
        header.sequence = segment.header!.sequence
        header.salt = segment.header!.salt
        let places = self.encoder.encode(
            items, after: state, header, segmentHeader: mustRotate ? segment.header : nil)
        let start = mustRotate ? 0 : header.position
        try segment.file.write(self.encoder.bytes, at: UInt64(start))
        return Written(
            items: items, places: places, segment: segment, isNewSegment: mustRotate,
            holdsState: state.first?.kind == .state, size: header.size,
            next: header.isClosing
                ? (header.position, header.number)
                : (header.position + header.size, header.number + 1))
    }

    /// The batch is on stable storage: the index follows, segments may go, and who waits is told.
    private func finish(_ written: Written) -> [LogEvent] {
        if written.isNewSegment {
            self.segments.activate(written.segment)
        }
        (self.position, self.batchNumber) = written.next
        self.sizeSinceState = written.holdsState ? 0 : self.sizeSinceState + written.size
        self.hasNoRoom = false
        self.syncingSince = nil
        var touched: Set<GroupID> = []
        for (number, item) in written.items.enumerated() {
            switch item {
            case .entry(let group, let entry, let token):
                touched.insert(group)
                written.segment.note(entry.index, of: group)
                let location = GroupTail.Location(
                    segment: written.segment.number, offset: UInt32(written.places.offsets[number]),
                    size: UInt32(entry.payload.count), crc: written.places.crcs[number],
                    time: entry.time,
                    kind: entry.kind)
                self.groups[group]?.locate(location, at: entry.index, token: token)
            case .hardState(let group, let hardState):
                touched.insert(group)
                self.groups[group]?.durableHardState = hardState
            case .cut(let group, let from):
                touched.insert(group)
                self.groups[group]?.unsyncedCutCount -= 1
                self.segments.noteCut(of: group, from: from, by: written.segment)
            case .start(let group, let start):
                self.segments.noteRelease()
                self.groups[group]?.durableStart = start
            case .last: break
            }
        }
        for segment in self.segments.free(among: self.groups) {
            // If this fails the next start finds it and keeps it as a spare.
            try? self.world.files.remove(segment.path)
        }
        self.removeCondemned()
        return touched.sorted().map { group in
            let tail = self.groups[group] ?? GroupTail()
            return .durable(
                group, through: tail.durableThrough,
                term: tail.term(at: tail.durableThrough) ?? .zero,
                hardState: tail.durableHardState)
        }
    }

    // MARK: Segments

    private func nextSegment() throws(DiskError) -> LogSegment {
        self.lacksRoom = false
        let (spare, number) = self.lock.withLock { _ in
            let spare = self.segments.takeSpare()
            return (spare, spare?.number ?? self.segments.freeNumber)
        }
        let segment: LogSegment
        if let spare, spare.isWhole || self.limits.bugs.contains(.spareTakenAsFound) {
            segment = spare
        } else {
            do throws(DiskError) {
                segment = try LogSegment.make(
                    number, in: self.directory, size: self.limits.segmentSize.raw,
                    of: self.world.files)
            } catch {
                self.lacksRoom = error.kind == .full
                throw error
            }
        }
        let salt = self.world.random()
        self.lock.withLock { _ in self.segments.label(segment, salt: salt) }
        return segment
    }

    /// The start and hard state of every group, written at the head of every segment and now and
    /// then between, so that what is before is needed for its entries only.
    private func stateItems() -> [LogFormat.Item] {
        var items: [LogFormat.Item] = []
        // The mark says that these are known for certain.
        if !self.isInDoubt {
            items.append(LogFormat.Item(kind: .state, group: .system, index: 0, term: 0))
        }
        for group in self.groups.keys.sorted() {
            let tail = self.groups[group]!
            // Entries that a snapshot left out were never here: their group's start goes with the
            // last entry that follows from it, though its record may be in a later batch.
            let isRestarted =
                tail.unsyncedCutCount > 0 && tail.start.index > tail.durableStart.index
            let start = isRestarted ? tail.start : tail.durableStart
            if start.index > .zero {
                items.append(LogFormat.Item(.start(group, start), crc: 0))
            }
            // Not merely what is here: what is damaged is not forgotten with its segment.
            items.append(LogFormat.Item(.last(group, tail.owedThrough), crc: 0))
            if let hardState = tail.durableHardState {
                items.append(LogFormat.Item(.hardState(group, hardState), crc: 0))
            }
        }
        return items
    }

    // MARK: Reading

    private func slots(of group: GroupID, from: LogIndex, limit: ByteCount) throws(LogError)
        -> [GroupTail.Slot]
    {
        let found = self.lock.withLock { _ -> Result<[GroupTail.Slot], LogError> in
            let tail = self.groups[group] ?? GroupTail()
            guard from > tail.start.index else {
                return .failure(LogError(.released, "\(group): entry \(from) is released"))
            }
            var slots: [GroupTail.Slot] = []
            var size = 0
            var index = from
            while let slot = tail.slot(at: index) {
                switch slot.place {
                case .pending(let entry, _, _): size += entry.payload.count
                case .located(let location): size += Int(location.size)
                case .damaged: break
                }
                if !slots.isEmpty, size > limit.raw { break }
                slots.append(slot)
                index = index.next
            }
            return .success(slots)
        }
        return try found.get()
    }

    /// Reads entries that lie here back from the disk, from `index` on, about `limit` of them.
    /// - Returns: where to go on, nil at the end; and the first that is not what was written.
    package func scrub(_ group: GroupID, from index: LogIndex, limit: ByteCount)
        throws(LogError) -> (next: LogIndex?, damaged: LogIndex?)
    {
        let from = max(index, self.start(of: group).index.next)
        let slots: [GroupTail.Slot]
        do throws(LogError) { slots = try self.slots(of: group, from: from, limit: limit) } catch {
            // Released meanwhile.
            if error.kind == .released { return (from.next, nil) }
            throw error
        }
        for (number, slot) in slots.enumerated() {
            guard case .located(let location) = slot.place else { continue }
            let index = LogIndex(from.raw + UInt64(number))
            do throws(LogError) {
                _ = try self.read(group, index, slot.term, at: location)
            } catch {
                if error.kind == .released { continue }
                guard error.kind == .corrupt else { throw error }
                return (index.next, index)
            }
        }
        return (slots.isEmpty ? nil : LogIndex(from.raw + UInt64(slots.count)), nil)
    }

    /// Whether everything submitted for the group is on stable storage: then it may be read back as
    /// after a restart.
    package func isSettled(_ group: GroupID) -> Bool {
        self.lock.withLock { _ in self.groups[group]?.isSettled ?? true }
    }

    /// Gives up an entry that can no longer be read: ``loss(of:from:)`` reports it. Call it only
    /// while nobody works with the group, since they would take later entries for durable.
    package func giveUp(_ group: GroupID, _ index: LogIndex) {
        self.lock.withLock { _ in self.groups[group]?.markDamaged(at: index) }
    }

    private func read(
        _ group: GroupID, _ index: LogIndex, _ term: Term, at location: GroupTail.Location
    ) throws(LogError) -> Entry {
        let segment = self.lock.withLock { _ in
            self.segments.segment(location.segment)
        }
        var payload = Bytes()
        do throws(DiskError) {
            if let segment {
                payload = try segment.file.bytes(Int(location.size), at: UInt64(location.offset))
            }
        } catch { throw LogError(.disk, error.description) }
        let crc = payload.withUnsafeBytes { stratus_crc32c(0, $0.baseAddress, $0.count) }
        guard segment != nil, payload.count == Int(location.size), crc == location.crc else {
            return try self.readAgain(group, index, after: location)
        }
        return Entry(
            index: index, term: term, time: location.time, kind: location.kind, payload: payload)
    }

    /// Reads an entry again whose location has changed meanwhile: it was released, moved forward,
    /// or damaged.
    private func readAgain(
        _ group: GroupID, _ index: LogIndex, after location: GroupTail.Location
    ) throws(LogError) -> Entry {
        let slot = self.lock.withLock { _ in self.groups[group]?.slot(at: index) }
        guard let slot else {
            throw LogError(.released, "\(group): entry \(index) was released meanwhile")
        }
        switch slot.place {
        case .pending(let entry, _, _): return entry
        case .located(let other) where other != location:
            return try self.read(group, index, slot.term, at: other)
        case .located, .damaged: throw LogError(.corrupt, "\(group): entry \(index)")
        }
    }
}
