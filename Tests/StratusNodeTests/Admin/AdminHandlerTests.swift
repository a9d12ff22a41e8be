import StratusAdmin
import StratusCluster
import StratusHTTP
import StratusModel
import StratusRuntime
import StratusTLS
import Synchronization
import Testing

/// The administrators' API without a socket.
@Suite struct AdminHandlerTests {
    final class Control: NodeControl {
        let level = Mutex(LogLevel.info)
        func status() async -> NodeStatus {
            var status = NodeStatus(
                version: "1", libraries: [("SQLite", "3.40.1")], startedAtMilliseconds: 0,
                uptime: .milliseconds(1_500), dataDirectory: "/d", clientURLs: ["http://h:1"],
                adminURL: "http://h:2", residentBytes: 5, requestsInFlight: 0, droppedLogLines: 0,
                notReady: [], partitions: [.init(name: "g1", applied: 7, durable: 6)])
            status.disk = DiskSpace(free: 7, all: 9)
            status.reserve = ByteCount(5)
            return status
        }
        func supportFiles() async -> [SupportFile] {
            [SupportFile(name: "log.txt", contents: Bytes("a line\n".utf8))]
        }
        let verifyCount = Mutex(0)
        func copies() async -> CopyStatus {
            var status = CopyStatus()
            status.liveBytes = 7
            status.missingCount = 2
            return status
        }
        func auditCopies() async -> Int { 4 }
        func copyDifferences(after last: CopyDifference?, limit: Int) async -> [CopyDifference] {
            (0..<UInt32(700)).map {
                CopyDifference(
                    group: GroupID(3), name: CopyName(body: BodyID(0xA0), ordinal: $0),
                    isMissing: $0 % 2 == 0)
            }.filter { difference in last.map { difference.name > $0.name } ?? true }
                .prefix(limit).map { $0 }
        }
        func verifyCopies() async -> Int {
            self.verifyCount.withLock { $0 += 1 }
            return 3
        }
        func configuration() -> [ConfiguredValue] {
            [
                ConfiguredValue(key: "a", value: "[1]", origin: "default", reloads: true),
                ConfiguredValue(key: "b", value: nil, origin: "default", reloads: false),
            ]
        }
        var logLevel: LogLevel { self.level.withLock { $0 } }
        func setLogLevel(_ level: LogLevel) { self.level.withLock { $0 = level } }
        let held = Mutex(Schema())
        func schema(of container: ContainerReference) async throws(NodeControlFailure) -> Schema {
            if container.container == "iCloud.away" { throw .unavailable }
            if container.environment == .production { return Schema() }
            return self.held.withLock { $0 }
        }
        func install(_ schema: Schema, of container: ContainerReference)
            async throws(NodeControlFailure)
        { self.held.withLock { $0 = schema } }
    }

    /// One node's handler, its log as text.
    final class Stage: Sendable {
        let paper = Mutex(Bytes())
        let health = Health()
        let metrics = Metrics()
        let control = Control()
        let settings: AdminHandler.Settings

        init(metricsAreOpen: Bool = false) {
            self.settings = AdminHandler.Settings(
                isToken: { $0.reveal() == "right" }, metricsAreOpen: metricsAreOpen)
        }

        func ask(
            _ method: String, _ path: String, authorization: [String] = ["Bearer right"],
            query: String? = nil, body: String = "", certificate: PeerCertificate? = nil
        ) async -> (status: Int, text: String, answer: HTTPResponse, log: String) {
            let log = Log(level: .debug, format: .json) { bytes in
                self.paper.withLock { $0 += bytes }
                return bytes.count
            }
            let handler = AdminHandler(
                control: self.control, health: self.health, metrics: self.metrics, log: log,
                settings: self.settings)
            let headers = HeaderFields(
                authorization.map { HeaderFields.Line(name: "authorization", value: $0) })
            let answer = await handler.respond(
                to: HTTPRequest(
                    head: RequestHead(method: method, path: path, query: query, headers: headers),
                    body: CollectedBody(Bytes(body.utf8)), peer: "127.0.0.1:9",
                    identity: RequestIdentity(high: 1, low: 2), certificate: certificate))
            log.close()
            var text = ""
            if case .bytes(let bytes) = answer.body {
                text = String(decoding: bytes, as: UTF8.self)
            }
            let written = self.paper.withLock { String(decoding: $0, as: UTF8.self) }
            return (answer.status, text, answer, written)
        }
    }

