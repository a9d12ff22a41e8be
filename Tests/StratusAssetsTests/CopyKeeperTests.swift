import StratusAssets
import StratusCoding
import StratusDoubles
import StratusModel
import StratusRuntime
import StratusStorage
import Synchronization
import Testing

/// A store that fails when it is told to.
private final class FlakyStore: CopyStore {
    enum Use { case list, put, readBack }

    private let store: PackStore
    private let fails: (Use) -> Bool

    init(_ store: PackStore, fails: @escaping (Use) -> Bool) {
        self.store = store
        self.fails = fails
    }

    private func check(_ use: Use) throws(StoreError) {
        if self.fails(use) { throw StoreError(.io, "told to fail") }
    }

    func held(from name: CopyName, limit: Int) throws(StoreError) -> [HeldCopy] {
        try self.check(.list)
        return try self.store.held(from: name, limit: limit)
    }

    func put(_ copies: [StoredCopy]) throws(StoreError) -> [HeldCopy] {
        try self.check(.put)
        return try self.store.put(copies)
    }
    func copy(_ name: CopyName) throws(StoreError) -> Bytes? { try self.store.copy(name) }
    func damaged(from name: CopyName, limit: Int) throws(StoreError) -> [HeldCopy] {
        try self.store.damaged(from: name, limit: limit)
    }
    func remove(_ names: [CopyName]) throws(StoreError) { try self.store.remove(names) }
    func advance(_ work: PackWork, _ budget: ByteCount) throws(StoreError) -> PackProgress {
        if case .readBack = work { try self.check(.readBack) }
        return try self.store.advance(work, budget)
    }
    func seal() throws(StoreError) { try self.store.seal() }
    func sizes() throws(StoreError) -> (all: ByteCount, live: ByteCount) {
        try self.store.sizes()
    }
    func takeForgotten() -> [CopyName] { self.store.takeForgotten() }
    func takeBegunAnew() -> Bool { self.store.takeBegunAnew() }
}

/// Copies of one partition on a simulated disk, beside rows that the test writes.
@Suite struct CopyKeeperTests {
    static let group = GroupID(12)

    /// The rows of a partition and what the keeper asks of them.
    final class Bench: Sendable {
        struct State {
            var bodies: [BodyID: BodyManifest] = [:]
            var applied = LogIndex.zero
            var milliseconds: Int64 = 1_000
            var now = MonotonicTime(nanoseconds: 0)
            var hasRoom = true
            var touchCount = 0
            var isDurable = true
            var troubles: [String] = []
            /// The last entry of which everything was told.
            var told: (index: LogIndex, milliseconds: Int64)?
            var held: [LogIndex] = []
            var lost: [BodyID] = []
            var leads = true
            /// Listings of the store that fail from now on.
            var failingListCount = 0
            var putsFail = false
            var failingReadBackCount = 0
            /// Pages of rows that the keeper has asked for from the first name on.
            var comparisonCount = 0
            /// Rows do not answer: a comparison that is under way stays so.
            var rowsAreSilent = false
            var fetch: (@Sendable (CopyName, GroupID) async -> CopyFetch)?
        }

        let files: SimulatedFiles
        let state = Mutex(State())
        let inbox = KeeperInbox()
        let thread = WorkerThread(name: "packs")

        init(_ files: SimulatedFiles = SimulatedFiles(seed: 3)) { self.files = files }
        deinit { self.thread.stop() }

