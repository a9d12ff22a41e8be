import StratusModel
import Testing

@testable import StratusHTTP

/// A view of a request says what the head says of the same bytes, and an answer that is written in
/// place is the one that is written part by part.
@Suite struct RequestViewTests {
    /// What one connection makes of bytes.
    private struct Trace: Equatable {
        var text = ""

        /// - Parameters:
        ///   - cut: how many bytes come at a time.
        ///   - views: whether requests are taken where they lie as far as they do.
        init(_ bytes: Bytes, cut: Int, views: Bool, bugs: PlantedBugs = PlantedBugs()) {
            var connection = HTTPServerConnection(bugs: bugs)
            var left = Bytes()
            var out = Bytes()
            var fed = 0
            while fed < bytes.count, !connection.mustClose {
                let next = min(bytes.count, fed + cut)
                left += bytes[fed..<next]
                fed = next
                var at = 0
                loop: while true {
                    if views, self.take(&connection, left.span, &at, &out) { continue }
                    switch connection.next(left.span, &at) {
                    case .needsMore, .closed: break loop
                    case .head(let head): self.note(head)
                    case .body(let range):
                        self.text += String(decoding: left[range], as: UTF8.self)
                    case .bodyEnd:
                        self.text += "."
                        connection.beginResponse(
                            status: 200, headers: ["a": "b"], bodyLength: 2,
                            prewritten: Bytes("date: now\r\n".utf8), into: &out)
                        connection.writeBody(Bytes("ok".utf8), into: &out)
                        connection.endResponse(into: &out)
                    case .waiting: break loop
                    case .refused(let refusal):
                        self.text += "!\(refusal)"
                        connection.writeRefusal(refusal, into: &out)
                    }
                }
                left.removeFirst(min(at, left.count))
            }
            self.text += String(decoding: out, as: UTF8.self)
        }

        private mutating func note(_ head: RequestHead) {
            self.text += "\(head.method) \(head.path) \(head.query ?? "-") \(head.minorVersion)"
            self.text += head.headers.lines.map { "\($0.name)=\($0.value);" }.joined()
        }

        private mutating func take(
            _ connection: inout HTTPServerConnection, _ bytes: Span<UInt8>, _ at: inout Int,
            _ out: inout Bytes
        ) -> Bool {
            let start = at
            guard let view = connection.nextView(bytes, &at) else { return false }
            let lying = bytes.extracting(start..<bytes.count)
            let head = connection.keptHead(lying)
            self.note(head)
            let isSame =
                view.text(view.method, in: lying) == head.method
                && view.text(view.path, in: lying) == head.path
                && view.query.map { view.text($0, in: lying) } == head.query
                && view.origin.map { view.text($0, in: lying) } == head.headers["origin"]
                && view.authorization.map { view.text($0, in: lying) }
                    == head.headers["authorization"]
            if !isSame { self.text += "(the view says otherwise)" }
            guard view.isWhole(in: lying) else { return true }
            self.text += view.text(view.body, in: lying) + "."
            var output: Bytes = []
            swap(&output, &out)
            var answer = connection.answer(
                behind: output, date: Bytes("date: now\r\n".utf8))
            answer.begin(200)
            answer.write(lines: "a: b\r\n")
            answer.end("ok")
            out = answer.taken(isAnswered: true)
            connection.endAnswer(&at)
            return true
        }
    }

    private static let requests = [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /healthz?x=1 HTTP/1.1\r\nHost: a.example:80\r\nOrigin: https://b\r\n\r\n",
        "HEAD /a HTTP/1.1\r\nHost: a\r\nAuthorization: Basic x\r\nAuthorization: y\r\n\r\n",
        "POST /a/b?ckAPIToken=1&c HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
        "POST /a/b?ckAPIToken=1&c HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\ndef",
        "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        "POST /d HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nab",
        "GET http://a/x?y HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /e HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "GET /f HTTP/1.1\r\nHost: [::1]:5\r\nConnection: close, x\r\n\r\n",
        "\r\nGET /g HTTP/1.1\r\nhost: a\r\nx-apple-cloudkit-request-keyid: 1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: b\r\n\r\n",
    ]

    private static let pieces = [
        "\r\n", " ", ":", "Host: a\r\n", "Content-Length: 1\r\n", "Transfer-Encoding: chunked\r\n",
        "\0", "\t", "\n", "Connection: close\r\n", "Content-Encoding: gzip\r\n", "ORIGIN: q\r\n",
        "a", "HTTP/1.0", "/", "?", "Expect: x\r\n",
    ]

