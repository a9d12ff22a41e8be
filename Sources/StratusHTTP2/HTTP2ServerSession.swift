package import StratusHTTP
package import StratusModel

/// The server's side of one HTTP/2 connection: received bytes in, events out; answers in, bytes to
/// send out. No socket and no clock.
///
/// After each ``receive(_:at:)`` and ``send(into:sizeMax:)`` take the events. For each `.request`
/// and `.refused` say ``handlerEnded(_:)`` once, when nothing works for that stream any more.
///
/// Invariants:
/// - No more than ``HTTP2Limits/streamCountMax`` streams are at work, those included that their
///   client has reset and whose handler has not ended.
/// - What waits of received bodies is at most ``HTTP2Limits/connectionWindow``.
/// - Events do not depend on how the bytes were cut into reads, but for the cuts of bodies.
package final class HTTP2ServerSession {
    package enum Event: Sendable, Equatable {
        /// `isWhole`: there is no body.
        case request(stream: Int32, RequestHeadAssembly.Request, isWhole: Bool)
        /// To be answered with the refusal's status.
        case refused(stream: Int32, HTTPRefusal)
        /// Give its count back by ``consume(_:of:)`` once it is taken.
        case body(stream: Int32, Bytes)
        case bodyEnded(stream: Int32)
        /// So many bytes of the answer were handed over for sending.
        case taken(stream: Int32, Int)
        /// The stream is over, for whichever reason; its answer may be incomplete.
        case closed(stream: Int32, HTTP2ErrorCode)
    }

    /// Why the connection was ended for its client's conduct.
    package enum Flood: String, Sendable {
        case unansweredStreams = "streams"
        case emptyFrames = "frames"
    }

    private struct Stream {
        var head: RequestHeadAssembly?
        /// Bytes of fields after the body, which nobody reads.
        var trailerSize = 0
        var isAnswered = false
        /// Bytes of the body that came and were not given back.
        var unconsumed = 0
        /// Whether the rest of the stream's body is discarded as it comes.
        var dropsBody = false
    }

    private let limits: HTTP2Limits
    private var session: NghttpSession!
    private var streams: [Int32: Stream] = [:]
    /// Streams whose handlers have not ended.
    private var busy: Set<Int32> = []
    private var events: [Event] = []
    private var unanswered: RateBucket
    private var now = MonotonicTime(nanoseconds: 0)
    private var isExhausted = false
    private var announced = false

    package init(_ limits: HTTP2Limits) {
        self.limits = limits
        self.unanswered = RateBucket(
            burst: limits.unansweredBurst, rate: limits.unansweredRate)
        self.session = NghttpSession(limits, isServer: true, listener: self)
    }

    // MARK: Bytes

    package func receive(_ bytes: UnsafeBufferPointer<UInt8>, at now: MonotonicTime) {
        self.now = now
        self.session.receive(bytes, at: now)
        if self.isExhausted { self.session.terminate(.enhanceYourCalm) }
    }

    package func send(into output: inout Bytes, sizeMax: Int) {
        self.session.send(into: &output, sizeMax: sizeMax)
        if self.isExhausted, !self.session.isBroken {
            self.session.terminate(.enhanceYourCalm)
            self.session.send(into: &output, sizeMax: sizeMax + 64)
        }
    }

    package func takeEvents() -> [Event] {
        let events = self.events
        self.events.removeAll(keepingCapacity: true)
        return events
    }

    /// Nothing is to be read or written any more: flush, then close.
    package var isOver: Bool { !self.session.wantsRead && !self.session.wantsWrite }
    package var wantsWrite: Bool { self.session.wantsWrite }
    package var openCount: Int { self.streams.count }
    package var busyCount: Int { self.busy.count }
    package var sentGoAway: HTTP2ErrorCode? { self.session.sentGoAway }
    /// A head has begun to arrive and is not complete.
    package var isInsideHead: Bool { self.session.meter.isInsideHead }
    package var flood: Flood? {
        if self.isExhausted { return .unansweredStreams }
        return self.session.meter.isStopped ? .emptyFrames : nil
    }

    // MARK: Answers

    package func isOpen(_ stream: Int32) -> Bool { self.streams[stream] != nil }

    package func sendContinue(_ stream: Int32) {
        guard self.streams[stream]?.isAnswered == false else { return }
        self.session.sendInterim(stream, .goOn)
    }

    /// The answer's head. With a body, ``append(_:to:)`` and ``endBody(of:)`` follow.
    package func respond(_ stream: Int32, _ block: FieldBlock, hasBody: Bool) {
        guard self.streams[stream]?.isAnswered == false else { return }
        self.streams[stream]?.isAnswered = true
        self.session.shareFairly(stream)
        self.session.respond(stream, block, hasBody: hasBody)
    }

    package func append(_ bytes: Bytes, to stream: Int32) {
        self.session.append(bytes, to: stream)
    }

    package func endBody(of stream: Int32) { self.session.endBody(of: stream) }

    /// Bytes of an answer that wait for the client's windows.
    package func pendingCount(of stream: Int32) -> Int { self.session.pendingCount(of: stream) }

    package func consume(_ count: Int, of stream: Int32) {
        guard let unconsumed = self.streams[stream]?.unconsumed else { return }
        let count = min(count, unconsumed)
        self.streams[stream]?.unconsumed -= count
        self.session.consume(count, of: stream)
    }

    /// Discards a body, both the bytes that came and those still to come. Their window is given
    /// back at once.
    package func dropBody(of stream: Int32) {
        guard let unconsumed = self.streams[stream]?.unconsumed else { return }
        self.streams[stream]?.dropsBody = true
        self.consume(unconsumed, of: stream)
    }

    /// The bytes that the client may still send of a body before some are taken.
    package func window(of stream: Int32) -> Int { self.session.window(of: stream) }

    package func reset(_ stream: Int32, _ code: HTTP2ErrorCode) {
        guard self.streams[stream] != nil else { return }
        self.session.reset(stream, code)
    }

    /// Nothing works for this stream any more.
    package func handlerEnded(_ stream: Int32) { self.busy.remove(stream) }

    // MARK: The end

    /// Says that the connection will end; requests that are under way are still taken.
    package func announceShutdown() {
        guard !self.announced else { return }
        self.announced = true
        self.session.announceShutdown()
    }

    /// No stream after those that are open is served.
    package func goAway(_ code: HTTP2ErrorCode = .none) { self.session.goAway(code) }

    package func terminate(_ code: HTTP2ErrorCode) { self.session.terminate(code) }

    private func wentUnanswered() {
        if !self.unanswered.take(at: self.now) { self.isExhausted = true }
    }
}

