import StratusConsensus
import StratusModel
import Testing

/// Replicas that have lost something they had acknowledged: what they may still send, and how it
/// comes back.
@Suite struct DamageTests {
    private static let voters = [NodeID(1), NodeID(2), NodeID(3)]
    private static let configuration = Configuration(voters: voters)

    private static func identity(_ index: UInt64, _ term: UInt64) -> SnapshotIdentity {
        SnapshotIdentity(
            index: LogIndex(index), term: Term(term), configuration: Self.configuration,
            digest: .empty)
    }

    private static func point(_ index: UInt64, _ term: UInt64) -> LogPoint {
        LogPoint(index: LogIndex(index), term: Term(term))
    }

    private static func entries(_ range: ClosedRange<UInt64>, term: UInt64) -> [Entry] {
        range.map {
            Entry(
                index: LogIndex($0), term: Term(term),
                time: HybridTime(milliseconds: Int64($0)), kind: .command, payload: [1])
        }
    }

    /// One replica, and what it does when something happens.
    private struct Bench {
        var group: RaftGroup
        var actions: [RaftGroup.Action] = []
        var now = MonotonicTime(nanoseconds: 0)

        init(_ node: UInt32, _ recovered: RaftGroup.Recovered) {
            self.group = RaftGroup(
                group: GroupID(1), node: NodeID(node), recovered: recovered, seed: UInt64(node))
            self.take(.started)
        }

        mutating func take(_ event: RaftGroup.Event) {
            self.actions = []
            self.group.handle(event, at: self.now, into: &self.actions)
        }

        mutating func hear(_ term: UInt64, _ body: ConsensusMessage.Body, from node: UInt32 = 2) {
            self.take(
                .received(ConsensusMessage(term: Term(term), body), from: NodeID(node)))
        }

        /// Everything ordered so far reaches the disk.
        mutating func sync() {
            self.take(
                .durable(
                    through: self.group.log.last, term: self.group.log.lastPoint.term,
                    hardState: self.group.hardState))
        }

        mutating func pass(_ time: Duration) {
            self.now = self.now + time
            self.take(.woke)
        }

        var said: [ConsensusMessage.Body] {
            self.actions.compactMap {
                if case .send(let message, _) = $0 { message.body } else { nil }
            }
        }

        var applied: LogIndex? {
            for case .apply(let through) in self.actions { return through }
            return nil
        }
    }

    // MARK: The tail is gone

    /// Term 3; its log ends at 12, and what followed was torn, or had rotted.
    private static func withoutTail() -> Bench {
        var bench = Bench(
            1,
            RaftGroup.Recovered(
                hardState: HardState(term: Term(3), vote: NodeID(2)),
                snapshot: Self.identity(10, 2),
                base: Self.point(10, 2), entries: Self.entries(11...12, term: 3)))
        bench.hear(
            3, .append(previous: Self.point(12, 3), entries: [], commit: LogIndex(12)))
        return bench
    }

    @Test func `S-09 a dropped tail is owed once the leader says that it was acknowledged`() {
        var bench = Self.withoutTail()
        bench.hear(3, .acknowledged(through: Self.point(14, 3)))
        #expect(bench.group.mustReach == Self.point(14, 3))
        // The leader fails. Who lacks the same entries gets no vote, and this replica does not
        // stand.
        bench.take(.suspected(NodeID(2)))
        bench.hear(4, .voteRequest(last: Self.point(12, 3), isTransfer: false), from: 3)
        bench.sync()
        #expect(bench.said == [.voteAnswer(granted: false)])
        bench.pass(.seconds(20))
        #expect(bench.group.role == .follower)
        // A leader that was elected without it fills its log: it votes again.
        bench.hear(
            5,
            .append(
                previous: Self.point(12, 3), entries: Self.entries(13...14, term: 3),
                commit: LogIndex(14)), from: 3)
        bench.sync()
        #expect(bench.group.mustReach == nil)
    }

