import StratusHTTP
import StratusModel
import Testing

@testable import StratusHTTP2

/// G-21: what one client can make of a connection, and how it ends.
@Suite struct FloodTests {
    private static let calm: UInt32 = 11

    @Test func `G-21 rapid reset: two hundred streams without an answer end the connection`() {
        let stage = SessionStage()
        var id: Int32 = 1
        while stage.goAway == nil, id < 2_000 {
            stage.receive(Frames.headers(id, Frames.request()) + Frames.reset(id))
            // Handlers end at once.
            for event in stage.events {
                if case .closed(let it, _) = event { stage.session.handlerEnded(it) }
            }
            id += 2
        }
        #expect(stage.goAway == Self.calm)
        #expect((195...210).contains(Int(id / 2)))
        #expect(stage.session.flood == .unansweredStreams)
    }

    @Test func `G-21 rapid reset: one read of ten thousand is stopped in its middle`() {
        let stage = SessionStage()
        var flood: Bytes = []
        for number in 0..<10_000 {
            let id = Int32(2 * number + 1)
            flood += Frames.headers(id, Frames.request()) + Frames.reset(id)
        }
        stage.receive(flood)
        #expect(stage.requests.count <= HTTP2Limits().streamCountMax)
        #expect(stage.goAway == Self.calm)
    }

    @Test func `G-21: a stream that was reset has its place until its handler has ended`() {
        var limits = HTTP2Limits()
        limits.streamCountMax = 4
        let stage = SessionStage(limits)
        for id in [1, 3, 5, 7] as [Int32] {
            stage.receive(Frames.headers(id, Frames.request()) + Frames.reset(id))
        }
        #expect(stage.session.openCount == 0 && stage.session.busyCount == 4)
        stage.receive(Frames.headers(9, Frames.request()))
        #expect(stage.requests.count == 4)
        #expect(stage.resetCode(of: 9) == 7)
        stage.session.handlerEnded(1)
        stage.receive(Frames.headers(11, Frames.request()))
        #expect(stage.requests.count == 5)
    }

    @Test func `G-21: resets that a client provokes from us count as its own`() {
        let stage = SessionStage()
        stage.answers = true
        var id: Int32 = 1
        while stage.goAway == nil, id < 2_000 {
            // A second header block with a wrong body length makes us reset the stream.
            stage.receive(
                Frames.headers(
                    id, Frames.request(method: "POST", [("content-length", "1")]), ends: false)
                    + Frames.data(id, [1, 2, 3], ends: true))
            id += 2
        }
        #expect(id < 1_000)
        #expect(stage.goAway == Self.calm || stage.goAway == 1)
    }

    @Test func `honest cancelling goes on for ever`() {
        let stage = SessionStage()
        var id: Int32 = 1
        for _ in 0..<3_000 {
            stage.receive(Frames.headers(id, Frames.request()) + Frames.reset(id))
            stage.session.handlerEnded(id)
            stage.now = stage.now + .milliseconds(40)
            id += 2
        }
        #expect(stage.goAway == nil && stage.requests.count == 3_000)
    }

    @Test func `G-21 CONTINUATION flood: a header block of nine more frames ends the connection`() {
        let stage = SessionStage()
        stage.receive(Frames.frame(1, flags: 1, stream: 1, Frames.block(Frames.request())))
        for number in 0..<9 {
            stage.receive(Frames.frame(9, stream: 1, Frames.block([("x-\(number)", "1")])))
        }
        #expect(stage.goAway == Self.calm)
        #expect(stage.requests.isEmpty)
    }

    @Test func `G-21: eight continuations are a head`() {
        let stage = SessionStage()
        stage.receive(Frames.frame(1, flags: 1, stream: 1, Frames.block(Frames.request())))
        for number in 0..<8 {
            stage.receive(
                Frames.frame(
                    9, flags: number == 7 ? Frames.endHeaders : 0, stream: 1,
                    Frames.block([("x-\(number)", "1")])))
        }
        #expect(stage.requests.first?.headers.contains("x-7") == true)
    }

    @Test func `G-21: a head is counted as it is decoded, in bytes and in lines`() {
        var limits = HTTP2Limits()
        limits.message.headerSizeMax = 1_024
        limits.message.headerCountMax = 10
        let large = SessionStage(limits)
        large.receive(
            Frames.headers(1, Frames.request([("a", String(repeating: "b", count: 1_100))])))
        #expect(large.refusals == [.headersTooLarge])
        let many = SessionStage(limits)
        many.receive(
            Frames.headers(1, Frames.request((0..<12).map { ("x-\($0)", "1") })))
        #expect(many.refusals == [.tooManyHeaders])
    }

    @Test func `G-21 HPACK bomb: one entry named ten thousand times costs its stream`() {
        let stage = SessionStage()
        // Into the table once, then its index, a byte for four thousand.
        var entry: Bytes = [0x40, 1, 0x61, 127, 0xA1, 0x1E]
        entry += Bytes(repeating: 0x62, count: 4_000)
        var bomb = Frames.block(Frames.request())
        bomb += entry
        bomb += Bytes(repeating: 0xBE, count: 10_000)
        stage.receive(Frames.frame(1, flags: 5, stream: 1, bomb))
        #expect(stage.requests.isEmpty && stage.refusals.isEmpty)
        #expect(stage.resetCode(of: 1) == Self.calm || stage.goAway != nil)
    }

