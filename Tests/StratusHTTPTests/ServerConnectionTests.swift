import StratusHTTP
import StratusModel
import Testing

@Suite struct ServerConnectionTests {
    @Test func `a request with a body is answered and the next one follows`() {
        var connection = HTTPServerConnection()
        let received = Bytes(
            "POST /a?b=c HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: h\r\n\r\n"
                .utf8)
        var at = 0
        var events: [HTTPServerConnection.Event] = []
        while true {
            let event = connection.next(received.span, &at)
            events.append(event)
            if event == .waiting { break }
        }
        guard case .head(let head) = events[0] else {
            Issue.record("no head: \(events)")
            return
        }
        #expect(head.method == "POST")
        #expect(head.path == "/a")
        #expect(head.query == "b=c")
        #expect(head.headers["content-length"] == "3")
        #expect(head.headers.lines.count == 2)
        #expect(events[1...] == [.body((at - 3)..<at), .bodyEnd, .waiting])

        var out = Bytes()
        connection.beginResponse(
            status: 200, headers: ["x-a": "b"], bodyLength: nil, into: &out)
        connection.writeBody(Bytes("hello".utf8), into: &out)
        connection.endResponse(into: &out)
        #expect(
            String(decoding: out, as: UTF8.self)
                == "HTTP/1.1 200 OK\r\nx-a: b\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        )
        #expect(!connection.mustClose)
        guard case .head(let next) = connection.next(received.span, &at) else {
            Issue.record("no second head")
            return
        }
        #expect(next.method == "GET")
        #expect(at == received.count)
    }
}