    @Test func `S-09 without a word of the leader the tail was torn, and the replica votes`() {
        var bench = Self.withoutTail()
        bench.take(.suspected(NodeID(2)))
        bench.hear(4, .voteRequest(last: Self.point(12, 3), isTransfer: false), from: 3)
        bench.sync()
        #expect(bench.said == [.voteAnswer(granted: true)])
    }

    @Test func `S-09 a replica that has what it acknowledged owes nothing`() {
        var bench = Self.withoutTail()
        bench.hear(3, .acknowledged(through: Self.point(12, 3)))
        #expect(bench.group.mustReach == nil)
        // What a leader of another term says, or a peer that leads nothing, is not heard.
        bench.hear(2, .acknowledged(through: Self.point(14, 2)))
        bench.hear(3, .acknowledged(through: Self.point(14, 4)))
        #expect(bench.group.mustReach == nil)
    }

    @Test func `S-09 a leader says so to a follower that lacks what it had acknowledged`() {
        var bench = Bench(
            1,
            RaftGroup.Recovered(
                hardState: HardState(term: Term(1), vote: nil), snapshot: Self.identity(0, 0),
                entries: Self.entries(1...3, term: 1)))
        bench.pass(.seconds(20))
        bench.hear(2, .preVoteAnswer(granted: true))
        bench.sync()
        bench.hear(2, .voteAnswer(granted: true))
        #expect(bench.group.role == .leader)
        bench.sync()
        let end = bench.group.log.last
        for node in [2, 3] as [UInt32] {
            bench.hear(
                2, .appendAccepted(match: end, received: end, commit: .zero), from: node)
        }
        // Node 3 restarts: its links break, and it is asked where its log ends.
        bench.take(.suspected(NodeID(3)))
        bench.take(.restarted(NodeID(3)))
        bench.hear(
            2, .appendRefused(previous: end, hint: Self.point(2, 1)), from: 3)
        #expect(bench.said.contains(.acknowledged(through: LogPoint(index: end, term: Term(2)))))
    }

    // MARK: The state is gone

    /// A leader that had just begun was asked for its state, and sent one that every receiver finds
    /// malformed (seed 6110).
    @Test func `a state that nothing was applied to is no snapshot`() {
        let bench = Bench(
            1,
            RaftGroup.Recovered(
                hardState: HardState(term: Term(1), vote: nil), snapshot: Self.identity(0, 0),
                entries: Self.entries(1...3, term: 1)))
        func identity(_ index: UInt64) -> SnapshotIdentity? {
            bench.group.snapshotIdentity(at: LogIndex(index), time: .zero, digest: .empty)
        }
        #expect(identity(0) == nil)
        #expect(identity(2)?.term == Term(1))
    }

    /// Its log begins behind entry 10, of which the rows are gone, and holds two more.
    private static func withoutState() -> Bench {
        Bench(
            1,
            RaftGroup.Recovered(
                hardState: HardState(term: Term(3), vote: NodeID(2)), snapshot: Self.identity(0, 0),
                base: Self.point(10, 2), entries: Self.entries(11...12, term: 3)))
    }

