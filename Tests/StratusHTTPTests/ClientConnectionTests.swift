import StratusHTTP
import StratusModel
import Testing

@Suite struct ClientConnectionTests {
    /// The client's report in words: status, body, how it ended, whether the connection is good for
    /// another request.
    typealias Row = (name: String, method: String, received: String, closes: Bool, story: String)

    static let rows: [Row] = [
        (
            "a length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false,
            "200 ok end reusable"
        ),
        (
            "no reason phrase", "GET", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", false,
            "200 end reusable"
        ),
        (
            "no space for one", "GET", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", false,
            "200 end reusable"
        ),
        (
            "chunks", "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n",
            false, "200 ok end reusable"
        ),
        ("until close", "GET", "HTTP/1.1 200 OK\r\n\r\nok", true, "200 ok end"),
        ("until close, still open", "GET", "HTTP/1.1 200 OK\r\n\r\nok", false, "200 ok"),
        (
            "HTTP/1.0 with a length", "GET", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
            false, "200 ok end"
        ),
        (
            "HTTP/1.0 that keeps alive", "GET",
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", false,
            "200 ok end reusable"
        ),
        (
            "Connection: close", "GET",
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", false,
            "200 ok end"
        ),
        (
            "HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n", false,
            "200 end reusable"
        ),
        ("204", "GET", "HTTP/1.1 204 No Content\r\n\r\n", false, "204 end reusable"),
        (
            "304 with a length", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
            false, "304 end reusable"
        ),
        (
            "interim answers first", "GET",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            false, "200 end reusable"
        ),
        (
            "too many interim answers", "GET",
            String(repeating: "HTTP/1.1 100 Continue\r\n\r\n", count: 9), false,
            "too many header lines"
        ),
        ("101", "GET", "HTTP/1.1 101 Switching Protocols\r\n\r\n", false, "protocolSwitched"),
        ("cut in the head", "GET", "HTTP/1.1 200 O", true, "cutShort"),
        (
            "cut in the body", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", true,
            "200 ok cutShort"
        ),
        (
            "cut in the chunks", "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", true,
            "200 ok cutShort"
        ),
        ("closed without a byte", "GET", "", true, "cutShort"),
        (
            "more than was asked for", "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n", false,
            "200 ok end reusable unexpectedBytes"
        ),
        (
            "both lengths", "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", false,
            "Content-Length beside Transfer-Encoding"
        ),
        (
            "two lengths", "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", false,
            "malformed or repeated Content-Length"
        ),
        (
            "an unknown coding", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", false,
            "transfer coding unknown"
        ),
        (
            "a bare line feed", "GET", "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n", false,
            "a line that does not end with CR LF"
        ),
        (
            "a folded header", "GET", "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", false,
            "header line folded"
        ),
        ("not HTTP", "GET", "SSH-2.0-OpenSSH\r\n", false, "malformed request line"),
        ("HTTP/2", "GET", "HTTP/2.0 200 OK\r\n\r\n", false, "HTTP version not supported"),
        (
            "a status of two digits", "GET", "HTTP/1.1 20 OK\r\n\r\n", false,
            "malformed request line"
        ),
        (
            "a status of four digits", "GET", "HTTP/1.1 2000 OK\r\n\r\n", false,
            "malformed request line"
        ),
        ("a status below 100", "GET", "HTTP/1.1 099 OK\r\n\r\n", false, "malformed request line"),
        (
            "a body beyond the limit", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n",
            false, "200 body too large"
        ),
        (
            "an endless body beyond the limit", "GET", "HTTP/1.1 200 OK\r\n\r\n0123456789abcdefg",
            false, "200 0123456789abcdef body too large"
        ),
    ]

