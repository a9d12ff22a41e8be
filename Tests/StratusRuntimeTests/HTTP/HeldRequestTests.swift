import StratusHTTP
import StratusModel
import Synchronization
import Testing

@testable import StratusRuntime

/// The patience of requests: those that are held until something happens, and those that take as
/// long as their bytes move, over both versions of HTTP.
@Suite struct HeldRequestTests {
    /// Holds `/held` until its task is cancelled. Streams `/feed`, whose pieces come as slowly.
    final class Waiting: HTTPHandler {
        struct Counts {
            var waiting = 0
            var resumed = 0
        }
        let patience: RequestPatience
        let counts = Mutex(Counts())

        init(_ patience: RequestPatience) { self.patience = patience }

        var waiting: Int { self.counts.withLock { $0.waiting } }
        var resumed: Int { self.counts.withLock { $0.resumed } }

        func plan(for head: RequestHead) -> RequestPlan {
            RequestPlan(bodySizeMax: .mebibytes(1), patience: self.patience) {
                await self.respond(to: $0)
            }
        }

        func wait() async {
            let waiter = Waiter()
            self.counts.withLock { $0.waiting += 1 }
            await waiter.untilCancelled()
            self.counts.withLock {
                $0.waiting -= 1
                $0.resumed += 1
            }
        }

        func respond(to request: HTTPRequest) async -> HTTPResponse {
            switch request.head.path {
            case "/feed":
                return HTTPResponse(status: 200, body: .stream(Feed(self), length: nil))
            case "/plain": return .text("plain")
            default:
                await self.wait()
                return .text("over")
            }
        }
    }

    /// A wait that only the task's cancellation ends.
    final class Waiter: Sendable {
        private struct State {
            var isOver = false
            var waiter: CheckedContinuation<Void, Never>?
        }
        private let state = Mutex(State())

