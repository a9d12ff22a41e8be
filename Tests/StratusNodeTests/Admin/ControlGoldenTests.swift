import ChildProcesses
import Foundation
import StratusHTTP
import StratusModel
import StratusRuntime
import Testing

/// What each command of `stratusctl` asks, prints and ends with, for people and for scripts. The
/// answers of `--json` are a contract: their files in `Golden/` change with the contract only. With
/// `STRATUS_GOLDEN=write` the files are written anew.
@Suite struct ControlGoldenTests {
    struct Case: Sendable {
        var name: String
        var words: [String]
        /// What the node answers differently from ``AnswerSamples``.
        var answers: [String: [String]] = [:]

        init(_ words: String, _ name: String? = nil, _ answers: [String: [String]] = [:]) {
            self.words = words.split(separator: " ").map(String.init)
            self.name = name ?? self.words.prefix { !$0.hasPrefix("-") }.joined(separator: "-")
            self.answers = answers
        }
    }

    private static let container = "--container iCloud.a"
    private static let place = container + " --environment development"
    private static let email = "--email ann@b.c"
    private static let person = email + " " + place
    private static let key = "--team DEF123GHIJ --key-id ABC123DEFG"
    private static let sound = AnswerSamples.container + "/assets/verify"

    static let cases: [Case] =
        Self.nodeCases + Self.clusterCases + Self.containerCases + Self.peopleCases
        + Self.keyCases + Self.pushCases