    /// Requests one behind the other, some of them repeated, with a few bytes changed.
    private static func stream(_ generator: inout SeededGenerator) -> Bytes {
        var bytes = Bytes()
        var last = ""
        for _ in 0..<(1 + Int(generator.next() % 5)) {
            if last.isEmpty || generator.next() % 2 == 0 {
                last = Self.requests[Int(generator.next() % UInt64(Self.requests.count))]
            }
            bytes += last.utf8
        }
        for _ in 0..<Int(generator.next() % 3) {
            let at = Int(generator.next() % UInt64(bytes.count))
            switch generator.next() % 4 {
            case 0: bytes[at] = UInt8(truncatingIfNeeded: generator.next())
            case 1: bytes.remove(at: at)
            case 2: bytes.insert(bytes[at], at: at)
            default:
                let piece = Self.pieces[Int(generator.next() % UInt64(Self.pieces.count))]
                bytes.insert(contentsOf: piece.utf8, at: at)
            }
            if bytes.isEmpty { return bytes }
        }
        return bytes
    }

    /// How many of many streams are understood in another way than by reading every head by itself.
    private static func differences(_ bugs: PlantedBugs, seed: UInt64, count: Int) -> Int {
        var generator = SeededGenerator(seed: seed)
        var found = 0
        for number in 0..<count {
            let bytes = Self.stream(&generator)
            // Bytes one by one are never taken where they lie.
            let cuts = [bytes.count, 1 + Int(generator.next() % 40)]
            let expected = Trace(bytes, cut: 1, views: false)
            for cut in cuts
            where Trace(bytes, cut: max(1, cut), views: true, bugs: bugs) != expected {
                found += 1
                if !PlantedBugs.isPossible || bugs == PlantedBugs() {
                    let text = String(decoding: bytes, as: UTF8.self)
                    Issue.record(
                        "seed \(seed), stream \(number), cut \(cut): \(text.debugDescription)")
                }
            }
            if found > 3 { return found }
        }
        return found
    }

    @Test func `a request that lies whole is understood as one that comes in pieces`() {
        #expect(
            Self.differences(
                PlantedBugs(), seed: UInt64.random(in: 0..<1_000_000), count: 4_000) == 0)
    }

    @Test func `an answer that is given up leaves what was there before`() {
        var connection = HTTPServerConnection()
        let bytes = Bytes(Self.requests[0].utf8)
        var at = 0
        #expect(connection.nextView(bytes.span, &at) != nil)
        var answer = connection.answer(behind: [1, 2, 3], date: [])
        answer.begin(200)
        answer.write(lines: "a: b\r\n")
        #expect(answer.taken(isAnswered: false) == [1, 2, 3])
        // The request is still there to be answered.
        #expect(connection.keptHead(bytes.span).path == "/")
        #expect(connection.next(bytes.span, &at) == .bodyEnd)
    }

    @Test func `a request in another form is laid out as the same view`() throws {
        let head = RequestHead(
            method: "POST", path: "/a/b", query: "c=d",
            headers: ["host": "x", "Origin": "https://o", "Content-Type": "t"])
        var bytes: Bytes = [9, 9, 9]
        let view = try #require(
            RequestView(laying: head, body: Bytes("body".utf8), into: &bytes))
        let span = bytes.span
        #expect(view.text(view.target, in: span) == "/a/b?c=d")
        #expect(view.query.map { view.text($0, in: span) } == "c=d")
        #expect(view.origin.map { view.text($0, in: span) } == "https://o")
        #expect(view.authorization == nil && view.isWhole(in: span))
        #expect(view.text(view.body, in: span) == "body")
        #expect(view.has("content-type", in: span) && !view.has("content", in: span))
        var others: Bytes = []
        let star = RequestView(
            laying: RequestHead(method: "OPTIONS", path: "*"), body: [], into: &others)
        #expect(star == nil, "a request without a path has no view")
    }

    #if STRATUS_PLANTED
        @Test(arguments: [PlantedBug.viewOutlivesBuffer, .bodyOfNextRequestAnswered])
        func `the planted bugs are found`(bug: PlantedBug) {
            #expect(Self.differences(PlantedBugs([bug]), seed: 1, count: 400) > 0)
        }
    #endif
}