        func keeper() async -> CopyKeeper {
            var limits = PackLimits()
            limits.packSizeMax = 4_096
            limits.compactionRoom = 8_192
            let (files, inbox, bench) = (self.files, self.inbox, self)
            var setup =
                CopyKeeper.Setup(
                    openStore: { [limits] (group) throws(StoreError) in
                        let store = try PackStore(
                            group, in: "assets", of: files, limits: limits, drawSalt: { 7 })
                        return FlakyStore(store) { [unowned bench] use in
                            bench.state.withLock { state in
                                switch use {
                                case .put: return state.putsFail
                                case .list:
                                    guard state.failingListCount > 0 else { return false }
                                    state.failingListCount -= 1
                                case .readBack:
                                    guard state.failingReadBackCount > 0 else { return false }
                                    state.failingReadBackCount -= 1
                                }
                                return true
                            }
                        }
                    },
                    hasStore: { group in
                        let path = PackDirectory(group, in: "assets").index
                        return (try? files.exists(path)) ?? true
                    },
                    removeStore: { (group) throws(StoreError) in
                        try PackDirectory.remove(group, in: "assets", from: files)
                    },
                    askRows: { [unowned bench] group, from in bench.postPage(of: group, from) },
                    makeDurable: { [unowned bench] group in bench.postDurable(of: group) },
                    touch: { [unowned bench] group in
                        bench.state.withLock {
                            $0.touchCount += 1
                            $0.applied = LogIndex($0.applied.raw + 1)
                        }
                        bench.postDurable(of: group)
                    },
                    hasRoom: { [unowned bench] in bench.state.withLock { $0.hasRoom } },
                    trouble: { [unowned bench] _, what in
                        bench.state.withLock { $0.troubles.append(what) }
                    },
                    now: { [unowned bench] in bench.state.withLock { $0.now } },
                    wallMilliseconds: { [unowned bench] in
                        bench.state.withLock { $0.milliseconds }
                    })
            setup.fetch = self.state.withLock { $0.fetch }
            setup.loseBody = { [unowned bench] _, body in
                bench.state.withLock { $0.lost.append(body) }
            }
            setup.mayLose = { [unowned bench] _ in bench.state.withLock { $0.leads } }
            setup.told = { [unowned bench] _ in bench.state.withLock { $0.told } }
            setup.sayHeld = { [unowned bench] _, index in
                bench.state.withLock { $0.held.append(index) }
            }
            let keeper = CopyKeeper(
                setup, inbox: inbox, compactionRate: 0, on: self.thread)
            let (applied, milliseconds) = self.state.withLock { ($0.applied, $0.milliseconds) }
            inbox.post(.opened(applied: applied, milliseconds: milliseconds), of: group)
            await keeper.start()
            await self.settle(keeper)
            return keeper
        }

        /// Two bodies a page: comparisons take several.
        private func postPage(of group: GroupID, _ from: CopyName) {
            let bodies = self.state.withLock { state -> [BodyManifest]? in
                if from == .first { state.comparisonCount += 1 }
                return state.rowsAreSilent ? nil : Array(state.bodies.values)
            }
            guard let bodies else { return }
            let all = bodies.sorted { $0.body < $1.body }
                .filter { $0.body >= from.body }
            let page = Array(all.prefix(2))
            let end = all.count > 2 ? CopyName(body: all[2].body, ordinal: 0) : nil
            self.inbox.post(.page(from: from, end: end, bodies: page), of: group)
        }

        func postDurable(of group: GroupID) {
            let (isDurable, applied, milliseconds) = self.state.withLock {
                ($0.isDurable, $0.applied, $0.milliseconds)
            }
            guard isDurable else { return }
            self.inbox.post(.durable(through: applied, milliseconds: milliseconds), of: group)
        }

        func name(_ bodies: [BodyManifest]) {
            let changes: [BodyChange] = bodies.map { .named($0) }
            let applied = self.state.withLock { state in
                state.applied = LogIndex(state.applied.raw + 1)
                for body in bodies { state.bodies[body.body] = body }
                return state.applied
            }
            self.inbox.post(.applied(changes, through: applied, milliseconds: 0), of: group)
        }

        func drop(_ body: BodyManifest) {
            let applied = self.state.withLock { state in
                state.applied = LogIndex(state.applied.raw + 1)
                state.bodies[body.body] = nil
                return state.applied
            }
            self.inbox.post(
                .applied(
                    [.dropped(body.body, chunkCount: UInt32(body.chunks.count), at: applied)],
                    through: applied, milliseconds: 0), of: group)
        }

        /// Lets time pass and what was posted be heard.
        func pass(_ seconds: Int64, _ keeper: CopyKeeper) async {
            for _ in 0..<2 {
                self.state.withLock {
                    $0.now = $0.now + .seconds(seconds)
                    $0.milliseconds += seconds * 1_000
                }
                await self.settle(keeper)
                await keeper.work()
                await self.settle(keeper)
            }
        }