extension HTTP2ServerSession: SessionListener {
    func fieldsBegan(_ stream: Int32, opensStream: Bool) -> Bool {
        guard opensStream else { return true }
        guard self.busy.count < self.limits.streamCountMax, !self.isExhausted else {
            self.wentUnanswered()
            return false
        }
        self.streams[stream] = Stream(head: RequestHeadAssembly(self.limits.message))
        return true
    }

    func field(_ stream: Int32, _ name: Span<UInt8>, _ value: Span<UInt8>) -> Bool {
        guard self.streams[stream] != nil else { return true }
        if self.streams[stream]!.head != nil {
            self.streams[stream]!.head!.add(name: name, value: value)
            return !self.streams[stream]!.head!.isFarTooLarge
        }
        self.streams[stream]!.trailerSize += name.count + value.count + 32
        return self.streams[stream]!.trailerSize <= self.limits.message.trailerSizeMax.raw
    }

    func fieldsEnded(_ stream: Int32, endsStream: Bool) {
        guard var head = self.streams[stream]?.head else {
            // Trailers.
            if endsStream, self.streams[stream] != nil { self.dataEnded(stream) }
            return
        }
        self.streams[stream]?.head = nil
        self.busy.insert(stream)
        do throws(HTTPRefusal) {
            let request = try head.finish()
            self.events.append(.request(stream: stream, request, isWhole: endsStream))
        } catch {
            self.streams[stream]?.dropsBody = true
            self.events.append(.refused(stream: stream, error))
        }
    }

    func data(_ stream: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        guard let state = self.streams[stream] else {
            return self.session.consumeConnection(bytes.count)
        }
        if state.dropsBody { return self.session.consume(bytes.count, of: stream) }
        self.streams[stream]?.unconsumed += bytes.count
        // Small frames of one body in one read are one piece.
        if case .body(stream, var piece) = self.events.last {
            self.events.removeLast()
            piece.append(contentsOf: bytes)
            self.events.append(.body(stream: stream, piece))
        } else {
            self.events.append(.body(stream: stream, Bytes(bytes)))
        }
    }

    func dataEnded(_ stream: Int32) {
        guard self.streams[stream]?.dropsBody == false else { return }
        self.events.append(.bodyEnded(stream: stream))
    }

    func taken(_ stream: Int32, _ count: Int) {
        guard count > 0 else { return }
        if case .taken(stream, let before) = self.events.last {
            self.events[self.events.count - 1] = .taken(stream: stream, before + count)
        } else {
            self.events.append(.taken(stream: stream, count))
        }
    }

    func closed(_ stream: Int32, _ code: HTTP2ErrorCode) {
        guard let state = self.streams.removeValue(forKey: stream) else { return }
        // What was not taken of it no longer counts against the connection's window.
        self.session.consumeConnection(state.unconsumed)
        if code != .none || !state.isAnswered { self.wentUnanswered() }
        self.events.append(.closed(stream: stream, code))
    }

    func goneAway(lastStream: Int32, _ code: HTTP2ErrorCode) {}
    func pingAnswered() {}
}
