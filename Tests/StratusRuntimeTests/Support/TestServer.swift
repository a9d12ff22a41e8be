import StratusHTTP
import StratusModel
import StratusTLS
import Synchronization

@testable import StratusRuntime

/// A server on an ephemeral port of the loopback, with a loop of its own, for the time of `body`.
@discardableResult
func withServer<Result>(
    _ handler: any HTTPHandler, loops count: Int = 1, tls: TLSContextSource? = nil,
    limits: HTTPServerLimits = .forTests, gzipSizeMin: ByteCount? = 1_024,
    address: SocketAddress = .ip("127.0.0.1", port: 0), plainHTTP2: Bool = false,
    http2Metrics: HTTP2Metrics? = nil,
    _ body: (HTTPServer, SocketAddress) async throws -> Result
) async throws -> Result {
    let loops = EventLoop.group(count: count, name: "test")
    var configuration = HTTPServerConfiguration(
        listeners: [.init(address, tls: tls)], limits: limits, gzipSizeMin: gzipSizeMin)
    configuration.plainHTTP2 = plainHTTP2
    configuration.http2Metrics = http2Metrics
    let server = HTTPServer(
        configuration: configuration, loops: loops, world: TestWorld(), handler: handler)
    let bound = try await server.start()
    let result: Swift.Result<Result, any Error>
    do {
        result = .success(try await body(server, bound[0]))
    } catch {
        result = .failure(error)
    }
    await server.stop(deadline: .seconds(0))
    for loop in loops { loop.stop() }
    return try result.get()
}

extension HTTPServerLimits {
    /// Deadlines long enough for a busy machine, unless a test is about them.
    static var forTests: HTTPServerLimits {
        var limits = HTTPServerLimits()
        limits.lingerDeadline = .milliseconds(500)
        limits.timeouts.grace = .seconds(300)
        limits.timeouts.header = .seconds(300)
        return limits
    }
}

/// Clocks and numbers of the machine; no disk.
final class TestWorld: World {
    private let source = RealRandom()
    var now: MonotonicTime { RealClock.now }
    var wallMilliseconds: Int64 { RealClock.wallMilliseconds }
    func random() -> UInt64 { self.source.next() }
    var files: any Files { preconditionFailure("there is no disk here") }
}

/// Answers with what `body` makes of the request.
struct ClosureHandler: HTTPHandler {
    var bodySizeMax: ByteCount = .mebibytes(16)
    let respond: @Sendable (HTTPRequest) async -> HTTPResponse

    init(
        bodySizeMax: ByteCount = .mebibytes(16),
        _ respond: @escaping @Sendable (HTTPRequest) async -> HTTPResponse
    ) {
        self.bodySizeMax = bodySizeMax
        self.respond = respond
    }

    func plan(for head: RequestHead) -> RequestPlan {
        RequestPlan(bodySizeMax: self.bodySizeMax, respond: self.respond)
    }
}

extension HTTPResponse {
    static func text(_ text: String, status: Int = 200) -> HTTPResponse {
        HTTPResponse(
            status: status, headers: ["content-type": "text/plain"], body: .bytes(Bytes(text.utf8)))
    }
}

/// The request's body back, or what was wrong with it.
let echo = ClosureHandler { request in
    do {
        return HTTPResponse(status: 200, body: .bytes(try await request.body.collect()))
    } catch {
        return .text("body \(error)", status: 413)
    }
}
