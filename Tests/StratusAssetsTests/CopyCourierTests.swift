import StratusAssets
import StratusModel
import StratusRuntime
import StratusSealing
import Synchronization
import Testing

/// Three keepers and a network in memory that loses and repeats messages.
@Suite struct CopyCourierTests {
    typealias Bench = CopyKeeperTests.Bench

    final class Town: Sendable {
        struct State {
            var couriers: [NodeID: CopyCourier] = [:]
            var away: Set<NodeID> = []
            var random = SeededGenerator(seed: 1)
            /// Of a hundred messages.
            var lossCount = 0
            var repeatCount = 0
            var now = MonotonicTime(nanoseconds: 0)
        }

        static let nodes = (1...3).map { NodeID($0) }
        let state = Mutex(State())
        let benches: [NodeID: Bench]
        let keepers: [NodeID: CopyKeeper]

        init(seed: UInt64 = 1) async {
            var benches: [NodeID: Bench] = [:]
            var keepers: [NodeID: CopyKeeper] = [:]
            let couriers = Mutex<[NodeID: CopyCourier]>([:])
            for node in Self.nodes {
                let bench = Bench()
                bench.state.withLock {
                    $0.fetch = { name, group in
                        let courier = couriers.withLock { $0[node] }
                        for other in Self.nodes where other != node {
                            let fetched = await courier?.fetch(
                                name, of: group, from: other,
                                deadline: MonotonicTime(nanoseconds: .max))
                            if case .found? = fetched { return fetched ?? .silent }
                        }
                        return .silent
                    }
                }
                benches[node] = bench
                keepers[node] = await bench.keeper()
            }
            self.benches = benches
            self.keepers = keepers
            for node in Self.nodes {
                let courier = CopyCourier(
                    keepers[node]!, as: node, after: Self.questionsAsked(by: node) << 1,
                    now: { [unowned self] in self.state.withLock { $0.now } },
                    send: { [unowned self] in self.send($0, from: node, to: $1) })
                couriers.withLock { $0[node] = courier }
                self.state.withLock { $0.couriers[node] = courier }
            }
            self.state.withLock { $0.random = SeededGenerator(seed: seed) }
        }

        /// What stands for the random draw of each process.
        static func questionsAsked(by node: NodeID) -> UInt64 { UInt64(node.raw) << 32 }

        func courier(_ node: Int) -> CopyCourier {
            self.state.withLock { $0.couriers[NodeID(UInt32(node))]! }
        }

        func send(_ message: CopyMessage, from: NodeID, to: NodeID) -> Bool {
            let (courier, count) = self.state.withLock { state -> (CopyCourier?, Int) in
                guard !state.away.contains(to), !state.away.contains(from) else {
                    return (nil, 0)
                }
                let draw = Int.random(in: 0..<100, using: &state.random)
                if draw < state.lossCount { return (state.couriers[to], 0) }
                let isRepeated = draw < state.lossCount + state.repeatCount
                return (state.couriers[to], isRepeated ? 2 : 1)
            }
            guard let courier else { return false }
            for _ in 0..<count { courier.receive(message, from: from) }
            return true
        }

        /// Lets deadlines pass while something waits.
        func passing<Result: Sendable>(_ body: @escaping @Sendable () async -> Result) async
            -> Result
        {
            let clock = Task {
                while !Task.isCancelled {
                    try? await Task.sleep(for: .milliseconds(2))
                    self.state.withLock { $0.now = $0.now + .seconds(1) }
                    for node in 1...3 { self.courier(node).expire() }
                }
            }
            let result = await body()
            clock.cancel()
            return result
        }

        func stop() async { for keeper in self.keepers.values { await keeper.stop() } }
    }

    private static let deadline = MonotonicTime(nanoseconds: .max)

    @Test(arguments: 0..<10 as Range<UInt64>)
    func `a body gets to a majority and back over a network that loses and repeats`(seed: UInt64)
        async throws
    {
        let town = await Town(seed: seed)
        town.state.withLock {
            $0.lossCount = 15
            $0.repeatCount = 15
        }
        let workers = SealingWorkers(count: 1)
        defer { workers.stop() }
        let bodies = SealedBodies(
            town.courier(1), as: NodeID(1), workers: workers,
            now: { town.state.withLock { $0.now } }, sleep: { _ in await Task.yield() })
        let sealer = SealedBodiesTests.sealer
        var plan = BodyPlan(
            members: BodyMembers(
                group: CopyKeeperTests.group, all: Set(Town.nodes),
                voterSets: [Set(Town.nodes)]), body: BodyID(5),
            orphanAfterMilliseconds: 1_000_000, sealer: sealer, keyVersion: 1,
            sizeMax: 1 << 20, checksumPrefix: [], deadline: MonotonicTime(nanoseconds: .max))
        plan.chunkSize = 1_024
        plan.compresses = false
        var random = SeededGenerator(seed: seed)
        let bytes = (0..<20_000).map { _ in UInt8.random(in: 0...255, using: &random) }
        let asked = plan
        let written = await town.passing {
            try? await bodies.write(SealedBodiesTests.Pieces(bytes, seed: seed), asked)
        }
        // Losses may be so many that no majority is left; then nothing was stored.
        guard let written else { return await town.stop() }
        #expect(written.storers.count >= 2, "seed \(seed)")
        let manifest = BodyManifest(
            body: written.body, database: 1, namedAt: LogIndex(1), size: written.sums.size,
            chunkSize: written.chunkSize, keyVersion: 1, chunks: written.chunks)
        // Every storer has all of it.
        for storer in written.storers {
            let keeper = try #require(town.keepers[storer.node])
            for ordinal in 0..<UInt32(manifest.chunks.count) {
                let held = await keeper.fetch(
                    manifest.name(of: ordinal), of: CopyKeeperTests.group)
                #expect(held.bytes?.count == Int(manifest.chunks[Int(ordinal)].storedSize))
            }
        }
        await town.stop()
    }

