import StratusCluster
import StratusConsensus
import StratusDoubles
import StratusModel
import StratusPlacement
import StratusStorage
import Testing

/// What replicas tell the keeper of copies, and what they wait to hear from it.
@Suite struct BodyFeedTests {
    /// One for all three nodes.
    private struct Heard {
        var hasRoom = true
        /// The nodes whose keepers were asked what they hold.
        var asked: Set<NodeID> = []
        /// The last entry that was said to be durable, on any node, with and without room.
        var durable = LogIndex.zero
    }

    private static func nodes(seed: UInt64, _ heard: Shared<Heard>) throws -> ThreeNodes {
        try ThreeNodes(seed: seed) { setup in
            let node = setup.node
            setup.tuning.awaitsCopies = true
            setup.bodies = BodyFeed(
                hasRoom: { heard.withLock { $0.hasRoom } }, opened: { _, _, _ in },
                changed: { _, _, _, _ in },
                durable: { _, index, _ in
                    heard.withLock { $0.durable = max($0.durable, index) }
                }, page: { _, _, _, _ in },
                wantsHeld: { _ in heard.withLock { _ = $0.asked.insert(node) } },
                removed: { _ in })
        }
    }

    /// The configuration as the leader has it.
    private static func configuration(_ nodes: ThreeNodes) throws -> GroupConfiguration {
        let leader = try #require(nodes.leader())
        let seen = try #require(nodes.get { await leader.replicas.observations() }?.first)
        return GroupConfiguration(at: seen.configurationIndex, isJoint: seen.configuration.isJoint)
    }

    private struct GroupConfiguration {
        var at: LogIndex
        var isJoint: Bool
    }

    /// Begins to exchange node 3 for nobody: the members are to be 1 and 2, or 2 and 3.
    private static func shrink(_ nodes: ThreeNodes) throws {
        let leader = try #require(nodes.leader())
        let index = try Self.configuration(nodes).at
        let other = leader.id == NodeID(3) ? NodeID(2) : NodeID(3)
        let voters = [leader.id, other].sorted()
        let isProposed = nodes.get {
            await leader.replicas.configure(
                ThreeNodes.group, at: index, voters: voters, learners: [])
        }
        #expect(isProposed == true)
        nodes.run(for: .seconds(5))
    }

    @Test func `a change of members waits until its voters say what they hold`()
        throws
    {
        let heard = Shared(Heard())
        let nodes = try Self.nodes(seed: 31, heard)
        #expect(nodes.write(Bytes("r".utf8), Bytes("one".utf8)))
        #expect(heard.withLock { $0.asked } == [])
        try Self.shrink(nodes)
        #expect(try Self.configuration(nodes).isJoint)
        // The leader's own keeper was asked, and that of the other incoming voter.
        #expect(heard.withLock { $0.asked.count } == 2)
        // Writes go on meanwhile.
        #expect(nodes.write(Bytes("r".utf8), Bytes("two".utf8)))
        for node in nodes.nodes where heard.withLock({ $0.asked.contains(node.id) }) {
            node.replicas.copiesHeld(ThreeNodes.group, through: LogIndex(1))
        }
        nodes.run(for: .seconds(5))
        #expect(try Self.configuration(nodes).isJoint)
        for node in nodes.nodes where heard.withLock({ $0.asked.contains(node.id) }) {
            let told = try #require(node.replicas.toldOfBodies(in: ThreeNodes.group))
            node.replicas.copiesHeld(ThreeNodes.group, through: told.index)
        }
        nodes.run(for: .seconds(5))
        #expect(try !Self.configuration(nodes).isJoint)
    }

    @Test func `what the keeper had no room for is told later, although nothing more happens`()
        throws
    {
        let heard = Shared(Heard())
        let nodes = try Self.nodes(seed: 33, heard)
        heard.withLock { $0.hasRoom = false }
        #expect(nodes.write(Bytes("r".utf8), Bytes("one".utf8)))
        // Checkpoints end meanwhile.
        nodes.run(for: .seconds(20))
        let leader = try #require(nodes.leader())
        let applied = try #require(nodes.status(of: leader)).applied
        let before = try #require(leader.replicas.toldOfBodies(in: ThreeNodes.group))
        #expect(before.index < applied)
        // What it has not heard is not durable for it: it would remove what entries named.
        #expect(heard.withLock { $0.durable } < applied)
        heard.withLock { $0.hasRoom = true }
        nodes.run(for: .seconds(5))
        let after = try #require(leader.replicas.toldOfBodies(in: ThreeNodes.group))
        #expect(after.index == applied)
    }
}
