import StratusCluster
import StratusDoubles
import StratusModel
import Testing

/// A node's report about itself while something keeps it from leading.
@Suite struct OwnStateTests {
    @Test
    func `O-07 a wrong clock is told once, with how wrong it is, and told again when it is right`()
        throws
    {
        let news = Shared<[String]>([])
        let node = try OneNode(seed: 1) {
            $0.peers = [NodeID(2), NodeID(3)]
            $0.events.clockChanged = { isOff, lead in
                news.withLock { $0.append("\(isOff) \(lead)") }
            }
        }
        var sequence: UInt64 = 0
        /// A second of beats of both others, whose clocks are so far from this node's.
        func hear(_ offset: Int64) {
            for _ in 1...12 {
                sequence += 1
                for (peer, incarnation) in [(NodeID(2), 20), (NodeID(3), 30)] as [(NodeID, UInt64)]
                {
                    node.inbox.receive(
                        .heartbeat(
                            NodeHeartbeat(
                                incarnation: NodeIncarnation(incarnation), sequence: sequence,
                                unsyncedMilliseconds: 0,
                                wallMilliseconds: node.world.wallMilliseconds + offset,
                                declinesLeadership: false, resigned: [])), from: peer, .none)
                }
                node.executor.run(until: node.world.now + .milliseconds(100))
            }
        }
        hear(0)
        #expect(news.withLock { $0 } == [])
        hear(-5_000)
        #expect(news.withLock { $0 } == ["true 5000"])
        #expect(node.replicas.ownState.isClockOff)
        #expect(node.replicas.ownState.clockLeadMilliseconds == 5_000)
        hear(400)
        #expect(news.withLock { $0 } == ["true 5000", "false -400"])
        #expect(!node.replicas.ownState.isClockOff)
    }
}
