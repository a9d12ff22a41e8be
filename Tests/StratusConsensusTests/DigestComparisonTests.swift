import StratusConsensus
import StratusModel
import Testing

/// Core audit 11: who is wrong where replicas differ, and what it may still do.
@Suite struct DigestComparisonTests {
    private static let configuration = Configuration(
        voters: [NodeID(1), NodeID(2), NodeID(3)], learners: [NodeID(4)])
    private static let good = StateDigest(high: 1, low: 1)
    private static let bad = StateDigest(high: 2, low: 2)
    private static let at = LogIndex(1_024)

    private struct Bench {
        var comparison = DigestComparison()
        let node: NodeID
        var configuration = DigestComparisonTests.configuration

        mutating func applies(_ digest: StateDigest, at index: LogIndex = at)
            -> [DigestComparison.Finding]
        {
            self.comparison.applied(index, digest, as: self.node, in: self.configuration)
        }

        mutating func hears(_ digest: StateDigest, from node: UInt32, at index: LogIndex = at)
            -> [DigestComparison.Finding]
        {
            self.comparison.heard(
                index, digest, from: NodeID(node), as: self.node, in: self.configuration)
        }
    }

    @Test func `equal digests say nothing, in whatever order they come`() {
        var bench = Bench(node: NodeID(1))
        #expect(bench.hears(Self.good, from: 2) == [])
        #expect(bench.applies(Self.good) == [])
        #expect(bench.hears(Self.good, from: 3) == [])
        #expect(bench.comparison.undecided == [])
    }

    @Test func `the one that differs from a majority is wrong, whoever leads`() {
        var wrong = Bench(node: NodeID(1))
        #expect(wrong.applies(Self.bad) == [])
        #expect(wrong.hears(Self.good, from: 2) == [.memberDiffers(NodeID(2), at: Self.at)])
        #expect(wrong.comparison.undecided == [NodeID(2)])
        #expect(
            wrong.hears(Self.good, from: 3) == [
                .memberDiffers(NodeID(3), at: Self.at), .ownDiffers(at: Self.at),
            ])
        #expect(wrong.comparison.undecided == [])
        // One that is late compares with what it has heard.
        var late = Bench(node: NodeID(1))
        _ = late.hears(Self.good, from: 2)
        _ = late.hears(Self.good, from: 3)
        #expect(late.applies(Self.bad).contains(.ownDiffers(at: Self.at)))
        // The others say so once, and go on.
        var right = Bench(node: NodeID(2))
        _ = right.applies(Self.good)
        #expect(right.hears(Self.bad, from: 1) == [.memberDiffers(NodeID(1), at: Self.at)])
        #expect(right.hears(Self.good, from: 3) == [])
        _ = right.applies(Self.good, at: LogIndex(2_048))
        #expect(right.hears(Self.bad, from: 1, at: LogIndex(2_048)) == [])
        #expect(right.comparison.undecided == [NodeID(1)])
        #expect(right.hears(Self.good, from: 3, at: LogIndex(2_048)) == [])
        #expect(right.comparison.undecided == [])
    }

    @Test func `where no majority agrees nobody is wrong, and a learner decides nothing`() {
        var pair = Bench(
            node: NodeID(1), configuration: Configuration(voters: [NodeID(1), NodeID(2)]))
        _ = pair.applies(Self.good)
        #expect(pair.hears(Self.bad, from: 2) == [.memberDiffers(NodeID(2), at: Self.at)])
        #expect(pair.comparison.undecided == [NodeID(2)])
        var bench = Bench(node: NodeID(1))
        _ = bench.applies(Self.good)
        _ = bench.hears(Self.bad, from: 2)
        #expect(bench.hears(Self.bad, from: 4) == [.memberDiffers(NodeID(4), at: Self.at)])
        // It is itself one that can be wrong.
        var learner = Bench(node: NodeID(4))
        _ = learner.applies(Self.bad)
        _ = learner.hears(Self.good, from: 1)
        #expect(learner.hears(Self.good, from: 2).contains(.ownDiffers(at: Self.at)))
    }

    @Test func `strangers are not listened to, and what is remembered is bounded`() {
        var bench = Bench(node: NodeID(1))
        #expect(bench.applies(Self.good) == [])
        #expect(bench.hears(Self.bad, from: 9) == [])
        for index in 2...100 as ClosedRange<UInt64> {
            _ = bench.applies(Self.good, at: LogIndex(index * 1_024))
        }
        #expect(bench.hears(Self.bad, from: 2) == [], "it is long forgotten")
    }

    @Test func `a replica that differs neither leads nor votes until a snapshot has come`() {
        let configuration = Configuration(voters: [NodeID(1), NodeID(2), NodeID(3)])
        func identity(_ index: UInt64) -> SnapshotIdentity {
            SnapshotIdentity(
                index: LogIndex(index), term: Term(3), configuration: configuration,
                digest: .empty)
        }
        var group = RaftGroup(
            group: GroupID(1), node: NodeID(1),
            recovered: RaftGroup.Recovered(
                hardState: HardState(term: Term(3), vote: nil), snapshot: identity(10)), seed: 1)
        var actions: [RaftGroup.Action] = []
        let start = MonotonicTime(nanoseconds: 0)
        func take(_ event: RaftGroup.Event, at now: MonotonicTime) {
            actions = []
            group.handle(event, at: now, into: &actions)
        }
        func said(to node: UInt32) -> [ConsensusMessage.Body] {
            actions.compactMap { action in
                guard case .send(let message, NodeID(node)) = action else { return nil }
                return message.body
            }
        }
        take(.started, at: start)
        take(.diverged, at: start)
        #expect(group.hasDiverged && group.lacksState && group.inhibition == [.divergence])
        // No pre-vote, no vote.
        let last = LogPoint(index: LogIndex(10), term: Term(3))
        take(
            .received(
                ConsensusMessage(term: Term(4), .preVoteRequest(last: last)), from: NodeID(2)),
            at: start)
        #expect(said(to: 2) == [.preVoteAnswer(granted: false)])
        take(
            .received(
                ConsensusMessage(term: Term(4), .voteRequest(last: last, isTransfer: false)),
                from: NodeID(2)), at: start)
        take(
            .durable(through: LogIndex(10), term: Term(3), hardState: group.hardState), at: start)
        #expect(group.hardState.vote == nil)
        #expect(!said(to: 2).contains(.voteAnswer(granted: true)))
        // It follows who was elected without it, and asks for its rows.
        take(
            .received(
                ConsensusMessage(
                    term: Term(4), .append(previous: last, entries: [], commit: LogIndex(10))),
                from: NodeID(2)), at: start)
        take(.woke, at: start + .seconds(10))
        #expect(
            said(to: 2).contains(.snapshotAnswer(index: .zero, next: 0, unneeded: false)))
        // Rows never go back.
        func chunk(_ index: UInt64) -> RaftGroup.Event {
            .received(
                ConsensusMessage(
                    term: Term(4),
                    .snapshotChunk(
                        SnapshotChunk(
                            identity: identity(index), sequence: 0, isLast: true, bytes: []))),
                from: NodeID(2))
        }
        take(chunk(9), at: start + .seconds(11))
        #expect(said(to: 2).contains(.snapshotAnswer(index: LogIndex(9), next: 0, unneeded: true)))
        take(chunk(10), at: start + .seconds(11))
        take(.snapshotArrived(identity(10)), at: start + .seconds(11))
        #expect(actions.contains(.install(identity(10))))
        take(.snapshotInstalled(identity(10)), at: start + .seconds(11))
        #expect(!group.hasDiverged && !group.lacksState && group.inhibition == [])
    }
}
