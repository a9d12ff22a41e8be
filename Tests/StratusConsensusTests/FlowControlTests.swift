import StratusConsensus
import StratusModel
import Testing

/// The memory of a follower whose disk is full or hangs is bounded, and messages that no correct
/// peer sends are refused.
@Suite struct FlowControlTests {
    private static let configuration = Configuration(voters: [NodeID(1), NodeID(2), NodeID(3)])

    private static func recovered() -> RaftGroup.Recovered {
        RaftGroup.Recovered(
            hardState: HardState(term: .zero, vote: nil),
            snapshot: SnapshotIdentity(
                index: .zero, term: .zero, configuration: Self.configuration, digest: .empty))
    }

    private static func entries(_ range: ClosedRange<UInt64>, size: Int = 1_000) -> [Entry] {
        range.map {
            Entry(
                index: LogIndex($0), term: Term(1), time: HybridTime(milliseconds: Int64($0)),
                kind: .command, payload: Bytes(repeating: 1, count: size))
        }
    }

    /// A replica of three, with bounds of a few entries.
    private struct Bench {
        var group: RaftGroup
        var now = MonotonicTime(nanoseconds: 0)
        var actions: [RaftGroup.Action] = []

        init(
            _ node: UInt32, recovered: RaftGroup.Recovered = FlowControlTests.recovered(),
            bugs: PlantedBugs = PlantedBugs()
        ) {
            var tuning = RaftTuning()
            tuning.inFlightSizeMax = 10_000
            tuning.appendSizeMax = 4_000
            tuning.proposalSizeMax = 100_000
            self.group = RaftGroup(
                group: GroupID(1), node: NodeID(node), recovered: recovered, tuning: tuning,
                seed: UInt64(node), bugs: bugs)
            self.take(.started)
        }

        mutating func take(_ event: RaftGroup.Event) {
            self.actions = []
            self.group.handle(event, at: self.now, into: &self.actions)
        }

        mutating func hear(_ body: ConsensusMessage.Body, term: UInt64 = 1, from node: UInt32) {
            self.take(.received(ConsensusMessage(term: Term(term), body), from: NodeID(node)))
        }

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

        func said(to node: UInt32) -> [ConsensusMessage.Body] {
            self.actions.compactMap { action in
                guard case .send(let message, let to) = action, to == NodeID(node) else {
                    return nil
                }
                return message.body
            }
        }

        mutating func lead() {
            self.pass(.seconds(1))
            self.hear(.preVoteAnswer(granted: true), from: 2)
            self.sync()
            self.hear(.voteAnswer(granted: true), from: 2)
            precondition(self.group.role == .leader, "it was not elected")
            self.sync()
        }
    }

    /// Core audit 2: node 3 takes everything into memory and its disk takes nothing.
    @Test
    func `a leader has no more on its way to a follower than is bounded, however often it asks`() {
        var leader = Bench(1)
        var hung = Bench(3)
        leader.lead()
        leader.hear(
            .appendAccepted(match: LogIndex(1), received: LogIndex(1), commit: .zero), from: 2)
        var most = 0
        for round in 0..<200 as Range<UInt64> {
            leader.take(
                .proposed([
                    RaftGroup.Proposal(
                        token: .init(round), payload: Bytes(repeating: 1, count: 1_000),
                        wallMilliseconds: 0)
                ]))
            var forHung = leader.said(to: 3)
            leader.sync()
            forHung += leader.said(to: 3)
            let last = leader.group.log.last
            leader.hear(.appendAccepted(match: last, received: last, commit: .zero), from: 2)
            forHung += leader.said(to: 3)
            leader.pass(.milliseconds(210))
            forHung += leader.said(to: 3)
            while !forHung.isEmpty {
                hung.hear(forHung.removeFirst(), from: 1)
                // Its term is durable, its entries are not.
                hung.take(
                    .durable(through: .zero, term: .zero, hardState: hung.group.hardState))
                for answer in hung.said(to: 1) {
                    leader.hear(answer, from: 3)
                    forHung += leader.said(to: 3)
                }
            }
            most = max(most, hung.group.unsyncedSize)
        }
        #expect(leader.group.commit > LogIndex(150))
        #expect(hung.group.unsyncedSize > 0)
        #expect(most < 16_000, "\(most) bytes are in the memory of the follower")
        #expect(leader.group.peers.allSatisfy { $0.flightSize < 16_000 })
    }

