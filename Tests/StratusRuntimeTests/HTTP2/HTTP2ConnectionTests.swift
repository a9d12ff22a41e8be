import StratusHTTP
import StratusModel
import Synchronization
import Testing

@testable import StratusRuntime

/// Deadlines, bounds and stops of HTTP/2 connections, against frames written by hand.
@Suite struct HTTP2ConnectionTests {
    /// A client that writes frames and reads them.
    private final class FrameClient {
        let raw: RawClient
        private var rest: Bytes = []

        init(_ address: SocketAddress, settings: Bytes = [], receiveBufferSize: Int32? = nil) throws
        {
            self.raw = try RawClient(address, receiveBufferSize: receiveBufferSize)
            self.raw.send(HTTP2Connection.preface + Self.frame(4, settings))
        }

        static func frame(
            _ type: UInt8, flags: UInt8 = 0, stream: UInt8 = 0, _ payload: Bytes = []
        ) -> Bytes {
            [
                0, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF), type, flags, 0, 0, 0,
                stream,
            ]
                + payload
        }

        /// `GET https://x/`, or POST, by the static table (RFC 7541 Appendix A).
        func request(_ stream: UInt8, isPost: Bool = false, flags: UInt8 = 5) {
            self.raw.send(
                Self.frame(
                    1, flags: flags, stream: stream,
                    [isPost ? 0x83 : 0x82, 0x87, 0x84, 0x41, 0x01, 0x78]))
        }

        struct Frame {
            var type: UInt8
            var flags: UInt8
            var stream: UInt8
            var payload: Bytes
            /// The error code of GOAWAY, behind the last stream, or of RST_STREAM.
            var code: UInt8 {
                self.payload.count > (self.type == 7 ? 7 : 3)
                    ? self.payload[self.type == 7 ? 7 : 3] : 255
            }
        }

