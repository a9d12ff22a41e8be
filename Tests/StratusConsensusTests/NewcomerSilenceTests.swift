import StratusConsensus
import StratusModel
import Testing

/// A replica that begins anew on a node that had one before must not undo the earlier one's
/// promises.
@Suite struct NewcomerSilenceTests {
    private static let fence = LogIndex(5)

    /// Voter n1 of three by the configuration it was once told, with entries 1 to `last`, none
    /// known to be committed.
    private static func replica(last: UInt64, silentThrough: LogIndex) -> RaftGroup {
        let configuration = Configuration(voters: [NodeID(1), NodeID(2), NodeID(3)])
        var recovered = RaftGroup.Recovered(
            hardState: HardState(term: Term(2), vote: nil),
            snapshot: SnapshotIdentity(
                index: .zero, term: .zero, configuration: configuration, digest: .empty),
            entries: (1...last).map {
                Entry(
                    index: LogIndex($0), term: Term(2),
                    time: HybridTime(milliseconds: Int64($0)), kind: .noop, payload: [])
            })
        recovered.silentThrough = silentThrough
        return RaftGroup(group: GroupID(1), node: NodeID(1), recovered: recovered, seed: 1)
    }

    private static func votes(_ raft: inout RaftGroup, term: UInt64, last: UInt64) -> Bool {
        var actions: [RaftGroup.Action] = []
        let now = MonotonicTime(nanoseconds: 1)
        raft.handle(.started, at: now, into: &actions)
        raft.handle(
            .received(
                ConsensusMessage(
                    term: Term(term),
                    .voteRequest(
                        last: LogPoint(index: LogIndex(last), term: Term(2)), isTransfer: false)),
                from: NodeID(2)), at: now, into: &actions)
        return raft.hardState.vote == NodeID(2)
    }

    @Test func `M-07 M-08 a replica that began anew votes for nobody before it is past its fence`()
    {
        // The candidate knows no more than this replica, whose predecessor knew more.
        var anew = Self.replica(last: 3, silentThrough: Self.fence)
        #expect(!Self.votes(&anew, term: 3, last: 3))
        #expect(anew.term == Term(3), "the term counts all the same")
        var ordinary = Self.replica(last: 3, silentThrough: .zero)
        #expect(Self.votes(&ordinary, term: 3, last: 3))
    }

    @Test func `M-08 it does not stand for election either, whatever its log once called it`() {
        for silentThrough in [Self.fence, .zero] {
            var raft = Self.replica(last: 3, silentThrough: silentThrough)
            var actions: [RaftGroup.Action] = []
            raft.handle(.started, at: MonotonicTime(nanoseconds: 1), into: &actions)
            for second in 1...10 {
                raft.handle(
                    .woke, at: MonotonicTime(nanoseconds: Int64(second) * 1_000_000_000),
                    into: &actions)
            }
            let asks = actions.contains { action in
                if case .send(let message, _) = action, case .preVoteRequest = message.body {
                    return true
                }
                return false
            }
            #expect(asks == (silentThrough == .zero))
        }
    }

    @Test func `once it knows that the fence is committed it is like any other`() {
        var raft = Self.replica(last: 6, silentThrough: Self.fence)
        #expect(!Self.votes(&raft, term: 3, last: 6), "that it holds the entries is not enough")
        var actions: [RaftGroup.Action] = []
        raft = Self.replica(last: 6, silentThrough: Self.fence)
        let now = MonotonicTime(nanoseconds: 1)
        raft.handle(.started, at: now, into: &actions)
        raft.handle(
            .received(
                ConsensusMessage(
                    term: Term(3),
                    .append(
                        previous: LogPoint(index: LogIndex(6), term: Term(2)), entries: [],
                        commit: LogIndex(5))), from: NodeID(3)), at: now, into: &actions)
        #expect(raft.commit == Self.fence)
        raft.handle(.suspected(NodeID(3)), at: now, into: &actions)
        raft.handle(
            .received(
                ConsensusMessage(
                    term: Term(4),
                    .voteRequest(
                        last: LogPoint(index: LogIndex(6), term: Term(2)), isTransfer: false)),
                from: NodeID(2)), at: now, into: &actions)
        #expect(raft.hardState.vote == NodeID(2))
    }
}
