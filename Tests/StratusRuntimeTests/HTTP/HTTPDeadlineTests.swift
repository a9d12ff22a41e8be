import StratusHTTP
import StratusModel
import Synchronization
import Testing

@testable import StratusRuntime

/// G-15, G-16, G-38: what a server does about clients that take their time, and with its own end.
/// Deadlines are tiny here; no test asserts how long something took.
@Suite struct HTTPDeadlineTests {
    /// For all but heads: a test whose machine is busy takes its time to send one.
    private static var hasty: HTTPServerLimits {
        var limits = HTTPServerLimits.forTests
        limits.timeouts.idle = .milliseconds(60)
        limits.timeouts.grace = .milliseconds(30)
        limits.timeouts.bodyRateMin = .mebibytes(1)
        limits.timeouts.sendRateMin = .mebibytes(100)
        limits.lingerDeadline = .milliseconds(30)
        return limits
    }

    @Test func `G-15: a head that trickles in is answered 408 and cut`() async throws {
        var limits = Self.hasty
        limits.timeouts.header = .milliseconds(30)
        limits.timeouts.idle = .seconds(300)
        try await withServer(echo, limits: limits) { server, address in
            let client = try RawClient(address)
            client.send("POST / HTTP/1.1\r\nhost: x\r\n")
            let answer = client.text()
            #expect(answer.text.hasPrefix("HTTP/1.1 408 "))
            #expect(answer.end != .stillOpen)
            // Security audit 10.
            #expect(server.refusedCount(.headersTooSlow) == 1)
        }
    }

    @Test func `G-15: an idle connection is closed without a word`() async throws {
        try await withServer(echo, limits: Self.hasty) { server, address in
            let fresh = try RawClient(address)
            #expect(fresh.receive() == ([], .closed))
            // On a busy machine the deadline may pass between connecting and sending.
            var isAnswered = false
            for _ in 0..<1_000 where !isAnswered {
                let used = try RawClient(address)
                used.send(post("once"))
                isAnswered = used.text(until: "once").end == .stillOpen
                if isAnswered { #expect(used.receive() == ([], .closed)) }
            }
            #expect(isAnswered)
            try await eventually { server.connectionCount == 0 }
        }
    }

    @Test func `G-15: a body slower than allowed is answered 408, its handler learns of it`()
        async throws
    {
        let seen = Mutex<[RequestBodyError]>([])
        let handler = ClosureHandler { request in
            do throws(RequestBodyError) {
                _ = try await request.body.collect()
            } catch {
                seen.withLock { $0.append(error) }
            }
            return .text("nobody reads this")
        }
        try await withServer(handler, limits: Self.hasty) { _, address in
            let client = try RawClient(address)
            client.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nslow")
            #expect(client.text().text.hasPrefix("HTTP/1.1 408 "))
            // The handler hears of it after the client.
            try await eventually { !seen.withLock { $0.isEmpty } }
        }
        #expect(seen.withLock { $0 } == [.cutShort])
    }

    @Test func `a client is not held to a rate while the handler does not read`() async throws {
        var limits = Self.hasty
        limits.bodyBufferSizeMax = ByteCount(1_000)
        let loop = EventLoop(name: "clock")
        defer { loop.stop() }
        let handler = ClosureHandler { request in
            try? await loop.sleep(for: .milliseconds(100))
            let count = (try? await request.body.collect().count) ?? -1
            return .text("\(count)")
        }
        try await withServer(handler, limits: limits) { _, address in
            let client = try RawClient(address)
            // As much as waits in the kernel: the client is done before the handler begins.
            client.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 60000\r\n\r\n")
            client.send([UInt8](repeating: 1, count: 60_000))
            #expect(client.text(until: "60000").end == .stillOpen)
        }
    }

    @Test func `G-15: a client that does not read its answer is cut`() async throws {
        let body = CountingBody(pieces: 100_000, size: 10_000)
        let handler = ClosureHandler { _ in
            HTTPResponse(status: 200, body: .stream(body, length: nil))
        }
        try await withServer(handler, limits: Self.hasty) { server, address in
            let client = try RawClient(address, receiveBufferSize: 4_096)
            client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            try await eventually { !(body.pulled == 0) }
            try await eventually { server.connectionCount == 0 }
            #expect(client.receive().end == .cut)
        }
    }

    @Test func `G-15: one address has its share of connections, all have theirs`() async throws {
        var limits = HTTPServerLimits.forTests
        limits.connectionCountPerAddressMax = 2
        try await withServer(echo, limits: limits) { server, address in
            let first = try RawClient(address)
            let second = try RawClient(address)
            for client in [first, second] {
                client.send(post("in"))
                #expect(client.text(until: "in").end == .stillOpen)
            }
            let third = try RawClient(address)
            #expect(third.text().text.hasPrefix("HTTP/1.1 503 "))
            first.close()
            try await eventually { server.connectionCount <= 1 }
            let fourth = try RawClient(address)
            fourth.send(post("room again"))
            #expect(fourth.text(until: "room again").end == .stillOpen)
        }
    }

    @Test func `of a full server an address with few connections takes one of who has most`()
        async throws
    {
        var limits = HTTPServerLimits.forTests
        limits.connectionCountMax = 8
        let handler = HeldRequestTests.Waiting(.held)
        try await withServer(handler, limits: limits) { server, address in
            var clients = try (0..<8).map { _ in try RawClient(address, from: "127.0.0.1") }
            for (index, client) in clients.enumerated() where index != 1 {
                client.send("GET /plain HTTP/1.1\r\nhost: x\r\n\r\n")
                #expect(client.text(until: "plain").end == .stillOpen)
            }
            // The second one is busy.
            clients[1].send("GET /held HTTP/1.1\r\nhost: x\r\n\r\n")
            try await eventually { handler.waiting == 1 }
            #expect(
                try RawClient(address, from: "127.0.0.1").text().text.hasPrefix("HTTP/1.1 503 "))
            for (index, source) in ["127.0.0.2", "127.0.0.3"].enumerated() {
                let other = try RawClient(address, from: source)
                other.send("GET /plain HTTP/1.1\r\nhost: x\r\n\r\n")
                #expect(other.text(until: "plain").end == .stillOpen)
                // What is idle is closed; what is busy is answered first.
                let last = clients[index].text().text
                #expect(index == 0 ? last.isEmpty : last.contains("\r\n\r\nover"), "\(last)")
                try await eventually { server.connectionCount == 8 }
                // Beyond its share it takes none.
                let more = try RawClient(address, from: source)
                #expect(more.text().text.hasPrefix("HTTP/1.1 503 "))
                clients.append(other)
            }
            #expect(server.figures.endedCount() == 2)
        }
    }

