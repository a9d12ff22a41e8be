import StratusConsensus
import StratusDoubles
import StratusModel
import StratusStorage
import Synchronization
import Testing

@testable import StratusCluster

/// C-16, C-42: every replica learns what its node knows of itself and of the others, even one that
/// is opened later.
@Suite struct InhibitionTests {
    private static let late = (2...9).map { GroupID(UInt16($0)) }

    /// Opens groups that nobody has asked for yet, on all nodes.
    private static func openLate(_ cluster: ThreeNodes) {
        for node in cluster.nodes {
            _ = cluster.get { await node.replicas.wake(Self.late) }
        }
        cluster.run(for: .seconds(3))
    }

    private static func led(by node: ThreeNodes.Node, _ cluster: ThreeNodes) -> [GroupID] {
        (cluster.get { await node.replicas.status() } ?? [])
            .filter { $0.role == .leader }.map(\.group)
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `core audit 3: a node whose clock is wrong leads nothing that is opened meanwhile`(
        seed: UInt64
    ) throws {
        let cluster = try ThreeNodes(seed: seed)
        let wrong = cluster.nodes[2]
        wrong.world.leadMilliseconds.withLock { $0 = 3_600_000 }
        cluster.run(for: .seconds(2))
        #expect(wrong.replicas.ownState.isClockOff)
        Self.openLate(cluster)
        #expect(Self.led(by: wrong, cluster) == [], "seed \(seed)")
        let others = cluster.nodes.dropLast().flatMap { Self.led(by: $0, cluster) }
        #expect(Set(others).isSuperset(of: Self.late), "seed \(seed)")
    }

    @Test func `core audit 3: groups opened later do not send to a peer that is silent`() throws {
        let cluster = try ThreeNodes(seed: 5)
        cluster.hang(cluster.nodes[2])
        cluster.run(for: .seconds(2))
        Self.openLate(cluster)
        for group in Self.late {
            let leader = try #require(
                cluster.nodes.dropLast().first { Self.led(by: $0, cluster).contains(group) })
            let isReachable = cluster.get {
                await leader.replicas.isReachable(cluster.nodes[2].id, in: group)
            }
            #expect(isReachable == false, "\(group)")
        }
    }
}

extension NodeReplicas {
    /// Whether the leader of the group here sends to `node`.
    fileprivate func isReachable(_ node: NodeID, in group: GroupID) -> Bool? {
        self.host.replica(of: group)?.raft.isReachable(node)
    }
}