    @Test func `a member that was away is repaired from the others`() async throws {
        let town = await Town()
        town.state.withLock { $0.away = [NodeID(3)] }
        for ordinal in 0..<4 as Range<UInt32> {
            for node in 1...3 {
                let answer = await town.courier(1).put(
                    CopyKeeperTests.copy(1, ordinal), of: CopyKeeperTests.group,
                    on: NodeID(UInt32(node)), deadline: Self.deadline)
                if node == 3 {
                    #expect(answer == .silent)
                } else {
                    #expect(answer == .stored(at: .zero))
                }
            }
        }
        let manifest = CopyKeeperTests.manifest(1, chunkCount: 4)
        let (bench, keeper) = (town.benches[NodeID(3)]!, town.keepers[NodeID(3)]!)
        bench.name([manifest])
        await bench.settle(keeper)
        #expect(await keeper.figures().missingCount == 4)
        await keeper.repair(at: 0)
        #expect(await keeper.figures().repairedCount == 0)
        town.state.withLock { $0.away = [] }
        // Nobody had them, so they are not asked for at once.
        await keeper.repair(at: 0)
        #expect(await keeper.figures().repairedCount == 0)
        bench.state.withLock { $0.now = $0.now + .seconds(5) }
        await keeper.repair(at: ByteCount(700))
        #expect(await keeper.figures().missingCount == 2)
        await keeper.repair(at: 0)
        #expect(await keeper.figures().missingCount == 0)
        #expect(
            await keeper.fetch(CopyKeeperTests.copy(1, 3).name, of: CopyKeeperTests.group)
                == .found(CopyKeeperTests.copy(1, 3).bytes))
        await town.stop()
    }

    @Test func `A-27 a copy that is not what its row says is not taken`() async throws {
        let town = await Town()
        let wrong = StoredCopy(
            name: CopyKeeperTests.copy(1).name, orphanAfterMilliseconds: 5_000,
            bytes: Bytes(repeating: 9, count: 600))
        _ = await town.courier(1).put(
            wrong, of: CopyKeeperTests.group, on: NodeID(1), deadline: Self.deadline)
        let (bench, keeper) = (town.benches[NodeID(3)]!, town.keepers[NodeID(3)]!)
        bench.name([CopyKeeperTests.manifest(1, chunkCount: 1)])
        await bench.settle(keeper)
        await keeper.repair(at: 0)
        #expect(await keeper.figures().missingCount == 1)
        #expect(await keeper.figures().repairedCount == 0)
        await town.stop()
    }

    @Test func `what is under way is bounded, answered by its deadline, and by nobody else`()
        async
    {
        let town = await Town()
        // Every message is taken and none arrives.
        town.state.withLock { $0.lossCount = 100 }
        let courier = town.courier(1)
        let copy = StoredCopy(
            name: CopyName(body: BodyID(1), ordinal: 0), orphanAfterMilliseconds: 5_000,
            bytes: Bytes(repeating: 1, count: 1 << 20))
        let asked = (0..<8).map { _ in
            Task {
                await courier.put(
                    copy, of: CopyKeeperTests.group, on: NodeID(2),
                    deadline: MonotonicTime(nanoseconds: 1_000))
            }
        }
        while courier.pendingCount < 8 { await Task.yield() }
        // The window is full: the next one waits for its turn.
        let ninth = Task {
            await courier.put(
                copy, of: CopyKeeperTests.group, on: NodeID(2),
                deadline: MonotonicTime(nanoseconds: 1_000))
        }
        while courier.waitingCount < 1 { await Task.yield() }
        // Of another node, of another kind, and to a question of a previous process.
        let first = Town.questionsAsked(by: NodeID(1)) + 1
        courier.receive(.stored(number: first, at: .zero), from: NodeID(3))
        courier.receive(.fetched(number: first, bytes: [1]), from: NodeID(2))
        courier.receive(.stored(number: 1, at: .zero), from: NodeID(2))
        #expect(courier.pendingCount == 8)
        courier.receive(.stored(number: first, at: LogIndex(7)), from: NodeID(2))
        while courier.pendingCount < 8 { await Task.yield() }
        #expect(courier.waitingCount == 0)
        courier.expire()
        #expect(courier.pendingCount == 8)
        let late = Task {
            await courier.put(
                copy, of: CopyKeeperTests.group, on: NodeID(2),
                deadline: MonotonicTime(nanoseconds: 1_000))
        }
        while courier.waitingCount < 1 { await Task.yield() }
        town.state.withLock { $0.now = MonotonicTime(nanoseconds: 1_000) }
        courier.expire()
        var answers: [CopyAnswer] = []
        for task in asked { answers.append(await task.value) }
        #expect(await ninth.value == .silent)
        // It was never sent.
        #expect(await late.value == .refused(.busy))
        #expect(answers.filter { $0 == .silent }.count == 7)
        #expect(answers.contains(.stored(at: LogIndex(7))))
        #expect(courier.pendingCount == 0)
        await town.stop()
    }
}
