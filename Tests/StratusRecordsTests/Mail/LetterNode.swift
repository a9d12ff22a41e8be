import StratusCluster
import StratusDoubles
import StratusModel
import StratusRecords
import StratusSQLite
import StratusStorage
import Synchronization

/// A node whose partitions write to each other: the real log, consensus, rows, router and courier;
/// only the clock, the randomness and the disk are simulated. One start of the process; a restart
/// is another value over the same world.
final class LetterNode {
    static let groups = [GroupID(1), GroupID(2), GroupID(3)]

    let world: SimulatedWorld
    let executor: SimulatedExecutor
    let replicas: NodeReplicas
    let router: ClusterRouter
    private var carrying: Task<Void, Never>?

    init(
        over world: SimulatedWorld, seed: UInt64, limits: Limits = Limits(), carries: Bool = true,
        openPartitionCountMax: Int = 64
    ) throws {
        let executor = SimulatedExecutor(world: world, seed: seed)
        let inbox = ReplicaInbox()
        var logLimits = SegmentedLog.Limits()
        logLimits.segmentSize = .kibibytes(64)
        let log = try SegmentedLog.open(
            in: "log", of: world, limits: logLimits, reportingTo: inbox)
        log.start(on: executor)
        let system = FileSystem(world.files)
        let sleep: @Sendable (MonotonicTime) async -> Void = { time in
            await executor.sleep(for: max(.zero, time - world.now))
        }
        var setup = NodeReplicas.Setup(
            node: NodeID(1), incarnation: NodeIncarnation(world.random()), peers: [],
            openPartition: { (group) throws(StoreError) in
                try PartitionStore(LetterState(), group: group, in: "partitions", of: system)
            },
            firstConfiguration: { _ in Configuration(voters: [NodeID(1)]) }, sleep: sleep)
        setup.limits = limits
        setup.openPartitionCountMax = openPartitionCountMax
        let replicas = NodeReplicas(
            setup, log: log, inbox: inbox, sender: NoPeers(), in: world, on: executor,
            checkpointsOn: executor)
        let nodes = [NodeID(1)]
        self.router = ClusterRouter(
            replicas, sender: NoPeers(), in: world,
            place: { _ in PlacedPartition(group: GroupID(1), replicas: nodes, epoch: 1) },
            placeOfGroup: { PlacedPartition(group: $0, replicas: nodes, epoch: 1) }, sleep: sleep)
        self.world = world
        self.executor = executor
        self.replicas = replicas
        let carrier = MailCarrier(
            replicas: replicas, partitions: PartitionClient(self.router, in: world), in: world,
            sleep: sleep)
        Task(executorPreference: executor) {
            await replicas.start()
            // Like a node's jobs, this opens the partitions on the disk, so that their outboxes are
            // looked at.
            while await replicas.openNext() {}
        }
        if carries {
            self.carrying = Task(executorPreference: executor) { await carrier.run() }
        }
    }

    /// Lets time pass.
    func run(for duration: Duration) { self.executor.run(until: self.world.now + duration) }

    /// Lets go of everything that sleeps.
    func stop() {
        self.carrying?.cancel()
        let router = self.router
        let replicas = self.replicas
        Task(executorPreference: self.executor) {
            await replicas.stop()
            router.stop()
        }
        self.run(for: .seconds(30))
    }

    /// Submits and runs until an answer arrives or the command is given up. Nil: its outcome is
    /// unknown.
    func submit(_ wish: LetterState.Wish, to group: GroupID) -> Bytes? {
        let held = Mutex<Bytes?>(nil)
        let command = LetterState.command(
            wish, self.world.drawIdentity(), deadline: self.world.wallMilliseconds + 5_000)
        let (router, deadline) = (self.router, self.world.now + .seconds(5))
        Task(executorPreference: self.executor) {
            let outcome = try? await router.submit(command, to: .group(group), deadline: deadline)
            guard outcome?.verdict == .decided else { return }
            held.withLock { $0 = outcome?.body }
        }
        self.run(for: .milliseconds(200))
        return held.withLock { $0 }
    }

    /// The letters that a group has posted to another, or received from it; nil if it cannot be
    /// asked.
    func lines(_ kind: UInt8, of group: GroupID, with other: GroupID) -> [String]? {
        let held = Mutex<[String]?>(nil)
        let (router, deadline) = (self.router, self.world.now + .seconds(5))
        Task(executorPreference: self.executor) {
            guard
                let answer = try? await router.read(
                    Query(kind: .reference, body: [kind, UInt8(other.raw)]), at: .group(group),
                    deadline: deadline)
            else { return }
            let text = String(decoding: answer.body, as: UTF8.self)
            held.withLock { $0 = text.split(separator: "\n").map(String.init) }
        }
        self.run(for: .milliseconds(200))
        return held.withLock { $0 }
    }
}
