import StratusCompression
import StratusHTTP
import StratusModel
import Synchronization
import Testing

@testable import StratusRuntime

@Suite struct HTTPServerTests {
    @Test func `a body comes back on a connection that lives on`() async throws {
        try await withServer(echo) { server, address in
            let client = try RawClient(address)
            for text in ["one", "two", "three"] {
                client.send(post(text))
                let answer = client.text(until: "\r\n\r\n\(text)")
                #expect(answer.text.hasPrefix("HTTP/1.1 200 OK\r\n"))
                #expect(answer.text.contains("\r\ndate: "))
                #expect(answer.end == .stillOpen)
            }
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `G-11: a thousand pipelined requests are answered in order, slow ones included`()
        async throws
    {
        let handler = ClosureHandler { request in
            // Every seventh leaves the loop and comes back.
            if request.head.path.hasSuffix("7") { await Task.yield() }
            return .text(request.head.path)
        }
        try await withServer(handler) { _, address in
            let client = try RawClient(address)
            let requests = (0..<1_000).map { "GET /\($0) HTTP/1.1\r\nhost: x\r\n\r\n" }
            client.send(
                requests.joined() + "GET /end HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            let (bytes, end) = client.receive()
            let paths = try PlainAnswers.read(bytes).map {
                String(decoding: $0.body ?? [], as: UTF8.self)
            }
            #expect(paths == (0..<1_000).map { "/\($0)" } + ["/end"])
            #expect(end == .closed)
        }
    }

    @Test func `G-11: pipelined answers beyond the output's limit wait for the client to read`()
        async throws
    {
        var limits = HTTPServerLimits.forTests
        limits.outputBufferSizeMax = ByteCount(2_000)
        let handler = ClosureHandler { _ in .text(String(repeating: "a", count: 50_000)) }
        try await withServer(handler, limits: limits, gzipSizeMin: nil) { _, address in
            let client = try RawClient(address, receiveBufferSize: 4_096)
            let request = "GET / HTTP/1.1\r\nhost: x\r\n\r\n"
            client.send(String(repeating: request, count: 100))
            client.send("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            let answers = try PlainAnswers.read(client.receive().bytes)
            #expect(answers.count == 101)
            #expect(answers.allSatisfy { $0.body?.count == 50_000 })
        }
    }

    /// The rest of the answer lies in the kernel when the connection's patience with it is over.
    @Test func `a slow reader gets all of a last answer, however long it takes`() async throws {
        var limits = HTTPServerLimits.forTests
        limits.lingerDeadline = .milliseconds(5)
        let began = Mutex(false)
        let handler = ClosureHandler { _ in
            began.withLock { $0 = true }
            return .text(String(repeating: "a", count: 400_000))
        }
        try await withServer(handler, limits: limits, gzipSizeMin: nil) { server, address in
            let client = try RawClient(address, receiveBufferSize: 4_096)
            client.send("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            try await eventually { began.withLock { $0 } }
            try await eventually { server.connectionCount == 0 }
            let answers = try PlainAnswers.read(client.receive().bytes)
            #expect(answers.first?.body?.count == 400_000)
        }
    }

    @Test(arguments: [true, false])
    func `S-30: what an answer holds is let go when it has left, and not before`(
        _ isRead: Bool
    ) async throws {
        let (began, gone) = (Flag(), Flag())
        let handler = ClosureHandler { _ in
            var response = HTTPResponse.text(String(repeating: "a", count: 16_000_000))
            response.held = Held(gone)
            _ = began.raise()
            return response
        }
        try await withServer(handler, gzipSizeMin: nil) { _, address in
            var client: RawClient? = try RawClient(address, receiveBufferSize: 4_096)
            client?.send("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            try await eventually { began.isRaised }
            try await Task.sleep(for: .milliseconds(50))
            #expect(!gone.isRaised)
            if isRead { _ = client?.receive() }
            client = nil
            try await eventually { gone.isRaised }
        }
    }

    @Test func `G-13: a client that waits for the go-ahead gets it when the body is asked for`()
        async throws
    {
        try await withServer(echo) { _, address in
            let client = try RawClient(address)
            client.send(
                "POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n")
            #expect(client.text(until: "\r\n\r\n").text == "HTTP/1.1 100 Continue\r\n\r\n")
            client.send("late")
            #expect(client.text(until: "late").text.hasPrefix("HTTP/1.1 200 OK\r\n"))
        }
    }

    @Test func `G-12: an answer before the body closes the connection when too much is left`()
        async throws
    {
        let handler = ClosureHandler { _ in .text("early") }
        try await withServer(handler) { _, address in
            let client = try RawClient(address)
            client.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10000000\r\n\r\nstart")
            let answer = client.text()
            #expect(answer.text.contains("\r\nconnection: close\r\n"))
            #expect(answer.text.hasSuffix("early"))
            #expect(answer.end == .closed)
        }
    }

    @Test func `a declared body beyond the handler's limit is answered 413 in the handler's form`()
        async throws
    {
        let handler = ClosureHandler(bodySizeMax: 10) { request in
            do {
                return .text("\(try await request.body.collect().count)")
            } catch {
                return .text("the form of \(error)", status: 500)
            }
        }
        try await withServer(handler) { _, address in
            let client = try RawClient(address)
            client.send(post("exactly10!"))
            #expect(client.text(until: "10").end == .stillOpen)
            client.send(post("eleven here"))
            let answer = client.text()
            #expect(answer.text.hasPrefix("HTTP/1.1 413 "))
            #expect(answer.text.hasSuffix("the form of tooLarge"))
            #expect(answer.end == .closed)
        }
    }

    @Test func `a chunked body that grows beyond the limit fails while the handler reads it`()
        async throws
    {
        let handler = ClosureHandler(bodySizeMax: 100_000) { request in
            var count = 0
            do {
                while let piece = try await request.body.next() { count += piece.count }
                return .text("all")
            } catch {
                return .text("\(error) after \(count > 0)", status: 413)
            }
        }
        try await withServer(handler) { _, address in
            let client = try RawClient(address)
            client.send("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
            let chunk = "8000\r\n" + String(repeating: "a", count: 0x8000) + "\r\n"
            for _ in 0..<4 { client.send(chunk) }
            let answer = client.text()
            #expect(answer.text.hasPrefix("HTTP/1.1 413 "))
            #expect(answer.text.hasSuffix("tooLarge after true"))
        }
    }

    @Test func `a large body streams through a small buffer, as slowly as the handler reads`()
        async throws
    {
        var limits = HTTPServerLimits.forTests
        limits.bodyBufferSizeMax = ByteCount(4_096)
        let largest = Mutex(0)
        let handler = StreamCounter { count in largest.withLock { $0 = max($0, count) } }
        try await withServer(handler, limits: limits) { _, address in
            let client = try RawClient(address)
            let body = [UInt8](repeating: 7, count: 3_000_000)
            client.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: \(body.count)\r\n\r\n")
            client.send(body)
            #expect(client.text(until: "3000000").end == .stillOpen)
        }
        // One read's worth beyond the limit at most.
        #expect(largest.withLock { $0 } <= 4_096 + 65_536)
    }

    @Test func `a stream goes out in chunks, and a declared one with its length`() async throws {
        let handler = ClosureHandler { request in
            let length = request.head.path == "/known" ? 30 : nil
            return HTTPResponse(
                status: 200, body: .stream(CountingBody(pieces: 3, size: 10), length: length))
        }
        try await withServer(handler) { _, address in
            let client = try RawClient(address)
            client.send("GET /unknown HTTP/1.1\r\nhost: x\r\n\r\n")
            let chunked = client.text(until: "0\r\n\r\n").text
            #expect(chunked.contains("transfer-encoding: chunked"))
            #expect(
                chunked.hasSuffix(
                    "A\r\n1111111111\r\nA\r\n2222222222\r\nA\r\n3333333333\r\n0\r\n\r\n"))
            client.send("GET /known HTTP/1.1\r\nhost: x\r\n\r\n")
            let known = client.text(until: "3333333333").text
            #expect(known.contains("content-length: 30\r\n"))
            client.send("HEAD /known HTTP/1.1\r\nhost: x\r\n\r\n")
            let head = client.text(until: "\r\n\r\n").text
            #expect(head.contains("content-length: 30\r\n") && head.hasSuffix("\r\n\r\n"))
            client.send("GET /unknown HTTP/1.0\r\nhost: x\r\n\r\n")
            let old = client.text()
            #expect(old.text.hasSuffix("\r\n\r\n111111111122222222223333333333"))
            #expect(old.end == .closed)
        }
    }

    @Test func `a stream is pulled no faster than the client reads`() async throws {
        var limits = HTTPServerLimits.forTests
        limits.outputBufferSizeMax = ByteCount(16_384)
        let body = CountingBody(pieces: 4_000, size: 10_000)
        let handler = ClosureHandler { _ in
            HTTPResponse(status: 200, body: .stream(body, length: nil))
        }
        try await withServer(handler, limits: limits) { server, address in
            let client = try RawClient(address, receiveBufferSize: 8_192)
            client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            _ = client.receive { $0.count > 10_000 }
            var pulled = -1
            // Until nothing moves any more: the kernel's buffers are full.
            while pulled != body.pulled {
                pulled = body.pulled
                pause(microseconds: 20_000)
            }
            #expect(pulled < 1_000, "of 4000 pieces nobody reads")
            client.reset()
            try await eventually { server.connectionCount == 0 }
        }
    }

    @Test func `a stream that fails cuts the connection instead of ending it`() async throws {
        let handler = ClosureHandler { _ in
            HTTPResponse(
                status: 200,
                body: .stream(CountingBody(pieces: 2, size: 10, failsAtEnd: true), length: nil))
        }
        try await withServer(handler) { _, address in
            let client = try RawClient(address)
            client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            let (bytes, end) = client.receive()
            #expect(end == .cut)
            #expect(!String(decoding: bytes, as: UTF8.self).hasSuffix("0\r\n\r\n"))
        }
    }

    @Test func `a client that has closed its half still gets its answers`() async throws {
        let handler = ClosureHandler { request in
            await Task.yield()
            return .text(request.head.path)
        }
        try await withServer(handler) { _, address in
            let client = try RawClient(address)
            client.send("GET /1 HTTP/1.1\r\nhost: x\r\n\r\nGET /2 HTTP/1.1\r\nhost: x\r\n\r\n")
            client.endSending()
            let (bytes, end) = client.receive()
            let paths = try PlainAnswers.read(bytes).map {
                String(decoding: $0.body ?? [], as: UTF8.self)
            }
            #expect(paths == ["/1", "/2"])
            #expect(end == .closed)
        }
    }

    @Test func `a stop that cuts at once ends, however busy the loop is`() async throws {
        let handler = ClosureHandler { _ in
            while !Task.isCancelled { await Task.yield() }
            return .text("late")
        }
        for _ in 0..<20 {
            try await withServer(handler) { server, address in
                let client = try RawClient(address)
                client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n")
                try await eventually { server.connectionCount == 1 }
            }
        }
    }

    @Test func `G-37: a client that resets the connection cancels its request`() async throws {
        let seen = Mutex<[String]>([])
        let loop = EventLoop(name: "clock")
        defer { loop.stop() }
        let handler = ClosureHandler { _ in
            seen.withLock { $0.append("began") }
            do {
                try await loop.sleep(for: .seconds(3_600))
            } catch {
                seen.withLock { $0.append("cancelled") }
            }
            return .text("nobody reads this")
        }
        try await withServer(handler) { server, address in
            let client = try RawClient(address)
            client.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            try await eventually { !(seen.withLock({ $0.isEmpty })) }
            client.reset()
            try await eventually { !(seen.withLock({ $0.count }) < 2) }
            try await eventually { server.connectionCount == 0 }
        }
        #expect(seen.withLock { $0 } == ["began", "cancelled"])
    }

    @Test
    func `G-37: a client that goes away in the middle of its body ends the handler's reading`()
        async throws
    {
        let seen = Mutex<[String]>([])
        let began = Mutex(0)
        let handler = ClosureHandler { request in
            began.withLock { $0 += 1 }
            do {
                _ = try await request.body.collect()
            } catch {
                seen.withLock { $0.append("\(error)") }
            }
            return .text("nobody reads this")
        }
        try await withServer(handler) { server, address in
            for (number, isReset) in [true, false].enumerated() {
                let client = try RawClient(address)
                client.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nhalf")
                // A reset before the head is read would take the request with it.
                try await eventually { began.withLock { $0 } == number + 1 }
                if isReset { client.reset() } else { client.close() }
            }
            try await eventually { !(seen.withLock({ $0.count }) < 2) }
            try await eventually { server.connectionCount == 0 }
        }
        #expect(seen.withLock { $0 } == ["cutShort", "cutShort"])
    }

    @Test func `G-12 a client that reads nothing before all is sent still gets its 413`()
        async throws
    {
        let handler = ClosureHandler(bodySizeMax: .mebibytes(1)) { request in
            do {
                return HTTPResponse(status: 200, body: .bytes(try await request.body.collect()))
            } catch {
                return .text("body \(error)", status: 413)
            }
        }
        try await withServer(handler) { server, address in
            let chunk = String(repeating: "x", count: 1 << 20)
            let rows: [(name: String, head: String, frame: (String) -> String)] = [
                ("declared", "content-length: 20971520", { $0 }),
                ("chunked", "transfer-encoding: chunked", { "100000\r\n\($0)\r\n" }),
            ]
            for row in rows {
                let client = try RawClient(address)
                client.send("POST / HTTP/1.1\r\nhost: x\r\n\(row.head)\r\n\r\n")
                for _ in 0..<20 { client.send(row.frame(chunk)) }
                let answer = client.text()
                #expect(answer.text.hasPrefix("HTTP/1.1 413 "), "\(row.name): \(answer.end)")
                #expect(answer.end == .closed, "\(row.name)")
                client.close()
            }
            try await eventually { server.connectionCount == 0 }
        }
    }

    @Test func `G-12 a client that never ends its body is cut all the same`() async throws {
        var limits = HTTPServerLimits.forTests
        limits.lingerSizeMax = .kibibytes(256)
        try await withServer(
            ClosureHandler(bodySizeMax: .kibibytes(1)) { _ in .text("no", status: 413) },
            limits: limits
        ) { server, address in
            let client = try RawClient(address)
            client.send("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 104857600\r\n\r\n")
            let chunk = String(repeating: "x", count: 1 << 20)
            for _ in 0..<16 { client.send(chunk) }
            try await eventually { server.connectionCount == 0 }
        }
    }

    @Test func `answers worth it are compressed for clients that accept gzip`() async throws {
        let text = String(repeating: "{\"recordName\":\"a name\"},", count: 20_000)
        let handler = ClosureHandler { request in
            let size = request.head.path == "/small" ? 4_000 : text.utf8.count
            return HTTPResponse(
                status: 200, headers: ["content-type": "application/json"],
                body: .bytes(Bytes(text.utf8.prefix(size))))
        }
        try await withServer(handler) { _, address in
            for (path, size) in [("/small", 4_000), ("/large", text.utf8.count)] {
                let client = try RawClient(address)
                client.send(
                    "GET \(path) HTTP/1.0\r\nhost: x\r\naccept-encoding: br, gzip\r\n\r\n")
                let (bytes, _) = client.receive()
                let (head, body) = split(bytes)
                #expect(head.contains("content-encoding: gzip"))
                #expect(head.contains("vary: accept-encoding"))
                #expect(try Gzip.expand(body, sizeMax: size) == Bytes(text.utf8.prefix(size)))
            }
            let client = try RawClient(address)
            client.send("GET /small HTTP/1.0\r\nhost: x\r\naccept-encoding: gzip;q=0\r\n\r\n")
            let (head, body) = split(client.receive().bytes)
            #expect(!head.contains("content-encoding") && head.contains("vary: accept-encoding"))
            #expect(body.count == 4_000)
        }
    }

    @Test func `a Unix socket serves, replaces a stale file, and takes its file away`() async throws
    {
        let directory = makeTemporaryDirectory()
        defer { removeDirectory(directory) }
        let path = directory + "/socket"
        for _ in 0..<2 {
            try await withServer(echo, address: .unix(path: path)) { _, address in
                #expect(address == .unix(path: path))
                let client = try RawClient(address)
                client.send(post("local"))
                #expect(client.text(until: "local").text.hasPrefix("HTTP/1.1 200"))
            }
        }
        #expect(throws: SocketError.self) { try RawClient(.unix(path: path)) }
    }

    @Test func `an address in use stops the start with the reason`() async throws {
        try await withServer(echo) { _, address in
            await #expect(throws: SocketError.self) {
                try await withServer(echo, address: address) { _, _ in true }
            }
        }
    }

    @Test func `two loops share one port, and every connection is served`() async throws {
        try await withServer(echo, loops: 2) { server, address in
            let clients = try (0..<40).map { _ in try RawClient(address) }
            for (index, client) in clients.enumerated() { client.send(post("number \(index)")) }
            for (index, client) in clients.enumerated() {
                #expect(client.text(until: "number \(index)").end == .stillOpen)
            }
            #expect(server.connectionCount == 40)
        }
    }
}

/// Whole bodies in, their size out, through `next` and nothing else.
private struct StreamCounter: HTTPHandler {
    let report: @Sendable (Int) -> Void

    func plan(for head: RequestHead) -> RequestPlan {
        RequestPlan(bodySizeMax: .mebibytes(16)) { await self.respond(to: $0) }
    }

    func respond(to request: HTTPRequest) async -> HTTPResponse {
        var count = 0
        while let piece = try? await request.body.next() {
            count += piece.count
            if let exchange = request.body as? HTTPExchange { self.report(exchange.bufferedCount) }
            await Task.yield()
        }
        return .text("\(count)")
    }
}

/// Says when nobody holds it any more.
private final class Held: Sendable {
    private let gone: Flag
    init(_ gone: Flag) { self.gone = gone }
    deinit { _ = self.gone.raise() }
}

/// Pieces of digits, counted as they are pulled.
final class CountingBody: ResponseBody {
    struct Failure: Error {}

    private let pieces: Int
    private let size: Int
    private let failsAtEnd: Bool
    private let next = Atomic(0)

    init(pieces: Int, size: Int, failsAtEnd: Bool = false) {
        self.pieces = pieces
        self.size = size
        self.failsAtEnd = failsAtEnd
    }

    var pulled: Int { self.next.load(ordering: .relaxed) }

    func next() async throws -> Bytes? {
        let number = self.next.add(1, ordering: .relaxed).newValue
        guard number <= self.pieces else {
            if self.failsAtEnd { throw Failure() }
            return nil
        }
        return Bytes(repeating: UInt8(ascii: "0") + UInt8(number % 10), count: self.size)
    }
}

func post(_ text: String) -> String {
    "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: \(text.utf8.count)\r\n\r\n\(text)"
}

func split(_ bytes: Bytes) -> (head: String, body: Bytes) {
    let end =
        bytes.indices.first { bytes[$0...].starts(with: Array("\r\n\r\n".utf8)) } ?? bytes.count
    return (
        String(decoding: bytes[..<end], as: UTF8.self), Bytes(bytes[min(end + 4, bytes.count)...])
    )
}
