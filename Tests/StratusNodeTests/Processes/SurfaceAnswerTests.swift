import ChildProcesses
import Foundation
import Glibc
import Testing

/// What each surface of the clients' listener answers to requests that it refuses: the wrong method,
/// an unknown path, a body that is too large, missing and wrong credentials, another origin, too
/// many requests. Status, headers, body, log line and labels of the metrics are compared with stored
/// texts.
///
/// `STRATUS_GOLDEN=write` writes the texts anew. A change of them is a change that clients see.
@Suite struct SurfaceAnswerTests {
    let directory = try! TemporaryDirectory()

    private static let root = "/database/1/iCloud.org.example.stratus/development"
    private static let dav = "/dav/iCloud.org.example.stratus/development"

    /// A request without `Host`, which every one gets.
    struct Probe {
        var line: String
        var headers: [String] = []
        /// Announced as the length of a body that is never sent.
        var announced: Int?
        /// Sent whole.
        var body = ""

        init(_ line: String, _ headers: String..., announcing: Int? = nil, body: String = "") {
            self.line = line
            self.headers = headers
            self.announced = announcing
            self.body = body
        }
    }

    private static let health = [
        Probe("GET /healthz"), Probe("HEAD /healthz"), Probe("POST /healthz"),
        Probe("OPTIONS /healthz"), Probe("GET /readyz"), Probe("GET /healthz/"),
        Probe("GET /healthz", announcing: 2_000),
    ]

    private static let webServices = [
        Probe("GET \(Self.root)/private/records/query"),
        Probe("POST \(Self.root)/private/records/nothing"),
        Probe("POST \(Self.root)/elsewhere/records/query"),
        Probe("POST /database/1/iCloud.org.example.stratus/staging/private/records/query"),
        Probe("POST \(Self.root)/private/records/query"),
        Probe("POST \(Self.root)/private/records/query/"),
        Probe("POST \(Self.root)/private/records/query?ckAPIToken=1"),
        Probe(
            "POST \(Self.root)/private/records/query?ckAPIToken=TOKEN&ckWebAuthToken=wrong",
            body: "{}"),
        Probe("POST \(Self.root)/private/records/query?ckAPIToken=TOKEN", body: "{}"),
        Probe("POST \(Self.root)/private/records/query?ckAPIToken=TOKEN", body: "{"),
        Probe(
            "POST \(Self.root)/public/records/query?ckAPIToken=TOKEN", "Origin: https://a.example",
            announcing: 2_000),
        Probe("POST \(Self.root)/public/zones/modify?ckAPIToken=TOKEN", body: "{}"),
        Probe("OPTIONS \(Self.root)/private/records/query", "Origin: https://a.example"),
        Probe("OPTIONS /nowhere"), Probe("GET /"), Probe("GET /nowhere", "Origin: null"),
        Probe("POST /nowhere", announcing: 70_000),
        Probe("GET \(Self.root)/private/live?zone=a"), Probe("POST \(Self.root)/private/live"),
        Probe("POST \(Self.root)/public/users/current"),
        Probe("GET \(Self.root)/public/users/current?ckAPIToken=TOKEN"),
        Probe("POST \(Self.root)/public/assets/upload?ckAPIToken=TOKEN", body: "{}"),
        Probe("POST /device/1/iCloud.org.example.stratus/development/tokens/create", body: "{}"),
        Probe("GET /device/1/iCloud.org.example.stratus/development/tokens/create"),
        Probe("POST /kvs/1/iCloud.org.example.stratus/development/sync", body: "{}"),
        Probe("DELETE /kvs/1/iCloud.org.example.stratus/development/sync"),
        Probe("POST /documents/1/iCloud.org.example.stratus/development/nothing"),
        Probe("POST /documents/1/iCloud.org.example.stratus/development/changes", body: "{}"),
        Probe("POST /ubiquity/1/iCloud.org.example.stratus/development/account"),
    ]