    /// Each of these alone, as many as anybody likes.
    @Test(
        arguments: [
            ("PING", Frames.ping()), ("SETTINGS", Frames.settings([(4, 100)])),
            ("PRIORITY", Frames.frame(2, stream: 5, [0, 0, 0, 0, 1])),
            ("unknown", Frames.frame(0xEE, [1])), ("WINDOW_UPDATE", Frames.windowUpdate(0, 1)),
            ("empty DATA", Frames.data(1, [])), ("a byte of DATA", Frames.data(1, [1])),
            ("padding", Frames.frame(0, flags: 8, stream: 1, [9] + Bytes(repeating: 0, count: 9))),
            ("RST_STREAM", Frames.reset(1)),
        ] as [(String, Bytes)])
    func `G-21: frames that carry nothing end the connection`(_ name: String, _ frame: Bytes) {
        let stage = SessionStage()
        stage.receive(Frames.headers(1, Frames.request(method: "POST"), ends: false))
        var count = 0
        while stage.goAway == nil, count < 5_000 {
            stage.receive(frame)
            count += 1
        }
        #expect(stage.goAway == Self.calm, "\(name)")
        #expect(count <= 1_100, "\(name): \(count)")
    }

    @Test func `G-21: acknowledgements that the client does not take are bounded`() {
        let session = HTTP2ServerSession(HTTP2Limits())
        let now = MonotonicTime(nanoseconds: 1)
        var flood = Frames.preface + Frames.settings()
        for _ in 0..<900 { flood += Frames.ping() }
        flood.withUnsafeBufferPointer { session.receive($0, at: now) }
        var output: Bytes = []
        session.send(into: &output, sizeMax: 1 << 20)
        #expect(SentFrame.all(in: output).last?.code == Self.calm)
        #expect(output.count < 4_096)
    }

    @Test func `G-21: a SETTINGS frame of many entries ends the connection`() {
        let stage = SessionStage()
        stage.receive(Frames.settings((0..<40).map { _ in (0x3, 100) }))
        #expect(stage.goAway == Self.calm)
    }

    @Test func `G-21: windows may be opened as often as there is something to send`() {
        let stage = SessionStage(settings: [(4, 100)])
        stage.receive(Frames.headers(1, Frames.request()))
        stage.answer(1, Bytes(repeating: 0x61, count: 400_000))
        for _ in 0..<3_999 {
            stage.receive(Frames.windowUpdate(1, 100) + Frames.windowUpdate(0, 100))
        }
        #expect(stage.goAway == nil)
        #expect(stage.dataCount(of: 1) == 400_000)
    }

    /// States out of order, lies about lengths, numbers beyond their range (RFC 9113 §5.1, §6).
    @Test(
        arguments: [
            ("DATA on an idle stream", Frames.data(1, [1])),
            ("an even stream", Frames.headers(2, Frames.request())),
            ("stream 0", Frames.headers(0, Frames.request())),
            (
                "DATA in a header block",
                Frames.frame(1, flags: 1, stream: 1, [0x82]) + Frames.data(1, [1])
            ),
            ("CONTINUATION alone", Frames.frame(9, flags: 4, stream: 1, [0x82])),
            (
                "a frame beyond the size",
                Frames.frame(0, stream: 1, Bytes(repeating: 0, count: 20_000))
            ),
            (
                "padding beyond the frame",
                Frames.headers(1, Frames.request(method: "POST"), ends: false)
                    + Frames.frame(0, flags: 8, stream: 1, [200, 1])
            ),
            ("a PING of seven bytes", Frames.frame(6, Bytes(repeating: 0, count: 7))),
            ("SETTINGS of five bytes", Frames.frame(4, Bytes(repeating: 0, count: 5))),
            ("a window of zero more", Frames.windowUpdate(0, 0)),
            ("a window beyond its range", Frames.windowUpdate(0, 0x7FFF_FFFF)),
            ("an initial window beyond its range", Frames.settings([(4, 0x8000_0000)])),
            (
                "PUSH_PROMISE from a client",
                Frames.frame(5, flags: 4, stream: 1, [0, 0, 0, 2, 0x82])
            ),
            (
                "an index beyond the table",
                Frames.frame(1, flags: 5, stream: 1, [0xFF, 0x80, 0x01])
            ),
            (
                "an integer without an end",
                Frames.frame(
                    1, flags: 5, stream: 1, Bytes([0xFF]) + Bytes(repeating: 0xFF, count: 12))
            ),
            (
                "a header table beyond its size",
                Frames.frame(1, flags: 5, stream: 1, [0x3F, 0xE1, 0xFF, 0x7F])
            ),
        ] as [(String, Bytes)])
    func `G-21: what breaks the protocol ends the connection`(_ name: String, _ bytes: Bytes) {
        let stage = SessionStage()
        stage.receive(bytes)
        #expect((stage.goAway ?? 0) != 0, "\(name)")
        let count = stage.requests.count
        stage.receive(Frames.headers(101, Frames.request()))
        #expect(stage.requests.count == count, "\(name)")
        #expect(stage.session.isOver, "\(name)")
    }

    @Test func `another protocol is no HTTP/2`() {
        let session = HTTP2ServerSession(HTTP2Limits())
        let bytes = Bytes("GET / HTTP/1.1\r\nhost: x\r\n\r\n".utf8)
        bytes.withUnsafeBufferPointer {
            session.receive($0, at: MonotonicTime(nanoseconds: 1))
        }
        var output: Bytes = []
        session.send(into: &output, sizeMax: 1 << 20)
        #expect(session.isOver && session.takeEvents().isEmpty)
    }
}
