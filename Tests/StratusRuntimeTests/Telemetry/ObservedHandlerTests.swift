import StratusHTTP
import StratusModel
import StratusRuntime
import Synchronization
import Testing

@Suite struct ObservedHandlerTests {
    /// Answers by path; reads the whole body first.
    struct Inner: HTTPHandler {
        let made: MadeCount

        func plan(for head: RequestHead) -> RequestPlan {
            let made = self.made
            return RequestPlan(
                RequestRoute(
                    RouteLabel(String(head.path.dropFirst())), fields: made.counting(["shop": "x"])),
                bodySizeMax: 10
            ) { await self.respond(to: $0) }
        }
        func respond(to request: HTTPRequest) async -> HTTPResponse {
            _ = try? await request.body.collect()
            switch request.head.path {
            case "/stream":
                return HTTPResponse(status: 200, body: .stream(Chunks(failing: false), length: nil))
            case "/broken":
                return HTTPResponse(status: 200, body: .stream(Chunks(failing: true), length: nil))
            case "/fails": return HTTPResponse(status: 503)
            default: return HTTPResponse(status: 200, body: .bytes([1, 2, 3]))
            }
        }
    }

    final class Chunks: ResponseBody {
        struct Broken: Error {}
        private let left = Atomic(3)
        private let failing: Bool
        init(failing: Bool) { self.failing = failing }
        func next() async throws -> Bytes? {
            let now = self.left.subtract(1, ordering: .relaxed).newValue
            if now < 0 { return nil }
            if now == 0, self.failing { throw Broken() }
            return [0, 0]
        }
    }

    /// A handler under observation, its log as text and its metrics.
    final class Stage: Sendable {
        let paper = LogTests.Paper()
        let metrics = Metrics()
        let log: Log
        let handler: ObservedHandler
        /// How often the fields of a line were made.
        let fieldsMade = MadeCount()

        init(writesLines: Bool = true) {
            let paper = self.paper
            self.log = Log(level: .info, format: .json) { paper.take($0) }
            let clock = Atomic<Int64>(0)
            let box = Box(clock)
            let made = self.fieldsMade
            self.handler = ObservedHandler(
                Inner(made: made), listener: "client", log: self.log, metrics: self.metrics,
                writesLines: writesLines,
                now: { MonotonicTime(nanoseconds: box.tick()) })
        }

        var text: String {
            self.log.flush()
            return self.paper.text
        }

        var exposition: String { String(decoding: self.metrics.exposition(), as: UTF8.self) }
    }

    final class MadeCount: Sendable {
        private let total = Atomic(0)
        var count: Int { self.total.load(ordering: .relaxed) }
        func counting(_ fields: LogFields) -> LogFields {
            self.total.add(1, ordering: .relaxed)
            return fields
        }
    }

    /// A clock that is a millisecond later each time it is read.
    final class Box: Sendable {
        private let time: Atomic<Int64>
        init(_ time: consuming Atomic<Int64>) { self.time = time }
        func tick() -> Int64 { self.time.add(1_000_000, ordering: .relaxed).newValue }
    }

    static func request(
        _ path: String, query: String? = nil, body: Bytes = [], patience: RequestPatience = .usual
    ) -> HTTPRequest {
        HTTPRequest(
            head: RequestHead(method: "POST", path: path, query: query), body: CollectedBody(body),
            peer: "192.0.2.1:5", identity: RequestIdentity(high: 0x6f0c_1d7e_0c38_4f0b, low: 0x10),
            patience: patience)
    }

    @Test func `the identity in the answer is the one in the log line`() async {
        let stage = Stage()
        let answer = await stage.handler.respond(
            to: Self.request("/shelves", query: "ckAPIToken=hunter2", body: [1, 2]))
        #expect(answer.headers["x-apple-request-uuid"] == "6f0c1d7e-0c38-4f0b-0000-000000000010")
        let line = stage.text
        for piece in [
            #""request":"6f0c1d7e-0c38-4f0b-0000-000000000010""#, #""method":"POST""#,
            #""route":"shelves""#, #""shop":"x""#, #""status":200"#, #""duration":1.0"#,
            #""received":2"#, #""sent":3"#, #""peer":"192.0.2.1:5""#, #""level":"info""#,
        ] {
            #expect(line.contains(piece), "\(piece)")
        }
    }

