import StratusCluster
import StratusModel
import StratusSimulation
import StratusStorage
import Synchronization
import Testing

/// What tasks of one test share.
final class Shared<Value: Sendable>: Sendable {
    private let value: Mutex<Value>
    init(_ value: Value) { self.value = Mutex(value) }
    func withLock<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
        self.value.withLock { value in body(&value) }
    }
}

/// The router over a local replica, all of it in one thread and in an order drawn from a seed.
@Suite struct LocalRouterTests {
    static let container = ContainerReference(container: "iCloud.test", environment: .development)
    static let key = ShardKey.database(
        DatabaseID(container: Self.container, scope: .private, owner: "_u"))

    static func command(
        _ body: RegisterCommand, _ world: SimulatedWorld, _ identity: RequestIdentity
    )
        -> Command
    {
        Command(
            kind: .reference, identity: identity,
            deadlineMilliseconds: world.wallMilliseconds + 30_000, container: Self.container,
            schemaVersion: 0, principal: Principal(kind: .system), body: body.encoded())
    }

    struct Bench: Sendable {
        let world: SimulatedWorld
        let executor: SimulatedExecutor
        let router: LocalRouter<RegisterState>
        var deadline: MonotonicTime { self.world.now + .seconds(30) }

        init(seed: UInt64, limits: Limits = Limits(), world: SimulatedWorld? = nil) throws {
            self.world = world ?? SimulatedWorld(seed: seed)
            self.executor = SimulatedExecutor(world: self.world, seed: seed)
            self.router = LocalRouter(
                try LocalReplica(RegisterState(), in: "local", of: self.world), in: self.world,
                limits: limits, on: self.executor)
        }

        func submit(_ body: RegisterCommand, _ identity: RequestIdentity) async -> Result<
            Outcome, RouteError
        > {
            do throws(RouteError) {
                return .success(
                    try await self.router.submit(
                        LocalRouterTests.command(body, self.world, identity),
                        to: LocalRouterTests.key, deadline: self.deadline))
            } catch { return .failure(error) }
        }

        func value(_ register: Bytes) async throws -> Bytes? {
            try RegisterState.value(
                in: try await self.router.read(
                    RegisterQuery.value(register).query, at: LocalRouterTests.key,
                    deadline: self.deadline))
        }
    }

    @Test(arguments: 0..<10 as Range<UInt64>)
    func `a read sees every write that was acknowledged before it`(seed: UInt64) throws {
        let bench = try Bench(seed: seed)
        let done = Shared(0)
        for writer in 0..<8 as Range<UInt8> {
            let identities = (0..<10).map { _ in bench.world.drawIdentity() }
            Task(executorPreference: bench.executor) {
                for (round, identity) in identities.enumerated() {
                    let value: Bytes = [writer, UInt8(round)]
                    let result = await bench.submit(.write([writer], value: value), identity)
                    #expect((try? result.get())?.verdict == .decided)
                    let held = try? await bench.value([writer])
                    #expect(held == value)
                    await bench.executor.sleep(for: .milliseconds(Int(writer)))
                }
                done.withLock { $0 += 1 }
            }
        }
        bench.executor.run()
        #expect(done.withLock { $0 } == 8)
    }

    @Test func `commands that wait together share one commit`() throws {
        let bench = try Bench(seed: 1)
        func operations(_ count: Int) -> Int {
            let before = bench.world.simulatedFiles.operationCount
            for number in 0..<count {
                let identity = bench.world.drawIdentity()
                Task(executorPreference: bench.executor) {
                    _ = await bench.submit(.write([UInt8(number)], value: [1]), identity)
                }
            }
            bench.executor.run()
            return bench.world.simulatedFiles.operationCount - before
        }
        let one = operations(1)
        #expect(operations(64) < one * 10)
    }

