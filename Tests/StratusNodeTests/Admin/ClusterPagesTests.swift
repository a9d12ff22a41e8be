import StratusAdminModel
import StratusCluster
import StratusCommandLine
import StratusDoubles
import StratusHTTP
import StratusModel
import StratusPlacement
import StratusRuntime
import Synchronization
import Testing

@testable import StratusAdmin
@testable import StratusControl
@testable import StratusNode

/// `/v1/cluster`, and what `stratusctl` makes of it.
@Suite struct ClusterPagesTests {
    struct Cluster: ClusterControl {
        var answer: Result<ClusterView?, NodeControlFailure>
        var node: NodeID { NodeID(2) }
        var lastView: ClusterView?
        var silent: Set<NodeID> = [NodeID(3)]
        func view(within patience: Duration) async throws(NodeControlFailure) -> ClusterView? {
            await self.viewed()
            return try self.answer.get()
        }
        /// Runs before the system partition answers.
        var viewed: @Sendable () async -> Void = {}
        func leader(of group: GroupID) -> NodeID? { group == .system ? NodeID(3) : nil }
        var outcome = SystemOutcome.done(revision: 9)
        let asked = Asked()
        func change(_ command: SystemCommand) async throws(NodeControlFailure) -> SystemOutcome {
            self.asked.commands.withLock { $0.append(command) }
            return self.outcome
        }
        func makeJoinToken(validFor duration: Duration) async throws(NodeControlFailure) -> (
            token: String, expiresMilliseconds: Int64
        ) { ("secret", duration.components.seconds * 1_000) }
        /// Node 3 is silent; node 2's clock is a minute ahead and its disk is nearly full.
        func ask(_ question: NodeQuestion, of node: NodeID) async -> NodeReply? {
            if case .health = question { self.asked.healthCount.withLock { $0 += 1 } }
            switch question {
            case .observe:
                return .observed([
                    GroupObservation(
                        group: PartitionID(1).group, leader: NodeID(1),
                        configuration: Configuration(voters: [NodeID(1), NodeID(4)]),
                        configurationIndex: LogIndex(12), isCommitted: true,
                        caughtUp: [NodeID(1)])
                ])
            case .health where !self.silent.contains(node):
                var health = NodeHealth()
                health.wallMilliseconds = node == NodeID(2) ? 61_000 : 1_000
                health.diskBytes = 100 << 30
                health.freeBytes = node == NodeID(2) ? 1 << 30 : 50 << 30
                health.certificateEnds = 400 * 86_400
                return .health(health)
            default: return .done(true)
            }
        }
        var wallMilliseconds: Int64 { 1_000 }
        /// Node 3 has been silent for 41 seconds, node 4 was never heard.
        func lastHeardMilliseconds(_ node: NodeID) -> Int64? {
            node == NodeID(4) ? nil : node == NodeID(3) ? -40_000 : 500
        }
    }

    final class Asked: Sendable {
        let commands = Mutex<[SystemCommand]>([])
        let healthCount = Mutex(0)
    }

    /// Three founders, the second drained by somebody who knew what it costs, one partition on the
    /// move.
    static func view() throws -> ClusterView {
        let nodes = (1...4).map { number in
            ClusterNode(
                id: NodeID(UInt32(number)), name: "node-\(number)",
                address: "10.0.0.\(number):7400", rack: number == 1 ? "east" : "")
        }
        let commands: [SystemCommand] = [
            .form(
                Formation(
                    cluster: ClusterID(high: 1, low: 2), partitionCount: 4, replicaCount: 3,
                    nodes: nodes)),
            .drain(NodeID(2), leavesWhenEmpty: false, acceptedReplicaCount: nil),
        ]
        return try DrainProgressTests.views(commands).last!
    }

    private func ask(_ cluster: (any ClusterControl)?) async throws -> (Int, JSONValue) {
        try await MembershipCommandsTests.send("/v1/cluster", to: cluster, method: "GET")
    }

    @Test func `the cluster's page shows nodes with their shares, and where everything is`()
        async throws
    {
        let (status, json) = try await self.ask(Cluster(answer: .success(try Self.view())))
        #expect(status == 200)
        #expect(json["cluster"]?.string == "00000000000000010000000000000002")
        #expect(json["partitionCount"]?.int64 == 4 && json["answeredBy"]?.int64 == 2)
        let nodes = try #require(json["nodes"]?.array.map(Array.init))
        #expect(nodes.map { $0["state"]?.string } == ["active", "draining", "active", "active"])
        #expect(nodes[0]["share"]?.double == 4 && nodes[1]["share"]?.double == nil)
        #expect(nodes[0]["rack"]?.string == "east" && nodes[0]["wasHeard"]?.bool == false)
        let partitions = try #require(json["partitions"]?.array.map(Array.init))
        #expect(partitions.count == 5 && partitions[0]["partition"]?.string == "system")
        #expect(partitions[0]["leader"]?.int64 == 3 && partitions[1]["leader"]?.int64 == nil)
        #expect(partitions[1]["replicas"]?.array.map(Array.init)?.count == 3)
    }

    static let without: [(name: String, cluster: Cluster?, status: Int, code: String)] = [
        ("alone", nil, 404, "NOT_CLUSTERED"),
        ("not formed", Cluster(answer: .success(nil)), 503, "NOT_FORMED"),
        ("no leader", Cluster(answer: .failure(.unavailable)), 503, "UNAVAILABLE"),
        ("damage", Cluster(answer: .failure(.failed("torn"))), 500, "INTERNAL_ERROR"),
    ]