    @Test func `G-15: an endless head is refused before it fills memory`() async throws {
        var limits = HTTPServerLimits.forTests
        limits.message.headerSizeMax = ByteCount(1_000)
        try await withServer(echo, limits: limits) { _, address in
            let client = try RawClient(address)
            client.send("GET / HTTP/1.1\r\nhost: x\r\nx: " + String(repeating: "a", count: 100_000))
            #expect(client.text().text.hasPrefix("HTTP/1.1 431 "))
        }
    }

    @Test func `G-38: a stop lets what is in flight end and says so`() async throws {
        let began = Flag()
        let goOn = Flag()
        let handler = ClosureHandler { _ in
            began.raise()
            while !goOn.isRaised { try? await Task.sleep(for: .milliseconds(1)) }
            return .text("finished")
        }
        try await withServer(handler) { server, address in
            let busy = try RawClient(address)
            let idle = try RawClient(address)
            busy.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            try await eventually { !(!began.isRaised || server.connectionCount < 2) }
            // On a thread of its own: this one blocks.
            let stopper = EventLoop(name: "stopper")
            defer { stopper.stop() }
            let stopped = Task(executorPreference: stopper) {
                await server.stop(deadline: .seconds(200))
            }
            #expect(idle.receive() == ([], .closed))
            #expect(throws: SocketError.self) { try RawClient(address) }
            goOn.raise()
            let answer = busy.text()
            #expect(answer.text.contains("\r\nconnection: close\r\n"))
            #expect(answer.text.hasSuffix("finished"))
            #expect(answer.end == .closed)
            busy.close()
            idle.close()
            await stopped.value
            #expect(server.connectionCount == 0)
        }
    }

    @Test func `G-38: what the kernel holds when the stop comes is answered`() async throws {
        let began = Flag()
        let goOn = Flag()
        let handler = ClosureHandler { request in
            if request.head.path == "/block" {
                began.raise()
                // Holds the loop itself, so that nothing is accepted or read meanwhile.
                for _ in 0..<10_000 where !goOn.isRaised { pause(microseconds: 1_000) }
            }
            return .text("answer to \(request.head.path)")
        }
        try await withServer(handler) { server, address in
            let known = try RawClient(address)
            known.send("GET /first HTTP/1.1\r\nhost: x\r\n\r\n")
            #expect(known.text(until: "answer to /first").end == .stillOpen)
            let blocker = try RawClient(address)
            blocker.send("GET /block HTTP/1.1\r\nhost: x\r\n\r\n")
            try await eventually { began.isRaised }
            known.send("GET /known HTTP/1.1\r\nhost: x\r\n\r\n")
            let fresh = try (0..<5).map { _ in try RawClient(address) }
            for client in fresh { client.send("GET /fresh HTTP/1.1\r\nhost: x\r\n\r\n") }
            let stopper = EventLoop(name: "stopper")
            defer { stopper.stop() }
            let stopped = Task(executorPreference: stopper) {
                await server.stop(deadline: .seconds(200))
            }
            goOn.raise()
            for (client, path) in [(known, "/known"), (blocker, "/block")]
                + fresh.map({ ($0, "/fresh") })
            {
                let answer = client.text()
                #expect(answer.text.hasSuffix("answer to \(path)"), "\(path)")
                #expect(answer.end == .closed, "\(path)")
                client.close()
            }
            await stopped.value
            #expect(server.connectionCount == 0)
        }
    }

    @Test func `other limits count from the next connection on`() async throws {
        try await withServer(echo) { server, address in
            let first = try RawClient(address)
            first.send(post("first"))
            #expect(first.text(until: "first").end == .stillOpen)
            var limits = HTTPServerLimits.forTests
            limits.connectionCountMax = 1
            server.replaceLimits(with: limits)
            #expect(try RawClient(address).text().text.hasPrefix("HTTP/1.1 503 "))
            first.send(post("still served"))
            #expect(first.text(until: "still served").end == .stillOpen)
            limits.connectionCountMax = 2
            server.replaceLimits(with: limits)
            let second = try RawClient(address)
            second.send(post("second"))
            #expect(second.text(until: "second").end == .stillOpen)
        }
    }

    @Test func `G-38: a stop cuts what has not ended at its deadline`() async throws {
        let body = CountingBody(pieces: 1_000_000, size: 10_000)
        let handler = ClosureHandler { _ in
            HTTPResponse(status: 200, body: .stream(body, length: nil))
        }
        try await withServer(handler) { server, address in
            let client = try RawClient(address)
            client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            try await eventually { !(body.pulled < 3) }
            await server.stop(deadline: .milliseconds(10))
            #expect(client.receive().end == .cut)
            #expect(server.connectionCount == 0)
        }
    }
}
