import StratusAdmin
import StratusCluster
import StratusModel
import StratusPlacement
import StratusRuntime

/// The system partition as a node among peers uses it: it forms the cluster, says who it is, and reads
/// what administrators ask for.
struct SystemPartition: ClusterControl {
    private static let patience = Duration.seconds(5)
    private static let pause = Duration.milliseconds(250)
    private static let pauseMax = Duration.seconds(10)

    private let replicas: NodeReplicas
    private let router: ClusterRouter
    private let world: RealWorld
    private let log: Log
    private let health: Health
    private let formation: Formation
    private let own: ClusterNode

    /// Nil for a node that works alone.
    /// - Parameter directory: the identity of the data directory.
    init?(
        _ cluster: NodeCluster, world: RealWorld, log: Log, health: Health,
        settings: ConfigurationSettings, directory: UInt64
    ) {
        let peers = ClusterPeers.parse(settings)
        guard !peers.isEmpty else { return nil }
        self.replicas = cluster.replicas
        self.router = cluster.router
        self.world = world
        self.log = log
        self.health = health
        let nodes = cluster.formation.members.map { member in
            let peer = peers.first { $0.name == member.name }
            return ClusterNode(
                id: member.node, name: member.name,
                address: peer.map { "\($0.host):\($0.port)" } ?? member.name)
        }
        self.formation = Formation(
            cluster: cluster.formation.cluster, partitionCount: cluster.formation.partitionCount,
            replicaCount: ClusterFormation.replicaCount, nodes: nodes)
        guard var own = nodes.first(where: { $0.id == cluster.formation.node }) else {
            preconditionFailure("a node that is not in its own cluster")
        }
        own.directory = max(1, directory)
        own.incarnation = NodeIncarnation(world.random())
        self.own = own
    }

    var node: NodeID { self.own.id }

    func leader(of group: GroupID) -> NodeID? { self.replicas.leader(of: group) }

    /// Says what the cluster is made of, then who this node is, until both are heard. Every founder says
    /// it at every start: the first one forms the cluster, the others hear that it is formed.
    func takePart() async {
        for command in [SystemCommand.form(self.formation), .announce(self.own)] {
            var pause = Self.pause
            // The same identity every time: however often it arrives, it is applied once.
            let deadline = self.world.wallMilliseconds + 20 * 60 * 1_000
            let envelope = command.enveloped(
                identity: self.world.drawIdentity(), deadlineMilliseconds: deadline,
                principal: Principal(kind: .system))
            while !Task.isCancelled {
                if let outcome = await self.submit(envelope) {
                    if case .refused(let refusal) = outcome { self.refused(refusal) }
                    break
                }
                // Nobody leads: too few peers are here yet.
                try? await Task.sleep(for: pause)
                pause = min(pause * 2, Self.pauseMax)
                if self.world.wallMilliseconds > deadline - 60_000 { return await self.takePart() }
            }
        }
    }

    private func submit(_ command: Command) async -> SystemOutcome? {
        do throws(RouteError) {
            let outcome = try await self.router.submit(
                command, to: .system, deadline: self.world.now + Self.patience)
            return try? SystemOutcome(decoding: outcome.body)
        } catch { return nil }
    }

    private func refused(_ refusal: SystemRefusal) {
        self.log.error(
            "the cluster refuses this node",
            ["node": .describing(self.own.id), "reason": .text(refusal.explanation)])
        self.health.raise("cluster", refusal.explanation)
    }

    func view() async throws(NodeControlFailure) -> ClusterView? {
        let query = Query(kind: .system, body: SystemQuery.view.encoded())
        let answer: QueryAnswer
        do throws(RouteError) {
            answer = try await self.router.read(
                query, at: .system, deadline: self.world.now + Self.patience)
        } catch { throw .unavailable }
        guard case .view(let view)? = try? SystemAnswer(decoding: answer.body) else {
            throw .failed("the system partition's answer cannot be read")
        }
        return view
    }
}
