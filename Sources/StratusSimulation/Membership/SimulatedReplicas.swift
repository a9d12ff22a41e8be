import StratusCluster
import StratusConsensus
import StratusDoubles
import StratusModel
import StratusPlacement
import StratusStorage

/// A simulated process' replicas as the real shells of the membership use them.
struct SimulatedReplicas: MemberReplicas {
    let life: ProcessLife

    var node: NodeID { self.life.node.id }

    func leader(of group: GroupID) -> NodeID? {
        self.life.isGone ? nil : self.life.node.host?.replica(of: group)?.raft.leader
    }

    func ask(_ body: PeerRequest.Body, of group: GroupID, deadline: MonotonicTime) async
        -> PeerResponse.Answer
    {
        await self.life.ask(body, of: group, deadline: deadline)
    }

    func peek(_ query: Query, in group: GroupID) async -> QueryAnswer? {
        self.life.isGone ? nil : self.life.node.host?.peek(query, in: group)
    }

    func observations() async -> [GroupObservation] {
        self.life.isGone ? [] : self.life.node.host?.observations() ?? []
    }

    func wake(_ groups: [GroupID]) async {
        for group in groups where !self.life.isGone {
            _ = self.life.simulation.isOpen(group, on: self.life.node)
        }
    }

    func configure(
        _ group: GroupID, at index: LogIndex, voters: [NodeID], learners: [NodeID]
    ) async -> Bool {
        guard !self.life.isGone else { return false }
        return self.life.simulation.configure(
            group, at: index, voters: voters, learners: learners, on: self.life.node)
    }

    func transfer(_ group: GroupID, to node: NodeID) async -> Bool {
        guard !self.life.isGone else { return false }
        var isLed = false
        self.life.simulation.enter(self.life.node, group) { host, now, effects in
            isLed = host.transfer(group, to: node, at: now, into: &effects)
        }
        return isLed
    }

    func setPeers(_ nodes: [NodeID]) async {
        guard !self.life.isGone else { return }
        self.life.peers = nodes
        self.life.simulation.enter(self.life.node) { host, now, effects in
            host.setPeers(nodes, at: now, into: &effects)
        }
    }

    func retire(keeping keeps: @Sendable (GroupID) -> Bool) async -> [GroupID] {
        guard !self.life.isGone else { return [] }
        return self.life.simulation.retire(on: self.life.node, keeping: keeps)
    }

    func nodeRemains() async -> NodeRemains { NodeRemains() }

    func discard(_ groups: [GroupID]) async throws(StoreError) {
        var waitCount = 0
        while groups.contains(where: { self.life.node.log?.hasUnsyncedCut(of: $0) == true }) {
            waitCount += 1
            guard waitCount < 2_000, !self.life.isGone else { return }
            await self.life.sleep(for: .milliseconds(5))
        }
        // A real node removes files on another thread: meanwhile everything else goes on.
        await self.life.sleep(for: self.life.simulation.removalDelay())
        guard !self.life.isGone else { return }
        try PartitionRemoval.remove(groups, in: "partitions", from: self.life.node.world.files)
    }
}

/// The simulated network as the real router uses it.
final class SimulatedSender: PeerSender {
    private let life: ProcessLife

    init(_ life: ProcessLife) { self.life = life }

    func send(_ message: PeerMessage, to node: NodeID) -> Bool {
        guard !self.life.isGone else { return false }
        return self.life.simulation.send(message, from: self.life.node, to: node)
    }
}
