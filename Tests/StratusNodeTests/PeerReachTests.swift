import StratusModel
import StratusRuntime
import Synchronization
import Testing

@testable import StratusNode

/// A node without a majority is not ready.
@Suite struct PeerReachTests {
    private final class Cluster: Sendable {
        let open = Mutex<Set<NodeID>>([])
        let peers = Mutex(Cluster.nodes(2...3))

        static func nodes(_ numbers: ClosedRange<UInt32>) -> Set<NodeID> {
            Set(numbers.map { NodeID($0) })
        }
    }

    @Test func `readiness follows the majority, as links and members come and go`() {
        let cluster = Cluster()
        let health = Health()
        health.clear("starting")
        let reach = PeerReach(health) { cluster.peers.withLock { $0 } }
        reach.begin { node in cluster.open.withLock { $0.contains(node) } }
        #expect(
            health.reasons.map(\.text) == ["reaches 1 of 3 nodes, which is not a majority"])
        cluster.open.withLock { $0 = Cluster.nodes(3...3) }
        reach.look()
        #expect(health.isReady)
        // Two nodes have replicas now, and this one reaches none of them yet.
        cluster.peers.withLock { $0 = Cluster.nodes(2...5) }
        reach.look()
        #expect(!health.isReady)
        cluster.open.withLock { $0 = Cluster.nodes(3...4) }
        reach.look()
        #expect(health.isReady)
        cluster.open.withLock { $0 = Cluster.nodes(4...4) }
        reach.look()
        #expect(
            health.reasons.map(\.text) == ["reaches 2 of 5 nodes, which is not a majority"])
    }

    @Test func `a node alone is its own majority`() {
        let health = Health()
        health.clear("starting")
        PeerReach(health) { [] }.begin { _ in false }
        #expect(health.isReady)
    }
}
