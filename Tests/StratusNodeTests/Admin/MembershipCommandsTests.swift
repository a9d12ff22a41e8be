import StratusAdminModel
import StratusCluster
import StratusHTTP
import StratusModel
import StratusRuntime
import Synchronization
import Testing

@testable import StratusAdmin
@testable import StratusControl
@testable import StratusNode
@testable import StratusPlacement

/// Tests the changes that administrators make to the cluster, and what `stratusctl doctor` finds
/// wrong with it.
@Suite struct MembershipCommandsTests {
    typealias Cluster = ClusterPagesTests.Cluster

    private func send(
        _ path: String, _ body: String = "", to cluster: Cluster?, method: String = "POST"
    ) async throws -> (status: Int, json: JSONValue) {
        try await Self.send(path, body, to: cluster, method: method)
    }

    static func send(
        _ path: String, _ body: String = "", query: String? = nil,
        to cluster: (any ClusterControl)?, method: String = "POST"
    ) async throws -> (status: Int, json: JSONValue) {
        let stage = AdminHandlerTests.Stage()
        let log = Log(level: .error, format: .json) { $0.count }
        let handler = AdminHandler(
            control: stage.control, health: stage.health, metrics: stage.metrics, log: log,
            settings: stage.settings, cluster: cluster)
        var headers = HeaderFields()
        headers.append("Authorization", "Bearer right")
        let answer = await handler.respond(
            to: HTTPRequest(
                head: RequestHead(
                    method: method, path: path, query: query, headers: headers),
                body: CollectedBody(Bytes(body.utf8)), peer: "test",
                identity: RequestIdentity(high: 1, low: 1)))
        guard case .bytes(let bytes) = answer.body else { throw SystemRefusal(.badRequest) }
        return (answer.status, try JSONDocument(parsing: bytes).root)
    }

    private static func cluster(_ outcome: SystemOutcome = .done(revision: 9)) throws -> Cluster {
        var cluster = Cluster(answer: .success(try ClusterPagesTests.view()))
        cluster.outcome = outcome
        return cluster
    }

    @Test func `a move that is refused says which node is in its way`() async throws {
        for (from, to, says) in [
            ("node-1", "node-4", "'node-4' has a replica of the partition already"),
            ("node-9", "node-4", "there is no node 'node-9'"),
        ] {
            let cluster = try Self.cluster(.refused(SystemRefusal(.moveImpossible)))
            let (status, json) = try await self.send(
                "/v1/cluster/partitions/1/move", #"{"from":"\#(from)","to":"\#(to)"}"#, to: cluster,
                method: "POST")
            #expect(status >= 400, "\(from)")
            #expect(json["error"]?["reason"]?.string == says, "\(from)")
        }
    }

    @Test func `every change becomes the command that it means`() async throws {
        let cases: [(String, String, String, SystemCommand)] = [
            (
                "POST", "/v1/cluster/nodes/node-3/drain", #"{"accept":2,"leave":true}"#,
                .drain(NodeID(3), leavesWhenEmpty: true, acceptedReplicaCount: 2)
            ),
            (
                "POST", "/v1/cluster/nodes/node-3/drain", "",
                .drain(NodeID(3), leavesWhenEmpty: false, acceptedReplicaCount: nil)
            ),
            ("POST", "/v1/cluster/nodes/node-2/undrain", "", .undrain(NodeID(2))),
            (
                "POST", "/v1/cluster/nodes/node-1/remove", #"{"accept":0}"#,
                .remove(NodeID(1), acceptedLossCount: 0)
            ),
            (
                "PUT", "/v1/cluster/nodes/node-1", #"{"weight":50,"rack":"west"}"#,
                .configure(NodeID(1), weight: 50, rack: "west")
            ),
            (
                "POST", "/v1/cluster/partitions/1/move", #"{"from":"node-1","to":"node-4"}"#,
                .beginMove(
                    ReplicaMove(
                        PartitionID(1).group, from: NodeID(1), to: NodeID(4), fence: LogIndex(12)))
            ),
        ]
        for (method, path, body, command) in cases {
            let cluster = try Self.cluster()
            let (status, json) = try await self.send(path, body, to: cluster, method: method)
            #expect(status == 200 && json["revision"]?.int64 == 9, "\(path)")
            #expect(cluster.asked.commands.withLock { $0 } == [command], "\(path)")
        }
    }

