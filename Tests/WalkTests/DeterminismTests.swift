import Foundation
import StratusDoubles
import StratusModel
import Synchronization
import Testing

/// One seed replays everything, so that a failure found by chance can be repeated. `STRATUS_SEEDS`
/// sets the number of seeds.
@Suite struct DeterminismTests {
    static var seedCount: UInt64 {
        UInt64(ProcessInfo.processInfo.environment["STRATUS_SEEDS"] ?? "") ?? 20
    }

    /// Everything a node answers to a crowd, byte for byte, and what its clock says then.
    private static func trace(_ seed: UInt64) throws -> [String] {
        let world = SimulatedWorld(seed: seed)
        let node = try SimulatedNode(over: world, seed: seed)
        var trace: [String] = []
        for round in 0..<3 {
            // Two want the same name: which of them gets it is the seed's choice.
            let answers = node.post(
                (0..<6).map { SimulatedNode.create("r\(round)-\($0 / 2)") }
                    + [SimulatedNode.lookup("r\(round)-0"), ("zones/list", "{}")])
            trace += answers.map { "\($0?.status ?? 0) \($0?.body ?? "")" }
            trace.append("\(world.now) \(world.wallMilliseconds)")
        }
        return trace
    }

    @Test func `a seed run twice leaves the same trace, and another seed another`() throws {
        var different = Set<[String]>()
        for seed in 0..<Self.seedCount {
            let first = try Self.trace(seed)
            #expect(try Self.trace(seed) == first, "seed \(seed)")
            #expect(first.allSatisfy { !$0.hasPrefix("0 ") && !$0.hasPrefix("5") }, "seed \(seed)")
            different.insert(first)
        }
        #expect(different.count > Self.seedCount / 2)
    }

    /// A counter that forgets what may happen while it waits.
    private final class Counter: Sendable {
        private let value = Mutex(0)
        var now: Int { self.value.withLock { $0 } }

        func add(isCareful: Bool) async {
            if isCareful {
                await Task.yield()
                self.value.withLock { $0 += 1 }
            } else {
                let seen = self.now
                await Task.yield()
                self.value.withLock { $0 = seen + 1 }
            }
        }
    }

    private static func total(_ seed: UInt64, isCareful: Bool) -> Int {
        let executor = SimulatedExecutor(world: SimulatedWorld(seed: seed), seed: seed)
        let counter = Counter()
        for _ in 0..<2 {
            Task(executorPreference: executor) { await counter.add(isCareful: isCareful) }
        }
        executor.run()
        return counter.now
    }

    private actor Desk {
        private let executor: SimulatedExecutor
        private let steps = Mutex("")
        init(_ executor: SimulatedExecutor) { self.executor = executor }

        nonisolated var unownedExecutor: UnownedSerialExecutor {
            self.executor.asUnownedSerialExecutor()
        }
        nonisolated var taken: String { self.steps.withLock { $0 } }

        func take(_ name: String) { self.steps.withLock { $0 += name } }
    }

    /// Three steps on an actor, and back to where the task stood after each.
    private static func walk(_ name: String, over desk: Desk) async {
        for _ in 0..<3 { await desk.take(name) }
    }

    /// An optimised build leaves out most changes of isolation.
    @Test func `an order is drawn where a task waits, and not where it changes its isolation`() {
        var orders = Set<String>()
        for seed in 0..<20 as Range<UInt64> {
            let executor = SimulatedExecutor(world: SimulatedWorld(seed: seed), seed: seed)
            let desk = Desk(executor)
            for name in ["a", "b"] {
                Task(executorPreference: executor) { await Self.walk(name, over: desk) }
            }
            executor.run()
            orders.insert(desk.taken)
        }
        #expect(orders == ["aaabbb", "bbbaaa"])
    }

    @Test func `a planted race is found by some seed, which finds it again`() {
        let found = (0..<100 as Range<UInt64>).filter { Self.total($0, isCareful: false) != 2 }
        #expect(!found.isEmpty && found.count < 100, "some orders hide it, some show it")
        for seed in found { #expect(Self.total(seed, isCareful: false) == 1, "seed \(seed)") }
        #expect((0..<100 as Range<UInt64>).allSatisfy { Self.total($0, isCareful: true) == 2 })
    }
}
