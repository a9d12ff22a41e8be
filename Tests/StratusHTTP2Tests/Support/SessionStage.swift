import StratusHTTP
import StratusModel

@testable import StratusHTTP2

/// A server's session with a clock that the test moves, and the frames that it sends.
final class SessionStage {
    let session: HTTP2ServerSession
    var now = MonotonicTime(nanoseconds: 1_000_000_000)
    private(set) var events: [HTTP2ServerSession.Event] = []
    private(set) var sent: [SentFrame] = []
    /// Whether each request is answered 200 as it comes.
    var answers = false

    init(_ limits: HTTP2Limits = HTTP2Limits(), settings: [(UInt16, UInt32)] = []) {
        self.session = HTTP2ServerSession(limits)
        self.receive(Frames.preface + Frames.settings(settings))
    }

    func receive(_ bytes: Bytes) {
        bytes.withUnsafeBufferPointer { self.session.receive($0, at: self.now) }
        self.settle()
    }

    /// Sends what there is, and takes events until nothing more happens.
    func settle() {
        var output: Bytes = []
        repeat {
            let events = self.session.takeEvents()
            self.events += events
            if self.answers { for event in events { self.answer(event) } }
            let before = output.count
            self.session.send(into: &output, sizeMax: 1 << 40)
            guard output.count > before || !events.isEmpty else { break }
        } while true
        self.sent += SentFrame.all(in: output)
    }

    private func answer(_ event: HTTP2ServerSession.Event) {
        switch event {
        case .request(let stream, _, _), .refused(let stream, _):
            self.session.respond(
                stream, FieldBlock(status: 200, headers: [:], bodyLength: 0), hasBody: false)
            self.session.handlerEnded(stream)
        case .body(let stream, let bytes): self.session.consume(bytes.count, of: stream)
        case .bodyEnded, .taken, .closed: break
        }
    }

    func answer(_ stream: Int32, _ body: Bytes) {
        self.session.respond(
            stream, FieldBlock(status: 200, headers: [:], bodyLength: body.count), hasBody: true)
        self.session.append(body, to: stream)
        self.session.endBody(of: stream)
        self.settle()
    }

    /// The code of the last GOAWAY.
    var goAway: UInt32? { self.sent.last { $0.type == 7 }?.code }

    func resetCode(of stream: Int32) -> UInt32? {
        self.sent.last { $0.type == 3 && $0.stream == stream }?.code
    }

    var requests: [RequestHead] {
        self.events.compactMap { if case .request(_, let it, _) = $0 { it.head } else { nil } }
    }

    var refusals: [HTTPRefusal] {
        self.events.compactMap { if case .refused(_, let it) = $0 { it } else { nil } }
    }

    func dataCount(of stream: Int32) -> Int {
        self.sent.filter { $0.type == 0 && $0.stream == stream }.reduce(0) { $0 + $1.payload.count }
    }
}