    @Test func `M-20 a refusal names the number that insists`() async throws {
        let refused = try Self.cluster(.refused(SystemRefusal(.holdsReplicas, count: 5, limit: 3)))
        let (status, json) = try await self.send("/v1/cluster/nodes/node-1/remove", to: refused)
        #expect(status == 409 && json["error"]?["accept"]?.int64 == 3)
        #expect(json["error"]?["reason"]?.string?.contains("accept 3") == true)
        let last = try Self.cluster(.refused(SystemRefusal(.lastNode)))
        let (_, other) = try await self.send("/v1/cluster/nodes/node-1/remove", to: last)
        #expect(other["error"]?["accept"]?.int64 == nil, "that cannot be insisted on")
    }

    @Test func `what cannot be meant is refused before anything is asked`() async throws {
        let cluster = try Self.cluster()
        let cases: [(String, String, Int)] = [
            ("/v1/cluster/nodes/nobody/drain", "", 404),
            ("/v1/cluster/nodes/node-1/drain", "{", 400),
            ("/v1/cluster/partitions/4/move", #"{"from":"node-1","to":"node-4"}"#, 404),
            ("/v1/cluster/partitions/1/move", "{}", 400),
            ("/v1/cluster/partitions/1/leader", #"{"to":"node-3"}"#, 409),
            ("/v1/cluster/join-tokens", #"{"validSeconds":0}"#, 400),
        ]
        for (path, body, wanted) in cases {
            #expect(try await self.send(path, body, to: cluster).status == wanted, "\(path)")
        }
        #expect(cluster.asked.commands.withLock { $0 }.isEmpty)
        #expect(try await self.send("/v1/cluster/nodes/a/drain", to: nil).status == 404)
        #expect(try await self.send("/v1/cluster/nodes/node-1/burn", to: cluster).status == 404)
    }

    @Test func `a join token is handed out once, with its end`() async throws {
        let (status, json) = try await self.send(
            "/v1/cluster/join-tokens", #"{"validSeconds":60}"#, to: try Self.cluster())
        #expect(status == 200 && json["token"]?.string == "secret")
        #expect(json["expiresMilliseconds"]?.int64 == 60_000)
    }

    @Test
    func `doctor finds the silent node, the wrong clock, the full disk and the lagging replica`()
        async throws
    {
        let cluster = try Self.cluster()
        let (status, health) = try await self.send(
            "/v1/cluster/health", to: cluster, method: "GET")
        #expect(status == 200)
        let page = ClusterPages.answer(try ClusterPagesTests.view(), cluster)
        let findings = Diagnosis.findings(
            ClusterSight(page, earlier: page, try ClusterHealthAnswer(reading: health)))
        let text = findings.map(\.what).joined(separator: "\n")
        #expect(text.contains("node 'node-3' does not answer"))
        #expect(text.contains("the clock of node 'node-2' is 60000 ms off"))
        #expect(text.contains("node 'node-2' has 1024 MiB of disk left"))
        #expect(text.contains("are behind"))
        #expect(!text.contains("certificate"), "they end in 400 days")
        #expect(findings.allSatisfy { !$0.advice.isEmpty })
    }

    /// From one replica to three: whenever the doctor is content, every partition has its own.
    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `doctor is silent about placement only where every partition has its replicas`(
        seed: UInt64
    ) throws {
        var random = SeededGenerator(seed: seed)
        var view = try ClusterPagesTests.view()
        let nodes = [NodeID(1), NodeID(3), NodeID(4)]
        let partitions = view.table.partitions
        for partition in partitions { view.table.setReplicas([nodes[0]], of: partition) }
        var missing = 2 * partitions.count
        while true {
            let cluster = ClusterPagesTests.Cluster(answer: .success(view))
            let page = ClusterPages.answer(view, cluster)
            let findings = Diagnosis.findings(
                ClusterSight(page, earlier: page, ClusterHealthAnswer())
            ).filter { $0.alarm == Diagnosis.placement }
            let short = partitions.count { view.table.replicas(of: $0).count < 3 }
            #expect(findings.isEmpty == (short == 0), "seed \(seed), \(missing) missing")
            if short == 0 { break }
            // One line, however many they are.
            #expect(findings.count == 1)
            let what =
                short == 1
                ? "1 partition has fewer replicas than wanted; \(missing) are missing"
                : "\(short) partitions have fewer replicas than wanted; \(missing) are missing"
            #expect(findings[0].what == what)
            let partition = try #require(
                partitions.filter { view.table.replicas(of: $0).count < 3 }
                    .randomElement(using: &random))
            let held = view.table.replicas(of: partition)
            view.table.setReplicas(held + [nodes[held.count]], of: partition)
            missing -= 1
        }
    }

    @Test
    func `doctor says that replicas are being copied, and leaves want of nodes to the cluster`()
        throws
    {
        func findings(_ page: String) throws -> [String] {
            let cluster = try ClusterAnswer(reading: Bytes(page.utf8))
            return Diagnosis.findings(
                ClusterSight(cluster, earlier: ClusterAnswer(), ClusterHealthAnswer())
            ).map(\.what)
        }
        let two =
            #""partitions": [{"partition": "0", "replicas": [1]}, {"partition": "1", "replicas": [1, 2]}]"#
        let move = #""moves": [{"partition": "0", "number": 1, "from": null, "to": 2}]"#
        #expect(
            try findings(
                #"{"revision": 3, "replicaCount": 3, "possibleReplicaCount": 3, \#(move), \#(two)}"#
            )
                == ["2 partitions have fewer replicas than wanted; copying, about 3 left"])
        #expect(
            try findings(
                #"{"revision": 3, "replicaCount": 3, "possibleReplicaCount": 2, \#(move), \#(two)}"#
            )
                == ["1 partition has fewer replicas than wanted; copying, about 1 left"])
        #expect(
            try findings(
                #"{"revision": 3, "replicaCount": 3, "possibleReplicaCount": 1, "moves": [], \#(two)}"#
            )
            .isEmpty)
    }