    static let pages = ["/v1/status", "/v1/config", "/v1/log-level", "/metrics", "/nowhere", "/"]

    typealias Credential = (name: String, fields: [String])
    static let wrong: [Credential] = [
        ("none", []), ("the wrong token", ["Bearer wrong"]), ("an empty token", ["Bearer "]),
        ("another scheme", ["Basic right"]), ("no scheme", ["right"]),
        ("two fields", ["Bearer right", "Bearer right"]), ("two tokens", ["Bearer right right"]),
        ("a prefix of the token", ["Bearer righ"]), ("a tail after it", ["Bearer rightx"]),
        ("two spaces", ["Bearer  right"]),
    ]

    @Test(arguments: pages, wrong)
    func `X-16 nothing is told without the token, not even what exists`(
        page: String, credential: Credential
    ) async {
        let (status, text, answer, log) = await Stage().ask(
            "GET", page, authorization: credential.fields)
        #expect(status == 401, "\(credential.name)")
        #expect(answer.headers["WWW-Authenticate"] != nil, "\(credential.name)")
        #expect(text.contains("NOT_AUTHENTICATED"), "\(credential.name)")
        #expect(log.contains("administrator refused"), "\(credential.name)")
        #expect(!log.contains("right") && !log.contains("wrong"), "X-14 \(credential.name)")
    }

    @Test(arguments: ["Bearer right", "bearer right", "BEARER right"])
    func `the token opens every page`(field: String) async {
        for page in Self.pages.dropLast(2) {
            let (status, _, _, log) = await Stage().ask("GET", page, authorization: [field])
            #expect(status == 200, "\(page)")
            #expect(log.isEmpty, "\(page)")
        }
        let (status, text, _, _) = await Stage().ask("GET", "/nowhere", authorization: [field])
        #expect(status == 404)
        #expect(text.contains("/v1/status"))
    }

    @Test func `a token in the query string is no credential`() async {
        let (status, _, _, _) = await Stage().ask(
            "GET", "/v1/status", authorization: [], query: "token=right&access_token=right")
        #expect(status == 401)
    }

    @Test func `who shows a verified certificate needs no token`() async {
        let certificate = PeerCertificate(subject: "CN=ops", commonName: "ops", fingerprint: [1])
        let (status, _, _, _) = await Stage().ask(
            "GET", "/v1/status", authorization: [], certificate: certificate)
        #expect(status == 200)
    }

