import StratusControl
import StratusHTTP
import StratusModel
import StratusRuntime
import Synchronization
import Testing

/// Answers of a node that are longer than what a command keeps in memory.
@Suite struct AdminLinesTests {
    /// Lines of all lengths, cut anywhere.
    private final class Lines: ResponseBody {
        static let lineCount = 120_000
        private let state = Mutex((next: 0, rest: Bytes()))

        static func line(_ number: Int) -> Bytes {
            Bytes("{\"number\":\(number),\"fill\":\"".utf8)
                + Bytes(repeating: 0x61, count: 100 + number % 200) + Bytes("\"}\n".utf8)
        }

        func next() async throws -> Bytes? {
            self.state.withLock { state in
                while state.next < Self.lineCount, state.rest.count < 50_001 {
                    state.rest += Self.line(state.next)
                    state.next += 1
                }
                let piece = Bytes(state.rest.prefix(50_001))
                state.rest.removeFirst(piece.count)
                return piece.isEmpty ? nil : piece
            }
        }
    }

    private struct Handler: HTTPHandler {
        func plan(for head: RequestHead) -> RequestPlan {
            RequestPlan(bodySizeMax: .mebibytes(1), patience: .transfer) {
                await self.respond(to: $0)
            }
        }

        func respond(to request: HTTPRequest) async -> HTTPResponse {
            switch request.head.path {
            case "/lines": HTTPResponse(status: 200, body: .stream(Lines(), length: nil))
            case "/long":
                HTTPResponse(
                    status: 200, body: .bytes(Bytes(repeating: 0x61, count: 3 << 20)))
            default:
                HTTPResponse(
                    status: 409,
                    body: .bytes(
                        Bytes("{\"error\":{\"code\":\"REFUSED\",\"reason\":\"no\"}}".utf8)))
            }
        }
    }

    final class Machine: World {
        var now: MonotonicTime { RealClock.now }
        var wallMilliseconds: Int64 { RealClock.wallMilliseconds }
        private let drawn = Mutex(0 as UInt64)
        func random() -> UInt64 {
            self.drawn.withLock {
                $0 += 1
                return $0
            }
        }
        var files: any Files { preconditionFailure("there is no disk here") }
    }

    @Test func `lines are handed over one by one, however many there are`() async throws {
        let loops = EventLoop.group(count: 1, name: "test")
        defer { for loop in loops { loop.stop() } }
        let server = HTTPServer(
            configuration: HTTPServerConfiguration(
                listeners: [.init(.ip("127.0.0.1", port: 0), tls: nil)]),
            loops: loops, world: Machine(), handler: Handler())
        let bound = try await server.start()
        guard case .ip(_, let port) = bound[0] else {
            Issue.record("\(bound)")
            return
        }
        let client = try await AdminClient(
            AdminClient.Target(node: "http://127.0.0.1:\(port)"), loop: loops[0])
        var (count, size) = (0, 0)
        try await client.lines("GET", "/lines") { line in
            guard line + [0x0A] == Lines.line(count) else { return false }
            count += 1
            size += line.count
            return true
        }
        #expect(count == Lines.lineCount)
        #expect(size > 20 << 20)
        await #expect(throws: AdminClient.Failure.self) {
            try await client.lines("GET", "/long") { _ in true }
        }
        do {
            try await client.lines("GET", "/refused") { _ in true }
            Issue.record("it was not refused")
        } catch { #expect(error.description == "no") }
        // The rest is not wanted.
        var taken = 0
        try await client.lines("GET", "/lines") { _ in
            taken += 1
            return taken < 3
        }
        #expect(taken == 3)
        await server.stop(deadline: .seconds(0))
    }
}