        func settle(_ keeper: CopyKeeper) async {
            for _ in 0..<100 {
                _ = await keeper.figures()
                await Task.yield()
            }
        }
    }

    static func copy(_ body: Int, _ ordinal: UInt32 = 0, until: Int64 = 5_000) -> StoredCopy {
        StoredCopy(
            name: CopyName(body: BodyID(UInt128(body)), ordinal: ordinal),
            orphanAfterMilliseconds: until,
            bytes: Bytes(repeating: UInt8(truncatingIfNeeded: body * 31 + Int(ordinal)), count: 600)
        )
    }

    static func manifest(_ body: Int, chunkCount: UInt32 = 2) -> BodyManifest {
        BodyManifest(
            body: BodyID(UInt128(body)), database: 1, namedAt: LogIndex(1),
            size: UInt64(chunkCount) * 1_024, chunkSize: 1_024, keyVersion: 1,
            chunks: (0..<chunkCount).map {
                let bytes = Self.copy(body, $0).bytes
                return .init(storedSize: UInt32(bytes.count), crc: CRC32C.of(bytes))
            })
    }

    func put(_ body: Int, chunkCount: UInt32 = 2, to keeper: CopyKeeper) async {
        for ordinal in 0..<chunkCount {
            var answer = await keeper.put(Self.copy(body, ordinal), of: Self.group)
            // On a busy machine the keeper may not have heard of the replica yet.
            for _ in 0..<1_000 where answer == .refused(.noReplica) {
                await Task.yield()
                answer = await keeper.put(Self.copy(body, ordinal), of: Self.group)
            }
            guard case .stored = answer else {
                Issue.record("\(answer)")
                return
            }
        }
    }

    func has(_ body: Int, _ keeper: CopyKeeper) async -> Bool {
        await keeper.fetch(Self.copy(body).name, of: Self.group).bytes == Self.copy(body).bytes
    }