    static let nodeCases = [
        Case("status"), Case("status --partitions", "status-partitions"), Case("ready"),
        Case("alive"), Case("metrics"),
        Case(
            "ready", "ready-refused",
            ["GET /readyz": ["503 not ready\nlog: a sync failed\ndisk: it is full\n"]]),
        Case("config show"), Case("config show --changed", "config-show-changed"),
        Case("log-level show"), Case("log-level set debug"),
        Case("support --output DIR/support.tar"),
        Case("assets status"), Case("assets verify"),
        Case("assets verify --wait", "assets-verify-wait"),
        Case("assets verify \(place)", "assets-verify-container"),
        Case("assets audit"), Case("assets lost"),
        Case(
            "assets lost", "assets-lost-none", ["GET /v1/assets/lost": ["{\"done\":true}\n"]]),
        Case(
            "assets lost", "assets-lost-cut",
            ["GET /v1/assets/lost": [#"{"error":{"code":"INCOMPLETE","reason":"torn"}}"# + "\n"]]),
        Case("assets adopt DIR/nothing", "assets-adopt-nothing"),
        Case("doctor"),
        Case(
            "doctor", "doctor-alone",
            [
                "GET /v1/cluster": [Self.error(404, "NOT_CLUSTERED", "this node works alone")],
                "GET /v1/cluster/health": [
                    Self.error(404, "NOT_CLUSTERED", "this node works alone")
                ],
            ]),
        Case(
            "doctor", "doctor-unformed",
            [
                "GET /v1/cluster": [Self.error(503, "NOT_FORMED", "not formed yet")],
                "GET /v1/cluster/health": [Self.error(503, "NOT_FORMED", "not formed yet")],
                "GET /readyz": ["503 not ready\nformation: peers are away\n"],
            ]),
        Case(
            "doctor", "doctor-leaderless",
            [
                "GET /v1/cluster": [Self.error(503, "UNAVAILABLE", "no leader")],
                "GET /v1/cluster/health": [
                    #"{"isCurrent":false,"systemReplicas":[1,2,3],"nodes":[{"name":"a","node":1,"reachable":true},{"name":"b","node":2,"reachable":false},{"name":"c","node":3,"reachable":false}],"groups":[]}"#
                ],
            ]),
        Case(
            "status", "refused-token",
            ["GET /v1/status": [Self.error(401, "NOT_AUTHENTICATED", "send the token")]]),
        Case("status", "not-json", ["GET /v1/status": ["<html>"]]),
        Case("status", "not-an-administrator", ["GET /v1/status": ["404 <html>"]]),
    ]

    private static func error(_ status: Int, _ code: String, _ reason: String) -> String {
        #"\#(status) {"error":{"code":"\#(code)","reason":"\#(reason)"}}"#
    }

    private static let moving = AnswerSamples.cluster["GET /v1/cluster"]!.map {
        $0.replacing(
            #""moves":[]"#, with: #""moves":[{"partition":"0","number":4,"from":null,"to":2}]"#)
    }

    static let clusterCases = [
        Case("cluster status"), Case("node list"), Case("partition list"),
        Case("node list --removed", "node-list-removed"),
        Case(
            "cluster status", "cluster-status-old",
            [
                "GET /v1/cluster": AnswerSamples.cluster["GET /v1/cluster"]!.map {
                    $0.replacing(#""isCurrent":true"#, with: #""isCurrent":false"#)
                }
            ]),
        Case("partition list --on a --leaderless", "partition-list-on"),
        Case("partition list --on nobody", "partition-list-nobody"),
        Case("partition show 0", "partition-show", ["GET /v1/cluster": Self.moving]),
        Case("partition show 9", "partition-show-none"),
        Case("partition of \(place) --owner _u --zone z"),
        Case("partition move 0 --from a --to b", "partition-move"),
        Case("partition leader 0 --to a", "partition-leader"),
        Case("cluster join-token"), Case("cluster certificate list"),
        Case("cluster certificate withdraw AB:12 --of c", "cluster-certificate-withdraw"),
        Case("cluster certificate restore AB:12", "cluster-certificate-restore"),
        Case("node drain a --no-wait --accept 2", "node-drain-no-wait"),
        Case("node drain c", "node-drain"), Case("node undrain a", "node-undrain"),
        Case("node remove c", "node-remove"), Case("node remove a --now", "node-remove-now"),
        Case("node replace c a", "node-replace"), Case("node replace a b", "node-replace-none"),
        Case("node weight a 50 --rack east", "node-weight"),
        Case("node weight a 0", "node-weight-none"),
        Case("top --count 1"),
        Case("upgrade status"), Case("upgrade check"), Case("upgrade finalise"),
        Case("upgrade finalise --anyway", "upgrade-finalise-anyway"),
        Case(
            "upgrade status", "upgrade-status-ready",
            [
                "GET /v1/cluster/upgrade": AnswerSamples.cluster["GET /v1/cluster/upgrade"]!.map {
                    $0.replacing(#""canFinalise":false"#, with: #""canFinalise":true"#)
                }
            ]),
        Case(
            "upgrade finalise", "upgrade-finalised",
            [
                "GET /v1/cluster/upgrade": AnswerSamples.cluster["GET /v1/cluster/upgrade"]!.map {
                    $0.replacing(#""isFinalised":false"#, with: #""isFinalised":true"#)
                }
            ]),
    ]

    static let containerCases = [
        Case("container create \(place) --buckets 4"),
        Case(
            "container create \(place) --placement zone --zone-buckets 8", "container-create-zone"),
        Case("container list"), Case("container show \(place)"),
        Case("container show \(container)", "container-show-one-environment"),
        Case(
            "container show \(container)", "container-show-both-environments",
            ["GET /v1/containers/iCloud.a": [Self.both]]),
        Case(
            "token list \(container)", "token-list-none",
            ["GET /v1/containers/iCloud.a": [#"{"containers":[]}"#]]),
        Case("container show --container naïve", "container-show-unnameable"),
        Case("container usage \(place)"),
        Case("container usage \(place) --all", "container-usage-all"),
        Case("container audit \(place)"),
        Case("container brand show \(place)"),
        Case("container brand set \(place) --name Shelves --no-logo", "container-brand-set"),
        Case("container brand clear \(place)"),
        Case("container delete \(place) --confirm iCloud.a"),
        Case("container delete \(place) --confirm iCloud.a --no-wait", "container-delete-no-wait"),
        Case("container delete \(place) --confirm b", "container-delete-unconfirmed"),
        Case("schema export \(place)"), Case("schema import \(place) DIR/a.ckdb", "schema-import"),
        Case(
            "schema import \(place) --existing DIR/a.ckdb", "schema-import-refused",
            [
                "PUT \(AnswerSamples.container)/schema": [
                    Self.error(400, "BAD_SCHEMA", "line 1, column 7: a word is missing")
                ]
            ]),
        Case("schema diff \(place) DIR/a.ckdb", "schema-diff"),
        Case("schema promote \(container) --confirm iCloud.a"),
        Case("schema promote \(container)", "schema-promote-unconfirmed"),
        Case("schema promote \(container) --confirm b", "schema-promote-other"),
        Case("schema promote \(container) --dry-run", "schema-promote-dry"),
        Case("schema reset \(container) --confirm iCloud.a"),
        Case("schema reset \(container) --dry-run", "schema-reset-dry"),
        Case(
            "container copy \(container) --from development --to production --confirm iCloud.a",
            "container-copy"),
        Case(
            "container copy \(container) --from development --to production",
            "container-copy-unconfirmed"),
        Case(
            "container copy \(container) --from production --to development",
            "container-copy-refused",
            [
                "POST /v1/containers/iCloud.a/environments/production/copy": [
                    #"{"made":0,"there":2,"fileBytes":0,"waiting":[{"record":"a","reason":"not there yet"}],"refused":[]}"#
                ]
            ]),
    ]

    private static let both = [
        #"{"containers":[{"container":"iCloud.a","environment":"development","state":"active"},"#,
        #"{"container":"iCloud.a","environment":"production","state":"active"}]}"#,
    ].joined()

    static let peopleCases = [
        Case("token create \(place) --name web --origins https://a.b,https://c.d --names"),
        Case("token list \(place)"), Case("token revoke \(place) ab", "token-revoke"),
        Case("key add \(place) --name import --public-key DIR/public.pem"),
        Case("key list \(place)"), Case("key revoke \(place) ab", "key-revoke"),
        Case("user add \(email) --given-name Ann --family-name Bee --discoverable"),
        Case("user list"), Case("user show \(email)"), Case("user delete \(email)"),
        Case("user delete \(email) --wait", "user-delete-wait"),
        Case("user erasures"),
        Case(
            "user erasures", "user-erasures-left",
            [
                "POST /v1/remains": [
                    #"{"isCleared":false,"nodes":[{"node":"a","answers":true,"isCleared":false,"partitions":2,"log":true,"since":"2024-03-05T09:30:00.000Z"},{"node":"b","answers":false,"isCleared":false},{"node":"c","answers":true,"isCleared":false,"partitions":0,"log":false}],"positions":[]}"#
                ]
            ]),
        Case("user change \(email) --to bee@b.c --given-name Anna"),
        Case("user change \(email)", "user-change-nothing"),
        Case("user verify-address \(email)"), Case("user unverify-address \(email)"),
        Case("user invite \(email)"),
        Case("user sign-out \(email) --session 0f", "user-sign-out-one"),
        Case("user add \(email) --unverified", "user-add-unverified"),
        Case("user disable \(email)"), Case("user enable \(email)"), Case("user sign-out \(email)"),
        Case("user reset-link \(email)"), Case("user sign-in \(person) --stay"),
        Case("user export \(person)"),
        Case("user export \(person) --assets DIR/files", "user-export-assets"),
        Case("user app-password add \(person) --label laptop --read-only"),
        Case("user app-password list \(person)"),
        Case("user app-password revoke \(person) p1", "user-app-password-revoke"),
        Case("role list \(place)"), Case("role grant \(place) --user _u editor", "role-grant"),
        Case("role revoke \(place) --user _u editor", "role-revoke"),
        Case("explain-access \(place) --type Book --user _u --creator _v"),
        Case("audit"), Case("audit --limit 5", "audit-limit"),
        Case("audit --verify", "audit-verify"),
        Case("key-value list \(person)"), Case("key-value get \(person) theme", "key-value-get"),
        Case("key-value get \(person) none", "key-value-get-none"),
        Case("key-value set \(person) theme {\"string\":\"dark\"}", "key-value-set"),
        Case("key-value remove \(person) theme", "key-value-remove"),
        Case("key-value devices \(person)"),
        Case("documents list \(person) --path Documents"), Case("documents usage \(person)"),
        Case("documents versions \(person) Documents/a.txt", "documents-versions"),
        Case("documents locks \(person)"),
        Case("documents unlock \(person) urn:x", "documents-unlock"),
        Case("documents publications \(person)"),
        Case("documents withdraw \(person) p1", "documents-withdraw"),
    ]

    static let keyCases = [
        Case("sealing-key list"), Case("sealing-key rotate"),
        Case("sealing-key revoke --before 3"),
        Case("sealing-key revoke --all", "sealing-key-revoke-all"),
        Case("encryption-key list"), Case("encryption-key check"), Case("encryption-key rotate"),
        Case("encryption-key rotate-databases \(place)"),
        Case("encryption-key rotate-container \(place)"),
        Case(
            "encryption-key rotate-container \(place)", "encryption-key-rotate-container-stopped",
            [
                "POST /v1/encryption-keys/containers/rotation": [
                    #"{"keys":0,"pushKeys":0,"partitions":0,"failures":0,"waitsMilliseconds":0,"retired":false,"stopped":"no majority"}"#
                        + "\n"
                ]
            ]),
        Case("encryption-key forget 1", "encryption-key-forget"),
    ]

    static let pushCases = [
        Case("push status"), Case("push trace \(place) --record r --limit 5"),
        Case("push devices \(place) --user _u"), Case("push send \(place) --user _u --alert Hello"),
        Case("push explain \(place) --user _u --record r"),
        Case("push pause \(place)"), Case("push resume \(place)"),
        Case("push apns add \(place) \(key) --key-file DIR/key.p8 --topics org.a,org.b"),
        Case("push apns list \(place)"), Case("push apns remove \(place) \(key)"),
        Case("push apns check \(place) --topic org.a --apns-environment production"),
        Case("push vapid create \(place) --contact mailto:a@b.c"),
        Case(
            "push vapid create \(place) --contact mailto:a@b.c", "push-vapid-create-first",
            ["GET \(AnswerSamples.container)/push": [#"{"paused":false,"apns":[],"vapid":[]}"#]]),
        Case("push vapid rotate \(place)"), Case("push vapid show \(place)"),
    ]

    static func place(of name: String) -> URL {
        URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Golden/control/\(name).txt")
    }

    private func compare(_ text: String, with name: String) throws {
        let place = Self.place(of: name)
        if ProcessInfo.processInfo.environment["STRATUS_GOLDEN"] == "write" {
            try FileManager.default.createDirectory(
                at: place.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: place)
        }
        let wanted = try? String(contentsOf: place, encoding: .utf8)
        #expect(text == wanted, "\(name)")
    }

    /// A directory with the files that the commands read.
    private static func makeDirectory() throws -> TemporaryDirectory {
        let directory = try TemporaryDirectory()
        _ = try directory.write("a.ckdb", "DEFINE SCHEMA RECORD TYPE A (x INT64);\n")
        _ = try directory.write("public.pem", "-----BEGIN PUBLIC KEY-----\n")
        _ = try directory.write("key.p8", "-----BEGIN PRIVATE KEY-----\n")
        try FileManager.default.createDirectory(
            atPath: directory.path + "/nothing", withIntermediateDirectories: true)
        return directory
    }

    private func run(_ one: Case, _ node: ScriptedNode, at url: String, json: Bool) async throws
        -> String
    {
        let directory = try Self.makeDirectory()
        node.play(AnswerSamples.all.merging(one.answers) { $1 })
        let words = one.words.map { $0.replacing("DIR", with: directory.path) }
        let ended = try await Program.run(
            "stratusctl", ["--node", url] + (json ? ["--json"] : []) + words)
        // Two pages that are asked for side by side come in either order.
        let asked = node.asked.split(separator: "\n", omittingEmptySubsequences: false)
        let isPair = { (line: Substring) in line.hasPrefix("GET /v1/cluster") }
        var lines: [Substring] = []
        for line in asked {
            var place = lines.count
            while isPair(line), place > 0, isPair(lines[place - 1]), line < lines[place - 1] {
                place -= 1
            }
            lines.insert(line, at: place)
        }
        let text =
            "$ stratusctl \(json ? "--json " : "")\(one.words.joined(separator: " "))\n"
            + "-- asks\n\(lines.joined(separator: "\n"))-- prints\n\(ended.output)"
            + (ended.errors.isEmpty ? "" : "-- says\n\(ended.errors)")
            + "-- ends with \(ended.code)\n"
        return text.replacing(directory.path, with: "DIR").replacing(url, with: "URL")
    }

    @Test func `every command asks, prints and ends as ever`() async throws {
        let loops = EventLoop.group(count: 1, name: "test")
        defer { for loop in loops { loop.stop() } }
        let node = ScriptedNode()
        let server = HTTPServer(
            configuration: HTTPServerConfiguration(
                listeners: [.init(.ip("127.0.0.1", port: 0), tls: nil)]),
            loops: loops, world: AdminLinesTests.Machine(), handler: node)
        guard case .ip(_, let port) = try await server.start()[0] else { return }
        var names: Set<String> = []
        for one in Self.cases {
            #expect(names.insert(one.name).inserted, "\(one.name) twice")
            let url = "http://127.0.0.1:\(port)"
            let text = try await self.run(one, node, at: url, json: false)
            let json = try await self.run(one, node, at: url, json: true)
            try self.compare(text + "\n" + json, with: one.name)
        }
        await server.stop(deadline: .seconds(0))
    }

    @Test func `each golden file has its command`() throws {
        let folder = Self.place(of: "x").deletingLastPathComponent().path
        let files = try FileManager.default.contentsOfDirectory(atPath: folder)
        #expect(Set(files) == Set(Self.cases.map { $0.name + ".txt" }))
    }
}
