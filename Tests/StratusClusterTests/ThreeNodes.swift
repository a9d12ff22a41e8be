import StratusCluster
import StratusConsensus
import StratusDoubles
import StratusModel
import StratusRuntime
import StratusSQLite
import StratusStorage
import Synchronization

/// The replicas of three nodes, each on a disk of its own, talking without links: all in one
/// thread, in an order drawn from a seed.
struct ThreeNodes {
    static let group = GroupID(1)
    static let place = PlacedPartition(
        group: group, replicas: (1...3).map { NodeID($0) }, epoch: 1)

    /// One clock for all, a disk for each.
    final class NodeWorld: World {
        let clock: SimulatedWorld
        let disk: SimulatedFiles
        /// How far its wall clock is ahead of the others'.
        let leadMilliseconds = Mutex<Int64>(0)
        init(_ clock: SimulatedWorld, seed: UInt64) {
            self.clock = clock
            self.disk = SimulatedFiles(seed: seed)
        }
        var now: MonotonicTime { self.clock.now }
        var wallMilliseconds: Int64 {
            self.clock.wallMilliseconds + self.leadMilliseconds.withLock { $0 }
        }
        func random() -> UInt64 { self.clock.random() }
        var files: any Files { self.disk }
    }

    /// Whatever is sent is there at once.
    private final class Wires: Sendable {
        private let inboxes = Mutex<[NodeID: ReplicaInbox]>([:])
        private let routers = Mutex<[NodeID: ClusterRouter]>([:])
        /// Nobody hears it, and it hears nobody; its links stand.
        let hanging = Shared<NodeID?>(nil)
        func connect(_ node: NodeID, _ router: ClusterRouter) {
            self.routers.withLock { $0[node] = router }
        }
        func router(of node: NodeID) -> ClusterRouter? { self.routers.withLock { $0[node] } }
        func connect(_ node: NodeID, _ inbox: ReplicaInbox) {
            self.inboxes.withLock { $0[node] = inbox }
        }
        func send(_ message: PeerMessage, from: NodeID, to: NodeID) -> Bool {
            guard let inbox = self.inboxes.withLock({ $0[to] }) else { return false }
            if self.hanging.withLock({ $0 == from || $0 == to }) { return true }
            if case .response(let response) = message {
                self.routers.withLock { $0[to] }?.receive(response, from: from)
                return true
            }
            inbox.receive(message, from: from, .none)
            return true
        }
    }

    private final class Wire: PeerSender {
        let from: NodeID
        let wires: Wires
        init(_ from: NodeID, _ wires: Wires) {
            self.from = from
            self.wires = wires
        }
        func send(_ message: PeerMessage, to node: NodeID) -> Bool {
            self.wires.send(message, from: self.from, to: node)
        }
    }

    struct Node {
        let id: NodeID
        let replicas: NodeReplicas
        let router: ClusterRouter
        let world: NodeWorld
        let log: SegmentedLog
        var files: SimulatedFiles { self.world.disk }
    }

    let clock: SimulatedWorld
    let executor: SimulatedExecutor
    let nodes: [Node]
    let alarms = Shared<[String]>([])
    private let wires = Wires()