    @Test func `metrics may be opened, and nothing else opens with them`() async {
        let stage = Stage(metricsAreOpen: true)
        let metrics = await stage.ask("GET", "/metrics", authorization: [])
        #expect(metrics.status == 200)
        #expect(
            metrics.answer.headers["Content-Type"]?.hasPrefix("text/plain; version=0.0.4") == true)
        #expect(await stage.ask("GET", "/v1/status", authorization: []).status == 401)
    }

    @Test func `O-11 ready is told with its reasons, and alive whatever they are`() async {
        let stage = Stage()
        stage.health.clear("starting")
        #expect(await stage.ask("GET", "/readyz", authorization: []).status == 200)
        stage.health.raise("log", "a sync failed: EIO")
        let ready = await stage.ask("GET", "/readyz", authorization: [])
        #expect(ready.status == 503)
        #expect(ready.text == "not ready\nlog: a sync failed: EIO\n")
        #expect(await stage.ask("GET", "/healthz", authorization: []).status == 200)
        stage.health.clear("log")
        #expect(stage.health.isReady)
        // Somebody should see to it, and clients are served all the same.
        stage.health.warn("disk", "99 MiB are left")
        let warned = await stage.ask("GET", "/readyz", authorization: [])
        #expect(warned.status == 200 && warned.text == "ready\ndisk: 99 MiB are left\n")
        stage.health.dropWarning("disk")
        #expect(await stage.ask("GET", "/readyz", authorization: []).text == "ready\n")
    }

    @Test func `clients are told that it is not ready, and not why`() {
        let health = Health()
        guard case .bytes(let bytes) = HealthPages.ready(health, withReasons: false).body else {
            Issue.record("no body")
            return
        }
        #expect(String(decoding: bytes, as: UTF8.self) == "not ready\n")
    }

    @Test func `the status is JSON`() async throws {
        let (_, text, _, _) = await Stage().ask("GET", "/v1/status")
        #expect(
            text
                == #"{"version":"1","libraries":[{"name":"SQLite","version":"3.40.1"}],"ready":true,"#
                + #""notReady":[],"warnings":[],"freeBytes":7,"diskBytes":9,"reserveBytes":5,"#
                + #""startedAt":"1970-01-01T00:00:00.000Z","uptimeSeconds":1.5,"#
                + #""dataDirectory":"/d","clientURLs":["http://h:1"],"adminURL":"http://h:2","#
                + #""residentBytes":5,"requestsInFlight":0,"droppedLogLines":0,"#
                + #""partitions":[{"name":"g1","applied":7,"durable":6}]}"#)
    }

    @Test func `the configuration is JSON, each value as it would stand in the file`() async {
        let (_, text, _, _) = await Stage().ask("GET", "/v1/config")
        #expect(
            text == #"{"configuration":[{"key":"a","value":[1],"origin":"default","reloads":true},"#
                + #"{"key":"b","value":null,"origin":"default","reloads":false}]}"#)
    }

    @Test(arguments: LogLevel.allCases, LogLevel.allCases)
    func `the log level is read and changed, and the change is in the log`(
        before: LogLevel, after: LogLevel
    ) async {
        let stage = Stage()
        stage.control.setLogLevel(before)
        let put = await stage.ask("PUT", "/v1/log-level", body: #"{"level":"\#(after.name)"}"#)
        #expect(put.status == 200)
        #expect(put.text == #"{"level":"\#(after.name)"}"#)
        #expect(stage.control.logLevel == after)
        #expect(put.log.contains(#""from":"\#(before.name)","to":"\#(after.name)""#))
    }

    @Test(arguments: ["", "{", "{}", "[]", #"{"level":1}"#, #"{"level":"loud"}"#, "null"])
    func `a log level that is none changes nothing`(body: String) async {
        let stage = Stage()
        let put = await stage.ask("PUT", "/v1/log-level", body: body)
        #expect(put.status == 400)
        #expect(put.text.contains("debug, info, warning, error"))
        #expect(stage.control.logLevel == .info)
    }

    @Test(arguments: ["POST", "DELETE", "PUT", "OPTIONS", "TRACE", "get"])
    func `another method is refused by name`(method: String) async {
        let (status, _, answer, _) = await Stage().ask(method, "/v1/status")
        #expect(status == 405)
        #expect(answer.headers["Allow"] == "GET, HEAD")
    }

    static let schemaPath = "/v1/containers/iCloud.x/environments/development/schema"
    static let typeA = "DEFINE SCHEMA RECORD TYPE A (x INT64);"

    @Test func `a schema is put in and got out, and putting it in again changes nothing`() async {
        let stage = Stage()
        let tried = await stage.ask(
            "PUT", Self.schemaPath, query: "dryRun=1", body: Self.typeA)
        #expect(tried.text.hasPrefix(#"{"version":0,"changes":[""#))
        #expect(stage.control.held.withLock { $0.version } == 0)
        let put = await stage.ask("PUT", Self.schemaPath, body: Self.typeA)
        #expect(put.text.hasPrefix(#"{"version":1,"changes":[""#))
        #expect(put.log.contains("schema changed by an administrator"))
        let again = await stage.ask("PUT", Self.schemaPath, body: Self.typeA)
        #expect(again.text == #"{"version":1,"changes":[],"created":false}"#)
        #expect(await stage.ask("GET", Self.schemaPath).text.contains("RECORD TYPE A"))
    }

    static let badSchemas: [(path: String, body: String, status: Int, says: String)] = [
        (schemaPath, "DEFINE", 400, "line 1, column 7"),
        (
            schemaPath, "DEFINE SCHEMA RECORD TYPE A (x STRING);", 409,
            "SCHEMA_CONFLICT"
        ),
        (
            "/v1/containers/iCloud.x/environments/production/schema", typeA, 409,
            "PRODUCTION_IS_CLOSED"
        ),
        (
            "/v1/containers/iCloud.away/environments/development/schema", typeA, 503,
            "TRY_AGAIN_LATER"
        ),
        ("/v1/containers//environments/development/schema", typeA, 404, "NOT_FOUND"),
        ("/v1/containers/a%20b/environments/development/schema", typeA, 400, "cannot name a"),
        ("/v1/containers/a/environments/staging/schema", typeA, 400, "the environment is"),
    ]

    @Test(arguments: badSchemas)
    func `a schema that cannot be taken changes nothing`(
        row: (path: String, body: String, status: Int, says: String)
    ) async {
        let stage = Stage()
        _ = await stage.ask("PUT", Self.schemaPath, body: Self.typeA)
        let put = await stage.ask("PUT", row.path, body: row.body)
        #expect(put.status == row.status)
        #expect(put.text.contains(row.says), "\(put.text)")
        #expect(stage.control.held.withLock { $0.version } == 1)
    }

    @Test func `every route of the table is found by its own path, and by no other's`() {
        var seen: Set<String> = []
        for route in AdminRoute.all {
            #expect(seen.insert("\(route.method) \(route.template)").inserted, "twice")
            let path = route.template.replacing("{environment}", with: "development")
                .replacing("{", with: "").replacing("}", with: "")
            #expect(AdminHandler.label(of: path).template == route.template)
            #expect(!route.answer.isEmpty, "\(route.template)")
        }
    }

    @Test func `X-16 only health is for anyone, and only metrics may be opened`() {
        let open = AdminRoute.all.filter { $0.role != .administrator }
        #expect(open.map(\.template) == ["/healthz", "/readyz", "/metrics"])
        #expect(open.map(\.role) == [.anyone, .anyone, .scraper])
    }

    /// A node without accounts and without a cluster has pages for neither.
    @Test func `a page that this node cannot answer says what is missing`() async {
        for route in AdminRoute.all where route.need != .node {
            let path = route.template.replacing("{environment}", with: "development")
                .replacing("{", with: "").replacing("}", with: "")
            let (status, text, _, _) = await Stage().ask(route.method, path)
            #expect(status == 404, "\(route.method) \(path)")
            #expect(
                text.contains(route.need == .people ? "no accounts" : "NOT_CLUSTERED"), "\(text)")
        }
    }

    static let tricks = [
        "/v1/status/", "//v1/status", "/v1/./status", "/v1/../v1/status", "/V1/status",
        "/v1/status%00", "/v1%2Fstatus", "http://h/v1/status", "/v1/status;x",
    ]

    @Test(arguments: tricks)
    func `a path is taken as sent and matches only itself`(path: String) async {
        #expect(await Stage().ask("GET", path).status == 404)
        #expect(await Stage().ask("GET", path, authorization: []).status == 401)
        #expect(AdminHandler.label(of: path).template == "other")
    }

    @Test func `the files of a node are shown, and read back on demand`() async {
        let stage = Stage()
        let shown = await stage.ask("GET", "/v1/assets")
        #expect(shown.status == 200)
        #expect(shown.text.contains("\"liveBytes\":7"), "\(shown.text)")
        #expect(shown.text.contains("\"missing\":2"))
        let begun = await stage.ask("POST", "/v1/assets/verify")
        #expect(begun.text == "{\"partitions\":3}")
        #expect(stage.control.verifyCount.withLock { $0 } == 1)
        #expect(await stage.ask("POST", "/v1/assets/verify", authorization: []).status == 401)
    }

    @Test func `an audit of files is begun, and its differences come in pages`() async throws {
        let stage = Stage()
        let begun = await stage.ask("POST", "/v1/assets/audit")
        #expect(begun.text == "{\"partitions\":4}")
        let first = await stage.ask("GET", "/v1/assets/audit")
        #expect(
            first.text.hasPrefix(
                "{\"differences\":[{\"partition\":2,\"body\":\"a0\",\"chunk\":0,"
                    + "\"kind\":\"missing\"},{\"partition\":2,\"body\":\"a0\",\"chunk\":1,"
                    + "\"kind\":\"leftOver\"}"), "\(first.text.prefix(200))")
        #expect(first.text.hasSuffix("\"next\":\"2/a0/499\"}"))
        let second = await stage.ask("GET", "/v1/assets/audit", query: "after=2%2Fa0%2F499")
        #expect(second.text.contains("\"chunk\":500"))
        #expect(!second.text.contains("\"chunk\":499") && !second.text.contains("\"next\""))
        for wrong in ["2", "2/a0", "x/a0/1", "2/z/1", "65535/1/1"] {
            let answer = await stage.ask("GET", "/v1/assets/audit", query: "after=\(wrong)")
            #expect(answer.status == 400, "\(wrong)")
        }
        #expect(await stage.ask("POST", "/v1/assets/audit", authorization: []).status == 401)
    }
}
