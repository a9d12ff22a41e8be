import Foundation
import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusLoad
import StratusModel
import Synchronization
import Testing

@testable import StratusControl

/// Answers and bodies as types: JSON out and in.
@Suite struct AnswerFormTests {
    private static let place = AnswerSamples.container
    private static let person = AnswerSamples.person
    private static let user = AnswerSamples.user

    /// The type of the answer to each request that has one object as its answer.
    private static let types: [(request: String, type: any NamedMembers.Type)] = [
        ("GET /v1/status", StatusAnswer.self), ("GET /v1/config", Listing<ConfiguredKey>.self),
        ("GET /v1/log-level", LogLevelAnswer.self), ("GET /v1/support", Listing<SupportText>.self),
        ("POST /v1/remains", RemainsAnswer.self), ("GET /v1/assets", AssetsAnswer.self),
        ("POST /v1/assets/verify", PartitionsAnswer.self),
        ("GET /v1/assets/audit", CopyDifferencesAnswer.self),
        ("GET /v1/cluster", ClusterAnswer.self),
        ("GET /v1/cluster/health", ClusterHealthAnswer.self),
        ("GET /v1/cluster/upgrade", UpgradeAnswer.self),
        ("POST /v1/cluster/upgrade", RevisionAnswer.self),
        ("POST /v1/cluster/join-tokens", JoinTokenAnswer.self),
        ("GET /v1/cluster/certificates", WithdrawnAnswer.self),
        ("POST /v1/cluster/nodes/a/remove", ErrorAnswer.self),
        ("POST /v1/cluster/partitions/0/leader", LeaderAnswer.self),
        ("GET /v1/containers", Listing<ContainerAnswer>.self),
        ("GET /v1/containers/iCloud.a", Listing<ContainerAnswer>.self),
        ("GET \(place)", ContainerDetails.self), ("POST \(place)", ContainerAnswer.self),
        ("POST \(place)/erasure", RemovalAnswer.self), ("GET \(place)/usage", UsageAnswer.self),
        ("GET \(place)/places", Listing<PlaceAnswer>.self),
        ("POST \(place)/references/audit", BucketsAnswer.self),
        ("GET \(place)/brand", BrandAnswer.self), ("PUT \(place)/brand", BrandAnswer.self),
        ("PUT \(place)/schema", SchemaAnswer.self),
        ("POST \(place)/schema/reset", ResetAnswer.self),
        ("POST \(place)/schema/reset/piece", RemovalAnswer.self),
        ("POST \(place)/copy", RecordCopyAnswer.self),
        ("GET /v1/users", UsersAnswer.self), ("POST /v1/users", IDAnswer.self),
        ("GET \(user)", UserAnswer.self), ("DELETE \(user)", ErasureAnswer.self),
        ("POST \(user)/reset-link", PathAnswer.self), ("POST \(user)/sign-in", SignInAnswer.self),
        ("GET \(place)/tokens", Listing<TokenRow>.self), ("POST \(place)/tokens", TokenAnswer.self),
        ("GET \(place)/keys", Listing<ServerKeyRow>.self),
        ("POST \(place)/keys", ServerKeyAnswer.self),
        ("GET \(place)/members", Listing<MemberRow>.self),
        ("POST \(place)/access", AccessAnswer.self), ("GET /v1/audit", Listing<AuditRow>.self),
        ("GET /v1/audit?verify=1", AuditCheck.self),
        ("GET \(person)/app-passwords", Listing<AppPasswordRow>.self),
        ("POST \(person)/app-passwords", AppPasswordAnswer.self),
        ("GET \(person)/key-values", KeyValuesAnswer.self),
        ("GET \(person)/key-values/devices", Listing<DeviceRow>.self),
        ("GET \(person)/documents", Listing<DocumentRow>.self),
        ("GET \(person)/documents/usage", Listing<DocumentUseRow>.self),
        ("GET \(person)/documents/versions", Listing<DocumentVersionRow>.self),
        ("GET \(person)/documents/locks", Listing<DocumentLockRow>.self),
        ("GET \(person)/documents/publications", Listing<PublicationRow>.self),
        ("GET /v1/sealing-keys", Listing<SealingKeyRow>.self),
        ("POST /v1/sealing-keys", SealingKeyAnswer.self),
        ("GET /v1/encryption-keys", MasterKeysAnswer.self),
        ("POST /v1/encryption-keys/rotation", MasterRotationAnswer.self),
        ("POST /v1/encryption-keys/forgetting", ForgettingAnswer.self),
        ("GET /v1/push", PushStatusAnswer.self), ("GET \(place)/push", PushKeysAnswer.self),
        ("POST \(place)/push/apns/check", Listing<APNsCheckRow>.self),
        ("POST \(place)/push/vapid", VAPIDKeyRow.self),
        ("GET \(place)/push/trace", Listing<PushTraceRow>.self),
        ("GET \(place)/push/devices", Listing<PushDeviceRow>.self),
        ("POST \(place)/push/send", PushSendAnswer.self),
        ("GET \(place)/push/explain", PushExplanationAnswer.self),
    ]