    @Test
    func `copies go when the entry that dropped their body is durable, and their room with them`()
        async throws
    {
        let bench = Bench()
        let keeper = await bench.keeper()
        for body in 1...12 { await self.put(body, to: keeper) }
        bench.name((1...12).map { Self.manifest($0) })
        bench.state.withLock { $0.isDurable = false }
        for body in 1...11 { bench.drop(Self.manifest(body)) }
        await bench.pass(20, keeper)
        #expect(await self.has(1, keeper))
        #expect(await self.has(11, keeper))
        bench.state.withLock { $0.isDurable = true }
        for _ in 0..<4 { await bench.pass(20, keeper) }
        for body in 1...11 { #expect(await !self.has(body, keeper), "\(body)") }
        #expect(await self.has(12, keeper))
        #expect(await keeper.figures().missingCount == 0)
        let size = bench.files.allFiles.filter { $0.raw.hasSuffix(".pack") }
            .reduce(0) { $0 + (bench.files.contents(of: $1)?.count ?? 0) }
        #expect(size < 3_000, "\(size) bytes are left")
        await keeper.stop()
    }

    @Test func `orphans go when the log's time has passed theirs, even in a silent partition`()
        async throws
    {
        let bench = Bench()
        let keeper = await bench.keeper()
        await self.put(1, to: keeper)
        await self.put(2, to: keeper)
        bench.name([Self.manifest(2)])
        await bench.pass(1, keeper)
        #expect(await self.has(1, keeper))
        await bench.pass(10, keeper)
        await bench.pass(10, keeper)
        #expect(bench.state.withLock { $0.touchCount } == 1)
        #expect(await !self.has(1, keeper))
        #expect(await self.has(2, keeper))
        await keeper.stop()
    }

    @Test func `a copy that comes again stays as long as a row names it`() async throws {
        let bench = Bench()
        let keeper = await bench.keeper()
        await self.put(1, to: keeper)
        bench.name([Self.manifest(1)])
        await bench.pass(1, keeper)
        // The message was repeated on its way.
        await self.put(1, to: keeper)
        #expect(await keeper.figures().unnamedCount == 0)
        for _ in 0..<4 { await bench.pass(20, keeper) }
        #expect(await self.has(1, keeper))
        await keeper.stop()
    }

    @Test func `after a restart the store is compared with the rows, page by page`() async throws {
        let bench = Bench()
        let first = await bench.keeper()
        for body in 1...7 { await self.put(body, to: first) }
        bench.name([1, 3, 5, 7].map { Self.manifest($0) })
        await bench.pass(0, first)
        await first.stop()
        // A body of which this node lacks one copy.
        let again = Bench(bench.files)
        let bodies = bench.state.withLock { $0.bodies }
        again.state.withLock {
            $0.bodies = bodies
            $0.bodies[BodyID(6)] = Self.manifest(6, chunkCount: 3)
        }
        let second = await again.keeper()
        for body in [1, 3, 5, 7] { #expect(await self.has(body, second)) }
        #expect(await second.figures().missingCount == 1)
        #expect(await second.figures().unnamedCount == 4)
        for _ in 0..<3 { await again.pass(20, second) }
        for body in [2, 4] { #expect(await !self.has(body, second), "\(body)") }
        for body in [1, 3, 5, 6, 7] { #expect(await self.has(body, second), "\(body)") }
        await second.stop()
    }

    @Test func `what was not told is found by comparing`() async throws {
        let bench = Bench()
        let keeper = await bench.keeper()
        for body in 1...4 { await self.put(body, to: keeper) }
        bench.name((1...4).map { Self.manifest($0) })
        await bench.pass(0, keeper)
        let applied = bench.state.withLock { state in
            state.bodies[BodyID(2)] = nil
            state.applied = LogIndex(state.applied.raw + 1)
            return state.applied
        }
        bench.inbox.post(.applied([.unlisted], through: applied, milliseconds: 0), of: Self.group)
        for _ in 0..<3 { await bench.pass(20, keeper) }
        for body in [1, 3, 4] { #expect(await self.has(body, keeper), "\(body)") }
        #expect(await !self.has(2, keeper))
        await keeper.stop()
    }

    @Test func `no more stores are open than may be, and a closed one opens again`() async {
        let bench = Bench()
        let keeper = await bench.keeper()
        let groups = (100..<180).map { GroupID($0) }
        for group in groups {
            bench.inbox.post(.opened(applied: .zero, milliseconds: 0), of: group)
        }
        await bench.pass(0, keeper)
        for group in groups {
            #expect(await keeper.put(Self.copy(1), of: group) == .stored(at: .zero))
        }
        #expect(await keeper.figures().openStoreCount == CopyKeeper.openStoreCountMax)
        for group in groups {
            #expect(await keeper.fetch(Self.copy(1).name, of: group).bytes == Self.copy(1).bytes)
        }
        #expect(await keeper.figures().openStoreCount == CopyKeeper.openStoreCountMax)
        await keeper.stop()
    }

    @Test func `a copy is refused without a replica, without room, and beyond its size`() async {
        let bench = Bench()
        let keeper = await bench.keeper()
        #expect(await keeper.put(Self.copy(1), of: GroupID(99)) == .refused(.noReplica))
        var large = Self.copy(1)
        large.bytes = Bytes(repeating: 0, count: Int(AssetLimits.storedSizeMax) + 1)
        #expect(await keeper.put(large, of: Self.group) == .refused(.tooLarge))
        bench.state.withLock { $0.hasRoom = false }
        #expect(await keeper.put(Self.copy(1), of: Self.group) == .refused(.nearlyFull))
        bench.state.withLock { $0.hasRoom = true }
        await self.put(1, to: keeper)
        #expect(
            await keeper.confirm(BodyID(1), chunkCount: 2, of: Self.group)
                == .stored(at: .zero))
        #expect(
            await keeper.confirm(BodyID(1), chunkCount: 3, of: Self.group)
                == .refused(.incomplete))
        await keeper.drop(BodyID(1), of: Self.group)
        #expect(await !self.has(1, keeper))
        bench.inbox.post(.removed, of: Self.group)
        await bench.pass(0, keeper)
        #expect(await keeper.put(Self.copy(1), of: Self.group) == .refused(.noReplica))
        #expect(bench.files.allFiles.filter { $0.raw.hasPrefix("assets/") }.isEmpty)
        await keeper.stop()
        #expect(bench.state.withLock { $0.troubles } == [])
    }

    @Test func `a storer says the index that was told, and what it holds through it`() async {
        let bench = Bench()
        let keeper = await bench.keeper()
        // Entries that do nothing to bodies make no events.
        bench.state.withLock { $0.told = (LogIndex(40), 2_000) }
        #expect(await keeper.put(Self.copy(1), of: Self.group) == .stored(at: LogIndex(40)))
        #expect(
            await keeper.confirm(BodyID(1), chunkCount: 1, of: Self.group)
                == .stored(at: LogIndex(40)))
        #expect(
            await keeper.confirm(BodyID(1), chunkCount: 2, of: Self.group)
                == .refused(.incomplete))
        #expect(await keeper.heldThrough(of: Self.group) == LogIndex(40))
        bench.inbox.post(.wantsHeld, of: Self.group)
        // Beside other tests the keeper's turn may come late.
        for _ in 0..<5_000 where bench.state.withLock({ $0.held.isEmpty }) {
            try? await Task.sleep(for: .milliseconds(1))
        }
        #expect(bench.state.withLock { $0.held } == [LogIndex(40)])
        // The second chunk is missing: the body was named by entry 1.
        bench.name([Self.manifest(1)])
        await bench.settle(keeper)
        #expect(await keeper.heldThrough(of: Self.group) == .zero)
        #expect(
            await keeper.put(Self.copy(1, 1), of: Self.group) == .stored(at: LogIndex(40)))
        #expect(await keeper.heldThrough(of: Self.group) == LogIndex(40))
        await keeper.stop()
    }