    @Test func `X-14 a token in the query string reaches neither log nor metrics`() async {
        let stage = Stage()
        _ = await stage.handler.respond(
            to: Self.request("/shelves", query: "ckAPIToken=hunter2&ckWebAuthToken=hunter2"))
        #expect(!stage.text.contains("hunter2"))
        #expect(!stage.exposition.contains("hunter2"))
    }

    @Test func `a held request is counted apart and is no latency`() async throws {
        let stage = Stage()
        let request = Self.request("/stream", patience: .held)
        let answer = await stage.handler.respond(to: request)
        #expect(stage.handler.inFlightCount == 0)
        let held = #"stratus_http_requests_held{listener="client"} "#
        #expect(stage.exposition.contains(held + "1"))
        guard case .stream(let stream, _) = answer.body else {
            Issue.record("no stream")
            return
        }
        while try await stream.next() != nil {}
        #expect(stage.exposition.contains(held + "0"))
        #expect(!stage.exposition.contains(#"route="stream""#))
        #expect(stage.text.contains(#""route":"stream""#))
    }

    @Test func `a stream is over when its last byte is taken`() async throws {
        let stage = Stage()
        let answer = await stage.handler.respond(to: Self.request("/stream"))
        #expect(stage.handler.inFlightCount == 1)
        guard case .stream(let stream, _) = answer.body else {
            Issue.record("no stream")
            return
        }
        while try await stream.next() != nil {}
        #expect(stage.handler.inFlightCount == 0)
        #expect(stage.text.contains(#""sent":6"#))
        #expect(!stage.text.contains("cutShort"))
    }

    @Test func `a stream that breaks, or that nobody reads, is over too and says so`() async throws
    {
        let stage = Stage()
        let answer = await stage.handler.respond(to: Self.request("/broken"))
        guard case .stream(let stream, _) = answer.body else {
            Issue.record("no stream")
            return
        }
        await #expect(throws: Chunks.Broken.self) { while try await stream.next() != nil {} }
        #expect(stage.text.contains(#""sent":4"#))

        _ = await stage.handler.respond(to: Self.request("/stream"))
        #expect(stage.handler.inFlightCount == 0)
        #expect(stage.text.split(separator: "\n").count { $0.contains(#""cutShort":true"#) } == 2)
    }

    @Test(arguments: [true, false])
    func `an answer that ends by an error leaves a line with the request and the reason`(
        writesLines: Bool
    ) async throws {
        let stage = Stage(writesLines: writesLines)
        for path in ["/broken", "/stream"] {
            let answer = await stage.handler.respond(to: Self.request(path, query: "t=hunter2"))
            guard case .stream(let stream, _) = answer.body else {
                Issue.record("no stream")
                return
            }
            do { while try await stream.next() != nil {} } catch {}
        }
        // Nobody reads this one to its end, which is no error.
        _ = await stage.handler.respond(to: Self.request("/stream"))
        let lines = stage.text.split(separator: "\n").filter { $0.contains("ended before") }
        #expect(lines.count == 1)
        for piece in [
            #""request":"6f0c1d7e-0c38-4f0b-0000-000000000010""#, #""route":"broken""#,
            #""sent":4"#, #""reason":"Broken()""#, #""level":"warning""#,
        ] { #expect(lines.first?.contains(piece) == true, "\(piece) in \(lines)") }
        #expect(!stage.text.contains("hunter2"))
    }

    @Test func `latency is kept by route and class of status`() async {
        let stage = Stage()
        for path in ["/shelves", "/shelves", "/fails"] {
            _ = await stage.handler.respond(to: Self.request(path))
        }
        let text = stage.exposition
        let name = "stratus_http_request_seconds_count"
        #expect(text.contains(name + #"{listener="client",route="shelves",status="2xx"} 2"#))
        #expect(text.contains(name + #"{listener="client",route="fails",status="5xx"} 1"#))
        #expect(stage.text.contains(#""level":"warning""#))
    }

    @Test func `lines can be turned off while metrics stay`() async {
        let stage = Stage(writesLines: false)
        _ = await stage.handler.respond(to: Self.request("/shelves"))
        #expect(stage.text.isEmpty)
        #expect(stage.fieldsMade.count == 0, "what nobody reads is not made")
        #expect(stage.exposition.contains(#"stratus_http_sent_bytes_total{listener="client"} 3"#))
        stage.handler.writeLines(true)
        _ = await stage.handler.respond(to: Self.request("/shelves"))
        #expect(stage.text.contains("shelves"))
        #expect(stage.fieldsMade.count == 1)
    }
}
