import StratusHTTP
import StratusModel
import Testing

@testable import StratusHTTP2

@Suite struct ServerSessionTests {
    @Test func `a request becomes a head like one of HTTP/1.1, with its host`() {
        let stage = SessionStage()
        stage.receive(
            Frames.headers(
                1,
                Frames.request(
                    path: "/a?b=c", [("x-more", "1"), ("cookie", "a=1"), ("cookie", "b=2")])))
        #expect(stage.requests.count == 1)
        let head = stage.requests[0]
        #expect(head.method == "GET" && head.path == "/a" && head.query == "b=c")
        #expect(head.headers["host"] == "x" && head.headers["x-more"] == "1")
        #expect(head.headers.values(of: "cookie") == ["a=1; b=2"])
        stage.answer(1, Bytes("hello".utf8))
        #expect(stage.dataCount(of: 1) == 5)
        #expect(stage.sent.contains { $0.type == 0 && $0.flags & 1 == 1 })
        #expect(stage.goAway == nil)
    }

    @Test func `a body comes in pieces, and its window opens as it is taken`() {
        let stage = SessionStage()
        stage.receive(Frames.headers(1, Frames.request(method: "POST"), ends: false))
        let piece = Bytes(repeating: 0x61, count: 16_000)
        for _ in 0..<4 { stage.receive(Frames.data(1, piece)) }
        #expect(!stage.sent.contains { $0.type == 8 && $0.stream == 1 })
        stage.session.consume(64_000, of: 1)
        stage.settle()
        #expect(stage.sent.contains { $0.type == 8 && $0.stream == 1 })
        stage.receive(Frames.data(1, piece, ends: true))
        #expect(stage.events.last == .bodyEnded(stream: 1))
        #expect(stage.goAway == nil)
    }

    @Test func `more than the window is an error of flow control`() {
        let stage = SessionStage()
        stage.receive(Frames.headers(1, Frames.request(method: "POST"), ends: false))
        let piece = Bytes(repeating: 0x61, count: 16_384)
        for _ in 0..<4 { stage.receive(Frames.data(1, piece)) }
        stage.receive(Frames.data(1, [0x61]))
        #expect(stage.goAway == 3 || stage.resetCode(of: 1) == 3)
    }

    @Test func `an answer waits for the client's windows`() {
        let stage = SessionStage(settings: [(4, 10)])
        stage.receive(Frames.headers(1, Frames.request()))
        stage.answer(1, Bytes(repeating: 0x61, count: 100))
        #expect(stage.dataCount(of: 1) == 10)
        #expect(stage.session.pendingCount(of: 1) == 90)
        stage.receive(Frames.windowUpdate(1, 1_000))
        #expect(stage.dataCount(of: 1) == 100)
    }

    @Test func `go on is said once, before the answer`() {
        let stage = SessionStage()
        stage.receive(
            Frames.headers(
                1, Frames.request(method: "POST", [("expect", "100-continue")]), ends: false))
        stage.session.sendContinue(1)
        stage.settle()
        #expect(stage.sent.filter { $0.type == 1 }.count == 1)
        stage.receive(Frames.data(1, [1], ends: true))
        stage.answer(1, [1])
        #expect(stage.sent.filter { $0.type == 1 }.count == 2)
    }

    @Test func `trailers are read and forgotten`() {
        let stage = SessionStage()
        stage.receive(Frames.headers(1, Frames.request(method: "POST"), ends: false))
        stage.receive(Frames.data(1, Bytes("ab".utf8)))
        stage.receive(Frames.headers(1, [("x-trailer", "1")]))
        #expect(stage.events.last == .bodyEnded(stream: 1))
        #expect(stage.requests[0].headers["x-trailer"] == nil)
        #expect(stage.resetCode(of: 1) == nil)
    }