    /// - Parameter build: of each node.
    init(
        seed: UInt64, adjust: (inout NodeReplicas.Setup) -> Void = { _ in },
        opens:
            ((FileSystem) -> @Sendable (GroupID) throws(StoreError) -> sending any NodePartition)? =
            nil,
        build: (NodeID) -> FeatureLevel = { _ in .build }
    ) throws {
        let clock = SimulatedWorld(seed: seed)
        let executor = SimulatedExecutor(world: clock, seed: seed)
        let wires = self.wires
        let ids = (1...3).map { NodeID($0) }
        let alarms = self.alarms
        var nodes: [Node] = []
        for id in ids {
            let world = NodeWorld(clock, seed: seed &* 8 &+ UInt64(id.raw))
            let inbox = ReplicaInbox()
            wires.connect(id, inbox)
            var limits = SegmentedLog.Limits()
            limits.segmentSize = .kibibytes(64)
            let log = try SegmentedLog.open(
                in: "log", of: world, limits: limits, reportingTo: inbox)
            log.start(on: executor)
            let system = FileSystem(world.files)
            var rows = PartitionStore<RegisterState>.Limits()
            rows.build = build(id)
            let partitionLimits = rows
            var setup = NodeReplicas.Setup(
                node: id, incarnation: NodeIncarnation(clock.random()),
                peers: ids.filter { $0 != id },
                openPartition: { (group) throws(StoreError) in
                    try PartitionStore(
                        RegisterState(), group: group, in: "partitions", of: system,
                        limits: partitionLimits)
                },
                firstConfiguration: { _ in Configuration(voters: ids) },
                sleep: { time in await executor.sleep(for: max(.zero, time - clock.now)) })
            setup.isClustered = true
            setup.events.alarm = { group, what in
                alarms.withLock { $0.append("\(id) \(group): \(what)") }
            }
            setup.events.roleChanged = { group, _, _, leader in
                if let leader { wires.router(of: id)?.leads(leader, group) }
            }
            if let opens { setup.openPartition = opens(system) }
            adjust(&setup)
            let replicas = NodeReplicas(
                setup, log: log, inbox: inbox, sender: Wire(id, wires), in: world, on: executor,
                checkpointsOn: executor)
            var tuning = ClusterRouter.Tuning()
            // Whoever waited for that would be seen to.
            tuning.answerPatience = .seconds(60)
            let router = ClusterRouter(
                replicas, sender: Wire(id, wires), in: world, tuning: tuning,
                place: { _ in Self.place }, placeOfGroup: { _ in Self.place },
                sleep: { time in await executor.sleep(for: max(.zero, time - clock.now)) })
            wires.connect(id, router)
            Task(executorPreference: executor) {
                await replicas.start()
                await replicas.wake([Self.group])
            }
            nodes.append(
                Node(id: id, replicas: replicas, router: router, world: world, log: log))
        }
        self.clock = clock
        self.executor = executor
        self.nodes = nodes
        self.run(for: .seconds(5))
    }

    func run(for time: Duration) { self.executor.run(until: self.clock.now + time) }

    /// Runs the world until `body` has ended.
    func get<Result: Sendable>(_ body: @escaping @Sendable () async -> Result) -> Result? {
        let held = Shared<Result?>(nil)
        Task(executorPreference: self.executor) {
            let result = await body()
            held.withLock { $0 = result }
        }
        for _ in 0..<600 where held.withLock({ $0 == nil }) { self.run(for: .milliseconds(100)) }
        return held.withLock { $0 }
    }

    func leader() -> Node? {
        self.nodes.first { node in
            let status = self.get { await node.replicas.status() } ?? []
            return status.contains { $0.group == Self.group && $0.role == .leader }
        }
    }

    func status(of node: Node) -> NodeReplicas.GroupStatus? {
        self.get { await node.replicas.status() }?.first { $0.group == Self.group }
    }

    /// From now on the node neither hears nor is heard; nobody is told.
    func hang(_ node: Node) { self.wires.hanging.withLock { $0 = node.id } }

    func hearAgain() { self.wires.hanging.withLock { $0 = nil } }

    func command(_ register: Bytes, _ value: Bytes) -> Command {
        self.command(.write(register, value: value))
    }

    func command(_ body: RegisterCommand) -> Command {
        Command(
            kind: .reference, identity: self.clock.drawIdentity(),
            deadlineMilliseconds: self.clock.wallMilliseconds + 30_000,
            container: OneNode.container, schemaVersion: 0, principal: Principal(kind: .system),
            body: body.encoded())
    }

    /// Writes through whoever leads. Returns whether it was acknowledged.
    func write(_ register: Bytes, _ value: Bytes) -> Bool {
        guard let leader = self.leader() else { return false }
        let command = self.command(register, value)
        let deadline = self.clock.now + .seconds(20)
        let answer = self.get {
            await leader.replicas.ask(.command(command), of: Self.group, deadline: deadline)
        }
        if case .outcome(let outcome)? = answer { return outcome.verdict == .decided }
        return false
    }

    /// The value that one replica has applied, however old.
    func value(_ register: Bytes, at node: Node) -> Bytes? {
        let query = RegisterQuery.value(register).query
        return self.get { await node.replicas.peek(query, in: Self.group) }.flatMap { answer in
            answer.flatMap { try? RegisterState.value(in: $0) }
        }
    }

    /// Reads everything of a node back, once through.
    func scrub(_ node: Node) {
        _ = self.get {
            for _ in 0..<10_000 {
                guard await node.replicas.scrub(.kibibytes(16)) else { return }
                await self.executor.sleep(for: .milliseconds(5))
            }
        }
    }
}