    /// What is sent again along with newer entries is on its way once. The mix `tornTail` found
    /// nine megabytes counted for a peer that was sent thirty kilobytes.
    @Test func `entries that are sent again to a silent follower are counted once`() {
        var leader = Bench(1)
        leader.lead()
        leader.hear(
            .appendAccepted(match: LogIndex(1), received: LogIndex(1), commit: .zero), from: 2)
        var sentCount = 0
        for round in 0..<100 as Range<UInt64> {
            leader.take(
                .proposed([
                    RaftGroup.Proposal(
                        token: .init(round), payload: Bytes(repeating: 1, count: 20),
                        wallMilliseconds: 0)
                ]))
            sentCount += leader.said(to: 3).count
            leader.sync()
            let last = leader.group.log.last
            leader.hear(.appendAccepted(match: last, received: last, commit: .zero), from: 2)
            leader.pass(.milliseconds(210))
            sentCount += leader.said(to: 3).count
        }
        let log = leader.group.log
        let size = (1...log.last.raw).reduce(0) { size, index in
            let entries = log.entries(
                from: LogIndex(index), through: LogIndex(index), sizeMax: .max)
            return size + (entries?.first?.cost ?? 0)
        }
        let silent = leader.group.peers.first { $0.node == NodeID(3) }
        #expect(sentCount > 50)
        #expect(
            (1...size).contains(silent?.flightSize ?? 0), "\(silent?.flightSize ?? 0) of \(size)")
    }

    /// Core audit 2: a leader of an older release counts what was received.
    @Test func `a follower whose disk hangs takes no more than is bounded, whatever it is sent`() {
        var hung = Bench(3)
        for start in stride(from: 1 as UInt64, to: 400, by: 4) {
            let previous = LogPoint(
                index: LogIndex(start - 1), term: Term(start > 1 ? 1 : 0))
            hung.hear(
                .append(
                    previous: previous, entries: Self.entries(start...start + 3), commit: .zero),
                from: 1)
            hung.take(.durable(through: .zero, term: .zero, hardState: hung.group.hardState))
        }
        #expect(hung.group.unsyncedSize <= 25_000)
        #expect(hung.group.log.last < LogIndex(30))
        // It says no more than what is durable, however often it is asked.
        hung.hear(
            .append(
                previous: .zero, entries: Self.entries(1...4), commit: .zero), from: 1)
        for case .appendAccepted(let match, let received, _) in hung.said(to: 1) {
            #expect(match == .zero && received == .zero)
        }
        // And goes on when its disk does.
        hung.sync()
        #expect(hung.group.unsyncedSize == 0)
        let last = hung.group.log.last
        hung.hear(
            .append(
                previous: LogPoint(index: last, term: Term(1)),
                entries: Self.entries(last.raw + 1...last.raw + 2), commit: .zero), from: 1)
        #expect(hung.group.log.last == LogIndex(last.raw + 2))
    }

    /// Core audit 1: what followers have is what the log may let go of.
    @Test
    func
        `a leader needs what the last of its followers does not have, also before it has answered`()
    {
        var leader = Bench(1)
        leader.lead()
        #expect(leader.group.followerNeeds.map(\.after) == [.zero, .zero])
        leader.hear(
            .appendAccepted(match: LogIndex(1), received: LogIndex(1), commit: .zero), from: 2)
        #expect(
            leader.group.followerNeeds == [
                .init(node: NodeID(2), after: LogIndex(1)), .init(node: NodeID(3), after: .zero),
            ])
        #expect(leader.group.isMoving(NodeID(2), at: leader.now))
        #expect(!leader.group.isMoving(NodeID(3), at: leader.now))
        #expect(!leader.group.isMoving(NodeID(2), at: leader.now + .seconds(11)))
        // Who needs what is gone gets a snapshot, and holds nothing up.
        leader.take(.released(through: LogIndex(1)))
        #expect(leader.group.followerNeeds == [.init(node: NodeID(2), after: LogIndex(1))])
    }

    /// Core audit 12: each of these ended the process, most of them at every later start as well.
    @Test func `what no correct peer says is refused with an alarm`() {
        let far = HybridTime(milliseconds: .max - 5)
        func entry(term: UInt64 = 1, time: HybridTime = .zero, size: Int = 1) -> Entry {
            Entry(
                index: LogIndex(1), term: Term(term), time: time, kind: .command,
                payload: Bytes(repeating: 1, count: size))
        }
        let hostile: [(term: UInt64, ConsensusMessage.Body)] = [
            (.max, .resigned),
            (.max - 1, .voteRequest(last: .zero, isTransfer: true)),
            (1 << 40, .appendAccepted(match: .zero, received: .zero, commit: .zero)),
            (1, .append(previous: .zero, entries: [entry(time: far)], commit: .zero)),
            (1, .append(previous: .zero, entries: [entry(size: 100_001)], commit: .zero)),
        ]
        for (term, body) in hostile {
            var bench = Bench(3)
            bench.hear(body, term: term, from: 1)
            #expect(bench.actions == [.alarm(.malformedMessage(from: NodeID(1)))])
            #expect(bench.group.term == .zero && bench.group.log.last == .zero)
        }
    }

    /// Core audit 12: terms below that of what the log begins behind.
    @Test func `entries of terms before the log's beginning are refused with an alarm`() {
        var recovered = Self.recovered()
        recovered = RaftGroup.Recovered(
            hardState: HardState(term: Term(5), vote: nil),
            snapshot: SnapshotIdentity(
                index: LogIndex(10), term: Term(5), configuration: Self.configuration,
                digest: .empty))
        var bench = Bench(3, recovered: recovered)
        let entries = (9...11 as ClosedRange<UInt64>).map {
            Entry(
                index: LogIndex($0), term: Term(2), time: .zero, kind: .command, payload: [1])
        }
        bench.hear(
            .append(
                previous: LogPoint(index: LogIndex(8), term: Term(2)), entries: entries,
                commit: .zero), term: 6, from: 1)
        #expect(
            bench.actions.contains(
                .alarm(.conflictWithCommitted(LogIndex(11), from: NodeID(1)))))
        #expect(bench.group.log.last == LogIndex(10))
    }

    /// Core audit 10.
    @Test func `the only voter that lacks its state has no timer`() {
        let alone = Configuration(voters: [NodeID(1)])
        let recovered = RaftGroup.Recovered(
            hardState: HardState(term: Term(1), vote: nil),
            snapshot: SnapshotIdentity(
                index: .zero, term: .zero, configuration: alone, digest: .empty),
            base: LogPoint(index: LogIndex(5), term: Term(1)), baseConfiguration: alone)
        var bench = Bench(1, recovered: recovered)
        for _ in 0..<10 {
            for case .wake(let time) in bench.actions { #expect(time > bench.now) }
            bench.pass(.milliseconds(1))
        }
    }

    /// Core audit 1: a member that lost its rows has its log, and acknowledges entries while the
    /// load goes on. Each acknowledgement stopped the snapshot that it had asked for.
    @Test
    func `M-24 an acknowledgement does not stop the snapshot of a member that lost its rows`() {
        var leader = Bench(1)
        leader.lead()
        let asks = ConsensusMessage.Body.snapshotAnswer(index: .zero, next: 0, unneeded: false)
        let snapshot = RaftGroup.Action.sendSnapshot(to: NodeID(3), term: Term(1))
        func accept(_ index: UInt64) -> ConsensusMessage.Body {
            .appendAccepted(match: LogIndex(index), received: LogIndex(index), commit: .zero)
        }
        leader.hear(accept(1), from: 3)
        leader.hear(asks, from: 3)
        #expect(leader.actions.contains(snapshot))
        leader.take(
            .proposed([.init(token: .init(1), payload: [1], wallMilliseconds: 0)]))
        #expect(!leader.said(to: 3).isEmpty, "its log may be needed for the quorum")
        leader.hear(accept(2), from: 3)
        #expect(!leader.actions.contains(.stopSnapshot(to: NodeID(3))))
        leader.pass(.milliseconds(500))
        #expect(leader.actions.contains(snapshot), "a chunk may be lost")
        leader.hear(.snapshotAnswer(index: LogIndex(2), next: 0, unneeded: true), from: 3)
        #expect(leader.actions.contains(.stopSnapshot(to: NodeID(3))))
        leader.pass(.milliseconds(500))
        #expect(!leader.actions.contains(snapshot))
    }

    /// Core audit 1: with the planted bug the log lets go of what a follower needs next.
    @Test(arguments: [false, true])
    func `C-31 a leader's log keeps what a follower that is behind needs`(forgets: Bool) {
        var leader = Bench(1, bugs: PlantedBugs(forgets ? [.releaseForgetsFollowers] : []))
        leader.lead()
        leader.take(
            .proposed([.init(token: .init(1), payload: [1], wallMilliseconds: 0)]))
        leader.sync()
        for (node, index) in [(2, 2), (3, 1)] as [(UInt32, UInt64)] {
            leader.hear(
                .appendAccepted(
                    match: LogIndex(index), received: LogIndex(index), commit: .zero), from: node)
        }
        let needs = leader.group.followerNeeds
        #expect(needs.contains { $0.node == NodeID(3) && $0.after == LogIndex(1) } == !forgets)
    }
}
