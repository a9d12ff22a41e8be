import StratusCoding
import StratusConsensus
import StratusDoubles
import StratusModel
import StratusSQLite
import StratusStorage
import Testing

@testable import StratusCluster

/// What becomes of a read that the leader has confirmed and not yet answered.
@Suite struct ConfirmedReadTests {
    /// One replica of three. The test speaks for the other two, and says when the disk syncs.
    private final class Member {
        static let read = Replica.Request(7)
        let replica: Replica
        private let world = SimulatedWorld(seed: 3)
        private let log: SegmentedLog
        private let reports = Shared<[LogEvent]>([])
        private var effects: [Replica.Effect] = []
        private var now: MonotonicTime

        init(bugs: PlantedBugs = PlantedBugs()) throws {
            let (group, reports) = (GroupID(1), self.reports)
            self.now = self.world.now
            var limits = SegmentedLog.Limits()
            limits.segmentSize = .kibibytes(16)
            self.log = try SegmentedLog(
                in: "log", of: self.world, isNew: true, limits: limits,
                onEvent: { event in reports.withLock { $0.append(event) } })
            let store = try PartitionStore(
                RegisterState(), group: group, in: "partitions", of: FileSystem(self.world.files))
            self.replica = Replica(
                group: group, node: NodeID(1),
                recovered: try RaftGroup.Recovered(
                    of: group, in: self.log, state: store.appliedPosition,
                    initial: Configuration(voters: [NodeID(1), NodeID(2), NodeID(3)]),
                    hasPeers: true),
                state: store, log: self.log, seed: 1, bugs: bugs)
            self.replica.start(at: self.now, into: &self.effects)
        }

        func receive(_ body: ConsensusMessage.Body, in term: UInt64, from node: UInt32) {
            self.replica.receive(
                ConsensusMessage(term: Term(term), body), from: NodeID(node), at: self.now,
                into: &self.effects)
        }

        func sync() {
            self.log.flush()
            let reports = self.reports.withLock { reports in
                defer { reports = [] }
                return reports
            }
            for case .durable(_, let through, let term, let hardState) in reports {
                self.replica.becameDurable(
                    through: through, term: term, hardState: hardState, at: self.now,
                    into: &self.effects)
            }
        }

        /// Leads term 1. The first entry of that term is not on the own disk yet.
        func lead() {
            self.now = self.now + .seconds(2)
            self.replica.wake(at: self.now, into: &self.effects)
            self.receive(.preVoteAnswer(granted: true), in: 1, from: 2)
            self.sync()
            self.receive(.voteAnswer(granted: true), in: 1, from: 2)
        }

        func askAndConfirm() {
            self.replica.read(
                RegisterQuery.value(Bytes("r2".utf8)).query, as: Self.read, at: self.now,
                into: &self.effects)
            for case .send(let message, NodeID(2)) in self.effects {
                guard case .probe(let round) = message.body else { continue }
                self.receive(.probeAnswer(round: round), in: 1, from: 2)
            }
        }

        var answers: [Result<QueryAnswer, ReplicaRefusal>] {
            self.effects.compactMap {
                if case .read(Self.read, let result) = $0 { result } else { nil }
            }
        }
    }

    private static func write(_ index: UInt64, in term: UInt64) -> Entry {
        let command = Command(
            kind: .reference, identity: RequestIdentity(high: 1, low: index),
            deadlineMilliseconds: .max,
            container: ContainerReference(container: "test", environment: .development),
            schemaVersion: 0, principal: Principal(kind: .system),
            body: RegisterCommand.write(Bytes("r\(index)".utf8), value: [1]).encoded())
        return Entry(
            index: LogIndex(index), term: Term(term),
            time: HybridTime(milliseconds: Int64(index), count: 0), kind: .command,
            payload: command.encoded())
    }

    @Test func `C-03 a confirmed read waits for the first entry of the own term`() throws {
        let member = try Member()
        member.lead()
        member.askAndConfirm()
        #expect(member.replica.raft.role == .leader && member.answers.isEmpty)
        member.receive(
            .appendAccepted(match: LogIndex(1), received: LogIndex(1), commit: .zero), in: 1,
            from: 2)
        #expect(member.answers.isEmpty)
        member.sync()
        #expect(member.answers.count == 1)
        #expect((try? member.answers.first?.get()) != nil)
    }

    /// A follower may apply an entry before the new leader does, which then would answer a later
    /// read without it.
    @Test func `C-03 a replica that leads no more refuses the reads that it had confirmed`() throws
    {
        #expect(try Self.answersOfDeposed(PlantedBugs()) == [.failure(.notLeader(NodeID(3)))])
    }

    #if STRATUS_PLANTED
        @Test func `the planted bug answers it`() throws {
            let answers = try Self.answersOfDeposed(PlantedBugs([.confirmedReadKept]))
            #expect(answers.count == 1)
            #expect((try? answers.first?.get()) != nil)
        }
    #endif

    private static func answersOfDeposed(
        _ bugs: PlantedBugs
    ) throws -> [Result<QueryAnswer, ReplicaRefusal>] {
        let member = try Member(bugs: bugs)
        member.lead()
        member.askAndConfirm()
        #expect(member.replica.raft.role == .leader && member.answers.isEmpty)
        member.receive(
            .append(
                previous: .zero, entries: [Self.write(1, in: 2), Self.write(2, in: 2)],
                commit: LogIndex(2)), in: 2, from: 3)
        member.sync()
        #expect(member.replica.state.applied == LogIndex(2))
        return member.answers
    }
}
