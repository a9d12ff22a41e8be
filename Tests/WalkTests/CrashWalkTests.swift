import Foundation
import StratusDoubles
import StratusModel
import Testing

/// The path of a request from the gateway to the disk, with the disk failing at every single
/// operation.
@Suite struct CrashWalkTests {
    struct Run {
        var acknowledged: [String] = []
        var sent: [String] = []
        var operationCount = 0
    }

    /// Two starts of the process with records saved in groups: commits of one command and of
    /// several.
    static func script(over world: SimulatedWorld, seed: UInt64) -> Run {
        var run = Run()
        for start in 0..<2 {
            guard let node = try? SimulatedNode(over: world, seed: seed &+ UInt64(start)) else {
                break
            }
            for (group, size) in [1, 3, 2].enumerated() {
                let names = (0..<size).map { "s\(start)-g\(group)-\($0)" }
                run.sent += names
                let answers = node.post(names.map(SimulatedNode.create))
                for (name, answer) in zip(names, answers) where SimulatedNode.isSaved(answer) {
                    run.acknowledged.append(name)
                }
            }
        }
        run.operationCount = world.simulatedFiles.operationCount
        return run
    }

    /// Every acknowledged record is whole; of the others each is whole or not there.
    static func verify(
        _ run: Run, over world: SimulatedWorld, seed: UInt64, _ situation: String
    ) throws {
        let node = try SimulatedNode(over: world, seed: seed)
        for name in run.sent {
            let answer = try #require(node.post([SimulatedNode.lookup(name)])[0])
            #expect(answer.status == 200, "\(situation), \(name): \(answer.body)")
            let isWhole = answer.body.contains("\"text of \(name)\"")
            if run.acknowledged.contains(name) {
                #expect(
                    isWhole, "\(situation): \(name) was acknowledged and is gone: \(answer.body)")
            } else {
                #expect(
                    isWhole || answer.body.contains("NOT_FOUND"),
                    "\(situation), \(name): \(answer.body)")
            }
        }
        // And the node goes on: what failed before did not leave it unable to write.
        let after = node.post([SimulatedNode.create("after")])[0]
        #expect(SimulatedNode.isSaved(after), "\(situation): \(String(describing: after))")
    }

    /// Every so-manieth operation, fifty or so in all, from another first one for each case; with
    /// `STRATUS_SWEEP=all` every single one.
    static func swept(_ count: Int, from first: Int) -> StrideThrough<Int> {
        let isWhole = ProcessInfo.processInfo.environment["STRATUS_SWEEP"] == "all"
        let step = isWhole ? 1 : max(1, count / 50)
        return stride(from: 1 + first % step, through: count, by: step)
    }

    @Test(arguments: [DiskRestart.processCrash, .powerLoss, .powerLossLosingAll])
    func `a crash at any file operation loses no acknowledged record`(restart: DiskRestart) throws {
        let calm = Self.script(over: SimulatedWorld(seed: 1), seed: 2)
        #expect(calm.acknowledged == calm.sent)
        #expect(calm.operationCount > 50, "the walk hardly touches the disk")
        let first = restart == .processCrash ? 0 : restart == .powerLoss ? 3 : 6
        for number in Self.swept(calm.operationCount, from: first) {
            let world = SimulatedWorld(seed: UInt64(number))
            world.simulatedFiles.plan(DiskFault(at: number, .crash))
            let run = Self.script(over: world, seed: 2)
            world.simulatedFiles.restart(after: restart)
            world.simulatedFiles.clearFaults()
            try Self.verify(
                run, over: world, seed: 3, "crash at operation \(number) of \(calm.operationCount)")
        }
    }

    @Test(arguments: [DiskError.Kind.io, .full], [false, true])
    func `an error at any file operation loses no acknowledged record`(
        kind: DiskError.Kind, isSticky: Bool
    ) throws {
        let calm = Self.script(over: SimulatedWorld(seed: 1), seed: 2)
        let first = (kind == .io ? 1 : 5) + (isSticky ? 3 : 0)
        for number in Self.swept(calm.operationCount, from: first) {
            let world = SimulatedWorld(seed: UInt64(number))
            world.simulatedFiles.plan(DiskFault(at: number, .fail(kind), isSticky: isSticky))
            let run = Self.script(over: world, seed: 2)
            world.simulatedFiles.clearFaults()
            world.simulatedFiles.crash()
            world.simulatedFiles.restart(after: .powerLossLosingAll)
            try Self.verify(
                run, over: world, seed: 3,
                "\(kind) at operation \(number)\(isSticky ? " and after" : "")")
        }
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `the same seed walks the same way`(seed: UInt64) {
        func walk() -> [String] {
            let world = SimulatedWorld(seed: seed)
            guard let node = try? SimulatedNode(over: world, seed: seed) else { return [] }
            return node.post((0..<8).map { SimulatedNode.create("n\($0)") }).map {
                $0?.body ?? "none"
            }
        }
        let first = walk()
        #expect(first.count == 8 && !first.contains("none"))
        #expect(first == walk(), "seed \(seed)")
    }
}
