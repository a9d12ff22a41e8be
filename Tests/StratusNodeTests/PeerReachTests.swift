import StratusRuntime
import Synchronization
import Testing

@testable import StratusNode

/// A node without a majority is not ready.
@Suite struct PeerReachTests {
    private final class Counts: Sendable {
        let open = Mutex(0)
        let peers = Mutex(2)
    }

    @Test func `readiness follows the majority, as links and members come and go`() {
        let counts = Counts()
        let health = Health()
        health.clear("starting")
        let reach = PeerReach(health) { counts.peers.withLock { $0 } }
        reach.begin { counts.open.withLock { $0 } }
        #expect(
            health.reasons.map(\.text) == ["reaches 1 of 3 nodes, which is not a majority"])
        counts.open.withLock { $0 = 1 }
        reach.look()
        #expect(health.isReady)
        // Two nodes have joined, and this one reaches none of them yet.
        counts.peers.withLock { $0 = 4 }
        reach.look()
        #expect(!health.isReady)
        counts.open.withLock { $0 = 2 }
        reach.look()
        #expect(health.isReady)
        counts.open.withLock { $0 = 1 }
        reach.look()
        #expect(
            health.reasons.map(\.text) == ["reaches 2 of 5 nodes, which is not a majority"])
    }

    @Test func `a node alone is its own majority`() {
        let health = Health()
        health.clear("starting")
        PeerReach(health) { 0 }.begin { 0 }
        #expect(health.isReady)
    }
}
