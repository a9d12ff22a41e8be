import StratusConsensus
import StratusModel
import Testing

/// Core audit 3.3: replicas whose logs are whole and whose rows are gone, and one that has rows and
/// lacks the last entries.
@Suite struct StandInTests {
    private static let configuration = Configuration(voters: [NodeID(1), NodeID(2), NodeID(3)])

    private static func entries(_ range: ClosedRange<UInt64>) -> [Entry] {
        range.map {
            Entry(
                index: LogIndex($0), term: Term(2), time: HybridTime(milliseconds: Int64($0)),
                kind: .command, payload: [1])
        }
    }

    /// The log of all begins behind entry 10. Node 2 ends two entries earlier, and has the rows.
    private static func group(_ node: UInt32) -> RaftGroup {
        let base = LogPoint(index: LogIndex(10), term: Term(2))
        let hasRows = node == 2
        let rows = SnapshotIdentity(
            index: hasRows ? LogIndex(10) : .zero, term: hasRows ? Term(2) : .zero,
            configuration: Self.configuration, digest: .empty)
        return RaftGroup(
            group: GroupID(1), node: NodeID(node),
            recovered: RaftGroup.Recovered(
                hardState: HardState(term: Term(2), vote: nil), snapshot: rows, base: base,
                baseConfiguration: Self.configuration,
                entries: Self.entries(11...(hasRows ? 12 : 14))
            ), seed: UInt64(node))
    }

    /// Three replicas whose messages arrive and whose disks sync at once, until a time.
    private struct Cluster {
        var groups: [NodeID: RaftGroup] = [:]
        var now = MonotonicTime(nanoseconds: 0)
        var led: [NodeID] = []
        var refused: [NodeID] = []
        var applied: [NodeID: LogIndex] = [:]

        init(away: NodeID? = nil) {
            let nodes = (1...3 as ClosedRange<UInt32>).map { NodeID($0) }.filter { $0 != away }
            for node in nodes { self.groups[node] = StandInTests.group(node.raw) }
            for node in nodes {
                if let away { self.handle(node, .suspected(away)) }
                self.handle(node, .started)
            }
        }

        mutating func handle(_ node: NodeID, _ event: RaftGroup.Event) {
            var queue: [(NodeID, RaftGroup.Event)] = [(node, event)]
            var count = 0
            while !queue.isEmpty, count < 2_000 {
                count += 1
                let (node, event) = queue.removeFirst()
                guard self.groups[node] != nil else { continue }
                var actions: [RaftGroup.Action] = []
                self.groups[node]!.handle(event, at: self.now, into: &actions)
                for action in actions {
                    switch action {
                    case .send(let message, let to):
                        queue.append((to, .received(message, from: node)))
                    case .persist:
                        let group = self.groups[node]!
                        queue.append(
                            (
                                node,
                                .durable(
                                    through: group.log.last, term: group.log.lastPoint.term,
                                    hardState: group.hardState)
                            ))
                    case .roleChanged(.leader, _, _):
                        if self.led.last != node { self.led.append(node) }
                    case .apply(let through): self.applied[node] = through
                    case .refused: self.refused.append(node)
                    case .accepted, .readReady:
                        #expect(node == NodeID(2), "\(node) has no rows, and answers")
                    default: break
                    }
                }
            }
        }

        mutating func run(for milliseconds: Int64, asks: Bool = true) {
            for _ in 0..<(milliseconds / 50) {
                self.now = self.now + .milliseconds(50)
                for node in self.groups.keys.sorted() {
                    self.handle(node, .woke)
                    guard asks, self.groups[node]!.role == .leader else { continue }
                    self.handle(
                        node,
                        .proposed([
                            RaftGroup.Proposal(
                                token: .init(1), payload: [1], wallMilliseconds: 0, heldBy: nil)
                        ]))
                    self.handle(node, .readsRequested([.init(2)], applied: .zero))
                }
            }
        }
    }

    @Test func `a replica with the whole log and no rows leads, replicates, and hands over`() throws
    {
        var cluster = Cluster()
        cluster.run(for: 20_000)
        let first = try #require(cluster.led.first)
        #expect(first != NodeID(2), "it lacks entries that the others have")
        #expect(cluster.led.last == NodeID(2))
        #expect(cluster.groups[NodeID(2)]!.role == .leader)
        #expect(cluster.groups[NodeID(2)]!.log.term(at: LogIndex(14)) == Term(2))
        #expect(try #require(cluster.applied[NodeID(2)]) > LogIndex(14), "it takes commands")
    }

    @Test func `without anybody who has rows, one leads and serves nobody`() {
        var cluster = Cluster(away: NodeID(2))
        cluster.run(for: 20_000)
        #expect(cluster.led.count == 1, "nobody hands over in circles")
        #expect(!cluster.refused.isEmpty)
        #expect(cluster.applied.isEmpty)
    }
}