    private static let davProbes = [
        Probe("OPTIONS \(Self.dav)/"), Probe("OPTIONS /dav/", "Origin: https://a.example"),
        Probe("FETCH \(Self.dav)/a"), Probe("POST \(Self.dav)/a"), Probe("GET /dav/"),
        Probe("MKCOL /dav/iCloud.org.example.stratus/"), Probe("GET /dav/a/b/c"),
        Probe("GET \(Self.dav)/a"), Probe("HEAD \(Self.dav)/a"),
        Probe("PROPFIND \(Self.dav)/", "Authorization: Basic d3Jvbmc6d3Jvbmc="),
        Probe("PROPFIND \(Self.dav)/", "Authorization: Bearer x"),
        Probe("PROPFIND \(Self.dav)/?ckAPIToken=TOKEN"),
        Probe("PROPFIND \(Self.dav)/", announcing: 300_000),
        Probe("PROPFIND \(Self.dav)/?ckAPIToken=TOKEN&ckWebAuthToken=me", announcing: 300_000),
        Probe("GET \(Self.dav)/Documents/none?ckAPIToken=TOKEN&ckWebAuthToken=me"),
    ]

    private static let others = [
        Probe("POST /published/x"), Probe("OPTIONS /published/x", "Origin: https://a.example"),
        Probe("GET /published/x"), Probe("HEAD /published/"), Probe("GET /published"),
        Probe("POST /aps"), Probe("OPTIONS /aps", "Origin: https://a.example"),
        Probe("POST /aps?tok=x", announcing: 2_000), Probe("GET /aps/"),
        Probe("GET /signin"), Probe("HEAD /signin"), Probe("PUT /signin"), Probe("OPTIONS /signin"),
        Probe("POST /signin", "Origin: https://a.example", body: "a=b"),
        Probe("POST /signin", body: "a=%"), Probe("POST /signup", announcing: 20_000),
        Probe("GET /password/"), Probe("GET /reset"), Probe("POST /app-passwords", body: "a=b"),
        Probe("OPTIONS /assets/u/x", "Origin: https://a.example"), Probe("OPTIONS /assets/x"),
        Probe("GET /assets/u/x"), Probe("POST /assets/d/x"), Probe("GET /assets/x"),
        Probe("POST /assets/x"), Probe("PUT /assets/u/x", body: "a"), Probe("GET /assets/d/x/a"),
        Probe("HEAD /assets/d/x"), Probe("POST /assets/d/x", announcing: 70_000),
        Probe("GET /assets"),
    ]

    /// Requests to a node that has seen too many of them.
    private static let rated = [
        Probe("GET /healthz"), Probe("POST \(Self.root)/private/records/query"),
        Probe("GET \(Self.root)/private/records/query"), Probe("GET /nowhere"),
        Probe("OPTIONS /nowhere"), Probe("OPTIONS \(Self.dav)/"),
        Probe("GET \(Self.dav)/a"), Probe("FETCH \(Self.dav)/a"), Probe("GET /dav/"),
        Probe("GET /published/x"), Probe("POST /published/x"),
        Probe("GET /signin"), Probe("POST /aps"), Probe("GET /assets/d/x"),
        Probe("PUT /assets/d/x"),
    ]

    @Test(arguments: ["refusals", "rates"])
    func `each surface answers as it always has`(_ name: String) async throws {
        let isRated = name == "rates"
        let rate = isRated ? ", addressRequestRateMax: 1" : ""
        let path = try self.directory.write(
            "stratus.json5",
            """
            {dataDirectory: '\(self.directory.path)/data', development: true,
             client: {listen: ['127.0.0.1:0']}, admin: {listen: 'unix:\(self.directory.path)/admin'},
             log: {format: 'json', level: 'debug'}, limits: {requestSizeMax: '1KiB'\(rate)}}
            """)
        let node = try Program.start("stratus", ["serve", "--config", path])
        #expect(
            await node.waits { node.errors.contains(#""text":"administrators""#) }, "\(node.errors)"
        )
        let url = try #require(
            node.errors.firstMatch(of: /http:\/\/127\.0\.0\.1:[0-9]+/).map { String($0.output) },
            "\(node.errors)")
        let probes =
            isRated ? Self.rated : Self.health + Self.webServices + Self.davProbes + Self.others
        var text = ""
        for probe in probes {
            if isRated { try Self.exhaust(url) }
            text += try Self.ask(probe, of: url)
        }
        if !isRated { text += try await self.labels() }
        node.signal(SIGTERM)
        #expect(try await node.end().code == 0)
        if !isRated { text += Self.lines(node.errors) }
        try Self.compare(text, with: name)
    }

