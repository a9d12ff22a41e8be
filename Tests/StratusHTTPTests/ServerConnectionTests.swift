import StratusHTTP
import StratusModel
import Testing

/// Cases that the table cannot express: answers before the body is read, framing of answers, stops.
@Suite struct ServerConnectionTests {
    /// One connection with everything it was given and said.
    struct Line {
        var connection: HTTPServerConnection
        var received = Bytes()
        var at = 0
        var out = Bytes()

        init(_ text: String, limits: HTTPLimits = HTTPLimits()) {
            self.connection = HTTPServerConnection(limits: limits)
            self.received = Bytes(text.utf8)
        }

        var sent: String { String(decoding: self.out, as: UTF8.self) }

        mutating func next() -> HTTPServerConnection.Event {
            let received = self.received
            var at = self.at
            defer { self.at = at }
            return self.connection.next(received.span, &at)
        }

        /// The next event, which has to be a head.
        mutating func head() throws -> RequestHead {
            guard case .head(let head) = self.next() else { throw NoHead() }
            return head
        }

        mutating func answer(
            _ status: Int = 200, _ headers: HeaderFields = [:], _ body: String = ""
        ) {
            self.connection.beginResponse(
                status: status, headers: headers, bodyLength: body.utf8.count, into: &self.out)
            self.connection.writeBody(Bytes(body.utf8), into: &self.out)
            self.connection.endResponse(into: &self.out)
        }
    }
    struct NoHead: Error {}

    static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    static func post(_ length: Int, _ rest: String = "") -> String {
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \(length)\r\n\r\n" + rest
    }

    // MARK: Requests

    @Test func `the next request is not looked at before the answer is out`() throws {
        var line = Line(Self.post(3, "abc") + Self.get)
        let head = try line.head()
        #expect(head.method == "POST")
        #expect(head.headers["content-length"] == "3")
        #expect(head.headers.lines.count == 2)
        #expect(line.connection.phase == .body)
        #expect(line.next() == .body((line.at - 3)..<line.at))
        #expect(line.next() == .bodyEnd)
        let before = line.at
        #expect(line.next() == .waiting)
        #expect(line.next() == .waiting)
        #expect(line.at == before)
        #expect(line.connection.phase == .response)
        line.answer()
        #expect(line.connection.phase == .idle)
        #expect(try line.head().method == "GET")
    }

    @Test func `a body limit set at the head holds for declared lengths and for chunks`() throws {
        var declared = Line(Self.post(4, "abcd"))
        _ = try declared.head()
        declared.connection.bodySizeMax = 3
        #expect(declared.next() == .refused(.bodyTooLarge))

        var chunked = Line(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n"
        )
        _ = try chunked.head()
        chunked.connection.bodySizeMax = 3
        guard case .body = chunked.next() else { throw NoHead() }
        #expect(chunked.next() == .refused(.bodyTooLarge))
        #expect(chunked.next() == .closed)
    }

    @Test func `a body limit does not outlive its request`() throws {
        var line = Line(Self.get + Self.post(4, "abcd"))
        _ = try line.head()
        line.connection.bodySizeMax = 0
        #expect(line.next() == .bodyEnd)
        line.answer()
        _ = try line.head()
        #expect(line.connection.bodySizeMax == HTTPLimits().bodySizeMax)
    }

    // MARK: Answers before the body

    @Test func `G-12: an unread body within the cap is drained and the connection lives on`() throws
    {
        var line = Line(Self.post(31, "GET /smuggled HTTP/1.1\r\nHost: a") + Self.get)
        _ = try line.head()
        line.answer()
        #expect(!line.sent.contains("connection: close"))
        #expect(!line.connection.mustClose)
        #expect(line.connection.phase == .body)
        #expect(try line.head().path == "/")
    }

    @Test func `G-12: an unread body declared beyond the cap ends the connection, and says so`()
        throws
    {
        var limits = HTTPLimits()
        limits.drainSizeMax = 30
        var line = Line(
            Self.post(31, "GET /smuggled HTTP/1.1\r\nHost: a") + Self.get, limits: limits)
        _ = try line.head()
        line.answer()
        #expect(line.sent.contains("connection: close"))
        #expect(line.connection.mustClose)
        #expect(line.next() == .closed)
    }