    @Test func `a storer that was removed and made anew does not answer for what went with it`()
        async
    {
        let bench = Bench()
        let keeper = await bench.keeper()
        bench.state.withLock { $0.told = (LogIndex(40), 2_000) }
        await self.put(1, to: keeper)
        bench.inbox.post(.removed, of: Self.group)
        bench.inbox.post(.opened(applied: .zero, milliseconds: 0), of: Self.group)
        bench.state.withLock { $0.told = (LogIndex(50), 3_000) }
        #expect(
            await keeper.confirm(BodyID(1), chunkCount: 2, of: Self.group)
                == .refused(.incomplete))
        await keeper.stop()
    }

    @Test func `A-29 reading back finds rot, and nothing is said to be held until it is mended`()
        async throws
    {
        let bench = Bench()
        bench.state.withLock { $0.fetch = { name, _ in .found(Self.copy(1, name.ordinal).bytes) } }
        let keeper = await bench.keeper()
        await self.put(1, to: keeper)
        bench.name([Self.manifest(1)])
        await bench.settle(keeper)
        #expect(await keeper.heldThrough(of: Self.group) != nil)
        let pack = PackDirectory(Self.group, in: "assets").pack(1)
        bench.files.flip(bit: 3, at: 300, of: pack)
        #expect(await keeper.readBackSoon() == 1)
        await keeper.readBack(at: 0, every: .seconds(1))
        let found = await keeper.figures()
        #expect(found.damagedCount == 1)
        #expect(found.readingBackCount == 0)
        await bench.settle(keeper)
        #expect(await keeper.figures().missingCount == 1)
        #expect(await keeper.heldThrough(of: Self.group) == .zero)
        await keeper.repair(at: 0)
        #expect(await keeper.figures().repairedCount == 1)
        #expect(await keeper.figures().missingCount == 0)
        for ordinal in 0..<2 as Range<UInt32> {
            #expect(
                await keeper.fetch(Self.copy(1, ordinal).name, of: Self.group)
                    == .found(Self.copy(1, ordinal).bytes))
        }
        await keeper.stop()
    }

    @Test func `copies are checked by their names, and damaged ones are fetched again`()
        async throws
    {
        let bench = Bench()
        bench.state.withLock { $0.fetch = { name, _ in .found(Self.copy(1, name.ordinal).bytes) } }
        let keeper = await bench.keeper()
        #expect(await keeper.check(BodyID(1), 0..<2, of: GroupID(99)) == .elsewhere)
        await self.put(1, to: keeper)
        bench.name([Self.manifest(1)])
        await bench.settle(keeper)
        var sound = CopyCheck()
        sound.soundCount = 2
        sound.size = (0..<2).reduce(0) { $0 + UInt64(Self.copy(1, $1).bytes.count) }
        #expect(await keeper.check(BodyID(1), 0..<2, of: Self.group) == .checked(sound))
        // Rows have let go of it, or never had it.
        #expect(await keeper.check(BodyID(7), 0..<2, of: Self.group) == .checked(CopyCheck()))
        bench.files.flip(bit: 3, at: 300, of: PackDirectory(Self.group, in: "assets").pack(1))
        guard case .checked(let found) = await keeper.check(BodyID(1), 0..<2, of: Self.group) else {
            Issue.record("it cannot be read")
            return
        }
        #expect(found.damagedCount == 1 && found.soundCount == 1 && found.missingCount == 0)
        #expect(await keeper.figures().damagedCount == 1)
        await bench.settle(keeper)
        guard case .checked(let again) = await keeper.check(BodyID(1), 0..<2, of: Self.group) else {
            Issue.record("it cannot be read")
            return
        }
        #expect(again.damagedCount == 0 && again.soundCount == 1 && again.missingCount == 1)
        await keeper.repair(at: 0)
        #expect(await keeper.check(BodyID(1), 0..<2, of: Self.group) == .checked(sound))
        await keeper.stop()
    }

    @Test func `A-31 a damaged copy that no row names goes as an orphan does`() async throws {
        let bench = Bench()
        let keeper = await bench.keeper()
        await self.put(1, to: keeper)
        bench.files.flip(bit: 3, at: 300, of: PackDirectory(Self.group, in: "assets").pack(1))
        #expect(await keeper.readBackSoon() == 1)
        await keeper.readBack(at: 0, every: .seconds(1))
        await bench.settle(keeper)
        #expect(await keeper.figures().damagedCount == 1)
        #expect(await keeper.figures().unnamedCount == 2)
        // A pin may come until its time is over. Then the copy is missing, not here.
        bench.name([Self.manifest(1)])
        await bench.settle(keeper)
        #expect(await keeper.figures().missingCount == 1)
        bench.drop(Self.manifest(1))
        await bench.pass(10, keeper)
        await bench.pass(10, keeper)
        #expect(await keeper.figures().unnamedCount == 0)
        #expect(await keeper.figures().liveBytes == 0)
        // And one that is never named.
        await self.put(2, to: keeper)
        let last = PackDirectory(Self.group, in: "assets")
        for number in 1...3 as ClosedRange<UInt64>
        where (bench.files.contents(of: last.pack(number))?.count ?? 0) > 300 {
            bench.files.flip(bit: 3, at: 300, of: last.pack(number))
        }
        _ = await keeper.readBackSoon()
        await keeper.readBack(at: 0, every: .seconds(1))
        await bench.settle(keeper)
        #expect(await keeper.figures().damagedCount == 2)
        await bench.pass(10, keeper)
        await bench.pass(10, keeper)
        #expect(await keeper.figures().unnamedCount == 0)
        #expect(await keeper.figures().liveBytes == 0)
        await keeper.stop()
    }

    @Test func `S-43 a body is lost once every member has lacked it for ten minutes`() async {
        let bench = Bench()
        let answer = Mutex(CopyFetch.absent)
        bench.state.withLock { $0.fetch = { _, _ in answer.withLock { $0 } } }
        let keeper = await bench.keeper()
        await self.put(1, chunkCount: 1, to: keeper)
        bench.name([Self.manifest(1)])
        await bench.settle(keeper)
        func pass(_ seconds: Int) async {
            for _ in 0..<(seconds / 10) {
                bench.state.withLock { $0.now = $0.now + .seconds(10) }
                await keeper.repair(at: 0)
            }
        }
        await pass(590)
        // One that does not answer may have it: the time begins anew.
        answer.withLock { $0 = .silent }
        await pass(10)
        answer.withLock { $0 = .absent }
        await pass(600)
        #expect(bench.state.withLock { $0.lost } == [])
        // A follower may not know who the members are.
        bench.state.withLock { $0.leads = false }
        await pass(10)
        #expect(bench.state.withLock { $0.lost } == [])
        bench.state.withLock { $0.leads = true }
        await pass(10)
        #expect(bench.state.withLock { $0.lost } == [BodyID(1)])
        #expect(await keeper.figures().lostCount == 1)
        // The rows say so: nobody waits for it any more, and what is here stays.
        bench.inbox.post(
            .applied(
                [.lost(BodyID(1), chunkCount: 2, at: LogIndex(9))], through: LogIndex(9),
                milliseconds: 0), of: Self.group)
        await bench.settle(keeper)
        #expect(await keeper.figures().missingCount == 0)
        #expect(await keeper.heldThrough(of: Self.group) == LogIndex(9))
        #expect(
            await keeper.fetch(Self.copy(1).name, of: Self.group) == .found(Self.copy(1).bytes))
        await keeper.stop()
    }

    @Test func `of a body that is found again, what is here counts and the rest is missing`() async
    {
        let bench = Bench()
        let keeper = await bench.keeper()
        bench.name([Self.manifest(1)])
        bench.inbox.post(
            .applied(
                [.lost(BodyID(1), chunkCount: 2, at: LogIndex(2))], through: LogIndex(2),
                milliseconds: 0), of: Self.group)
        await bench.settle(keeper)
        // An administrator brings a copy. It stays, although its time is over at once.
        #expect(
            await keeper.put(Self.copy(1, until: 1), of: Self.group)
                == .stored(at: LogIndex(2)))
        bench.state.withLock { $0.applied = LogIndex(2) }
        bench.postDurable(of: Self.group)
        await bench.pass(10, keeper)
        #expect(await self.has(1, keeper))
        #expect(await keeper.figures().missingCount == 0)
        var found = Self.manifest(1)
        found.namedAt = LogIndex(3)
        bench.inbox.post(
            .applied([.found(found)], through: LogIndex(3), milliseconds: 0), of: Self.group)
        await bench.settle(keeper)
        #expect(await keeper.figures().missingCount == 1)
        #expect(await keeper.heldThrough(of: Self.group) == LogIndex(2))
        _ = await keeper.put(Self.copy(1, 1), of: Self.group)
        #expect(await keeper.heldThrough(of: Self.group) == LogIndex(3))
        await keeper.stop()
    }

    @Test func `a copy that came before and goes sooner is not promised for longer`() async {
        let bench = Bench()
        let keeper = await bench.keeper()
        await self.put(1, chunkCount: 1, to: keeper)
        #expect(
            await keeper.put(Self.copy(1, until: 9_000), of: Self.group) == .refused(.failed))
        guard case .stored = await keeper.put(Self.copy(1), of: Self.group) else {
            Issue.record("sent again, it is there")
            return
        }
        await keeper.stop()
    }

    @Test func `two looks ten minutes apart do not make a body lost`() async {
        let bench = Bench()
        bench.state.withLock { $0.fetch = { _, _ in .absent } }
        let keeper = await bench.keeper()
        await self.put(1, chunkCount: 1, to: keeper)
        bench.name([Self.manifest(1)])
        await bench.settle(keeper)
        for look in 1...5 {
            #expect(bench.state.withLock { $0.lost } == [], "look \(look)")
            bench.state.withLock { $0.now = $0.now + .seconds(1_000) }
            await keeper.repair(at: 0)
        }
        #expect(bench.state.withLock { $0.lost } == [BodyID(1)])
        await keeper.stop()
    }

    @Test func `copies that nobody has do not keep the others from being asked for`() async {
        let bench = Bench()
        bench.state.withLock {
            $0.fetch = { name, _ in
                name.body == BodyID(9) ? .found(Self.copy(9, name.ordinal).bytes) : .silent
            }
        }
        let keeper = await bench.keeper()
        bench.name([Self.manifest(1, chunkCount: 300), Self.manifest(9)])
        await bench.settle(keeper)
        for _ in 0..<3 {
            bench.state.withLock { $0.now = $0.now + .seconds(10) }
            await keeper.repair(at: 0)
        }
        #expect(await keeper.figures().missingCount == 300)
        #expect(await self.has(9, keeper))
        await keeper.stop()
    }

    @Test func `a peer that says a body will not be named removes nothing that is named`() async {
        let bench = Bench()
        let keeper = await bench.keeper()
        await self.put(1, to: keeper)
        await self.put(2, to: keeper)
        bench.name([Self.manifest(1)])
        await bench.settle(keeper)
        await keeper.drop(BodyID(1), of: Self.group)
        await keeper.drop(BodyID(2), of: Self.group)
        #expect(await self.has(1, keeper))
        #expect(await !self.has(2, keeper))
        #expect(await keeper.figures().missingCount == 0)
        await keeper.stop()
    }

    @Test func `what comes of a body behind its end is not stored`() async {
        let bench = Bench()
        let keeper = await bench.keeper()
        await keeper.drop(BodyID(1), of: Self.group)
        #expect(await keeper.put(Self.copy(1), of: Self.group) == .refused(.failed))
        #expect(await !self.has(1, keeper))
        // What waits to be stored goes too.
        async let waiting = keeper.put(Self.copy(2), of: Self.group)
        async let dropped: Void = keeper.drop(BodyID(2), of: Self.group)
        _ = await (waiting, dropped)
        await keeper.drop(BodyID(2), of: Self.group)
        #expect(await !self.has(2, keeper))
        // A row that names it knows better.
        bench.name([Self.manifest(1)])
        await bench.settle(keeper)
        #expect(await keeper.put(Self.copy(1), of: Self.group) != .refused(.failed))
        await keeper.stop()
    }

    @Test func `what comes into the inbox unasked replaces its like`() {
        let inbox = KeeperInbox()
        for number in 1...10_000 as ClosedRange<UInt64> {
            for group in 1...3 as ClosedRange<UInt16> {
                inbox.post(
                    .durable(through: LogIndex(number), milliseconds: Int64(number)),
                    of: GroupID(group))
            }
        }
        inbox.post(.wantsHeld, of: GroupID(1))
        inbox.post(.wantsHeld, of: GroupID(1))
        inbox.post(.durable(through: LogIndex(10_001), milliseconds: 1), of: GroupID(1))
        var taken: [String] = []
        while case let events = inbox.take(), !events.isEmpty {
            for (group, event) in events {
                switch event {
                case .durable(let through, _): taken.append("\(group.raw) \(through.raw)")
                case .wantsHeld: taken.append("\(group.raw) held")
                default: Issue.record("\(event)")
                }
            }
            inbox.post(.wantsHeld, of: GroupID(2))
            if taken.count > 10 { break }
        }
        #expect(
            taken.prefix(6) == [
                "1 10000", "2 10000", "3 10000", "1 held", "1 10001", "2 held",
            ])
    }

    /// Two downloads repair the same chunk at once: both copies are stored in one round.
    @Test func `A-31 a missing copy that comes twice in one round stays`() async {
        let bench = Bench()
        let keeper = await bench.keeper()
        bench.name([Self.manifest(1)])
        await bench.settle(keeper)
        #expect(await keeper.figures().missingCount == 2)
        for ordinal in 0..<2 as Range<UInt32> {
            await withTaskGroup(of: Void.self) { tasks in
                for _ in 0..<8 {
                    tasks.addTask { _ = await keeper.put(Self.copy(1, ordinal), of: Self.group) }
                }
            }
        }
        #expect(await keeper.figures().missingCount == 0)
        #expect(await keeper.figures().unnamedCount == 0)
        await bench.pass(10, keeper)
        await bench.pass(10, keeper)
        #expect(await self.has(1, keeper))
        await keeper.stop()
    }

    /// The listing of damaged copies behind it went well, and the failure was forgotten.
    @Test func `a comparison that could not read the store is repeated`() async {
        let before = Bench()
        before.name([Self.manifest(1)])
        let first = await before.keeper()
        await self.put(1, to: first)
        #expect(await first.figures().missingCount == 0)
        await first.stop()
        let bench = Bench(before.files)
        bench.name([Self.manifest(1)])
        bench.state.withLock { $0.failingListCount = 1 }
        let keeper = await bench.keeper()
        await bench.pass(1, keeper)
        #expect(bench.state.withLock { $0.failingListCount } == 0)
        #expect(await keeper.figures().missingCount == 0)
        await keeper.stop()
    }
}
