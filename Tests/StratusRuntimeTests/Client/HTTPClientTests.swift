import StratusHTTP
import StratusModel
import StratusTLS
import Synchronization
import Testing

@testable import StratusRuntime

@Suite struct HTTPClientTests {
    @discardableResult
    private func withClient<Result>(
        to address: SocketAddress, idleCountMax: Int = 4,
        _ body: (HTTPClient) async throws -> Result
    ) async throws -> Result {
        let loop = EventLoop(name: "client")
        defer { loop.stop() }
        let client = HTTPClient(
            HTTPEndpoint([address], host: "localhost"), loop: loop, idleCountMax: idleCountMax)
        return try await body(client)
    }

    @Test func `requests one after another share a connection`() async throws {
        try await withServer(echo) { server, address in
            try await self.withClient(to: address) { client in
                for number in 0..<20 {
                    let answer = try await client.send(
                        .init(method: "POST", target: "/", body: .bytes(Bytes("\(number)".utf8))),
                        deadline: .seconds(120))
                    #expect(answer.head.status == 200)
                    #expect(answer.body == Bytes("\(number)".utf8))
                }
                #expect(server.connectionCount == 1)
            }
        }
    }

    @Test func `many requests at once each get their own answer`() async throws {
        try await withServer(echo) { _, address in
            try await self.withClient(to: address) { client in
                let answers = try await withThrowingTaskGroup(of: (Int, Bytes).self) { group in
                    for number in 0..<50 {
                        group.addTask {
                            let answer = try await client.send(
                                .init(
                                    method: "POST", target: "/",
                                    body: .bytes(Bytes("\(number)".utf8))),
                                deadline: .seconds(120))
                            return (number, answer.body)
                        }
                    }
                    return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
                }
                #expect(answers.count == 50)
                #expect(answers.allSatisfy { $0.value == Bytes("\($0.key)".utf8) })
            }
        }
    }

    private final class Arrivals: Sendable {
        let count = Mutex(0)
    }