    @Test(arguments: rows, [1_000, 7, 1])
    func `tells the same story however the bytes are cut`(row: Row, cut: Int) {
        var limits = HTTPLimits()
        limits.bodySizeMax = 16
        var connection = HTTPClientConnection(limits: limits)
        var out = Bytes()
        connection.beginRequest(method: row.method, target: "/", host: "a", into: &out)
        connection.endRequest(into: &out)
        var story: [String] = []
        var body = Bytes()
        func tell(_ words: String) {
            if !body.isEmpty { story.append(String(decoding: body, as: UTF8.self)) }
            body = []
            if !words.isEmpty { story.append(words) }
        }
        let bytes = Bytes(row.received.utf8)
        var isOver = false
        for start in stride(from: 0, to: bytes.count, by: cut) where !isOver {
            let piece = Bytes(bytes[start..<min(bytes.count, start + cut)])
            var at = 0
            feeding: while true {
                switch connection.next(piece.span, &at) {
                case .needsMore: break feeding
                case .head(let head): tell("\(head.status)")
                case .body(let range): body += piece[range]
                case .end: tell("end" + (connection.mayReuse ? " reusable" : ""))
                case .failed(let failure):
                    tell(Self.words(failure))
                    isOver = true
                    break feeding
                }
                if !connection.mayReuse, story.last == "end" {
                    isOver = true
                    break feeding
                }
            }
        }
        if row.closes, !isOver {
            switch connection.endOfInput() {
            case .end: tell("end")
            case .failed(let failure): tell(Self.words(failure))
            case .needsMore, .head, .body: break
            }
            #expect(!connection.mayReuse)
        }
        tell("")
        #expect(story.joined(separator: " ") == row.story, "\(row.name)")
    }

    private static func words(_ failure: HTTPClientConnection.Failure) -> String {
        switch failure {
        case .malformed(let refusal): refusal.rawValue
        case .cutShort, .unexpectedBytes, .protocolSwitched: "\(failure)"
        }
    }

    @Test func `requests are framed by what is known of their bodies`() {
        var connection = HTTPClientConnection()
        var out = Bytes()
        connection.beginRequest(
            method: "POST", target: "/a?b", host: "h:1", headers: ["x": "y\r\nz"], bodyLength: 3,
            into: &out)
        connection.writeBody(Bytes("abc".utf8), into: &out)
        connection.endRequest(into: &out)
        #expect(
            String(decoding: out, as: UTF8.self)
                == "POST /a?b HTTP/1.1\r\nhost: h:1\r\nx: y%0D%0Az\r\ncontent-length: 3\r\n\r\nabc")

        connection = HTTPClientConnection()
        out = []
        connection.beginRequest(method: "PUT", target: "/", host: "h", bodyLength: nil, into: &out)
        connection.writeBody(Bytes("abc".utf8), into: &out)
        connection.endRequest(into: &out)
        #expect(
            String(decoding: out, as: UTF8.self)
                == "PUT / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        )

        connection = HTTPClientConnection()
        out = []
        connection.beginRequest(method: "POST", target: "/", host: "h", into: &out)
        #expect(String(decoding: out, as: UTF8.self).contains("content-length: 0\r\n\r\n"))
    }

    @Test func `what the client writes the server reads`() {
        var client = HTTPClientConnection()
        var out = Bytes()
        client.beginRequest(
            method: "PUT", target: "/a?b", host: "[::1]:1", bodyLength: nil, into: &out)
        for _ in 0..<3 { client.writeBody(Bytes(repeating: 0x61, count: 300), into: &out) }
        client.endRequest(into: &out)
        var server = EchoServer()
        server.answersInChunks = true
        server.receive(out)
        var at = 0
        var body = Bytes()
        let answer = server.sent
        for _ in 0..<10 where !client.mayReuse {
            switch client.next(answer.span, &at) {
            case .body(let range): body += answer[range]
            case .head(let head): #expect(head.status == 200)
            case .end, .needsMore, .failed: break
            }
        }
        #expect(body == Bytes("PUT /a?b ".utf8) + Bytes(repeating: 0x61, count: 900))
    }

    @Test func `an answer before the request is out ends the connection`() {
        var client = HTTPClientConnection()
        var out = Bytes()
        client.beginRequest(method: "PUT", target: "/", host: "h", bodyLength: 10, into: &out)
        let answer = Bytes("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n".utf8)
        var at = 0
        _ = client.next(answer.span, &at)
        #expect(client.next(answer.span, &at) == .end)
        #expect(!client.mayReuse)
    }
}
