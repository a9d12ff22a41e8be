import StratusHTTP
import StratusModel
import Testing

@testable import StratusHTTP2

/// Our client's session against our server's, without anything between them.
@Suite struct SessionPairTests {
    private final class Pair {
        let client = HTTP2ClientSession(HTTP2Limits())
        let server = HTTP2ServerSession(HTTP2Limits())
        var clientEvents: [HTTP2ClientSession.Event] = []
        var serverEvents: [HTTP2ServerSession.Event] = []

        func run() {
            let now = MonotonicTime(nanoseconds: 1)
            while true {
                var toServer: Bytes = []
                self.client.send(into: &toServer, sizeMax: 1 << 20)
                toServer.withUnsafeBufferPointer { self.server.receive($0, at: now) }
                var toClient: Bytes = []
                self.server.send(into: &toClient, sizeMax: 1 << 20)
                toClient.withUnsafeBufferPointer { self.client.receive($0, at: now) }
                self.clientEvents += self.client.takeEvents()
                self.serverEvents += self.server.takeEvents()
                if toServer.isEmpty && toClient.isEmpty { return }
            }
        }
    }

    private static func block(_ method: String = "GET", length: Int? = nil) -> FieldBlock {
        FieldBlock(
            method: method, scheme: "https", authority: "x", target: "/a", headers: ["X-A": "é"],
            bodyLength: length)
    }

    @Test func `a request goes over and its answer comes back`() throws {
        let pair = Pair()
        let stream = try #require(pair.client.request(Self.block("POST", length: 3), hasBody: true))
        pair.client.append(Bytes("abc".utf8), to: stream)
        pair.client.endBody(of: stream)
        pair.run()
        guard case .request(_, let request, false)? = pair.serverEvents.first else {
            Issue.record("no request: \(pair.serverEvents)")
            return
        }
        #expect(request.head.headers["x-a"] == "%C3%A9" && request.bodyLength == 3)
        #expect(pair.serverEvents.contains(.body(stream: stream, Bytes("abc".utf8))))
        pair.server.respond(
            stream, FieldBlock(status: 201, headers: ["X-B": "1"], bodyLength: 2), hasBody: true)
        pair.server.append(Bytes("ok".utf8), to: stream)
        pair.server.endBody(of: stream)
        pair.run()
        let heads = pair.clientEvents.compactMap { event -> ResponseHead? in
            if case .head(_, let head) = event { return head }
            return nil
        }
        #expect(heads.map(\.status) == [201] && heads.first?.headers["x-b"] == "1")
        #expect(pair.clientEvents.contains(.body(stream: stream, Bytes("ok".utf8))))
        #expect(pair.clientEvents.last == .closed(stream: stream, .none, isWhole: true))
        #expect(pair.client.streamCountMax == 128)
    }

    @Test func `streams above the last one of GOAWAY were not looked at`() throws {
        let pair = Pair()
        let first = try #require(pair.client.request(Self.block(), hasBody: false))
        pair.run()
        pair.server.goAway()
        let second = try #require(pair.client.request(Self.block(), hasBody: false))
        pair.run()
        #expect(pair.clientEvents.contains(.closed(stream: second, .refusedStream, isWhole: false)))
        #expect(pair.client.request(Self.block(), hasBody: false) == nil)
        pair.server.respond(
            first, FieldBlock(status: 200, headers: [:], bodyLength: 0), hasBody: false)
        pair.run()
        #expect(pair.clientEvents.contains(.closed(stream: first, .none, isWhole: true)))
    }

    @Test func `a stream without its end is no whole answer`() throws {
        let pair = Pair()
        let stream = try #require(pair.client.request(Self.block(), hasBody: false))
        pair.run()
        pair.server.respond(
            stream, FieldBlock(status: 200, headers: [:], bodyLength: nil), hasBody: true)
        pair.server.append([1, 2, 3], to: stream)
        pair.run()
        pair.server.reset(stream, .internal)
        pair.run()
        #expect(pair.clientEvents.last == .closed(stream: stream, .internal, isWhole: false))
    }

    @Test func `a ping comes back`() {
        let pair = Pair()
        pair.client.ping()
        pair.run()
        #expect(pair.clientEvents.contains(.pingAnswered))
    }
}
