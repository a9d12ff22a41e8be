import StratusConsensus
import StratusModel
import Testing

/// A leader that was silent may have resigned meanwhile: its followers believe in it again when it
/// says something.
@Suite struct SilentLeaderTests {
    private static let leader = NodeID(2)

    /// Voter n1 of three that follows n2 in term 2.
    private static func follower() -> RaftGroup {
        var group = RaftGroup(
            group: GroupID(1), node: NodeID(1),
            recovered: RaftGroup.Recovered(
                hardState: HardState(term: Term(2), vote: nil),
                snapshot: SnapshotIdentity(
                    index: .zero, term: .zero, time: .zero,
                    configuration: Configuration(voters: [1, 2, 3].map { NodeID($0) }),
                    digest: StateDigest(high: 0, low: 0))),
            seed: 1)
        _ = Self.said(by: &group, after: [.started, Self.word])
        return group
    }

    private static let word = RaftGroup.Event.received(
        ConsensusMessage(
            term: Term(2),
            .append(
                previous: LogPoint(index: .zero, term: .zero), entries: [], commit: .zero)),
        from: Self.leader)

    private static func said(
        by group: inout RaftGroup, after events: [RaftGroup.Event], second: Int64 = 0
    ) -> [ConsensusMessage.Body] {
        var actions: [RaftGroup.Action] = []
        for event in events {
            group.handle(
                event, at: MonotonicTime(nanoseconds: second * 1_000_000_000), into: &actions)
        }
        return actions.compactMap {
            if case .send(let message, _) = $0 { message.body } else { nil }
        }
    }

    private static func grants(_ group: inout RaftGroup) -> Bool {
        let question = ConsensusMessage(
            term: Term(3), .preVoteRequest(last: LogPoint(index: .zero, term: .zero)))
        let said = Self.said(by: &group, after: [.received(question, from: NodeID(3))])
        return said.contains(.preVoteAnswer(granted: true))
    }

    @Test
    func `seed 5176: a leader that was silent and says nothing more does not stop an election`() {
        var group = Self.follower()
        #expect(!Self.grants(&group))
        _ = Self.said(by: &group, after: [.suspected(Self.leader), .trusted(Self.leader)])
        #expect(Self.grants(&group))
    }

    @Test func `seed 5176: its follower asks for pre-votes by itself`() {
        var group = Self.follower()
        _ = Self.said(by: &group, after: [.suspected(Self.leader), .trusted(Self.leader)])
        let said = Self.said(by: &group, after: [.woke], second: 10)
        #expect(said.contains { if case .preVoteRequest = $0 { true } else { false } })
    }

    @Test func `a leader that was silent and says something is believed again`() {
        var group = Self.follower()
        _ = Self.said(
            by: &group, after: [.suspected(Self.leader), .trusted(Self.leader), Self.word])
        #expect(!Self.grants(&group))
        #expect(Self.said(by: &group, after: [.woke], second: 10).isEmpty)
    }
}
