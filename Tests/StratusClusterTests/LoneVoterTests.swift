import StratusCluster
import StratusDoubles
import StratusModel
import StratusRuntime
import StratusStorage
import Testing

/// Core audit 3.1: one flipped bit in the log of a node alone.
@Suite struct LoneVoterTests {
    /// A node that has saved twenty registers and was killed. Its second partition has no rows.
    private static func killed(seed: UInt64, stops: Bool = false) throws -> SimulatedWorld {
        let node = try OneNode(seed: seed, groupCount: 2)
        for value in 1...20 as ClosedRange<UInt8> {
            let identity = node.world.drawIdentity()
            Task(executorPreference: node.executor) {
                _ = await node.submit(.write([value], value: [value]), identity)
            }
            node.executor.run(until: node.world.now + .seconds(1))
        }
        Task(executorPreference: node.executor) {
            _ = try? await node.value([1], at: .account("1"))
        }
        node.executor.run(until: node.world.now + .seconds(1))
        if stops {
            Task(executorPreference: node.executor) { await node.replicas.stop() }
            node.settle()
        }
        node.world.simulatedFiles.restart(after: .processCrash)
        return node.world
    }

    /// The places of the batches of the only segment.
    private static func batches(_ bytes: Bytes) -> [Int] {
        stride(from: 64, to: bytes.count - 48, by: 8).filter {
            bytes[$0..<($0 + 4)].elementsEqual([0x53, 0x4C, 0x42, 1])
        }
    }

    private static let path: DiskPath = "log/00000001.seg"

    /// Flips a bit in the list of a batch, mostly one in the middle.
    private static func flip(_ world: SimulatedWorld, last: Bool = false) throws {
        let bytes = try #require(world.simulatedFiles.contents(of: Self.path))
        let all = Self.batches(bytes)
        world.simulatedFiles.flip(
            bit: 2, at: (last ? all[all.count - 1] : all[all.count / 2]) + 60, of: Self.path)
        world.simulatedFiles.restart(after: .processCrash)
    }

    @Test func `a node alone goes on from its rows, and says so in every partition`() throws {
        let world = try Self.killed(seed: 3)
        try Self.flip(world)
        let unopened = Shared<[GroupID]>([])
        do {
            let node = try OneNode(seed: 4, world: world, groupCount: 2) {
                $0.events.unopenedChanged = { groups, _ in unopened.withLock { $0 = groups } }
            }
            #expect(node.log.hasUnknownLoss)
            #expect(throws: RouteError.self) { try node.readNow([1]).get() }
            #expect(unopened.withLock { $0 } == [GroupID(1)])
            world.simulatedFiles.restart(after: .processCrash)
        }
        for life in 1...2 as ClosedRange<UInt64> {
            let node = try OneNode(seed: 4 + life, world: world, groupCount: 2, goesOn: life == 1)
            #expect(!node.log.hasUnknownLoss, "\(life)")
            for value in 1...20 as ClosedRange<UInt8> {
                #expect(try node.readNow([value]).get() == [value], "\(life)")
            }
            #expect(try node.readNow([255]).get() == [1], "its tokens of before are void")
            let identity = world.drawIdentity()
            let isDecided = Shared(false)
            Task(executorPreference: node.executor) {
                let answer = await node.submit(.write([30], value: [1]), identity)
                isDecided.withLock { $0 = (try? answer.get().verdict) == .decided }
            }
            node.settle()
            #expect(isDecided.withLock { $0 })
            world.simulatedFiles.restart(after: .powerLoss)
        }
    }

    @Test(arguments: [false, true])
    func `a node that was stopped clean lacks nothing after a flipped bit`(last: Bool) throws {
        let world = try Self.killed(seed: 5, stops: true)
        try Self.flip(world, last: last)
        let node = try OneNode(seed: 6, world: world, groupCount: 2, goesOn: true)
        #expect(!node.log.hasUnknownLoss)
        for value in 1...20 as ClosedRange<UInt8> {
            #expect(try node.readNow([value]).get() == [value])
        }
        #expect(try node.readNow([255]).get() == nil, "its rows held everything")
    }

    @Test func `wherever a process ends while it goes on, the next one does`() throws {
        let seed = UInt64.random(in: 0...1 << 32)
        print("seed \(seed)")
        var number = 1
        while number < 200 {
            let world = try Self.killed(seed: seed)
            try Self.flip(world)
            let files = world.simulatedFiles
            files.plan(DiskFault(at: files.operationCount + number, .crash))
            if let node = try? OneNode(seed: seed &+ 1, world: world, groupCount: 2, goesOn: true),
                !files.isCrashed, !node.log.hasUnknownLoss
            {
                break
            }
            files.clearFaults()
            files.restart(after: number % 2 == 0 ? .powerLoss : .processCrash)
            let node = try OneNode(seed: seed &+ 2, world: world, groupCount: 2, goesOn: true)
            #expect(!node.log.hasUnknownLoss, "\(number)")
            #expect(try node.readNow([1]).get() == [1], "\(number)")
            #expect(try node.readNow([255]).get() == [1], "\(number)")
            number += 5
        }
        #expect(number > 20)
    }
}
