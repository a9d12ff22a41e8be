import StratusConsensus
import StratusModel
import Testing

/// Mail requires two things of consensus: a later time than it carries, and that it is never
/// refused.
@Suite struct MailEntryTests {
    private var group: RaftGroup
    private var actions: [RaftGroup.Action] = []

    init() {
        var tuning = RaftTuning()
        tuning.uncommittedSizeMax = 1_000
        self.group = RaftGroup(
            group: GroupID(1), node: NodeID(1),
            recovered: RaftGroup.Recovered(
                hardState: HardState(term: Term(0), vote: nil),
                snapshot: SnapshotIdentity(
                    index: .zero, term: .zero,
                    configuration: Configuration(voters: [NodeID(1)]), digest: .empty),
                entries: []), tuning: tuning, seed: 1)
        var actions: [RaftGroup.Action] = []
        self.group.handle(.started, at: MonotonicTime(nanoseconds: 1), into: &actions)
        for second in 1...20 where self.group.role != .leader {
            self.group.handle(
                .woke, at: MonotonicTime(nanoseconds: Int64(second) * 1_000_000_000),
                into: &actions)
            self.group.handle(
                .durable(
                    through: self.group.log.last, term: self.group.term,
                    hardState: self.group.hardState),
                at: MonotonicTime(nanoseconds: Int64(second) * 1_000_000_000), into: &actions)
        }
    }

    private mutating func propose(
        _ kind: Entry.Kind, size: Int = 1, wall: Int64, after: HybridTime = .zero
    ) -> [RaftGroup.Action] {
        self.actions = []
        self.group.handle(
            .proposed([
                RaftGroup.Proposal(
                    token: RaftGroup.RequestToken(1), kind: kind,
                    payload: Bytes(repeating: 0, count: size), wallMilliseconds: wall,
                    after: after)
            ]), at: MonotonicTime(nanoseconds: 60_000_000_000), into: &self.actions)
        return self.actions
    }

    @Test mutating func `an entry of mail is later than the mail, and what follows is later still`()
    {
        #expect(self.group.role == .leader)
        // The other group's clock is ahead, by more than its whole count.
        let sent = HybridTime(milliseconds: 5_000, count: .max)
        _ = self.propose(.mail, wall: 1_000, after: sent)
        #expect(self.group.log.lastTime > sent)
        #expect(self.group.log.lastTime == HybridTime(milliseconds: 5_001))
        _ = self.propose(.command, wall: 1_001)
        #expect(self.group.log.lastTime == HybridTime(milliseconds: 5_001, count: 1))
        // Behind: the own clock counts.
        _ = self.propose(.mail, wall: 9_000, after: HybridTime(milliseconds: 7_000))
        #expect(self.group.log.lastTime == HybridTime(milliseconds: 9_000))
    }

    @Test mutating func `mail is taken where a command is turned away`() {
        #expect(self.group.role == .leader)
        _ = self.propose(.command, size: 2_000, wall: 1)
        let refused = self.propose(.command, size: 2_000, wall: 2)
        #expect(refused.contains(.refused(RaftGroup.RequestToken(1), .overloaded)))
        let taken = self.propose(.mail, size: 2_000, wall: 3)
        #expect(
            taken.contains { action in
                if case .accepted = action { true } else { false }
            })
    }
}
