import Foundation
import StratusAdmin
import StratusCluster
import StratusHTTP
import StratusModel
import StratusPlacement
import StratusRuntime
import Testing

/// What the administrators' pages about the node and its cluster answer, byte for byte. Their
/// answers are a contract: the file in `Golden/` changes with the contract only. With
/// `STRATUS_GOLDEN=write` it is written anew.
@Suite struct NodeAnswerTests {
    private static let schema = AdminHandlerTests.schemaPath

    /// Needs no cluster.
    private static let requests: [(String, String, String)] = [
        ("GET", "/healthz", ""), ("GET", "/v1/status", ""), ("GET", "/v1/config", ""),
        ("GET", "/v1/log-level", ""), ("PUT", "/v1/log-level", #"{"level":"debug"}"#),
        ("PUT", "/v1/log-level", #"{"level":7}"#), ("GET", "/v1/support", ""),
        ("GET", "/v1/assets", ""), ("POST", "/v1/assets/verify", ""),
        ("POST", "/v1/assets/audit", ""), ("GET", "/v1/assets/audit?after=2/a0/697", ""),
        ("GET", "/v1/assets/audit?after=x", ""), ("POST", "/v1/remains", ""),
        ("PUT", schema, AdminHandlerTests.typeA), ("PUT", schema + "?dryRun=1", ""),
        ("PUT", schema, "DEFINE"), ("GET", schema, ""), ("POST", schema + "/promote", ""),
        (
            "POST", schema.replacing("development", with: "production") + "/promote?dryRun=1", ""
        ),
        ("GET", "/v1/cluster", ""), ("GET", "/nothing", ""), ("POST", "/v1/status", ""),
    ]

    private static let changes: [(String, String, String)] = [
        ("GET", "/v1/cluster", ""), ("GET", "/v1/cluster/health", ""),
        ("GET", "/v1/cluster/upgrade", ""), ("POST", "/v1/cluster/upgrade", ""),
        ("POST", "/v1/cluster/join-tokens", #"{"validSeconds":60}"#),
        ("POST", "/v1/cluster/join-tokens", #"{"validSeconds":0}"#),
        ("POST", "/v1/cluster/nodes/node-1/drain", #"{"leave":true,"accept":1}"#),
        ("POST", "/v1/cluster/nodes/node-1/drain", "{"),
        ("POST", "/v1/cluster/nodes/node-9/drain", ""),
        ("PUT", "/v1/cluster/nodes/node-1", #"{"weight":50,"rack":"west"}"#),
        ("GET", "/v1/cluster/certificates", ""),
        ("POST", "/v1/cluster/certificates/ab/withdraw", ""),
        ("POST", "/v1/cluster/partitions/1/move", #"{"from":"node-1","to":"node-4"}"#),
        ("POST", "/v1/cluster/partitions/1/move", #"{"from":"node-1"}"#),
        ("POST", "/v1/cluster/partitions/9/move", #"{"from":"node-1","to":"node-4"}"#),
        ("POST", "/v1/cluster/partitions/1/leader", #"{"to":"node-4"}"#),
        ("POST", "/v1/cluster/partitions/1/leader", #"{"to":"node-3"}"#),
        ("POST", "/v1/cluster/partitions/1/leader", "{}"),
        ("GET", "/v1/cluster/nodes/node-1/support", ""),
    ]

    private func ask(
        _ request: (String, String, String), _ cluster: (any ClusterControl)?,
        _ stage: AdminHandlerTests.Stage
    ) async -> String {
        let (method, target, body) = request
        let handler = AdminHandler(
            control: stage.control, health: stage.health, metrics: stage.metrics,
            log: Log(level: .error, format: .json) { $0.count }, settings: stage.settings,
            cluster: cluster)
        let parts = target.split(separator: "?", maxSplits: 1).map(String.init)
        let answer = await handler.respond(
            to: HTTPRequest(
                head: RequestHead(
                    method: method, path: parts[0], query: parts.count == 2 ? parts[1] : nil,
                    headers: HeaderFields([.init(name: "authorization", value: "Bearer right")])),
                body: CollectedBody(Bytes(body.utf8)), peer: "127.0.0.1:9",
                identity: RequestIdentity(high: 1, low: 2)))
        guard case .bytes(let bytes) = answer.body else { return "" }
        let text = String(decoding: bytes, as: UTF8.self)
        return "\(method) \(target) \(body)\n\(answer.status) \(text)\n"
    }

    @Test func `the pages about the node and its cluster answer as ever`() async throws {
        let stage = AdminHandlerTests.Stage()
        var text = ""
        for request in Self.requests { text += await self.ask(request, nil, stage) }
        var cluster = ClusterPagesTests.Cluster(answer: .success(try ClusterPagesTests.view()))
        cluster.lastView = try ClusterPagesTests.view()
        for request in Self.changes { text += await self.ask(request, cluster, stage) }
        let page = ("GET", "/v1/cluster", "")
        let change = ("POST", "/v1/cluster/nodes/node-1/remove", "")
        for (name, failure) in [
            ("unavailable", NodeControlFailure.unavailable), ("unknown", .outcomeUnknown),
            ("overtaken", .overtaken), ("refused", .refused("no")), ("failed", .failed("torn")),
        ] {
            let away = ClusterPagesTests.Cluster(answer: .failure(failure))
            text += name + "\n" + (await self.ask(page, away, stage))
            text += await self.ask(change, away, stage)
        }
        let unformed = ClusterPagesTests.Cluster(answer: .success(nil))
        text += await self.ask(page, unformed, stage)
        text += await self.ask(change, unformed, stage)
        for refusal in [
            SystemRefusal(.holdsReplicas, count: 5, limit: 3), SystemRefusal(.lastNode),
            SystemRefusal(.tooFewNodes, count: 2, limit: 3),
        ] {
            cluster.outcome = .refused(refusal)
            text += await self.ask(change, cluster, stage)
        }
        let place = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Golden/node-answers.txt")
        if ProcessInfo.processInfo.environment["STRATUS_GOLDEN"] == "write" {
            try Data(text.utf8).write(to: place)
        }
        let wanted = (try? String(contentsOf: place, encoding: .utf8)) ?? ""
        let lines = text.split(separator: "\n"), kept = wanted.split(separator: "\n")
        #expect(lines.count == kept.count)
        for (line, known) in zip(lines, kept) { #expect(line == known) }
    }
}
