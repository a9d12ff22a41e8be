import StratusModel
import StratusSimulation
import StratusStorage
import Testing

/// The scripted workload of a local replica, cut off at every one of its file operations.
///
/// Method: run the script untouched to learn how many operations it takes; then once for each of them
/// with a fault there, start again on what the disk has, and look.
@Suite struct CrashSweepTests {
    /// What the script knows of one register: the values it may hold, given what was answered.
    struct Expectation {
        /// Whether the register must hold the last of `possible`: its write was acknowledged.
        var possible: [Bytes?] = [nil]
    }

    final class Script {
        var expectations: [Bytes: Expectation] = [:]
        var acknowledgedCount = 0
        private var drawn: UInt64 = 0

        /// Opens the replica, applies batches until something fails, and notes what was answered.
        func run(_ world: SimulatedWorld, batchCount: Int) {
            guard
                let directory = try? DataDirectory(in: world),
                let replica = try? LocalReplica(RegisterState(), in: "local", of: world)
            else { return }
            for batch in 0..<batchCount {
                world.advance(by: .milliseconds(7))
                let writes = (0..<3).map { place -> (Bytes, Bytes) in
                    self.drawn += 1
                    let register = Bytes("r\((batch * 2 + place) % 5)".utf8)
                    return (register, Bytes("\(self.drawn)".utf8) + Bytes(repeating: 0, count: 900))
                }
                let results = replica.apply(
                    writes.map { register, value in
                        self.command(.write(register, value: value), world)
                    })
                for ((register, value), result) in zip(writes, results) {
                    switch result {
                    case .success(let outcome):
                        #expect(outcome.verdict == .decided)
                        self.expectations[register, default: Expectation()].possible = [value]
                        self.acknowledgedCount += 1
                    case .failure(.outcomeUnknown):
                        self.expectations[register, default: Expectation()].possible.append(value)
                    case .failure(.notExecuted): break
                    }
                }
                if batch % 4 == 3 { replica.checkpoint() }
            }
            withExtendedLifetime(directory) {}
        }

        func command(_ body: RegisterCommand, _ world: SimulatedWorld) -> Command {
            Command(
                kind: .reference, identity: world.drawIdentity(),
                deadlineMilliseconds: world.wallMilliseconds + 30_000,
                container: ContainerReference(container: "iCloud.test", environment: .development),
                schemaVersion: 0, principal: Principal(kind: .system), body: body.encoded())
        }

        /// Starts again and checks that every acknowledged write is there and nothing is half there.
        func check(_ world: SimulatedWorld, _ name: String) throws {
            let directory = try DataDirectory(in: world)
            let replica = try LocalReplica(RegisterState(), in: "local", of: world)
            #expect(try replica.findDamage() == [], "\(name)")
            for (register, expectation) in self.expectations {
                let answer = try replica.answer(RegisterQuery.value(register).query)
                let value = try RegisterState.value(in: answer)
                #expect(
                    expectation.possible.contains(value),
                    "\(name): \(String(decoding: register, as: UTF8.self))")
            }
            // Registers and their feed were written by the same commits: one tells of the other.
            let feed = try RegisterState.changes(
                in: replica.answer(RegisterQuery.feed(after: 0, limit: .max).query))
            var last: [Bytes: Bytes?] = [:]
            for change in feed { last[change.register] = change.value }
            for (register, value) in last {
                let answer = try replica.answer(RegisterQuery.value(register).query)
                #expect(try RegisterState.value(in: answer) == value, "\(name)")
            }
            #expect(replica.applied.raw == feed.last?.position ?? 0, "\(name)")
            // It goes on working, and remembers that too.
            let results = replica.apply([self.command(.write([9], value: [9]), world)])
            guard case .success = results[0] else {
                Issue.record("\(name): no write after the restart: \(results)")
                return
            }
            withExtendedLifetime(directory) {}
        }
    }

    static let batchCount = 5

    static func operationCount() -> Int {
        let world = SimulatedWorld(seed: 1)
        Script().run(world, batchCount: Self.batchCount)
        return world.simulatedFiles.operationCount
    }

    @Test(arguments: [DiskRestart.processCrash, .powerLoss, .powerLossLosingAll])
    func `S-26 S-20 S-07 an end at any file operation loses nothing acknowledged`(
        restart: DiskRestart
    ) throws {
        let count = Self.operationCount()
        var reached = 0
        let variant = [.powerLoss: 0, .processCrash: 1][restart, default: 2]
        for number in Sweep.operations(count, variant: variant) {
            for seed in 0..<1 as Range<UInt64> {
                let world = SimulatedWorld(seed: UInt64(number) * 7 + seed)
                world.simulatedFiles.plan(DiskFault(at: number, .crash))
                let script = Script()
                script.run(world, batchCount: Self.batchCount)
                #expect(world.simulatedFiles.isCrashed)
                world.simulatedFiles.restart(after: restart)
                try script.check(world, "crash at \(number), seed \(seed)")
                reached = max(reached, script.acknowledgedCount)
            }
        }
        #expect(reached > Self.batchCount, "the script never acknowledged anything")
    }

    @Test(arguments: [false, true], [DiskError.Kind.io, .full])
    func `S-27 S-01 a failure at any file operation loses nothing acknowledged`(
        isSticky: Bool, kind: DiskError.Kind
    ) throws {
        for number in Sweep.operations(Self.operationCount(), variant: isSticky ? 1 : 0) {
            let world = SimulatedWorld(seed: UInt64(number))
            world.simulatedFiles.plan(DiskFault(at: number, .fail(kind), isSticky: isSticky))
            let script = Script()
            script.run(world, batchCount: Self.batchCount)
            world.simulatedFiles.clearFaults()
            world.simulatedFiles.restart(after: number % 2 == 0 ? .powerLoss : .processCrash)
            try script.check(world, "\(kind) at \(number)")
            // What was shown after a restart must also outlast the power.
            world.simulatedFiles.restart(after: .powerLossLosingAll)
            try script.check(world, "\(kind) at \(number), then a power cut")
        }
    }

    @Test func `S-34 a crash inside recovery, three times over, changes nothing`() throws {
        let count = Self.operationCount()
        for number in stride(from: count / 3, to: count, by: 11) {
            let world = SimulatedWorld(seed: UInt64(number))
            let files = world.simulatedFiles
            files.plan(DiskFault(at: number, .crash))
            let script = Script()
            script.run(world, batchCount: Self.batchCount)
            for depth in 1...3 {
                files.restart(after: .powerLoss)
                files.clearFaults()
                files.plan(DiskFault(at: files.operationCount + depth * 4, .crash))
                Script().run(world, batchCount: 0)
            }
            files.clearFaults()
            files.restart(after: .powerLoss)
            try script.check(world, "crash at \(number), then in recovery")
        }
    }
}