    @Test func `a stop is told first, and the last stream named after`() {
        let stage = SessionStage()
        stage.receive(Frames.headers(1, Frames.request()))
        stage.session.announceShutdown()
        stage.settle()
        #expect(stage.sent.last?.type == 7)
        stage.receive(Frames.headers(3, Frames.request()))
        #expect(stage.requests.count == 2)
        stage.session.goAway()
        stage.settle()
        let last = stage.sent.last { $0.type == 7 }
        #expect(last?.payload.prefix(4) == [0, 0, 0, 3])
        #expect(last?.code == 0)
        stage.answer(1, [1])
        stage.answer(3, [1])
        #expect(stage.session.openCount == 0)
    }

    /// RFC 9113 §8: malformed requests. Each ends its stream, or is answered with a refusal.
    @Test(
        arguments: [
            [(":method", "GET"), (":scheme", "https"), (":path", "/")],
            [(":method", "GET"), (":scheme", "https"), (":authority", "x")],
            [(":method", "GET"), (":authority", "x"), (":path", "/")],
            Frames.request([(":method", "GET")]),
            Frames.request([("a", "b"), (":path", "/")]),
            Frames.request([(":protocol", "websocket")]),
            Frames.request([("Upper", "1")]),
            Frames.request([("connection", "close")]),
            Frames.request([("transfer-encoding", "chunked")]),
            Frames.request([("te", "gzip")]),
            Frames.request([("a b", "1")]),
            Frames.request([("a", "b\r\nc: d")]),
            Frames.request([("a", "b\0")]),
            Frames.request([("content-length", "1"), ("content-length", "2")]),
            Frames.request([("content-length", "-1")]),
            Frames.request([("content-length", "5")]),
            Frames.request([("host", "y")]),
            Frames.request([("expect", "the-unexpected")]),
            Frames.request([("content-encoding", "gzip")]),
            Frames.request(path: "/a\\b"),
            Frames.request(path: "http://x/"),
            Frames.request(path: ""),
            Frames.request(method: "TRACE"),
            [(":method", "CONNECT"), (":authority", "x:1")],
            Frames.request(method: "GET IT"),
        ] as [[(String, String)]])
    func `a malformed head is no request`(_ fields: [(String, String)]) {
        let stage = SessionStage()
        stage.receive(Frames.headers(1, fields))
        #expect(stage.requests.isEmpty)
        #expect(!stage.refusals.isEmpty || stage.resetCode(of: 1) == 1 || stage.goAway == 1)
        // The connection serves the next one, unless the library ended it.
        if stage.goAway == nil {
            stage.receive(Frames.headers(3, Frames.request()))
            #expect(stage.requests.count == 1)
        }
    }

    @Test func `OPTIONS may ask for all of the server`() {
        let stage = SessionStage()
        stage.receive(Frames.headers(1, Frames.request(method: "OPTIONS", path: "*")))
        #expect(stage.requests.first?.path == "*")
        stage.receive(Frames.headers(3, Frames.request(method: "GET", path: "*")))
        #expect(stage.requests.count == 1)
    }

    @Test func `how the bytes are cut does not change what they say`() {
        let all =
            Frames.headers(1, Frames.request(method: "POST"), ends: false)
            + Frames.data(1, Bytes(repeating: 0x62, count: 300)) + Frames.ping()
            + Frames.data(1, [], ends: true) + Frames.headers(3, Frames.request(path: "/3"))
            + Frames.reset(3) + Frames.frame(0xBE, [1, 2, 3])
        let whole = SessionStage()
        whole.receive(all)
        for cut in [1, 2, 7, 10, 100] {
            let pieces = SessionStage()
            var at = 0
            while at < all.count {
                pieces.receive(Bytes(all[at..<min(all.count, at + cut)]))
                at += cut
            }
            #expect(pieces.requests == whole.requests, "cuts of \(cut)")
            #expect(pieces.sent.filter { $0.type != 1 } == whole.sent.filter { $0.type != 1 })
        }
    }
}