    @Test func `doctor says who is missing where nobody leads the system partition`() async throws {
        var cluster = ClusterPagesTests.Cluster(answer: .failure(.unavailable))
        #expect(
            try await self.send("/v1/cluster/health", to: cluster, method: "GET").status == 503,
            "it was never told who the others are")
        cluster.lastView = try ClusterPagesTests.view()
        let (status, health) = try await self.send(
            "/v1/cluster/health", to: cluster, method: "GET")
        #expect(status == 200 && health["isCurrent"]?.bool == false)
        // All four hold it, and node 3 is silent.
        let electing = try #require(
            try Diagnosis.withoutLeader(ClusterHealthAnswer(reading: health)))
        #expect(electing.what.contains("3 of the 4 nodes that hold it answer, and 3 are needed"))
        #expect(electing.advice.contains("an election may be under way"))

        cluster.silent = [NodeID(2), NodeID(3), NodeID(4)]
        let (_, silent) = try await self.send("/v1/cluster/health", to: cluster, method: "GET")
        let finding = try #require(
            try Diagnosis.withoutLeader(ClusterHealthAnswer(reading: silent)))
        #expect(finding.what.contains("1 of the 4 nodes that hold it answer, and 3 are needed"))
        #expect(finding.what.hasSuffix("Answering: 'node-1'. Silent: 'node-2', 'node-3', 'node-4'"))
        #expect(
            finding.advice.hasPrefix(
                "Start 'node-2' or 'node-3' or 'node-4': 2 of them are enough."))
        #expect(finding.advice.contains("recover --lost node-2,node-3,node-4'"))
        #expect(finding.advice.contains("never start those again"))

        let (_, well) = try await self.send(
            "/v1/cluster/health", to: try Self.cluster(), method: "GET")
        #expect(try Diagnosis.withoutLeader(ClusterHealthAnswer(reading: well)) == nil)
    }

    @Test func `nodes are asked how they are while the system partition is waited for`()
        async throws
    {
        var cluster = ClusterPagesTests.Cluster(answer: .failure(.unavailable))
        cluster.lastView = try ClusterPagesTests.view()
        let asked = cluster.asked
        cluster.viewed = {
            for _ in 0..<1_000 where asked.healthCount.withLock({ $0 }) < 4 {
                try? await Task.sleep(for: .milliseconds(10))
            }
            #expect(asked.healthCount.withLock { $0 } == 4)
        }
        let (status, health) = try await self.send(
            "/v1/cluster/health", to: cluster, method: "GET")
        #expect(status == 200 && health["isCurrent"]?.bool == false)
        #expect(asked.healthCount.withLock { $0 } == 4, "each is asked once")
    }

    @Test func `doctor names a partition whose mail does not get out`() throws {
        let health = try ClusterHealthAnswer(
            reading: Bytes(
                #"""
                {"wallMilliseconds": 1, "nodes": [{"name": "a", "node": 1, "reachable": true,
                "wallMilliseconds": 1, "complaints": [{"component": "mail",
                "reason": "mail from partition 3 to partition 7 has waited for 40 s: the receiver does not answer"}]}]}
                """#.utf8))
        let findings = Diagnosis.findings(
            ClusterSight(ClusterAnswer(), earlier: ClusterAnswer(), health))
        #expect(findings.count == 1)
        #expect(findings[0].what.hasPrefix("node 'a', mail: mail from partition 3 to partition 7"))
        #expect(findings[0].advice.contains("repair its partition"))
    }

    // MARK: Upgrades

    /// Four members whose announced levels are these, in a cluster of a level.
    private static func upgrading(at level: UInt32, _ announced: [UInt32]) throws
        -> ClusterPagesTests.Cluster
    {
        var view = try ClusterPagesTests.view()
        view.settings.featureLevel = level
        for (place, one) in announced.enumerated() { view.nodes[place].featureLevel = one }
        return ClusterPagesTests.Cluster(answer: .success(view))
    }

    @Test func `O-05 an upgrade is finalised once every member has announced the new level`()
        async throws
    {
        let path = "/v1/cluster/upgrade"
        let mixed = try Self.upgrading(at: 1, [2, 1, 2, 2])
        let (_, standing) = try await self.send(path, to: mixed, method: "GET")
        #expect(standing["featureLevel"]?.int64 == 1 && standing["newestLevel"]?.int64 == 2)
        #expect(standing["canFinalise"]?.bool == false)
        #expect(try UpgradeAnswer(reading: standing).lagging == ["node-2"])
        let (refused, why) = try await self.send(path, to: mixed)
        #expect(refused == 409)
        #expect(why["error"]?["reason"]?.string?.contains("'node-2' announced a lower") == true)
        #expect(mixed.asked.commands.withLock { $0.isEmpty })

        let ready = try Self.upgrading(at: 1, [2, 2, 2, 2])
        let (done, _) = try await self.send(path, to: ready)
        #expect(done == 200)
        #expect(ready.asked.commands.withLock { $0 } == [.raiseFeatureLevel(2)])

        let finalised = try Self.upgrading(at: 2, [2, 2, 2, 2])
        let (again, error) = try await self.send(path, to: finalised)
        #expect(again == 409 && error["error"]?["code"]?.string == "FINALISED")
    }

    @Test func `doctor reminds of finalising, and of nothing while builds are mixed`() async throws
    {
        func findings(_ cluster: ClusterPagesTests.Cluster) async throws -> [DoctorFinding] {
            let page = ClusterPages.answer(try #require(try await cluster.view()), cluster)
            return Diagnosis.findings(ClusterSight(page, earlier: page, ClusterHealthAnswer()))
                .filter { $0.alarm == Diagnosis.unfinishedUpgrade }
        }
        let reminder = try await findings(try Self.upgrading(at: 1, [2, 2, 2, 2]))
        #expect(reminder.count == 1 && reminder[0].advice.contains("stratusctl upgrade finalise"))
        #expect(try await findings(try Self.upgrading(at: 1, [2, 1, 2, 2])) == [])
        #expect(try await findings(try Self.upgrading(at: 2, [2, 2, 2, 2])) == [])
    }

    @Test func `top and partition show read the same pages`() async throws {
        let cluster = try Self.cluster()
        let (_, health) = try await self.send("/v1/cluster/health", to: cluster, method: "GET")
        let page = ClusterPages.answer(try ClusterPagesTests.view(), cluster)
        let seen = try ClusterHealthAnswer(reading: health)
        let overview = TopCommand.overview(page, seen)
        #expect(overview.contains("node-3  does not answer") && overview.contains("moves 0"))
        let shown = try #require(PartitionView("1", page, seen)).text
        #expect(shown.contains("leader") && shown.contains("node-1"))
        #expect(PartitionView("9", page, seen) == nil)
    }
}
