import StratusConsensus
import StratusModel
import Testing

/// Reasons not to lead are a set: the end of one lifts no other.
@Suite struct InhibitionReasonTests {
    private static func group() -> RaftGroup {
        RaftGroup(
            group: GroupID(1), node: NodeID(1),
            recovered: RaftGroup.Recovered(
                hardState: HardState(term: .zero, vote: nil),
                snapshot: SnapshotIdentity(
                    index: .zero, term: .zero, time: .zero,
                    configuration: Configuration(voters: [1, 2, 3].map { NodeID($0) }),
                    digest: StateDigest(high: 0, low: 0))),
            seed: 1)
    }

    /// Handles the events, then waits for as long as an election takes to begin.
    /// - Returns: whether the group asked for votes.
    private static func campaigns(after events: [RaftGroup.Event]) -> Bool {
        var group = Self.group()
        var actions: [RaftGroup.Action] = []
        for event in events + [.started] {
            group.handle(event, at: MonotonicTime(nanoseconds: 0), into: &actions)
        }
        for second in 1...3 as ClosedRange<Int64> {
            group.handle(
                .woke, at: MonotonicTime(nanoseconds: second * 1_000_000_000), into: &actions)
        }
        return actions.contains {
            if case .send(let message, _) = $0, case .preVoteRequest = message.body {
                true
            } else {
                false
            }
        }
    }

    @Test(
        arguments: [
            ("nothing is wrong", [], true),
            ("the clock is off", [.inhibited(.clock)], false),
            ("the clock was off", [.inhibited(.clock), .permitted(.clock)], true),
            (
                "rows failed and work again on a node whose clock is off",
                [.inhibited(.rows), .inhibited(.clock), .permitted(.rows)], false
            ),
            (
                "the clock is right again, and rows still fail",
                [.inhibited(.rows), .inhibited(.clock), .permitted(.clock)], false
            ),
            (
                "each ended", [.inhibited([.log, .clock]), .permitted(.clock), .permitted(.log)],
                true
            ),
        ] as [(String, [RaftGroup.Event], Bool)])
    func `core audit 3: one reason that ends lifts no other`(
        name: String, events: [RaftGroup.Event], mayLead: Bool
    ) {
        #expect(Self.campaigns(after: events) == mayLead, "\(name)")
    }
}
