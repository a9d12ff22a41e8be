import CShims
import StratusCoding
package import StratusModel

/// Keeps the copies of every partition that has a replica on this node: stores them, reads them,
/// and removes what no row names any more.
///
/// Runs on the thread *packs*, which may block. Hears from ``KeeperInbox`` what entries named and
/// dropped, and lets one ``CopyWants`` for each partition decide.
///
/// Promises:
/// - A copy is acknowledged only once it is synced.
/// - A copy goes only when durable rows do not name it.
/// - After its replica was opened, all copies of a partition are compared with its rows.
package actor CopyKeeper {
    struct Waiting {
        var copy: StoredCopy
        var answer: CheckedContinuation<CopyAnswer, Never>
    }

    struct Group {
        /// Nil while it is closed.
        var store: (any CopyStore)?
        /// When the store was last used: a count of uses.
        var usedAt: UInt64 = 0
        var wants: CopyWants
        var applied: LogIndex
        var appliedMilliseconds: Int64
        var durable: LogIndex
        var durableMilliseconds: Int64
        /// The last entry that dropped a body.
        var droppedAt = LogIndex.zero
        /// A page of rows was asked for and has not come.
        var asksRows = false
        var isCompared = false
        /// What the store has is not listed rightly: it could not be read when it was compared, or
        /// copies could not be stored. Another comparison is due then.
        var comparesAgainAt: MonotonicTime?
        /// The comparison that is under way could not read the store.
        var isUnread = false
        var failures = RepeatedFailures()
        /// Comparisons that must go through, from their first page, before it is known again what
        /// is here: a copy was found damaged.
        var doubtCount = 0
        var puts: [Waiting] = []
        var lastPut: MonotonicTime
        /// Something was removed, or may be left from before the start.
        var hasGarbage: Bool
        var durableAskedAt: MonotonicTime?
        /// Times that it was asked for in vain.
        var durableAskCount = 0
        var touchedAt: MonotonicTime?
        /// Since when copies have been missing.
        var lacksSince: MonotonicTime?
        /// Nobody had what is missing: it is not asked for before this.
        var repairAfter: MonotonicTime?
        /// The first of the missing copies that is asked for next.
        var repairFrom = CopyName.first
        /// Bodies of which every member lacks a chunk.
        var absent: [BodyID: Absence] = [:]
        /// When every copy had been read back last, and whether it is being done.
        var readBackAt: MonotonicTime
        var isReadingBack = false
        /// Reading back failed: it goes on then, where it was.
        var readBackAfter: MonotonicTime?
        var readBackFailures = RepeatedFailures()
        /// As of the last look.
        var sizes = (all: ByteCount(0), live: ByteCount(0))
        var problem: String?
    }

    /// Since when every member has said that it lacks a chunk, and how often all were asked.
    struct Absence {
        var since: MonotonicTime
        var lookCount = 1
    }

    /// Copies that wait to be stored, all partitions together.
    package static let queueSizeMax = ByteCount.mebibytes(32)
    /// A pack that nothing was added to for so long is sealed if room can be had from it.
    private static let quietTime = Duration.seconds(5)
    private static let durableInterval = Duration.seconds(1)
    private static let durableAskCountMax = 60
    /// Copies that are missing for longer are something to look at.
    package static let missingPatience = Duration.seconds(60)
    /// Copies of one partition that are brought in one go.
    static let repairCountMax = 256
    private static let touchInterval = Duration.seconds(600)
    private static let removeCountMax = 1_000
    static let slice = ByteCount.mebibytes(4)
    /// Stores that are open. Beyond it the one longest unused is closed: each holds memory and
    /// descriptors.
    package static let openStoreCountMax = 64

    let setup: Setup
    private let executor: any SerialExecutor
    private nonisolated let inbox: KeeperInbox
    var groups: [GroupID: Group] = [:]
    var queueBytes = 0
    var forgotten = ForgottenBodies()
    private var removedCount = 0
    private var isDraining = false
    private var useCount: UInt64 = 0
    var isRepairing = false
    var repairedCount = 0
    var damagedCount = 0
    var lostCount = 0
    private var rate: ByteCount
    private(set) var isStopped = false

    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        self.executor.asUnownedSerialExecutor()
    }

    /// - Parameters:
    ///   - executor: owns one thread, which may block.
    ///   - compactionRate: bytes in a second; 0: as fast as can be.
    package init(
        _ setup: Setup, inbox: KeeperInbox, compactionRate: ByteCount,
        on executor: any SerialExecutor
    ) {
        self.setup = setup
        self.inbox = inbox
        self.rate = compactionRate
        self.executor = executor
    }

    /// Begins to work. What came in before waits in the inbox.
    ///
    /// - Parameter executor: where the task that is woken by an event begins; nil: anywhere.
    package func start(on executor: (any TaskExecutor)? = nil) {
        self.inbox.start { [weak self] in
            Task(executorPreference: executor) { await self?.hear() }
        }
    }

    package func compact(at rate: ByteCount) { self.rate = rate }

    /// Answers what waits, unstored, and takes nothing more.
    package func stop() {
        self.isStopped = true
        for group in self.groups.keys.sorted() {
            let puts = self.groups[group]!.puts
            self.groups[group]!.puts = []
            for put in puts { put.answer.resume(returning: .silent) }
            self.groups[group]!.store = nil
        }
        self.queueBytes = 0
    }

    package func figures() -> Figures {
        var figures = Figures()
        figures.queueBytes = self.queueBytes
        figures.removedCount = self.removedCount
        figures.repairedCount = self.repairedCount
        figures.openStoreCount = self.groups.values.count { $0.store != nil }
        figures.damagedCount = self.damagedCount
        figures.lostCount = self.lostCount
        let now = self.setup.now()
        for group in self.groups.values {
            if let since = group.lacksSince, now >= since + Self.missingPatience {
                figures.lackingCount += 1
            }
            if group.problem != nil { figures.failingCount += 1 }
            if group.isReadingBack { figures.readingBackCount += 1 }
            if self.isComparing(group) { figures.comparingCount += 1 }
            figures.packBytes += group.sizes.all.raw
            figures.liveBytes += group.sizes.live.raw
            figures.missingCount += group.wants.missingCount
            figures.unnamedCount += group.wants.unnamedCount
        }
        return figures
    }

    // MARK: Copies

    package func put(_ copy: StoredCopy, of group: GroupID) async -> CopyAnswer {
        guard !self.isStopped, self.groups[group] != nil else { return .refused(.noReplica) }
        guard copy.bytes.count <= Int(AssetLimits.storedSizeMax) else {
            return .refused(.tooLarge)
        }
        guard self.queueBytes + copy.bytes.count <= Self.queueSizeMax.raw else {
            return .refused(.busy)
        }
        guard self.setup.hasRoom() else { return .refused(.nearlyFull) }
        guard !self.isForgotten(copy, of: group) else { return .refused(.failed) }
        self.queueBytes += copy.bytes.count
        return await withCheckedContinuation { answer in
            self.groups[group]!.puts.append(Waiting(copy: copy, answer: answer))
            self.schedule()
        }
    }

    package func fetch(_ name: CopyName, of group: GroupID) -> CopyFetch {
        guard let known = self.groups[group], !self.isStopped else { return .silent }
        if known.store == nil, !self.setup.hasStore(group) { return .absent }
        let read = self.attempt(group, makes: false) { store throws(StoreError) in
            try store.copy(name)
        }
        guard let read else { return .silent }
        return read.map { .found($0) } ?? .absent
    }

    /// Whether all of a body is here.
    package func confirm(_ body: BodyID, chunkCount: UInt32, of group: GroupID) -> CopyAnswer {
        let applied = self.appliedNow(group)
        guard let applied, !self.isStopped else { return .refused(.noReplica) }
        var next: UInt32 = 0
        while next < chunkCount {
            let from = CopyName(body: body, ordinal: next)
            let page =
                self.attempt(group, makes: false) { store throws(StoreError) in
                    try store.held(from: from, limit: 1_024)
                } ?? []
            for copy in page where copy.name == CopyName(body: body, ordinal: next) { next += 1 }
            guard let last = page.last, last.name.body == body, next > 0,
                next - 1 == last.name.ordinal
            else { break }
        }
        return next == chunkCount ? .stored(at: applied) : .refused(.incomplete)
    }

    /// The index with which what is stored from here on may be answered. Nil: there is no replica.
    ///
    /// It is read before the events that wait are heard. So a replica that was removed since, and
    /// perhaps made anew, is known to be so, and nothing that went with it is answered for.
    func appliedNow(_ group: GroupID) -> LogIndex? {
        let told = self.setup.told(group)
        self.hear()
        guard let known = self.groups[group] else { return nil }
        if let told {
            self.groups[group]!.applied = max(known.applied, told.index)
            self.groups[group]!.appliedMilliseconds = max(
                known.appliedMilliseconds, told.milliseconds)
        }
        return self.groups[group]!.applied
    }

    // MARK: Working

    private func schedule() {
        guard !self.isDraining else { return }
        self.isDraining = true
        Task { self.drain() }
    }

    /// Stores what waits, one round for each partition: one sync for all copies of a round.
    private func drain() {
        self.isDraining = false
        for group in self.groups.keys.sorted() { self.storeRound(of: group) }
        if self.groups.values.contains(where: { !$0.puts.isEmpty }) { self.schedule() }
    }

    private func storeRound(of group: GroupID) {
        guard let waiting = self.groups[group]?.puts, !waiting.isEmpty,
            let applied = self.appliedNow(group), self.groups[group]?.puts.isEmpty == false
        else { return }
        var count = 0
        var size = 0
        for put in waiting {
            guard count == 0 || size + put.copy.bytes.count <= CopyRound.sizeMax.raw else { break }
            count += 1
            size += put.copy.bytes.count
        }
        let round = Array(waiting.prefix(count))
        self.groups[group]!.puts.removeFirst(count)
        self.groups[group]!.lastPut = self.setup.now()
        self.queueBytes -= size
        // A fetched copy has no time of its own: it has that of the last entry applied, so rows
        // that go back before the entry that names it do not make an orphan of it.
        let now = max(
            self.groups[group]!.appliedMilliseconds, self.groups[group]!.durableMilliseconds)
        let copies = round.map { put in
            var copy = put.copy
            if copy.orphanAfterMilliseconds == .max { copy.orphanAfterMilliseconds = now }
            return copy
        }
        let known = self.attempt(group, makes: true) { store throws(StoreError) in
            try store.put(copies)
        }
        if let known { self.took(copies, known, of: group) }
        let wants = self.groups[group]?.wants
        // What failed may be there after all, once the packs are opened again. It is not listed
        // then; of all other copies as much is known as before.
        if known == nil { self.compareLater(group) }
        for put in round {
            // One that came before may go sooner than whoever brings it again counts on.
            let end = put.copy.orphanAfterMilliseconds
            let isPromised =
                known != nil
                && (end == .max || wants?.isUnnamed(put.copy.name, before: end) != true)
            put.answer.resume(returning: isPromised ? .stored(at: applied) : .refused(.failed))
        }
    }

    /// By the processor's instruction: every stored byte goes through it.
    static func checksum(_ bytes: Bytes) -> UInt32 {
        bytes.withUnsafeBytes { stratus_crc32c(0, $0.baseAddress, $0.count) }
    }

    /// Copies are stored. One that came before changes nothing, but that it is here: whether a row
    /// names it is known since then, and it must not be listed as one that none names.
    private func took(_ copies: [StoredCopy], _ known: [HeldCopy], of group: GroupID) {
        for held in known where self.groups[group]!.wants.isMissing(held.name) {
            self.groups[group]!.wants.stored(held)
        }
        var names = Set(known.map(\.name))
        for copy in copies where names.insert(copy.name).inserted {
            self.groups[group]!.wants.stored(
                HeldCopy(
                    name: copy.name, orphanAfterMilliseconds: copy.orphanAfterMilliseconds,
                    storedSize: UInt32(copy.bytes.count),
                    crc: Self.checksum(copy.bytes)))
        }
    }

    private func hear() {
        while true {
            let events = self.inbox.take()
            if events.isEmpty { return }
            for (group, event) in events { self.hear(event, of: group) }
        }
    }

    private func hear(_ event: RowsEvent, of group: GroupID) {
        guard !self.isStopped else { return }
        switch event {
        case .opened(let applied, let milliseconds):
            let puts = self.groups[group]?.puts ?? []
            let hasStore = self.setup.hasStore(group)
            self.groups[group] = Group(
                store: self.groups[group]?.store,
                wants: CopyWants(applied: applied, milliseconds: milliseconds),
                applied: applied, appliedMilliseconds: milliseconds, durable: applied,
                durableMilliseconds: milliseconds, puts: puts, lastPut: self.setup.now(),
                hasGarbage: hasStore, readBackAt: self.setup.now())
            if self.setup.bugs.contains(.startNotCompared) { return self.trust(group) }
            self.askRows(of: group)
        case .applied(let changes, let through, let milliseconds):
            guard self.groups[group] != nil else { return }
            for change in changes { self.take(change, of: group, through: through) }
            self.groups[group]!.wants.applied(through: through)
            self.groups[group]!.applied = max(self.groups[group]!.applied, through)
            self.groups[group]!.appliedMilliseconds = max(
                self.groups[group]!.appliedMilliseconds, milliseconds)
            if self.setup.bugs.contains(.copiesRemovedAtApply) {
                self.groups[group]!.wants.durable(through: through, milliseconds: milliseconds)
            }
        case .wantsHeld: Task { self.sayHeld(of: group) }
        case .durable(let through, let milliseconds):
            guard self.groups[group] != nil, through >= self.groups[group]!.durable else { return }
            self.groups[group]!.wants.durable(through: through, milliseconds: milliseconds)
            self.groups[group]!.durable = through
            self.groups[group]!.durableAskCount = 0
            self.groups[group]!.durableMilliseconds = max(
                self.groups[group]!.durableMilliseconds, milliseconds)
        case .page(let from, let end, let bodies):
            self.compare(group, from, end, bodies)
        case .removed:
            for put in self.groups[group]?.puts ?? [] {
                self.queueBytes -= put.copy.bytes.count
                put.answer.resume(returning: .refused(.noReplica))
            }
            self.groups[group] = nil
            do throws(StoreError) { try self.setup.removeStore(group) } catch {
                self.setup.trouble(group, "its copies cannot be removed: \(error)")
            }
        }
    }

    /// A planted bug: what the store has is taken for what the rows name.
    private func trust(_ group: GroupID) {
        self.groups[group]!.wants.compare(
            CopyWants.Page(from: .first, end: nil, bodies: [], held: []))
        self.groups[group]!.isCompared = true
    }

    private func take(_ change: BodyChange, of group: GroupID, through: LogIndex) {
        switch change {
        case .named(let body): self.groups[group]!.wants.named(body)
        case .dropped(let body, let count, let index):
            self.groups[group]!.wants.dropped(body, chunkCount: count, at: index)
            self.groups[group]!.droppedAt = max(self.groups[group]!.droppedAt, index)
            self.groups[group]!.durableAskCount = 0
        case .lost(let body, let count, let index):
            self.groups[group]!.wants.dropped(body, chunkCount: count, at: index, isLost: true)
        case .found(let body): self.found(body, in: group)
        case .unlisted:
            self.groups[group]!.wants.unlisted(through: through)
            self.groups[group]!.isCompared = false
            self.groups[group]!.droppedAt = max(self.groups[group]!.droppedAt, through)
            self.groups[group]!.durableAskCount = 0
            self.askRows(of: group)
        }
    }

    // MARK: Comparing

    private func askRows(of group: GroupID) {
        guard let known = self.groups[group], !known.asksRows else { return }
        self.groups[group]!.asksRows = true
        self.setup.askRows(group, known.wants.nextPage)
    }

    private func compare(
        _ group: GroupID, _ from: CopyName, _ end: CopyName?, _ bodies: [BodyManifest]
    ) {
        guard self.groups[group]?.asksRows == true else { return }
        self.groups[group]!.asksRows = false
        guard self.groups[group]!.wants.nextPage == from else { return self.askRows(of: group) }
        let held = self.copies(of: group, from, end, areDamaged: false)
        let damaged = self.copies(of: group, from, end, areDamaged: true)
        // A store that cannot be read has nothing: what lacks is listed, and nothing is removed.
        // What it has all the same is listed by the next comparison.
        if from == .first { self.groups[group]!.isUnread = false }
        if held == nil || damaged == nil { self.groups[group]!.isUnread = true }
        self.groups[group]!.wants.compare(
            CopyWants.Page(
                from: from, end: end, bodies: bodies, held: held ?? [], damaged: damaged ?? []))
        guard end == nil else { return self.askRows(of: group) }
        self.groups[group]!.isCompared = true
        if self.groups[group]!.isUnread { self.compareLater(group) }
        self.measure(group)
        if self.groups[group]!.doubtCount > 0 {
            self.groups[group]!.doubtCount -= 1
            if self.groups[group]!.doubtCount > 0 { self.askRows(of: group) }
        }
    }

    // MARK: Letting go

    /// What is due now: called about once a second, and not again before it returns.
    package func work() async {
        for group in self.groups.keys.sorted() where !self.isStopped {
            self.letGo(of: group)
            await self.reclaim(in: group)
            if self.groups[group]?.store != nil { self.measure(group) }
        }
    }

    private func measure(_ group: GroupID) {
        guard
            let sizes = self.attempt(
                group, makes: false, { store throws(StoreError) in try store.sizes() })
        else { return }
        self.groups[group]?.sizes = sizes
    }

    private func letGo(of group: GroupID) {
        guard let known = self.groups[group], known.isCompared else { return }
        // While it is in doubt what is here, a copy that came again may be listed as one that no
        // row names.
        let names =
            known.doubtCount > 0 ? [] : known.wants.removable(limit: Self.removeCountMax)
        if !names.isEmpty {
            let isDone: Void? = self.attempt(group, makes: false) { store throws(StoreError) in
                try store.remove(names)
            }
            if isDone != nil {
                self.groups[group]!.wants.removed(names)
                self.groups[group]!.hasGarbage = true
                self.removedCount += names.count
            }
        }
        let now = self.setup.now()
        if known.droppedAt > known.durable, known.durableAskCount < Self.durableAskCountMax,
            known.durableAskedAt.map({ now >= $0 + Self.durableInterval }) ?? true
        {
            self.groups[group]!.durableAskedAt = now
            self.groups[group]!.durableAskCount += 1
            self.setup.makeDurable(group)
        }
        // A silent partition has no entries whose time could pass.
        if let end = known.wants.firstOrphanMilliseconds, end < self.setup.wallMilliseconds(),
            known.durableMilliseconds <= end,
            known.touchedAt.map({ now >= $0 + Self.touchInterval }) ?? true
        {
            self.groups[group]!.touchedAt = now
            self.groups[group]!.droppedAt = max(
                known.droppedAt, LogIndex(known.applied.raw + 1))
            self.groups[group]!.durableAskCount = 0
            self.setup.touch(group)
        }
        // One that is under way may be past what could not be read.
        let comparesAgain = known.comparesAgainAt.map { now >= $0 } ?? false
        if known.wants.wantsComparison || comparesAgain, !known.asksRows {
            if comparesAgain { self.groups[group]!.comparesAgainAt = nil }
            self.askRows(of: group)
        }
    }

    /// Compacts for the bytes of one second at most. Puts that came meanwhile go between two
    /// slices.
    private func reclaim(in group: GroupID) async {
        guard let known = self.groups[group], known.hasGarbage, known.puts.isEmpty,
            self.setup.now() >= known.lastPut + Self.quietTime
        else { return }
        _ = self.attempt(group, makes: false) { store throws(StoreError) in try store.seal() }
        var left = self.rate.raw > 0 ? self.rate.raw : Int.max
        for _ in 0..<256 {
            let budget = ByteCount(min(left, Self.slice.raw))
            guard
                let progress = self.attempt(
                    group, makes: false,
                    { store throws(StoreError) in try store.advance(.compact, budget) })
            else { return }
            if progress.isDone {
                self.groups[group]!.hasGarbage = false
                return
            }
            left -= max(1, progress.size.raw)
            await Task.yield()
            guard left > 0, !self.isStopped, self.groups[group]?.puts.isEmpty == true else {
                return
            }
        }
    }

    /// Does something with a partition's store.
    ///
    /// - Returns: nil where there is no store, or it failed. The next call opens it again.
    func attempt<Result>(
        _ group: GroupID, makes: Bool,
        _ body: (any CopyStore) throws(StoreError) -> Result
    ) -> Result? {
        do throws(StoreError) {
            if self.groups[group]?.store == nil {
                let isMade = !self.setup.hasStore(group)
                guard makes || !isMade else { return nil }
                let store = try self.setup.openStore(group)
                if isMade { _ = store.takeBegunAnew() }
                self.closeUnused()
                self.groups[group]?.store = store
            }
            self.useCount += 1
            self.groups[group]?.usedAt = self.useCount
            guard let store = self.groups[group]?.store else { return nil }
            let result = try body(store)
            for name in store.takeForgotten() { self.forgot(name, of: group) }
            if store.takeBegunAnew(), self.groups[group]?.isCompared == true { self.doubt(group) }
            self.groups[group]?.problem = nil
            return result
        } catch {
            if self.groups[group]?.problem == nil {
                self.setup.trouble(group, "its copies: \(error)")
            }
            self.groups[group]?.problem = "\(error)"
            return nil
        }
    }

    /// Makes room for one more open store.
    private func closeUnused() {
        let open = self.groups.filter { $0.value.store != nil }
        guard open.count >= Self.openStoreCountMax,
            let unused = open.min(by: { $0.value.usedAt < $1.value.usedAt })
        else { return }
        self.groups[unused.key]?.store = nil
    }

    /// A copy was found damaged. The next comparison lists it with what its row says; until then
    /// nothing is said of what this replica holds.
    private func forgot(_ name: CopyName, of group: GroupID) {
        self.setup.trouble(group, "\(name) was damaged on the disk")
        self.damagedCount += 1
        self.groups[group]?.wants.forgotten(name, of: nil)
        self.doubt(group)
    }

    /// Compares rows and store once more, after a pause that grows while failures follow each
    /// other: each comparison reads every row that names a body.
    func compareLater(_ group: GroupID) {
        guard self.groups[group] != nil else { return }
        let now = self.setup.now()
        let pause = self.groups[group]!.failures.add(at: now)
        if self.groups[group]!.comparesAgainAt == nil {
            self.groups[group]!.comparesAgainAt = now + pause
        }
    }

    /// Compares rows and store anew, from the first name on.
    func doubt(_ group: GroupID) {
        guard let known = self.groups[group] else { return }
        // A comparison that is under way may be past what happened.
        self.groups[group]!.doubtCount = known.asksRows ? 2 : max(1, known.doubtCount)
        self.askRows(of: group)
    }
}
