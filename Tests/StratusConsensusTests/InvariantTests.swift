import StratusModel
import Testing

@testable import StratusConsensus

/// A replica stops before it carries out what a bug of its own asks for.
@Suite struct InvariantTests {
    private static let node = NodeID(1)

    /// The leader of three, with three entries of which two are committed.
    private static func leader() -> RaftGroup {
        var group = RaftGroup(
            group: GroupID(1), node: self.node,
            recovered: RaftGroup.Recovered(
                hardState: HardState(term: Term(3), vote: self.node),
                snapshot: SnapshotIdentity(
                    index: .zero, term: .zero,
                    configuration: Configuration(voters: [self.node, NodeID(2), NodeID(3)]),
                    digest: .empty),
                entries: (1...3).map {
                    Entry(
                        index: LogIndex($0), term: Term(3),
                        time: HybridTime(milliseconds: Int64($0)), kind: .command, payload: [1])
                }),
            seed: 1, bugs: PlantedBugs())
        group.role = .leader
        group.leader = self.node
        group.termStart = LogIndex(1)
        group.commit = LogIndex(2)
        group.handed = LogIndex(2)
        group.peers = [NodeID(2), NodeID(3)].map {
            var peer = Progress(node: $0, next: LogIndex(3))
            peer.match = LogIndex(2)
            peer.received = LogIndex(2)
            return peer
        }
        return group
    }

    private static let ways: [(sentence: String, breaks: @Sendable (inout RaftGroup) -> Void)] = [
        ("a term falls", { $0.hardState.term = Term(2) }),
        ("a vote is given twice in one term", { $0.hardState.vote = NodeID(2) }),
        (
            "a term is durable that nobody entered",
            { $0.durableHardState.term = Term(4) }
        ),
        ("the commit index falls", { $0.commit = LogIndex(1) }),
        ("an entry is committed that is not here", { $0.commit = LogIndex(4) }),
        ("an entry is durable that is not here", { $0.durable = LogIndex(4) }),
        ("an entry agrees that is not here", { $0.verified = LogIndex(4) }),
        ("an entry is applied that is not committed", { $0.handed = LogIndex(3) }),
        ("an entry is applied that is not durable", { $0.durable = LogIndex(1) }),
        ("a leader follows another node", { $0.leader = NodeID(2) }),
        ("a leader has no entry of its term", { $0.termStart = LogIndex(4) }),
        ("a peer is sent what it has on stable storage", { $0.peers[0].next = LogIndex(2) }),
        ("a peer has synced what it has not received", { $0.peers[1].received = LogIndex(1) }),
        ("a peer has what the leader never had", { $0.peers[1].received = LogIndex(4) }),
    ]

    @Test func `each broken invariant is told by its sentence`() {
        for way in Self.ways {
            var group = Self.leader()
            let before = RaftGroup.Before(group)
            #expect(group.broken(since: before) == nil, "before: \(way.sentence)")
            way.breaks(&group)
            #expect(group.broken(since: before).map { "\($0)" } == way.sentence)
        }
    }

    @Test func `a replica that breaks one stops`() async {
        await #expect(processExitsWith: .failure) {
            var group = Self.leader()
            let before = RaftGroup.Before(group)
            group.commit = LogIndex(1)
            group.requireInvariants(since: before)
        }
    }
}
