import StratusCluster
import StratusDoubles
import StratusModel
import StratusPlacement

/// The parts that a node's process runs for the cluster's membership, as a real one does: the view
/// on its disk, the router of requests, the follower of views, the keeper of moves, and the answers
/// to other nodes' questions.
final class ClusterShells: ProcessPart, Sendable {
    let life: ProcessLife
    let directory: ClusterDirectory
    private let router: ClusterRouter
    let partitions: PartitionClient
    private let sender: SimulatedSender
    private let follower: ClusterFollower
    private let keeper: MembershipKeeper
    private let questions: NodeQuestions

    /// - Parameter founding: what the cluster was formed of; nil on a node that came later.
    init(
        _ life: ProcessLife, founding: ClusterView?, tuning: MembershipKeeper.Tuning,
        bugs: PlantedBugs
    ) throws(ClusterDirectory.Refusal) {
        let world = life.node.world
        let executor = life.executor
        let directory = try ClusterDirectory(
            life.node.id, founding: founding, in: world, bugs: bugs)
        let replicas = SimulatedReplicas(life: life)
        self.life = life
        self.directory = directory
        self.sender = SimulatedSender(life)
        self.router = ClusterRouter(
            replicas, sender: self.sender, in: world, bugs: bugs, on: executor,
            place: { directory.place(of: $0) }, placeOfGroup: { directory.place(of: $0) },
            sleep: { await life.sleep(until: $0) })
        self.partitions = PartitionClient(self.router, in: world)
        var events = ClusterFollower.Events()
        events.changed = { view in life.simulation.follows(view, life.node) }
        events.trouble = { text in life.simulation.note("\(life.node.id) \(text)") }
        self.follower = ClusterFollower(
            directory, replicas: replicas, router: self.router, events: events, on: executor,
            sleep: { await life.sleep(for: $0) })
        self.keeper = MembershipKeeper(
            directory, replicas: replicas, router: self.router, follower: self.follower, in: world,
            tuning: tuning, bugs: bugs,
            log: { text in life.simulation.note("\(life.node.id) keeper: \(text)") },
            sleep: { await life.sleep(for: $0) })
        self.questions = NodeQuestions(
            directory, replicas: replicas, follower: self.follower, on: executor,
            health: { NodeHealth() })
        life.peers = directory.peers.map(\.node)
    }

    /// - Parameters:
    ///   - recovery: what the node says first, if its cluster was recovered.
    ///   - formation: what a founder says at every start.
    func start(
        recovering recovery: ClusterRecovery?, forming formation: Formation?, as own: ClusterNode
    ) {
        let (follower, keeper) = (self.follower, self.keeper)
        self.life.keepDoing { await follower.run() }
        self.life.keepDoing { await keeper.run() }
        self.life.keepDoing { await self.takePart(recovery, formation, own) }
    }

    func end() {
        self.life.end()
        self.router.stop()
    }

    /// The link to another node broke.
    func lost(_ node: NodeID) { self.router.lost(node) }

    func hear(_ response: PeerResponse, from: NodeID) {
        self.router.receive(response, from: from)
    }

    /// Says what the cluster is made of, then who this node is, until both are heard.
    private func takePart(
        _ recovery: ClusterRecovery?, _ formation: Formation?, _ own: ClusterNode
    ) async {
        let recovering = recovery.map { [SystemCommand.recover($0)] } ?? []
        let forming = formation.map { [SystemCommand.form($0)] } ?? []
        for command in recovering + forming + [.announce(own)] {
            while !Task.isCancelled, await self.submit(command, as: .system) == nil {
                await self.life.sleep(for: .milliseconds(250))
            }
        }
    }

    /// - Returns: nil when nobody knows what became of it.
    func submit(_ command: SystemCommand, as kind: Principal.Kind) async -> SystemOutcome? {
        try? await self.partitions.submit(
            command, at: .system, as: Caller(Principal(kind: kind)), within: .seconds(5))
    }

    func readView() async -> ClusterView? {
        let answer = try? await self.partitions.ask(
            SystemQuery.view, at: .system, as: .system(), within: .seconds(5))
        guard case .view(let view)? = answer else { return nil }
        return view
    }

    /// A message of another node that is no replica's.
    func take(_ question: Bytes, _ number: UInt64, from node: NodeID) {
        let (questions, sender) = (self.questions, self.sender)
        self.life.spawn {
            let answer = await questions.answer(question)
            _ = sender.send(.response(PeerResponse(number: number, answer: answer)), to: node)
        }
    }
}
