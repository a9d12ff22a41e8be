import ChildProcesses
import Foundation
import StratusHTTP
import StratusHTTP2
import StratusModel
import StratusTLS
import Synchronization
import Testing

@testable import StratusRuntime

private let nghttpd = "/usr/bin/nghttpd"

private func isInstalled(_ path: String) -> Bool {
    FileManager.default.isExecutableFile(atPath: path)
}

/// Our client of many streams, against our server and against `nghttpd`.
@Suite struct HTTP2ClientTests {
    @discardableResult
    private static func withClient<Result>(
        _ address: SocketAddress, tls: HTTPEndpoint.TLS? = nil,
        limits: HTTP2ClientLimits = HTTP2ClientLimits(),
        _ body: (HTTP2Client) async throws -> Result
    ) async throws -> Result {
        let loop = EventLoop(name: "client")
        let random = RealRandom()
        let client = HTTP2Client(
            HTTPEndpoint([address], host: "localhost", tls: tls), loop: loop, limits: limits,
            random: { random.next() })
        let result: Swift.Result<Result, any Error>
        do { result = .success(try await body(client)) } catch { result = .failure(error) }
        await client.close()
        loop.stop()
        return try result.get()
    }

    @Test func `five hundred requests share one connection`() async throws {
        try await withServer(echo, plainHTTP2: true) { server, address in
            try await Self.withClient(address) { client in
                let answers = await withTaskGroup(of: Bool.self) { group in
                    for number in 0..<500 {
                        group.addTask {
                            let body = Bytes("body \(number)".utf8)
                            let answer = try? await client.send(
                                HTTPClientRequest(method: "POST", target: "/", body: .bytes(body)),
                                deadline: .seconds(60))
                            return answer?.head.status == 200 && answer?.body == body
                        }
                    }
                    return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
                }
                #expect(answers == 500)
                #expect(server.connectionCount == 1)
            }
        }
    }