    @Test func `as many connections are kept as were in use at once, and fewer at rest`()
        async throws
    {
        let arrivals = Arrivals()
        let handler = ClosureHandler { _ in
            arrivals.count.withLock { $0 += 1 }
            while arrivals.count.withLock({ $0 % 16 != 0 }) {
                try? await Task.sleep(for: .milliseconds(1))
            }
            return .text("here")
        }
        try await withServer(handler) { server, address in
            try await self.withClient(to: address, idleCountMax: 16) { client in
                for _ in 0..<2 {
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for _ in 0..<16 {
                            group.addTask {
                                _ = try await client.send(
                                    .init(target: "/"), deadline: .seconds(120))
                            }
                        }
                        try await group.waitForAll()
                    }
                    #expect(server.connectionCount == 16)
                }
                await client.rest(keeping: 4)
                try await eventually { server.connectionCount == 4 }
            }
        }
    }

    @Test func `bodies stream both ways`() async throws {
        let handler = ClosureHandler { request in
            HTTPResponse(status: 200, body: .stream(Relay(body: request.body), length: nil))
        }
        try await withServer(handler) { _, address in
            try await self.withClient(to: address) { client in
                for length in [nil, 1_000_000] as [Int?] {
                    let upload = CountingBody(pieces: 100, size: 10_000)
                    let answer = try await client.send(
                        .init(method: "POST", target: "/", body: .stream(upload, length: length)),
                        deadline: .seconds(120))
                    #expect(answer.body.count == 1_000_000)
                }
            }
        }
    }

    @Test func `an answer before the whole body is taken is the answer`() async throws {
        let handler = ClosureHandler(bodySizeMax: 10) { _ in .text("no", status: 413) }
        try await withServer(handler) { _, address in
            try await self.withClient(to: address) { client in
                let upload = CountingBody(pieces: 10_000, size: 10_000)
                let answer = try await client.send(
                    .init(method: "POST", target: "/", body: .stream(upload, length: nil)),
                    deadline: .seconds(120))
                #expect(answer.head.status == 413)
                #expect(upload.pulled < 10_000)
            }
        }
    }

    @Test func `nobody there, a deadline, a cancellation and a cut are told apart`() async throws {
        let handler = ClosureHandler { request in
            if request.head.path == "/cut" {
                return HTTPResponse(
                    status: 200,
                    body: .stream(CountingBody(pieces: 1, size: 1, failsAtEnd: true), length: nil))
            }
            try? await Task.sleep(for: .seconds(3_600))
            return .text("late")
        }
        let gone = try await withServer(handler) { _, address in
            try await self.withClient(to: address) { client in
                await #expect(throws: HTTPClientError.deadlinePassed) {
                    try await client.send(.init(target: "/never"), deadline: .milliseconds(20))
                }
                await #expect(throws: HTTPClientError.cutShort) {
                    try await client.send(.init(target: "/cut"), deadline: .seconds(120))
                }
                let waiting = Task {
                    try await client.send(.init(target: "/never"), deadline: .seconds(3_600))
                }
                pause(microseconds: 5_000)
                waiting.cancel()
                await #expect(throws: HTTPClientError.cancelled) { try await waiting.value }
            }
            return address
        }
        try await self.withClient(to: gone) { client in
            await #expect {
                try await client.send(.init(target: "/"), deadline: .seconds(120))
            } throws: {
                if case .unreachable(let error?)? = $0 as? HTTPClientError {
                    error.kind == .refused
                } else {
                    false
                }
            }
        }
    }

    @Test func `a connection that breaks on the way to waiting for it ends the wait at once`()
        async throws
    {
        try await withServer(echo) { _, address in
            let loop = EventLoop(name: "client")
            defer { loop.stop() }
            let news = try await withTaskExecutorPreference(loop) {
                let connection = try await AsyncTransport.connect(
                    to: [address], tls: nil, loop: loop, deadline: RealClock.now + .seconds(120))
                return await Self.breakAndWait(connection)
            }
            #expect(news == .ready([.readable, .writable]))
        }
    }

    @concurrent
    private static func breakAndWait(_ connection: AsyncTransport) async -> AsyncTransport.News {
        connection.becameReady(.broken)
        let news = await withCheckedContinuation { _ = connection.wait($0, for: .readable) }
        connection.close()
        return news
    }

    @Test func `a connection is told once that it is ready, however late its waiter has its turn`()
        async throws
    {
        try await withServer(echo) { _, address in
            let loop = EventLoop(name: "client")
            defer { loop.stop() }
            let connection = try await withTaskExecutorPreference(loop) {
                try await AsyncTransport.connect(
                    to: [address], tls: nil, loop: loop, deadline: RealClock.now + .seconds(60))
            }
            // The waiter is this task, which is on no loop: the loop goes round meanwhile.
            let first = await Self.wait(on: connection, for: .writable)
            #expect(first == .ready(.writable))
            for _ in 0..<100 { await loop.run {} }
            await loop.run { connection.deadline = RealClock.now + .milliseconds(50) }
            // Nothing comes, and it is not taken for broken.
            let second = await Self.wait(on: connection, for: .readable)
            #expect(second == .late)
            await loop.run { connection.close() }
        }
    }

    private static func wait(
        on connection: AsyncTransport, for interest: Readiness
    ) async -> AsyncTransport.News {
        await withCheckedContinuation { continuation in
            connection.loop.submit { _ = connection.wait(continuation, for: interest) }
        }
    }

    @Test func `a connection that the server closed meanwhile is not used again`() async throws {
        var limits = HTTPServerLimits.forTests
        limits.timeouts.idle = .milliseconds(300)
        try await withServer(echo, limits: limits) { server, address in
            try await self.withClient(to: address) { client in
                for _ in 0..<2 {
                    let answer = try await client.send(.init(target: "/"), deadline: .seconds(120))
                    #expect(answer.head.status == 200)
                    try await eventually { server.connectionCount == 0 }
                }
            }
        }
    }

    @Test func `a server that is not who it should be is refused`() async throws {
        let certificates = try TestCertificates()
        let strangers = try TestCertificates()
        let tls = try TLSContextSource(.init(identity: certificates.server))
        let loop = EventLoop(name: "client")
        defer { loop.stop() }
        try await withServer(echo, tls: tls) { _, address in
            for (name, known, isGood) in [
                ("localhost", certificates, true), ("127.0.0.1", certificates, true),
                ("other.example", certificates, false), ("127.0.0.2", certificates, false),
                ("localhost", strangers, false),
            ] {
                let client = try HTTPClient.overTLS(to: address, known, loop, name: name)
                do {
                    let answer = try await client.send(.init(target: "/"), deadline: .seconds(120))
                    #expect(isGood && answer.head.status == 200, "\(name)")
                } catch HTTPClientError.notSecure(let error) {
                    #expect(!isGood && error.kind == .untrustedPeer, "\(name)")
                }
            }
        }
    }

    @Test func `a name is looked up off the loop`() async throws {
        let found = try await NameLookup.addresses(of: "localhost", port: 7)
        #expect(found.contains(.ip("127.0.0.1", port: 7)) || found.contains(.ip("::1", port: 7)))
        #expect(try await NameLookup.addresses(of: "[::1]", port: 7) == [.ip("::1", port: 7)])
        await #expect(throws: HTTPClientError.unreachable(nil)) {
            try await NameLookup.addresses(of: "no such name", port: 7)
        }
    }
}

/// A request's body as an answer's.
private struct Relay: ResponseBody {
    let body: any RequestBody
    func next() async throws -> Bytes? { try await self.body.next() }
}
