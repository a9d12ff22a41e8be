import StratusRuntime
import Synchronization

/// Whether this node reaches a majority of its cluster, itself included. A node that does not can
/// promise nothing and is not ready, so load balancers send its clients elsewhere.
final class PeerReach: Sendable {
    private let health: Health
    private let peerCount: @Sendable () -> Int
    private let openCount = Mutex<@Sendable () -> Int>({ 0 })

    init(_ health: Health, peerCount: @escaping @Sendable () -> Int) {
        self.health = health
        self.peerCount = peerCount
    }

    /// - Parameter openCount: peers that can be sent to now.
    func begin(_ openCount: @escaping @Sendable () -> Int) {
        self.openCount.withLock { $0 = openCount }
        self.look()
    }

    /// After a link or the members changed.
    func look() {
        let nodeCount = self.peerCount() + 1
        let reached = self.openCount.withLock { $0 }() + 1
        if reached * 2 > nodeCount {
            self.health.clear("peers")
        } else {
            self.health.raise(
                "peers", "reaches \(reached) of \(nodeCount) nodes, which is not a majority")
        }
    }
}