    @Test func `every answer is read, and written as it was`() throws {
        for (request, type) in Self.types {
            for sample in try #require(AnswerSamples.all[request], "\(request)") {
                let text = sample.first?.isNumber == true ? String(sample.dropFirst(4)) : sample
                let answer = try type.init(reading: Bytes(text.utf8))
                #expect(String(decoding: answer.json, as: UTF8.self) == text, "\(request)")
                let empty = try type.init(reading: Bytes("{}".utf8))
                #expect(try type.init(reading: empty.json).json == empty.json, "\(request)")
            }
        }
    }

    @Test func `members that are absent, null or unknown leave what there was`() throws {
        let text = #"{"level":null,"other":{"level":7}}"#
        #expect(try LogLevelAnswer(reading: Bytes(text.utf8)) == LogLevelAnswer(""))
        let node = try ClusterAnswer.Node(reading: Bytes(#"{"share":null,"rack":"x"}"#.utf8))
        #expect(node.share == nil && node.rack == "x")
    }

    static let misfits: [(text: String, says: String)] = [
        (#"{"nodes":{}}"#, "'nodes' must be a list"),
        (#"{"nodes":[1]}"#, "'nodes' must be an object"),
        (#"{"nodes":[{"name":7}]}"#, "'name' must be a text"),
        (#"{"nodes":[{"weight":1.5}]}"#, "'weight' must be a whole number"),
        (#"{"nodes":[{"share":"x"}]}"#, "'share' must be a number"),
        (#"{"isCurrent":"true"}"#, "'isCurrent' must be true or false"),
        ("[]", "'' must be an object"),
    ]

    @Test(arguments: misfits)
    func `a member of another kind is named`(row: (text: String, says: String)) throws {
        let misfit = try #require(throws: NamedForm.Misfit.self) {
            try ClusterAnswer(reading: Bytes(row.text.utf8))
        }
        #expect(misfit.description == row.says)
    }

    /// A script that writes "true" must not get a password that may write.
    @Test(arguments: [
        #"{"weight":"50"}"#, #"{"weight":true}"#, #"{"rack":7}"#, "[]", "{",
    ])
    func `a body with a member of another kind changes nothing`(body: String) async throws {
        let cluster = ClusterPagesTests.Cluster(answer: .success(try ClusterPagesTests.view()))
        let (status, json) = try await MembershipCommandsTests.send(
            "/v1/cluster/nodes/node-1", body, to: cluster, method: "PUT")
        #expect(status == 400 && json["error"]?["code"]?.string == "BAD_REQUEST", "\(body)")
        #expect(cluster.asked.commands.withLock { $0.isEmpty }, "\(body)")
    }

    @Test func `every command of the table runs, and every group has one`() {
        func walk(_ definition: CommandDefinition, _ path: [String]) {
            let run = ControlCommand.run(path, in: ControlProgram.commands)
            #expect((run == nil) == !definition.subcommands.isEmpty, "\(path)")
            for one in definition.subcommands { walk(one, path + [one.name]) }
        }
        for one in ControlProgram.definition.subcommands { walk(one, [one.name]) }
        #expect(ControlCommand.run(["nothing"], in: ControlProgram.commands) == nil)
        #expect(ControlCommand.run(["status", "more"], in: ControlProgram.commands) == nil)
    }

    /// An example says more than a list of options. Each is understood as it stands.
    @Test(arguments: [ControlProgram.definition, LoadProgram.definition])
    func `every command has an example that the parser takes`(program: CommandDefinition) {
        func leaves(_ definition: CommandDefinition, _ path: [String])
            -> [(path: [String], definition: CommandDefinition)]
        {
            definition.subcommands.isEmpty
                ? [(path, definition)]
                : definition.subcommands.flatMap { leaves($0, path + [$0.name]) }
        }
        let parser = CommandLineParser(
            program,
            variables: ["STRATUSCTL_CONTAINER": "iCloud.a", "STRATUSCTL_ENVIRONMENT": "production"])
        for (path, definition) in program.subcommands.flatMap({ leaves($0, [$0.name]) }) {
            #expect(!definition.examples.isEmpty, "\(path)")
            for example in definition.examples where example.command.hasPrefix(program.name) {
                let words = example.command.prefix { $0 != ">" && $0 != "|" }
                    .replacing("'", with: "").split(separator: " ").dropFirst().map(String.init)
                guard case .run(let invocation) = parser.parse(words) else {
                    Issue.record("\(example.command): \(parser.parse(words))")
                    continue
                }
                #expect(invocation.path == path, "\(example.command)")
            }
        }
    }

    /// Prints of its own: the value alone, the schema's text, the archive's lines, and nothing.
    private static let bare: [[String]] = [
        ["key-value", "get"], ["schema", "export"], ["user", "export"],
        ["container", "brand", "clear"],
    ]

    /// A container has two environments: an answer that names neither may be about the wrong one.
    @Test func `every command about a container says which, and which environment`() throws {
        var count = 0
        for one in ControlGoldenTests.cases where one.words.contains("--container") {
            let text = try String(
                contentsOf: ControlGoldenTests.place(of: one.name), encoding: .utf8)
            let runs = text.split(separator: "\n\n$ ")
            try #require(runs.count == 2, "\(one.name)")
            let (words, json) = (runs[0], runs[1].split(separator: "-- prints\n").last ?? "")
            // What is refused before a place is settled on is about none.
            if words.hasSuffix("-- ends with 64\n") || words.hasSuffix("-- ends with 64") {
                continue
            }
            count += 1
            #expect(words.contains("\ncontainer iCloud.a, environment "), "\(one.name)")
            if Self.bare.contains(where: { one.words.starts(with: $0) }) { continue }
            for line in json.split(separator: "\n").prefix(while: { !$0.hasPrefix("-- ") })
            where !line.hasPrefix(#"{"error":"#) {
                #expect(
                    line.contains(#""container":"#) && line.contains(#""environment":"#),
                    "\(one.name): \(line)")
            }
        }
        #expect(count > 50)
    }

    /// A command without a case would change unseen.
    @Test func `every command of the table has a golden file`() {
        func leaves(_ definition: CommandDefinition, _ path: [String]) -> [[String]] {
            definition.subcommands.isEmpty
                ? [path] : definition.subcommands.flatMap { leaves($0, path + [$0.name]) }
        }
        let all = ControlProgram.definition.subcommands.flatMap { leaves($0, [$0.name]) }
        #expect(all.count > 90)
        for path in all {
            #expect(ControlGoldenTests.cases.contains { $0.words.starts(with: path) }, "\(path)")
        }
    }
}