    @Test
    func `S-16 a replica without its state acknowledges what its log holds and applies nothing`() {
        var bench = Self.withoutState()
        #expect(bench.group.lacksState)
        bench.hear(
            3, .append(previous: Self.point(12, 3), entries: [], commit: LogIndex(12)))
        #expect(
            bench.said.contains(
                .appendAccepted(match: LogIndex(12), received: LogIndex(12), commit: LogIndex(12))))
        #expect(bench.applied == nil)
    }

    @Test func `S-16 a replica without its state votes by its log and does not stand itself`() {
        var bench = Self.withoutState()
        bench.hear(4, .voteRequest(last: Self.point(11, 3), isTransfer: false))
        #expect(bench.said == [], "nothing is said in a term that is not durable")
        bench.sync()
        #expect(bench.said == [.voteAnswer(granted: false)], "who asks lacks an entry")
        bench.hear(5, .voteRequest(last: Self.point(12, 3), isTransfer: false))
        bench.sync()
        #expect(bench.said == [.voteAnswer(granted: true)])
        bench.pass(.seconds(20))
        #expect(bench.group.role == .follower)
    }

    @Test func `S-16 a replica without its state asks its leader for it, again and again`() {
        var bench = Self.withoutState()
        bench.hear(3, .probe(round: 1))
        for _ in 0..<3 {
            bench.pass(.seconds(1))
            #expect(
                bench.said.contains(.snapshotAnswer(index: .zero, next: 0, unneeded: false)))
        }
    }

    /// Until then it hands nothing on. A follower that waited for its state under load kept all of
    /// its log in memory.
    @Test func `C-17 a replica without its state keeps no more in memory than any other`() {
        var bench = Self.withoutState()
        var last: UInt64 = 12
        for _ in 0..<40 {
            let entry = Entry(
                index: LogIndex(last + 1), term: Term(3),
                time: HybridTime(milliseconds: Int64(last + 1)), kind: .command,
                payload: Bytes(repeating: 7, count: 1 << 20))
            bench.hear(
                3,
                .append(previous: Self.point(last, 3), entries: [entry], commit: LogIndex(last + 1))
            )
            last += 1
            bench.sync()
        }
        #expect(bench.group.lacksState)
        #expect(bench.group.log.last == LogIndex(last))
        #expect(bench.group.log.tailSize <= bench.group.tuning.tailSizeMax)
        bench.take(.snapshotArrived(Self.identity(20, 3)))
        bench.take(.snapshotInstalled(Self.identity(20, 3)))
        #expect(bench.applied == LogIndex(last))
    }

    @Test func `S-16 a snapshot brings the state back and leaves the log behind it as it is`() {
        var bench = Self.withoutState()
        bench.hear(3, .append(previous: Self.point(12, 3), entries: [], commit: LogIndex(12)))
        bench.take(.snapshotArrived(Self.identity(9, 2)))
        #expect(bench.group.lacksState, "it ends before the log begins: entry 10 would be missing")
        bench.take(.snapshotArrived(Self.identity(11, 3)))
        #expect(bench.actions.contains(.install(Self.identity(11, 3))))
        #expect(bench.group.keepsLog(after: Self.identity(11, 3)))
        bench.take(.snapshotInstalled(Self.identity(11, 3)))
        #expect(!bench.group.lacksState)
        #expect(bench.group.log.last == LogIndex(12))
        #expect(bench.group.durable == LogIndex(12))
        #expect(bench.applied == LogIndex(12))
    }

    @Test func `S-16 a leader that is asked for its state sends a snapshot, once`() {
        var bench = Self.leader()
        bench.hear(2, .snapshotAnswer(index: .zero, next: 0, unneeded: false))
        #expect(bench.actions.contains(.sendSnapshot(to: NodeID(2), term: Term(2))))
        bench.hear(2, .snapshotAnswer(index: .zero, next: 0, unneeded: false))
        #expect(bench.actions == [])
    }

    // MARK: An install takes its time

    private static func installing() -> Bench {
        var bench = Bench(
            1,
            RaftGroup.Recovered(
                hardState: HardState(term: Term(2), vote: nil), snapshot: Self.identity(0, 0),
                base: .zero, baseConfiguration: Self.configuration,
                entries: Self.entries(1...4, term: 1)))
        bench.hear(3, .append(previous: Self.point(4, 1), entries: [], commit: LogIndex(4)))
        bench.sync()
        bench.take(.snapshotArrived(Self.identity(20, 3)))
        #expect(bench.actions.contains(.install(Self.identity(20, 3))))
        return bench
    }

    @Test func `while a snapshot is installed a replica takes nothing in and stands for nothing`() {
        var bench = Self.installing()
        bench.hear(
            3,
            .append(
                previous: Self.point(4, 1), entries: Self.entries(5...6, term: 3),
                commit: LogIndex(6)))
        #expect(bench.said == [] && bench.applied == nil)
        #expect(bench.group.log.last == LogIndex(4))
        let other = SnapshotChunk(
            identity: Self.identity(22, 3), sequence: 0, isLast: true, bytes: [1])
        bench.hear(3, .snapshotChunk(other))
        bench.take(.snapshotArrived(Self.identity(22, 3)))
        #expect(!bench.actions.contains(.install(Self.identity(22, 3))))
        // Its leader goes silent, and it is asked to follow it.
        bench.take(.suspected(NodeID(2)))
        for _ in 0..<20 { bench.pass(.seconds(1)) }
        bench.hear(3, .transferNow)
        #expect(bench.group.role == .follower && bench.group.term == Term(3))
        // It says that it is there, which is all that a leader asks for who is to read.
        bench.hear(3, .probe(round: 7))
        #expect(bench.said.contains(.probeAnswer(round: 7)))
        bench.take(.snapshotInstalled(Self.identity(20, 3)))
        #expect(bench.group.log.last == LogIndex(20) && bench.group.commit == LogIndex(20))
    }

    @Test func `a new leader is voted for and heard while a snapshot of the old one is installed`()
    {
        var bench = Self.installing()
        bench.take(.suspected(NodeID(2)))
        bench.hear(4, .voteRequest(last: Self.point(21, 3), isTransfer: false), from: 3)
        bench.sync()
        #expect(bench.said == [.voteAnswer(granted: true)])
        bench.hear(
            4, .append(previous: Self.point(21, 3), entries: [], commit: LogIndex(21)), from: 3)
        #expect(bench.said == [])
        bench.take(.snapshotInstalled(Self.identity(20, 3)))
        #expect(bench.group.leader == NodeID(3))
        #expect(
            bench.said.contains(
                .appendAccepted(match: LogIndex(20), received: LogIndex(20), commit: LogIndex(20))))
        bench.hear(
            4,
            .append(
                previous: Self.point(20, 3), entries: Self.entries(21...21, term: 3),
                commit: LogIndex(21)), from: 3)
        bench.sync()
        #expect(bench.applied == LogIndex(21))
    }

    @Test func `an install that failed leaves the log as it was, and the next snapshot is taken`() {
        var bench = Self.installing()
        bench.take(.snapshotRefused(Self.identity(20, 3)))
        #expect(bench.group.log.last == LogIndex(4))
        bench.take(.snapshotArrived(Self.identity(22, 3)))
        #expect(bench.actions.contains(.install(Self.identity(22, 3))))
        bench.take(.snapshotInstalled(Self.identity(22, 3)))
        #expect(bench.group.log.last == LogIndex(22))
    }

    // MARK: The log has lost entries

    /// A bench of seven entries without the last three: the last one that may have been
    /// acknowledged is 7@1.
    private static func withoutEntries(_ node: UInt32 = 1) -> Bench {
        Bench(
            node,
            RaftGroup.Recovered(
                hardState: HardState(term: Term(2), vote: nil), snapshot: Self.identity(0, 0),
                base: .zero, baseConfiguration: Self.configuration,
                entries: Self.entries(1...4, term: 1), lost: Self.point(7, 1)))
    }

    @Test func `S-08 S-44 who lost entries votes for nobody and says so to the leader`() {
        var bench = Self.withoutEntries()
        bench.hear(3, .preVoteRequest(last: Self.point(9, 1)))
        #expect(!bench.said.contains(.preVoteAnswer(granted: true)))
        bench.hear(3, .voteRequest(last: Self.point(9, 1), isTransfer: false))
        bench.sync()
        #expect(bench.said == [.voteAnswer(granted: false)])
        bench.hear(3, .append(previous: Self.point(7, 1), entries: [], commit: LogIndex(7)))
        #expect(bench.said == [.appendRefused(previous: .zero, hint: Self.point(4, 1))])
        bench.pass(.seconds(20))
        #expect(bench.group.role == .follower)
    }

    @Test
    func `S-08 S-44 it votes again when a leader has filled its log, and not before it is on disk`()
    {
        var bench = Self.withoutEntries()
        bench.hear(3, .append(previous: Self.point(7, 1), entries: [], commit: .zero))
        bench.sync()
        bench.hear(
            3,
            .append(
                previous: Self.point(4, 1), entries: Self.entries(5...6, term: 1), commit: .zero))
        bench.sync()
        #expect(bench.group.mustReach == Self.point(7, 1))
        bench.hear(
            3,
            .append(
                previous: Self.point(6, 1), entries: Self.entries(7...7, term: 1), commit: .zero))
        #expect(bench.group.mustReach != nil)
        bench.sync()
        #expect(bench.group.mustReach == nil)
        bench.take(.leaderResigned(NodeID(2), term: Term(3)))
        bench.hear(4, .voteRequest(last: Self.point(7, 1), isTransfer: false), from: 3)
        bench.sync()
        #expect(bench.said == [.voteAnswer(granted: true)])
    }

    @Test
    func `S-44 an entry of a later leader makes a shorter log whole, and the disk cuts the rest`() {
        var bench = Self.withoutEntries()
        bench.hear(3, .append(previous: Self.point(4, 1), entries: [], commit: .zero))
        bench.sync()
        bench.hear(
            3,
            .append(
                previous: Self.point(4, 1), entries: Self.entries(5...5, term: 3), commit: .zero))
        bench.sync()
        #expect(bench.group.mustReach == nil)
        let cuts = bench.actions.compactMap {
            if case .persist(let write) = $0 { write.truncateFrom } else { nil }
        }
        #expect(cuts == [LogIndex(6)])
    }

    @Test func `S-43 the same entries lost everywhere: nobody is elected, nothing is made up`() {
        var replicas = (1...3 as ClosedRange<UInt32>).map { Self.withoutEntries($0) }
        for second in 1...20 {
            var letters: [(ConsensusMessage, from: NodeID, to: NodeID)] = []
            for position in replicas.indices {
                replicas[position].pass(.seconds(1))
                for case .send(let message, let to) in replicas[position].actions {
                    letters.append((message, replicas[position].group.node, to))
                }
            }
            for (message, from, to) in letters {
                let position = Int(to.raw) - 1
                replicas[position].take(.received(message, from: from))
                #expect(
                    !replicas[position].said.contains(.preVoteAnswer(granted: true)), "\(second)")
            }
            #expect(replicas.allSatisfy { $0.group.role == .follower && $0.group.commit == .zero })
        }
    }

    @Test func `S-44 a leader that hears of a loss sends from there, though it was acknowledged`() {
        var bench = Self.leader()
        bench.take(
            .proposed(
                (1...3).map {
                    .init(token: .init($0), payload: [UInt8($0)], wallMilliseconds: 0)
                }))
        bench.sync()
        bench.hear(
            2,
            .appendAccepted(
                match: LogIndex(4), received: LogIndex(4), commit: LogIndex(4)))
        #expect(bench.group.commit == LogIndex(4))
        bench.hear(2, .appendRefused(previous: .zero, hint: Self.point(2, 2)))
        #expect(bench.group.commit == LogIndex(4))
        let sent = bench.said.compactMap {
            if case .append(let previous, let entries, _) = $0 {
                (previous, entries.count)
            } else {
                nil
            }
        }
        #expect(sent.first?.0 == Self.point(2, 2))
        #expect(sent.first?.1 == 2)
    }

    /// Elected in term 2, with one entry of its own.
    private static func leader() -> Bench {
        var bench = Bench(
            1,
            RaftGroup.Recovered(
                hardState: HardState(term: Term(1), vote: nil), snapshot: Self.identity(0, 0)))
        bench.pass(.seconds(2))
        bench.hear(2, .preVoteAnswer(granted: true))
        bench.sync()
        bench.hear(2, .voteAnswer(granted: true))
        bench.sync()
        bench.hear(
            2, .appendAccepted(match: LogIndex(1), received: LogIndex(1), commit: .zero))
        #expect(bench.group.role == .leader && bench.group.commit == LogIndex(1))
        return bench
    }
}