    @Test func `C-35 beyond its bound the queue refuses, and what it refused did not happen`()
        throws
    {
        var limits = Limits()
        limits.pendingCommandCountMax = 3
        let bench = try Bench(seed: 1, limits: limits)
        let results = Shared<[UInt8: Result<Outcome, RouteError>]>([:])
        for number in 0..<12 as Range<UInt8> {
            let identity = bench.world.drawIdentity()
            Task(executorPreference: bench.executor) {
                let result = await bench.submit(.write([number], value: [1]), identity)
                results.withLock { $0[number] = result }
            }
        }
        bench.executor.run()
        var refusedCount = 0
        for (number, result) in results.withLock({ $0 }) {
            let held = Shared<Bytes?>(nil)
            Task(executorPreference: bench.executor) {
                let value = try? await bench.value([number])
                held.withLock { $0 = value }
            }
            bench.executor.run()
            switch result {
            case .success: #expect(held.withLock { $0 } == [1])
            case .failure(.notExecuted(let retryAfter)):
                #expect(held.withLock { $0 } == nil)
                #expect(retryAfter > .zero)
                refusedCount += 1
            case .failure(let error): Issue.record("\(error)")
            }
        }
        #expect(refusedCount > 0 && refusedCount < 12)
    }

    @Test func `C-07 a command sent twice is applied once and answered the same`() throws {
        let bench = try Bench(seed: 1)
        let identity = bench.world.drawIdentity()
        let outcomes = Shared<[Outcome]>([])
        for _ in 0..<3 {
            Task(executorPreference: bench.executor) {
                let result = await bench.submit(
                    .compareAndSet([1], expected: nil, value: [5]), identity)
                if case .success(let outcome) = result { outcomes.withLock { $0.append(outcome) } }
            }
        }
        bench.executor.run()
        let all = outcomes.withLock { $0 }
        #expect(all.count == 3)
        for outcome in all {
            #expect(try RegisterOutcome(decoding: outcome.body).tookEffect)
        }
    }

    @Test func `a stopped router refuses, and has carried out what waited`() throws {
        let bench = try Bench(seed: 1)
        let identities = (0..<2).map { _ in bench.world.drawIdentity() }
        let results = Shared<[Bool]>([])
        Task(executorPreference: bench.executor) {
            let first = await bench.submit(.write([1], value: [1]), identities[0])
            await bench.router.stop()
            let second = await bench.submit(.write([1], value: [2]), identities[1])
            results.withLock {
                $0 = [(try? first.get()) != nil, (try? second.get()) != nil]
            }
        }
        bench.executor.run()
        #expect(results.withLock { $0 } == [true, false])
    }

    @Test(arguments: 0..<30 as Range<UInt64>)
    func `C-01 S-34 clients over lives that end anywhere: nothing acknowledged is lost`(
        seed: UInt64
    )
        throws
    {
        let world = SimulatedWorld(seed: seed)
        var random = SeededGenerator(seed: seed)
        // For each writer's register: what it may hold.
        let possible = Shared<[UInt8: [Bytes?]]>([:])
        for life in 0..<4 as Range<UInt8> {
            world.simulatedFiles.plan(
                DiskFault(
                    at: world.simulatedFiles.operationCount
                        + Int.random(in: 10...150, using: &random),
                    .crash))
            if let bench = try? Bench(seed: seed &* 7 &+ UInt64(life), world: world) {
                for writer in 0..<5 as Range<UInt8> {
                    let identities = (0..<6).map { _ in world.drawIdentity() }
                    Task(executorPreference: bench.executor) {
                        for (round, identity) in identities.enumerated() {
                            let value: Bytes = [life, writer, UInt8(round)]
                            let result = await bench.submit(
                                .write([writer], value: value), identity)
                            possible.withLock { possible in
                                switch result {
                                case .success: possible[writer] = [value]
                                case .failure(.outcomeUnknown):
                                    possible[writer, default: [nil]].append(value)
                                case .failure: break
                                }
                            }
                        }
                    }
                }
                bench.executor.run()
            }
            world.simulatedFiles.clearFaults()
            world.simulatedFiles.restart(
                after: [.powerLoss, .processCrash, .powerLossLosingAll].randomElement(
                    using: &random)!)
            let replica = try LocalReplica(RegisterState(), in: "local", of: world)
            for (writer, values) in possible.withLock({ $0 }) {
                let answer = try replica.answer(RegisterQuery.value([writer]).query)
                let value = try RegisterState.value(in: answer)
                #expect(values.contains(value), "seed \(seed), life \(life), writer \(writer)")
                // From here on this is what it holds.
                possible.withLock { $0[writer] = [value] }
            }
        }
    }
}