    @Test func `G-12: unread chunks beyond the cap end the connection`() throws {
        var limits = HTTPLimits()
        limits.drainSizeMax = 4
        var line = Line(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
                + Self.get, limits: limits)
        _ = try line.head()
        line.answer()
        #expect(!line.connection.mustClose)
        #expect(line.next() == .closed)
    }

    @Test func `G-12: a malformed body is refused while it is drained, and nothing more is said`()
        throws
    {
        var line = Line(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n" + Self.get)
        _ = try line.head()
        line.answer()
        #expect(line.next() == .refused(.chunk))
        #expect(line.next() == .closed)
    }

    @Test func `G-12: a client still waiting to be told to go on cannot be drained`() throws {
        var line = Line(
            "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        _ = try line.head()
        #expect(line.connection.awaitsContinue)
        line.answer(413)
        #expect(line.connection.mustClose)
        #expect(line.sent.contains("connection: close"))
        #expect(!line.sent.contains("100 Continue"))
    }

    @Test func `a client that sends without waiting is not told to go on`() throws {
        var line = Line(
            "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nab")
        _ = try line.head()
        _ = line.next()
        line.connection.writeContinue(into: &line.out)
        #expect(line.sent == "")
    }

    // MARK: Framing of answers

    @Test func `an answer of unknown length goes out in chunks`() throws {
        var line = Line(Self.get)
        _ = try line.head()
        line.connection.beginResponse(
            status: 200, headers: ["x-a": "b"], bodyLength: nil,
            prewritten: Bytes("date: now\r\n".utf8), into: &line.out)
        line.connection.writeBody(Bytes("hello".utf8), into: &line.out)
        line.connection.writeBody([], into: &line.out)
        line.connection.writeBody(Bytes(repeating: 0x61, count: 26), into: &line.out)
        line.connection.endResponse(into: &line.out)
        #expect(
            line.sent
                == "HTTP/1.1 200 OK\r\nx-a: b\r\ndate: now\r\ntransfer-encoding: chunked\r\n\r\n"
                + "5\r\nhello\r\n1A\r\naaaaaaaaaaaaaaaaaaaaaaaaaa\r\n0\r\n\r\n")
    }

    @Test func `an answer says its fields, however they were put together`() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var random = SeededGenerator(seed: seed)
        let names = ["X-A", "x-a", "Vary", "Content-Length", "Connection", "Transfer-Encoding"]
        let values = ["", "a", "*, b", "with\ttab", "é\r\nSet-Cookie: x", "\u{7F}"]
        func isSame(_ one: String, _ other: String) -> Bool {
            one.lowercased() == other.lowercased()
        }
        for round in 0..<500 {
            var headers = HeaderFields()
            var model: [(name: String, value: String)] = []
            for _ in 0..<Int.random(in: 0..<8, using: &random) {
                let name = names.randomElement(using: &random)!
                let value = values.randomElement(using: &random)!
                switch Int.random(in: 0..<6, using: &random) {
                case 0:
                    headers.remove(name)
                    model.removeAll { isSame($0.name, name) }
                case 1:
                    headers.set(name, value)
                    model.removeAll { isSame($0.name, name) }
                    model.append((name, value))
                case 2:
                    headers.set(["Vary": value, name: "of two"])
                    model.removeAll { isSame($0.name, name) || isSame($0.name, "Vary") }
                    model += [("Vary", value), (name, "of two")]
                default:
                    headers.append(name, value)
                    model.append((name, value))
                }
            }
            #expect(headers.lines.map(\.name) == model.map(\.name), "seed \(seed), \(round)")
            #expect(headers.lines.map(\.value) == model.map(\.value), "seed \(seed), \(round)")
            var line = Line(Self.get)
            _ = try line.head()
            line.answer(200, headers)
            let ours = ["connection", "content-length", "transfer-encoding"]
            let fields = model.filter { !ours.contains($0.name.lowercased()) }.map {
                "\($0.name): \(Self.encoded($0.value))\r\n"
            }
            #expect(
                line.sent == "HTTP/1.1 200 OK\r\n\(fields.joined())content-length: 0\r\n\r\n",
                "seed \(seed), \(round)")
        }
    }

    /// What HTTP does not allow in a value goes out percent-encoded.
    private static func encoded(_ value: String) -> String {
        value.utf8.map { byte in
            if (0x20..<0x7F).contains(byte) || byte == 0x09 {
                return String(UnicodeScalar(byte))
            }
            return "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
        }.joined()
    }

    @Test func `to HTTP/1.0 an answer of unknown length ends with the connection`() throws {
        var line = Line("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        _ = try line.head()
        line.connection.beginResponse(status: 200, headers: [:], bodyLength: nil, into: &line.out)
        line.connection.writeBody(Bytes("hello".utf8), into: &line.out)
        line.connection.endResponse(into: &line.out)
        #expect(line.sent == "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello")
        #expect(line.connection.mustClose)
    }

    @Test func `HTTP/1.0 is told when it may keep the connection`() throws {
        var line = Line("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        _ = try line.head()
        line.answer()
        #expect(
            line.sent == "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: keep-alive\r\n\r\n")
        #expect(!line.connection.mustClose)
    }

    @Test(arguments: [(204, nil), (304, nil), (200, "content-length: 5")] as [(Int, String?)])
    func `HEAD, 204 and 304 have no body whatever the handler writes`(status: Int, length: String?)
        throws
    {
        var line = Line((status == 200 ? "HEAD" : "GET") + " / HTTP/1.1\r\nHost: a\r\n\r\n")
        _ = try line.head()
        line.answer(status, [:], "hello")
        #expect(line.sent.hasSuffix("\r\n\r\n"))
        #expect(line.sent.contains("content-length") == (length != nil))
        if let length { #expect(line.sent.contains(length)) }
        #expect(!line.connection.mustClose)
    }

    @Test func `HEAD of an unknown length claims none`() throws {
        var line = Line("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
        _ = try line.head()
        line.connection.beginResponse(status: 200, headers: [:], bodyLength: nil, into: &line.out)
        line.connection.writeBody(Bytes("hello".utf8), into: &line.out)
        line.connection.endResponse(into: &line.out)
        #expect(line.sent == "HTTP/1.1 200 OK\r\n\r\n")
    }

    @Test func `framing that a handler sets is dropped, its wish to close is not`() throws {
        var line = Line(Self.get)
        _ = try line.head()
        line.answer(
            200, ["Content-Length": "99", "Transfer-Encoding": "gzip", "Connection": "Close"], "a")
        #expect(line.sent == "HTTP/1.1 200 OK\r\ncontent-length: 1\r\nconnection: close\r\n\r\na")
        #expect(line.connection.mustClose)
    }

    @Test func `an answer shorter than declared closes the connection`() throws {
        var line = Line(Self.get)
        _ = try line.head()
        line.connection.beginResponse(status: 200, headers: [:], bodyLength: 5, into: &line.out)
        line.connection.writeBody(Bytes("hell".utf8), into: &line.out)
        line.connection.endResponse(into: &line.out)
        #expect(line.connection.mustClose)
    }

    @Test func `an answer longer than declared stops the process`() async {
        await #expect(processExitsWith: .failure) {
            var line = Line(Self.get)
            _ = try line.head()
            line.connection.beginResponse(status: 200, headers: [:], bodyLength: 1, into: &line.out)
            line.connection.writeBody(Bytes("ab".utf8), into: &line.out)
        }
    }

    @Test func `an answer abandoned has no end`() throws {
        var line = Line(Self.get)
        _ = try line.head()
        line.connection.beginResponse(status: 200, headers: [:], bodyLength: nil, into: &line.out)
        line.connection.abandon()
        #expect(line.connection.mustClose)
        #expect(!line.sent.contains("0\r\n\r\n"))
        #expect(line.next() == .closed)
    }

    @Test func `a refusal after an answer has begun adds nothing to it`() throws {
        var line = Line(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n")
        _ = try line.head()
        line.connection.beginResponse(status: 200, headers: [:], bodyLength: nil, into: &line.out)
        let before = line.out
        guard case .refused(let refusal) = line.next() else { throw NoHead() }
        line.connection.writeRefusal(refusal, into: &line.out)
        #expect(line.out == before)
        #expect(line.connection.mustClose)
        line.connection.endResponse(into: &line.out)
        #expect(line.connection.mustClose)
    }

    @Test func `a handler may answer a refused body in its own words, and closes with them`() throws
    {
        var line = Line(Self.post(4, "abcd"))
        _ = try line.head()
        line.connection.bodySizeMax = 3
        #expect(line.next() == .refused(.bodyTooLarge))
        line.answer(413, ["content-type": "application/json"], "{}")
        #expect(
            line.sent == "HTTP/1.1 413 Content Too Large\r\ncontent-type: application/json\r\n"
                + "content-length: 2\r\nconnection: close\r\n\r\n{}")
        #expect(line.connection.mustClose)
    }

    @Test func `what a handler says after the refusal was written is dropped`() throws {
        var line = Line(Self.post(4, "abcd"))
        _ = try line.head()
        line.connection.bodySizeMax = 3
        #expect(line.next() == .refused(.bodyTooLarge))
        line.connection.writeRefusal(.bodyTooLarge, into: &line.out)
        let before = line.out
        line.answer(200, [:], "too late")
        #expect(line.out == before)
        #expect(line.connection.mustClose)
    }

    @Test func `a refusal may carry the caller's own words`() {
        var line = Line("BAD\r\n")
        guard case .refused(let refusal) = line.next() else {
            Issue.record("not refused")
            return
        }
        line.connection.writeRefusal(
            refusal, headers: ["content-type": "application/json"], body: Bytes("{}".utf8),
            into: &line.out)
        #expect(
            line.sent == "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"
                + "content-length: 2\r\nconnection: close\r\n\r\n{}")
    }

    @Test func `every refusal has a status that closes and words of its own`() {
        for refusal in HTTPRefusal.allCases {
            #expect((400...599).contains(refusal.status))
        }
        #expect(Set(HTTPRefusal.allCases.map(\.rawValue)).count == HTTPRefusal.allCases.count)
    }

    // MARK: Header injection

    @Test(arguments: [
        "\r\nx: y", "\n", "\r", "\0", "a\r\n\r\nHTTP/1.1 200 OK", "é", "\u{7F}", "\u{2028}",
    ])
    func `G-19: nothing a value holds can end its line`(value: String) throws {
        var line = Line(Self.get)
        _ = try line.head()
        line.answer(200, ["location": "/" + value])
        let lines = line.sent.split(separator: "\r\n", omittingEmptySubsequences: false)
        #expect(lines.count == 5)
        #expect(lines[1].hasPrefix("location: /"))
        #expect(PercentCoding.decode(lines[1].dropFirst(11).utf8) == value)
        #expect(line.out.allSatisfy { $0 < 0x7F })
    }

    @Test func `G-19: a name that is no token stops the process`() async {
        await #expect(processExitsWith: .failure) {
            var line = Line(Self.get)
            _ = try line.head()
            line.answer(200, ["x\r\ny": "z"])
        }
    }

    // MARK: Stopping

    @Test func `a stop closes an idle connection at once`() {
        var line = Line("")
        line.connection.stopKeepingAlive()
        #expect(line.connection.mustClose)
    }

    @Test
    func `G-38: a stop lets the request in progress finish, even one of which half a head is here`()
        throws
    {
        var line = Line(Self.get)
        let whole = line.received
        line.received = Bytes(whole.prefix(7))
        #expect(line.next() == .needsMore)
        line.connection.stopKeepingAlive()
        #expect(!line.connection.mustClose)
        line.received = Bytes(whole.dropFirst(7)) + whole
        line.at = 0
        _ = try line.head()
        line.answer(200, [:], "last")
        #expect(line.sent.contains("connection: close\r\n\r\nlast"))
        #expect(line.next() == .closed)
    }

    @Test func `answering twice stops the process`() async {
        await #expect(processExitsWith: .failure) {
            var line = Line(Self.post(3))
            _ = try line.head()
            line.connection.beginResponse(status: 200, headers: [:], bodyLength: 0, into: &line.out)
            line.connection.beginResponse(status: 200, headers: [:], bodyLength: 0, into: &line.out)
        }
    }
}