    @Test func `over TLS, and not at all where only HTTP/1.1 is spoken`() async throws {
        let certificates = try TestCertificates()
        var configuration = certificates.clientConfiguration
        configuration.protocols = ["h2", "http/1.1"]
        let trust = HTTPEndpoint.TLS(try TLSContext(client: configuration), name: "localhost")
        var both = TLSServerConfiguration(identity: certificates.server)
        both.protocols = ["h2", "http/1.1"]
        try await withServer(echo, tls: try TLSContextSource(both)) { _, address in
            try await Self.withClient(address, tls: trust) { client in
                let answer = try await client.send(
                    HTTPClientRequest(target: "/"), deadline: .seconds(60))
                #expect(answer.head.status == 200)
            }
        }
        let old = TLSServerConfiguration(identity: certificates.server)
        try await withServer(echo, tls: try TLSContextSource(old)) { _, address in
            try await Self.withClient(address, tls: trust) { client in
                await #expect(throws: HTTP2ClientError.notSpoken) {
                    try await client.send(
                        HTTPClientRequest(target: "/"), deadline: .seconds(60))
                }
                await #expect(throws: HTTP2ClientError.resting) {
                    try await client.send(
                        HTTPClientRequest(target: "/"), deadline: .seconds(60))
                }
            }
        }
    }

    @Test func `a deadline ends its request and no other`() async throws {
        let release = Flag()
        let handler = ClosureHandler { request in
            if request.head.path == "/slow" {
                while !release.isRaised, !Task.isCancelled {
                    try? await Task.sleep(for: .milliseconds(2))
                }
            }
            return .text("ok")
        }
        try await withServer(handler, plainHTTP2: true) { _, address in
            try await Self.withClient(address) { client in
                await #expect(throws: HTTP2ClientError.deadlinePassed) {
                    try await client.send(
                        HTTPClientRequest(target: "/slow"), deadline: .milliseconds(100))
                }
                let answer = try await client.send(
                    HTTPClientRequest(target: "/"), deadline: .seconds(60))
                #expect(answer.body == Bytes("ok".utf8))
                release.raise()
            }
        }
    }

    @Test func `more than the caller takes, and more than may wait`() async throws {
        let handler = ClosureHandler { _ in
            HTTPResponse(status: 200, body: .bytes(Bytes(repeating: 1, count: 200_000)))
        }
        var limits = HTTP2ClientLimits()
        limits.requestCountMax = 0
        try await withServer(handler, plainHTTP2: true) { _, address in
            try await Self.withClient(address) { client in
                await #expect(throws: HTTP2ClientError.tooLarge) {
                    try await client.send(
                        HTTPClientRequest(target: "/"), deadline: .seconds(60))
                }
            }
            try await Self.withClient(address, limits: limits) { client in
                await #expect(throws: HTTP2ClientError.full) {
                    try await client.send(
                        HTTPClientRequest(target: "/"), deadline: .seconds(60))
                }
            }
        }
    }

    @Test func `nobody there is said, and the next try rests`() async throws {
        var limits = HTTP2ClientLimits()
        // However long this process waits between the two.
        limits.pace = ReconnectPace(restMin: .seconds(600), restMax: .seconds(600))
        try await Self.withClient(.ip("127.0.0.1", port: 1), limits: limits) { client in
            do {
                _ = try await client.send(HTTPClientRequest(target: "/"), deadline: .seconds(60))
                Issue.record("somebody answered")
            } catch {
                guard case .unreachable = error as? HTTP2ClientError else {
                    Issue.record("\(error)")
                    return
                }
            }
            await #expect(throws: HTTP2ClientError.resting) {
                try await client.send(HTTPClientRequest(target: "/"), deadline: .seconds(60))
            }
        }
    }

    @Test func `P-07: after a stop's GOAWAY what is under way is answered`() async throws {
        let begun = Flag()
        let release = Flag()
        let handler = ClosureHandler { _ in
            begun.raise()
            while !release.isRaised { try? await Task.sleep(for: .milliseconds(2)) }
            return .text("late")
        }
        try await withServer(handler, plainHTTP2: true) { server, address in
            try await Self.withClient(address) { client in
                async let answer = client.send(
                    HTTPClientRequest(target: "/"), deadline: .seconds(60))
                try await eventually { begun.isRaised }
                async let stopped: Void = server.stop(deadline: .seconds(60))
                try await Task.sleep(for: .milliseconds(50))
                release.raise()
                #expect(try await answer.body == Bytes("late".utf8))
                await stopped
            }
        }
    }

    @Test(.enabled(if: isInstalled(nghttpd)))
    func `nghttpd, another server: files, uploads, its limit of streams`() async throws {
        let directory = makeTemporaryDirectory()
        defer { removeDirectory(directory) }
        try Data(Bytes(repeating: 0x61, count: 50_000)).write(
            to: URL(filePath: "\(directory)/file"))
        // A free port: taken by nobody a moment ago.
        var port: UInt16 = 0
        do {
            let free = try Socket.listening(
                on: .ip("127.0.0.1", port: 0), backlog: 1, isShared: false)
            if case .ip(_, let chosen)? = free.localAddress { port = chosen }
        }
        let server = try ChildProcess(
            nghttpd,
            [
                "--no-tls", "-a", "127.0.0.1", "-m", "10", "-d", directory, "--echo-upload",
                "\(port)",
            ])
        let address = SocketAddress.ip("127.0.0.1", port: port)
        try await eventually { (try? RawClient(address)) != nil || !server.isRunning }
        try await Self.withClient(address) { client in
            let count = await withTaskGroup(of: Bool.self) { group in
                for number in 0..<100 {
                    group.addTask {
                        if number % 2 == 0 {
                            let answer = try? await client.send(
                                HTTPClientRequest(target: "/file"), deadline: .seconds(60))
                            return answer?.body.count == 50_000
                        }
                        let body = Bytes(repeating: 0x62, count: 30_000 + number)
                        let answer = try? await client.send(
                            HTTPClientRequest(method: "POST", target: "/", body: .bytes(body)),
                            deadline: .seconds(60))
                        return answer?.body == body
                    }
                }
                return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
            #expect(count == 100)
            let missing = try await client.send(
                HTTPClientRequest(target: "/missing"), deadline: .seconds(60))
            #expect(missing.head.status == 404)
        }
        server.signal(SIGTERM)
    }
}
