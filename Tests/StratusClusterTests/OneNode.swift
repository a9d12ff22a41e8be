import StratusCluster
import StratusDoubles
import StratusModel
import StratusRuntime
import StratusSQLite
import StratusStorage
import Synchronization

/// The state that tasks of one test share.
final class Shared<Value: Sendable>: Sendable {
    private let value: Mutex<Value>
    init(_ value: Value) { self.value = Mutex(value) }
    func withLock<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
        self.value.withLock { value in body(&value) }
    }
}

/// One node's replicas behind their router, over a simulated world, all of it in one thread and in
/// an order drawn from a seed. Another value over the same world is a restart.
struct OneNode: Sendable {
    static let container = ContainerReference(container: "iCloud.test", environment: .development)
    static let key = ShardKey.database(
        DatabaseID(container: Self.container, scope: .private, owner: "_u"))

    let world: SimulatedWorld
    let executor: SimulatedExecutor
    let inbox: ReplicaInbox
    let replicas: NodeReplicas
    let router: ClusterRouter
    let log: SegmentedLog
    var deadline: MonotonicTime { self.world.now + .seconds(30) }

    init(
        seed: UInt64, limits: Limits = Limits(), logLimits: SegmentedLog.Limits? = nil,
        world: SimulatedWorld? = nil, groupCount: UInt16 = 1, goesOn: Bool = false,
        adjust: (inout NodeReplicas.Setup) -> Void = { _ in }
    ) throws {
        let world = world ?? SimulatedWorld(seed: seed)
        let executor = SimulatedExecutor(world: world, seed: seed)
        let inbox = ReplicaInbox()
        var small = SegmentedLog.Limits()
        small.segmentSize = .kibibytes(64)
        let log = try SegmentedLog.open(
            in: "log", of: world, limits: logLimits ?? small, reportingTo: inbox)
        let system = FileSystem(world.files)
        if goesOn {
            _ = try LoneVoter(NodeID(1), log: log, in: world, first: Self.first(world, system))
                .goOn((1...groupCount).map { GroupID($0) }) { _ in
                    Configuration(voters: [NodeID(1)])
                }
        }
        log.start(on: executor)
        let sleep: @Sendable (MonotonicTime) async -> Void = { time in
            await executor.sleep(for: max(.zero, time - world.now))
        }
        var setup = NodeReplicas.Setup(
            node: NodeID(1), incarnation: NodeIncarnation(world.random()), peers: [],
            openPartition: { (group) throws(StoreError) in
                try PartitionStore(
                    RegisterState(), group: group, in: "partitions", of: system)
            },
            firstConfiguration: { _ in Configuration(voters: [NodeID(1)]) }, sleep: sleep)
        setup.limits = limits
        adjust(&setup)
        let replicas = NodeReplicas(
            setup, log: log, inbox: inbox, sender: NoPeers(), in: world, on: executor,
            checkpointsOn: executor)
        self.world = world
        self.executor = executor
        self.inbox = inbox
        self.replicas = replicas
        self.log = log
        let nodes = [NodeID(1)]
        self.router = ClusterRouter(
            replicas, sender: NoPeers(), in: world, limits: limits,
            place: { key in
                let number =
                    groupCount == 1 ? 1 : UInt16(Self.number(of: key) % Int(groupCount)) + 1
                return PlacedPartition(group: GroupID(number), replicas: nodes, epoch: 1)
            },
            placeOfGroup: { PlacedPartition(group: $0, replicas: nodes, epoch: 1) }, sleep: sleep)
        Task(executorPreference: executor) { await replicas.start() }
        self.settle()
    }

    /// Says in a register that the partition goes on without what was lost.
    private static func first(_ world: SimulatedWorld, _ system: FileSystem) -> FirstCommand {
        FirstCommand { _, time in
            Command(
                kind: .reference, identity: world.drawIdentity(),
                deadlineMilliseconds: time.milliseconds, container: Self.container,
                schemaVersion: 0, principal: Principal(kind: .administrator),
                body: RegisterCommand.write([255], value: [1]).encoded())
        } open: { (group) throws(StoreError) in
            try PartitionStore(RegisterState(), group: group, in: "partitions", of: system)
        } isDone: {
            $0.verdict == .decided
        }
    }

    private static func number(of key: ShardKey) -> Int {
        if case .account(let name) = key { return Int(name) ?? 0 }
        return 0
    }

    /// Runs until nothing happens any more, or a minute has passed: a state whose disk is gone is
    /// retried for ever.
    func settle() { self.executor.run(until: self.world.now + .seconds(60)) }

    func command(_ body: RegisterCommand, _ identity: RequestIdentity) -> Command {
        Command(
            kind: .reference, identity: identity,
            deadlineMilliseconds: self.world.wallMilliseconds + 30_000, container: Self.container,
            schemaVersion: 0, principal: Principal(kind: .administrator), body: body.encoded())
    }

    func submit(
        _ body: RegisterCommand, _ identity: RequestIdentity, to key: ShardKey = Self.key
    ) async -> Result<Outcome, RouteError> {
        do throws(RouteError) {
            return .success(
                try await self.router.submit(
                    self.command(body, identity), to: .key(key), deadline: self.deadline))
        } catch { return .failure(error) }
    }

    func value(_ register: Bytes, at key: ShardKey = Self.key) async throws -> Bytes? {
        try RegisterState.value(
            in: try await self.router.read(
                RegisterQuery.value(register).query, at: .key(key), deadline: self.deadline))
    }

    /// Reads a register and runs the world until there is an answer.
    func readNow(_ register: Bytes) -> Result<Bytes?, any Error> {
        let held = Shared<Result<Bytes?, any Error>?>(nil)
        Task(executorPreference: self.executor) {
            let result: Result<Bytes?, any Error>
            do { result = .success(try await self.value(register)) } catch {
                result = .failure(error)
            }
            held.withLock { $0 = result }
        }
        self.settle()
        return held.withLock { $0 } ?? .failure(RouteError.outcomeUnknown)
    }
}
