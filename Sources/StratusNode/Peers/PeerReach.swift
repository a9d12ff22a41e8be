import StratusModel
import StratusRuntime
import Synchronization

/// Whether this node reaches a majority of its cluster, itself included. A node that does not can
/// promise nothing and is not ready, so load balancers send its clients elsewhere.
///
/// Nodes that hold no replica do not count: nothing waits for one that has just joined.
final class PeerReach: Sendable {
    private let health: Health
    private let peers: @Sendable () -> Set<NodeID>
    private let isOpen = Mutex<@Sendable (NodeID) -> Bool>({ _ in false })

    /// - Parameter peers: the others that hold replicas.
    init(_ health: Health, peers: @escaping @Sendable () -> Set<NodeID>) {
        self.health = health
        self.peers = peers
    }

    /// - Parameter isOpen: whether a peer can be sent to now.
    func begin(_ isOpen: @escaping @Sendable (NodeID) -> Bool) {
        self.isOpen.withLock { $0 = isOpen }
        self.look()
    }

    /// After a link or the members changed.
    func look() {
        let isOpen = self.isOpen.withLock { $0 }
        let peers = self.peers()
        let nodeCount = peers.count + 1
        let reached = peers.count { isOpen($0) } + 1
        if reached * 2 > nodeCount {
            self.health.clear("peers")
        } else {
            self.health.raise(
                "peers", "reaches \(reached) of \(nodeCount) nodes, which is not a majority")
        }
    }
}