    // MARK: Asking

    private static func ask(_ probe: Probe, of url: String) throws -> String {
        let connection = try RawConnection(url)
        let line = probe.line.replacingOccurrences(
            of: "TOKEN", with: String(repeating: "a", count: 64))
        var headers = ["Host: ck.example.org", "Connection: close"] + probe.headers
        let length = probe.announced ?? probe.body.utf8.count
        if length > 0 { headers.append("Content-Length: \(length)") }
        connection.send(
            "\(line) HTTP/1.1\r\n\(headers.joined(separator: "\r\n"))\r\n\r\n\(probe.body)")
        let answer = Self.masked(connection.receiveAll()).replacingOccurrences(of: "\r", with: "")
        let shown = ([probe.line] + probe.headers).joined(separator: " | ")
        return "> \(shown)\(probe.announced.map { " | announces \($0)" } ?? "")\n\(answer)\n\n"
    }

    /// Uses up what the address may send.
    private static func exhaust(_ url: String) throws {
        for _ in 0..<100 {
            if try Self.ask(Probe("GET /nowhere"), of: url).contains("HTTP/1.1 429") { return }
        }
        Issue.record("the address has no rate")
    }

    private static func masked(_ text: String) -> String {
        var text = text
        for (pattern, name) in [
            ("[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}", "UUID"),
            ("(?m)^date: .*$", "date: DATE"), ("[?]t=[A-Za-z0-9_-]+", "?t=LINK"),
            ("(?si)<!doctype html>.*", "HTML"),
            ("'nonce-[^']*'", "'nonce-NONCE'"),
        ] {
            text = text.replacingOccurrences(
                of: pattern, with: name, options: .regularExpression)
        }
        return text
    }

    /// The labels of the requests that were timed.
    private func labels() async throws -> String {
        let metrics = try await Program.run(
            "stratusctl",
            [
                "--node", "unix:\(self.directory.path)/admin", "--token-file",
                self.directory.path + "/data/admin.token", "metrics",
            ]
        ).output
        let lines = metrics.split(separator: "\n").filter {
            $0.hasPrefix("stratus_http_request_seconds_count{") && $0.contains("\"client\"")
                || $0.hasPrefix("stratus_dav_requests_total") && !$0.hasSuffix(" 0")
                || $0.hasPrefix("stratus_http_received_bytes_total") && $0.contains("\"client\"")
        }
        #expect(!lines.isEmpty, "\(metrics)")
        return "metrics\n" + lines.sorted().joined(separator: "\n") + "\n\n"
    }

    /// The log's lines of requests, without what differs from run to run.
    private static func lines(_ errors: String) -> String {
        let lines = errors.split(separator: "\n").filter {
            $0.contains("\"request\":") && $0.contains("\"client\"")
        }
        return "log\n"
            + lines.map { line in
                var line = Self.masked(String(line))
                for (pattern, name) in [
                    ("\"time\":\"[^\"]*\",?", ""),
                    ("\"duration[A-Za-z]*\":[0-9.e-]+", "\"duration\":0"),
                    ("\"peer\":\"[^\"]*\"", "\"peer\":\"PEER\""), ("\"node\":\"[^\"]*\",?", ""),
                ] {
                    line = line.replacingOccurrences(
                        of: pattern, with: name, options: .regularExpression)
                }
                return line
            }.joined(separator: "\n") + "\n"
    }

    // MARK: Comparing

    private static func compare(_ text: String, with name: String) throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Golden/Surfaces")
        let file = folder.appending(path: "\(name).txt")
        if ProcessInfo.processInfo.environment["STRATUS_GOLDEN"] == "write" {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Data(text.utf8).write(to: file)
        }
        let stored = try String(contentsOf: file, encoding: .utf8)
        let (now, before) = (
            text.components(separatedBy: "\n\n"), stored.components(separatedBy: "\n\n")
        )
        for (one, other) in zip(now, before) where one != other {
            Issue.record("now:\n\(one)\n\nstored:\n\(other)")
        }
        #expect(now.count == before.count)
    }
}