    @Test func `what keeps the cluster from answering has a code of its own`() async throws {
        for (name, cluster, status, code) in Self.without {
            let (got, json) = try await self.ask(cluster)
            #expect(got == status, "\(name)")
            #expect(json["error"]?["code"]?.string == code, "\(name)")
        }
    }

    @Test
    func `D12 the cluster is shown as last known where nobody leads it, if that is asked for`()
        async throws
    {
        var cluster = Cluster(answer: .failure(.unavailable))
        cluster.lastView = try Self.view()
        #expect(try await self.ask(cluster).0 == 503)
        let (status, json) = try await MembershipCommandsTests.send(
            "/v1/cluster", query: "lastKnown=1", to: cluster, method: "GET")
        #expect(status == 200 && json["isCurrent"]?.bool == false)
        let old = try ClusterAnswer(reading: json)
        #expect(ClusterControlCommands.remark(old)?.contains("As last known") == true)
        let (_, page) = try await self.ask(Cluster(answer: .success(try Self.view())))
        let now = try ClusterAnswer(reading: page)
        #expect(now.isCurrent && ClusterControlCommands.remark(now) == nil)
    }

    @Test func `D12 a node that does not answer is not shown as up`() throws {
        let view = try Self.view()
        let page = ClusterPages.answer(view, Cluster(answer: .success(view)))
        let health = try ClusterHealthAnswer(
            reading: Bytes(
                #"{"nodes":[{"node":1,"reachable":true},{"node":2,"reachable":false}]}"#.utf8))
        let text = ClusterControlCommands.nodes(page, health)
        let rows = text.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
        #expect(rows[0].contains("UP") && rows[1].contains("yes"))
        #expect(rows[2].contains("NO"))
        #expect(!rows[3].contains("NO") && !rows[3].contains("yes"), "it was not asked")
    }

    @Test func `D12 a node's row says when it was last heard, for people and for scripts`() throws {
        let view = try Self.view()
        let page = ClusterPages.answer(view, Cluster(answer: .success(view)))
        let nodes = page.nodes
        #expect(
            nodes.map(\.lastHeardMilliseconds)
                == [500, 500, -40_000, nil])
        #expect(
            nodes.map { ClusterControlCommands.lastHeard($0, in: page) }
                == ["now", "now", "41 s ago", "never"])
        let text = ClusterControlCommands.nodes(page, nil)
        #expect(text.contains("HEARD") && text.contains("41 s ago"))
        for (seconds, words) in [
            (4, "now"), (5, "5 s ago"), (119, "119 s ago"), (120, "2 min ago"),
            (7_199, "119 min ago"),
            (7_200, "2 h ago"), (172_800, "2 days ago"), (-60, "now"),
        ] {
            let heard = 1_000 - Int64(seconds) * 1_000
            let node = ClusterAnswer.Node { $0.lastHeardMilliseconds = heard }
            #expect(ClusterControlCommands.lastHeard(node, in: page) == words, "\(seconds)")
        }
        // A node of an older release does not say.
        let old = try ClusterAnswer(reading: Bytes("{}".utf8))
        #expect(ClusterControlCommands.lastHeard(nodes[0], in: old) == "-")
    }

    @Test func `D14 a partition is shown to scripts with the names of its nodes`() throws {
        let view = try Self.view()
        let page = ClusterPages.answer(view, Cluster(answer: .success(view)))
        let health = ClusterHealthAnswer()
        let shown = try #require(PartitionView("1", page, health))
        let json = try JSONDocument(parsing: shown.json).root
        #expect(json["partition"]?.string == "1")
        #expect(json["replicas"]?.array.map(Array.init)?.count == 3)
        #expect(json["replicas"]?.array.map(Array.init)?[0].string?.hasPrefix("node-") == true)
        #expect(PartitionView("99", page, health) == nil)
    }

    @Test func `stratusctl shows the cluster, its nodes and its partitions as tables`() throws {
        let view = try Self.view()
        let page = ClusterPages.answer(view, Cluster(answer: .success(view)))
        let status = ClusterControlCommands.status(page, nil)
        #expect(status.contains("leaders known  1 of 5; a partition that nobody uses needs none\n"))
        let nodes = ClusterControlCommands.nodes(page, nil)
        #expect(status.hasSuffix(nodes))
        #expect(nodes.contains("node-2  10.0.0.2:7400  draining, never heard of"))
        let rows = nodes.split(separator: "\n")
        #expect(rows.count == 5 && rows[1].hasSuffix("4"), "a whole share has no digits after it")
        let all = try #require(ClusterControlCommands.partitions(page))
        #expect(all.split(separator: "\n").count == 6)
        let leaderless = try #require(
            ClusterControlCommands.partitions(page, onlyLeaderless: true))
        #expect(leaderless.split(separator: "\n").count == 5)
        #expect(!leaderless.contains("system"))
        let one = try #require(ClusterControlCommands.partitions(page, on: "node-1"))
        #expect(one.split(separator: "\n").dropFirst().allSatisfy { $0.contains("node-1") })
        #expect(ClusterControlCommands.partitions(page, on: "nobody") == nil)
    }
}