        func untilCancelled() async {
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let isOver = self.state.withLock { state in
                        if !state.isOver { state.waiter = continuation }
                        return state.isOver
                    }
                    if isOver { continuation.resume() }
                }
            } onCancel: {
                let waiter = self.state.withLock { state in
                    state.isOver = true
                    return state.waiter.take()
                }
                waiter?.resume()
            }
        }
    }

    /// A first piece, then a wait, then the end.
    final class Feed: ResponseBody {
        private let handler: Waiting
        private let count = Atomic(0)

        init(_ handler: Waiting) { self.handler = handler }

        func next() async throws -> Bytes? {
            if self.count.add(1, ordering: .relaxed).newValue == 1 { return Bytes("begin".utf8) }
            await self.handler.wait()
            return nil
        }
    }

    private static let get = "GET /held HTTP/1.1\r\nhost: x\r\n\r\n"
    private static let feed = "GET /feed HTTP/1.1\r\nhost: x\r\n\r\n"

    private static func hasty(_ total: Duration = .milliseconds(200)) -> HTTPServerLimits {
        var limits = HTTPServerLimits.forTests
        limits.timeouts.total = total
        return limits
    }

    @Test(arguments: [RequestPatience.usual, .total(.milliseconds(100))])
    func `a request that is not held is cut at its total`(_ patience: RequestPatience) async throws
    {
        let handler = Waiting(patience)
        let limits =
            patience == .usual ? Self.hasty() : HTTPServerLimits.forTests
        try await withServer(handler, limits: limits) { server, address in
            let client = try RawClient(address)
            client.send(Self.get)
            #expect(client.receive().end != .stillOpen)
            try await eventually { handler.resumed == 1 }
        }
    }

    @Test(arguments: [RequestPatience.held, .transfer])
    func `a held request and a transfer outlive the usual total`(
        _ patience: RequestPatience
    ) async throws {
        let handler = Waiting(patience)
        try await withServer(handler, limits: Self.hasty()) { server, address in
            let client = try RawClient(address)
            client.send(Self.get)
            try await eventually { handler.waiting == 1 }
            try await Task.sleep(for: .milliseconds(600))
            #expect(handler.waiting == 1)
            client.reset()
            try await eventually { handler.waiting == 0 }
        }
    }

    @Test func `a transfer that its client does not take is cut`() async throws {
        struct Handler: HTTPHandler {
            let body: CountingBody
            func plan(for head: RequestHead) -> RequestPlan {
                RequestPlan(bodySizeMax: .kibibytes(1), patience: .transfer) {
                    await self.respond(to: $0)
                }
            }
            func respond(to request: HTTPRequest) async -> HTTPResponse {
                HTTPResponse(status: 200, body: .stream(self.body, length: nil))
            }
        }
        var limits = HTTPServerLimits.forTests
        limits.timeouts.grace = .milliseconds(300)
        let handler = Handler(body: CountingBody(pieces: 100_000, size: 10_000))
        try await withServer(handler, limits: limits) { server, address in
            let client = try RawClient(address, receiveBufferSize: 4_096)
            client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            try await eventually { handler.body.pulled > 0 }
            try await eventually { server.connectionCount == 0 }
        }
    }

    @Test(arguments: ["/held", "/feed"])
    func `a waiting handler is told that its client is gone`(_ path: String) async throws {
        let handler = Waiting(.held)
        try await withServer(handler) { server, address in
            let client = try RawClient(address)
            client.send(path == "/feed" ? Self.feed : Self.get)
            try await eventually { handler.waiting == 1 }
            client.reset()
            try await eventually { handler.resumed == 1 }
            try await eventually { server.connectionCount == 0 }
        }
    }

    @Test func `a client that closes its half is answered at once`() async throws {
        let handler = Waiting(.held)
        try await withServer(handler) { server, address in
            let client = try RawClient(address)
            // The beginning of a further request waits behind the held one.
            client.send(Self.get + "GET ")
            try await eventually { handler.waiting == 1 }
            client.endSending()
            #expect(client.text().text.contains("\r\n\r\nover"))
            try await eventually { server.connectionCount == 0 }
        }
    }

    @Test func `held requests are answered when a stop begins`() async throws {
        let handler = Waiting(.held)
        try await withServer(handler) { server, address in
            let clients = try (0..<20).map { _ in try RawClient(address) }
            for (index, client) in clients.enumerated() {
                client.send(index % 2 == 0 ? Self.get : Self.feed)
            }
            try await eventually { handler.waiting == 20 }
            let start = RealClock.now
            await server.stop(deadline: .seconds(100))
            #expect(RealClock.now - start < .seconds(50))
            for (index, client) in clients.enumerated() {
                let text = client.text().text
                #expect(text.contains(index % 2 == 0 ? "\r\n\r\nover" : "begin\r\n0\r\n\r\n"))
            }
        }
    }

    // MARK: HTTP/2

    @Test func `a stream of HTTP/2 is held, told and answered alike`() async throws {
        let handler = Waiting(.held)
        try await withServer(handler, limits: Self.hasty(), plainHTTP2: true) { server, address in
            // Two streams; the client resets the first.
            let client = try RawClient(address)
            func frame(_ type: UInt8, _ flags: UInt8, _ stream: UInt8, _ payload: Bytes) -> Bytes {
                [0, 0, UInt8(payload.count), type, flags, 0, 0, 0, stream] + payload
            }
            client.send(HTTP2Connection.preface + frame(4, 0, 0, []))
            for stream: UInt8 in [1, 3] {
                client.send(frame(1, 5, stream, [0x82, 0x87, 0x84, 0x41, 0x01, 0x78]))
            }
            try await eventually { handler.waiting == 2 }
            try await Task.sleep(for: .milliseconds(600))
            #expect(handler.waiting == 2)
            client.send(frame(3, 0, 1, [0, 0, 0, 8]))
            try await eventually { handler.waiting == 1 }
            await server.stop(deadline: .seconds(100))
            #expect(String(decoding: client.receive().bytes, as: UTF8.self).contains("over"))
            #expect(handler.resumed == 2)
        }
    }
}