        /// The next frame that `isWanted`; nil at the end.
        func next(where isWanted: (Frame) -> Bool) -> Frame? {
            while true {
                if self.rest.count >= 9 {
                    let length = Int(self.rest[1]) << 8 | Int(self.rest[2])
                    if self.rest.count >= 9 + length {
                        let frame = Frame(
                            type: self.rest[3], flags: self.rest[4], stream: self.rest[8],
                            payload: Bytes(self.rest[9..<(9 + length)]))
                        self.rest.removeFirst(9 + length)
                        if isWanted(frame) { return frame }
                        continue
                    }
                }
                let (bytes, _) = self.raw.receive { !$0.isEmpty }
                if bytes.isEmpty { return nil }
                self.rest += bytes
            }
        }
    }

    private static let large = ClosureHandler { _ in
        HTTPResponse(status: 200, body: .bytes(Bytes(repeating: 0x61, count: 1_000_000)))
    }

    private static var hasty: HTTPServerLimits {
        var limits = HTTPServerLimits.forTests
        limits.timeouts.grace = .milliseconds(300)
        limits.timeouts.header = .milliseconds(300)
        return limits
    }

    @Test func `G-21: a client that opens no window loses its stream, not its connection`()
        async throws
    {
        try await withServer(Self.large, limits: Self.hasty, plainHTTP2: true) { server, address in
            // Initial windows of zero.
            let client = try FrameClient(address, settings: [0, 4, 0, 0, 0, 0])
            client.request(1)
            let reset = client.next { $0.type == 3 && $0.stream == 1 }
            #expect(reset?.code == 8)
            client.raw.send(FrameClient.frame(4, [0, 4, 0, 0, 255, 255]))
            client.request(3)
            #expect(client.next { $0.type == 1 && $0.stream == 3 } != nil)
        }
    }

    @Test func `G-21: a client that takes nothing is cut`() async throws {
        try await withServer(Self.large, limits: Self.hasty, plainHTTP2: true) { server, address in
            let client = try FrameClient(
                address, settings: [0, 4, 0x7F, 0xFF, 0xFF, 0xFF], receiveBufferSize: 4_096)
            client.raw.send(FrameClient.frame(8, [0x7F, 0, 0, 0]))
            for stream in stride(from: UInt8(1), to: 101, by: 2) { client.request(stream) }
            try await eventually { server.connectionCount == 0 }
        }
    }

    @Test func `a body that crawls is answered 408, and the connection lives on`() async throws {
        try await withServer(echo, limits: Self.hasty, plainHTTP2: true) { _, address in
            let client = try FrameClient(address)
            client.request(1, isPost: true, flags: 4)
            client.raw.send(FrameClient.frame(0, stream: 1, [0x61]))
            // The answer's head; 408 has no place in the static table, so it is a literal.
            let head = client.next { $0.type == 1 && $0.stream == 1 }
            #expect(String(decoding: head?.payload ?? [], as: UTF8.self).isEmpty == false)
            let body = client.next { $0.type == 0 && $0.stream == 1 }
            #expect(
                String(decoding: body?.payload ?? [], as: UTF8.self)
                    == "body not received in time\n")
            client.request(3)
            #expect(client.next { $0.type == 1 && $0.stream == 3 } != nil)
        }
    }

    @Test func `G-21: a head that does not end is waited for no longer than the deadline`()
        async throws
    {
        try await withServer(echo, limits: Self.hasty, plainHTTP2: true) { _, address in
            let client = try FrameClient(address)
            client.request(1, flags: 1)
            let goAway = client.next { $0.type == 7 }
            #expect(goAway?.code == 11)
            #expect(client.raw.isClosedByServer())
        }
    }

    @Test func `an idle connection is told goodbye`() async throws {
        var limits = HTTPServerLimits.forTests
        limits.timeouts.idle = .milliseconds(200)
        try await withServer(echo, limits: limits, plainHTTP2: true) { server, address in
            let client = try FrameClient(address)
            client.request(1)
            #expect(client.next { $0.type == 7 }?.code == 0)
            #expect(client.raw.isClosedByServer())
            try await eventually { server.connectionCount == 0 }
        }
    }

    @Test func `G-21: requests of one address are bounded over its connections`() async throws {
        let gate = Mutex<[CheckedContinuation<Void, Never>]>([])
        let handler = ClosureHandler { _ in
            await withCheckedContinuation { continuation in
                gate.withLock { $0.append(continuation) }
            }
            return .text("ok")
        }
        var limits = HTTPServerLimits.forTests
        limits.requestCountPerAddressMax = 3
        try await withServer(handler, limits: limits, plainHTTP2: true) { _, address in
            let one = try FrameClient(address)
            let other = try FrameClient(address)
            for stream in [1, 3] as [UInt8] { one.request(stream) }
            try await eventually { gate.withLock { $0.count } == 2 }
            other.request(1)
            try await eventually { gate.withLock { $0.count } == 3 }
            other.request(3)
            let reset = other.next { $0.type == 3 }
            #expect(reset?.stream == 3 && reset?.code == 7)
            for waiting in gate.withLock({ $0 }) { waiting.resume() }
            gate.withLock { $0 = [] }
            #expect(other.next { $0.type == 0 && $0.stream == 1 } != nil)
            other.request(5)
            try await eventually { gate.withLock { $0.count } == 1 }
            for waiting in gate.withLock({ $0 }) { waiting.resume() }
        }
    }

    @Test func `a reset cancels the handler, which keeps its place until it ends`() async throws {
        let cancelled = Flag()
        let begun = Flag()
        let handler = ClosureHandler { request in
            if request.head.method == "GET" { return .text("ok") }
            begun.raise()
            do { try await Task.sleep(for: .seconds(100)) } catch { cancelled.raise() }
            return .text("late")
        }
        try await withServer(handler, plainHTTP2: true) { _, address in
            let client = try FrameClient(address)
            client.request(1, isPost: true)
            try await eventually { begun.isRaised }
            client.raw.send(FrameClient.frame(3, stream: 1, [0, 0, 0, 8]))
            try await eventually { cancelled.isRaised }
            client.request(3)
            #expect(client.next { $0.type == 1 && $0.stream == 3 } != nil)
        }
    }

    @Test func `a stop tells the client, answers what is under way, and ends`() async throws {
        let begun = Flag()
        let release = Flag()
        let handler = ClosureHandler { _ in
            begun.raise()
            while !release.isRaised { try? await Task.sleep(for: .milliseconds(2)) }
            return .text("answered")
        }
        try await withServer(handler, plainHTTP2: true) { server, address in
            let client = try FrameClient(address)
            client.request(1)
            try await eventually { begun.isRaised }
            async let stopped: Void = server.stop(deadline: .seconds(60))
            let notice = client.next { $0.type == 7 }
            #expect(notice?.payload.prefix(4) == [0x7F, 0xFF, 0xFF, 0xFF])
            // Sent before the client knew: served.
            client.request(3)
            let last = client.next { $0.type == 7 }
            #expect(last?.payload.prefix(4) == [0, 0, 0, 3] && last?.code == 0)
            release.raise()
            var bodies: [UInt8] = []
            while let frame = client.next(where: { $0.type == 0 && !$0.payload.isEmpty }) {
                bodies.append(frame.stream)
            }
            #expect(bodies.sorted() == [1, 3])
            client.raw.close()
            await stopped
            #expect(server.connectionCount == 0)
        }
    }
}
