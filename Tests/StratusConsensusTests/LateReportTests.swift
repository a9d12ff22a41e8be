import StratusConsensus
import StratusModel
import Testing

/// A write may become durable when its entries are gone already, cut and replaced by another
/// leader's.
@Suite struct LateReportTests {
    private static func entries(_ range: ClosedRange<UInt64>, term: UInt64) -> [Entry] {
        range.map {
            Entry(
                index: LogIndex($0), term: Term(term),
                time: HybridTime(milliseconds: Int64($0)), kind: .command, payload: [1])
        }
    }

    /// The durable indexes that a follower reports to leader n3, after each of the disk's reports.
    private static func matches(_ bugs: PlantedBugs) -> [[LogIndex]] {
        var group = RaftGroup(
            group: GroupID(1), node: NodeID(1),
            recovered: RaftGroup.Recovered(
                hardState: HardState(term: Term(0), vote: nil),
                snapshot: SnapshotIdentity(
                    index: .zero, term: .zero,
                    configuration: Configuration(voters: [NodeID(1), NodeID(2), NodeID(3)]),
                    digest: .empty),
                entries: []),
            seed: 1, bugs: bugs)
        func take(_ event: RaftGroup.Event) -> [LogIndex] {
            var actions: [RaftGroup.Action] = []
            group.handle(event, at: MonotonicTime(nanoseconds: 1), into: &actions)
            return actions.compactMap {
                guard case .send(let message, _) = $0,
                    case .appendAccepted(let match, _, _) = message.body
                else { return nil }
                return match
            }
        }
        func append(_ previous: LogPoint, _ entries: [Entry], term: UInt64, from node: UInt32) {
            _ = take(
                .received(
                    ConsensusMessage(
                        term: Term(term),
                        .append(previous: previous, entries: entries, commit: .zero)),
                    from: NodeID(node)))
        }
        _ = take(.started)
        append(
            LogPoint(index: .zero, term: .zero), self.entries(1...3, term: 1), term: 1, from: 2)
        let first = group.hardState
        // n3 wins term 2 with this vote, which goes to the disk by itself, and cuts entries 2 and 3
        // off.
        _ = take(
            .received(
                ConsensusMessage(
                    term: Term(2),
                    .voteRequest(
                        last: LogPoint(index: LogIndex(3), term: Term(1)), isTransfer: true)),
                from: NodeID(3)))
        let second = group.hardState
        append(
            LogPoint(index: LogIndex(1), term: Term(1)), self.entries(2...3, term: 2), term: 2,
            from: 3)
        return [
            take(.durable(through: LogIndex(3), term: Term(1), hardState: first)),
            take(.durable(through: LogIndex(3), term: Term(1), hardState: second)),
            take(.durable(through: LogIndex(3), term: Term(2), hardState: group.hardState)),
        ]
    }

    @Test func `what was cut before it was durable proves nothing of what stands there now`() {
        let matches = Self.matches(PlantedBugs())
        #expect(matches[0] == [])
        #expect(matches[1].allSatisfy { $0 <= LogIndex(1) })
        #expect(matches[2] == [LogIndex(3)])
    }

    #if STRATUS_PLANTED
        @Test func `the planted bug that believes late reports is found by that`() {
            #expect(Self.matches(PlantedBugs([.durableIgnoresTerm]))[1] == [LogIndex(3)])
        }
    #endif
}
