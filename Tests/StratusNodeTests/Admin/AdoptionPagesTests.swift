import StratusAdmin
import StratusHTTP
import StratusModel
import StratusRuntime
import Testing

/// What administrators ask about copies of another disk.
@Suite struct AdoptionPagesTests {
    private static func handler() -> AdminHandler {
        AdminHandler(
            control: AdminHandlerTests.Control(), health: Health(), metrics: Metrics(),
            log: Log(level: .error, format: .json) { $0.count },
            settings: AdminHandler.Settings(isToken: { _ in true }, metricsAreOpen: false))
    }

    @Test(arguments: [
        "/v1/assets/lost", "/v1/assets/rows", "/v1/assets/adopt",
        "/v1/encryption-keys/databases/rotation", "/v1/encryption-keys/containers/rotation",
        "/v1/users/mara@example.org/export",
    ])
    func `what goes through a whole cluster is not cut off after five minutes`(path: String) {
        let head = RequestHead(method: "POST", path: path, query: nil, headers: HeaderFields())
        #expect(Self.handler().plan(for: head).patience == .transfer)
    }

    @Test func `the body of copies has no bound, and others have theirs`() {
        func limit(_ path: String) -> ByteCount {
            Self.handler().plan(
                for: RequestHead(method: "POST", path: path, query: nil, headers: HeaderFields())
            ).bodySizeMax
        }
        #expect(limit("/v1/assets/adopt") == ByteCount(.max))
        #expect(limit("/v1/assets/wanted") == .mebibytes(1))
    }

    @Test(arguments: [
        #"{}"#, #"{"partition":-1,"bodies":["1"]}"#, #"{"partition":65535,"bodies":["1"]}"#,
        #"{"partition":0,"bodies":[]}"#, #"{"partition":0,"bodies":["x"]}"#,
        #"{"partition":0,"bodies":[1]}"#,
        #"{"partition":0,"bodies":["000000000000000000000000000000001"]}"#,
    ])
    func `a question about no bodies or no partition is refused`(body: String) async {
        let stage = AdminHandlerTests.Stage()
        let asked = await stage.ask("POST", "/v1/assets/wanted", body: body)
        #expect(asked.status == 400, "\(asked.text)")
    }

    @Test(arguments: [nil, "partition=0", "body=1", "partition=x&body=1", "partition=0&body=g"])
    func `copies of no body or no partition are refused`(query: String?) async {
        let stage = AdminHandlerTests.Stage()
        let asked = await stage.ask("POST", "/v1/assets/adopt", query: query, body: "x")
        #expect(asked.status == 400, "\(asked.text)")
    }

    @Test func `a partition that does not answer is asked again later`() async {
        let stage = AdminHandlerTests.Stage()
        let asked = await stage.ask(
            "POST", "/v1/assets/wanted", body: #"{"partition":0,"bodies":["1"]}"#)
        #expect(asked.status == 503)
        let sent = await stage.ask("POST", "/v1/assets/adopt", query: "partition=0&body=1")
        #expect(sent.status == 503)
    }
}
