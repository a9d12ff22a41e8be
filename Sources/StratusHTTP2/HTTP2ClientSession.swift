package import StratusHTTP
package import StratusModel

/// The client's side of one HTTP/2 connection: requests in, bytes to send out; received bytes in,
/// answers out. No socket and no clock.
package final class HTTP2ClientSession {
    package enum Event: Sendable, Equatable {
        /// A final answer's head; interim ones are passed over.
        case head(stream: Int32, ResponseHead)
        /// Give its count back by ``consume(_:of:)`` once it is taken.
        case body(stream: Int32, Bytes)
        /// So many bytes of the request's body were handed over for sending.
        case taken(stream: Int32, Int)
        /// The stream is over. `isWhole`: with its answer, to the end.
        case closed(stream: Int32, HTTP2ErrorCode, isWhole: Bool)
        /// The server takes no more streams; those above `lastStream` were not looked at, and their
        /// `.closed` says `refusedStream`.
        case goneAway(lastStream: Int32, HTTP2ErrorCode)
        case pingAnswered
    }

    private struct Stream {
        var assembly: ResponseHeadAssembly?
        var hasHead = false
        var isWhole = false
        var unconsumed = 0
    }

    private let limits: HTTP2Limits
    private var session: NghttpSession!
    private var streams: [Int32: Stream] = [:]
    private var events: [Event] = []
    private(set) package var isGoingAway = false

    package init(_ limits: HTTP2Limits) {
        self.limits = limits
        self.session = NghttpSession(limits, isServer: false, listener: self)
    }

    package func receive(_ bytes: UnsafeBufferPointer<UInt8>, at now: MonotonicTime) {
        self.session.receive(bytes, at: now)
    }

    package func send(into output: inout Bytes, sizeMax: Int) {
        self.session.send(into: &output, sizeMax: sizeMax)
    }

    package func takeEvents() -> [Event] {
        let events = self.events
        self.events.removeAll(keepingCapacity: true)
        return events
    }

    package var isOver: Bool { !self.session.wantsRead && !self.session.wantsWrite }
    package var openCount: Int { self.streams.count }
    /// The number of streams that the server's settings allow; the protocol's own default before
    /// they came.
    package var streamCountMax: Int { self.session.remoteStreamCountMax }
    package var sentGoAway: HTTP2ErrorCode? { self.session.sentGoAway }

    /// Opens a stream. With a body, ``append(_:to:)`` and ``endBody(of:)`` follow.
    /// - Returns: nil when this connection takes no more.
    package func request(_ block: FieldBlock, hasBody: Bool) -> Int32? {
        guard !self.isGoingAway, !self.session.isBroken,
            let stream = self.session.request(block, hasBody: hasBody)
        else { return nil }
        self.streams[stream] = Stream()
        return stream
    }

    package func append(_ bytes: Bytes, to stream: Int32) {
        self.session.append(bytes, to: stream)
    }

    package func endBody(of stream: Int32) { self.session.endBody(of: stream) }
    package func pendingCount(of stream: Int32) -> Int { self.session.pendingCount(of: stream) }

    package func consume(_ count: Int, of stream: Int32) {
        guard let unconsumed = self.streams[stream]?.unconsumed else { return }
        let count = min(count, unconsumed)
        self.streams[stream]?.unconsumed -= count
        self.session.consume(count, of: stream)
    }

    package func reset(_ stream: Int32, _ code: HTTP2ErrorCode = .cancel) {
        guard self.streams[stream] != nil else { return }
        self.session.reset(stream, code)
    }

    package func ping() { self.session.ping() }
    package func terminate(_ code: HTTP2ErrorCode) { self.session.terminate(code) }
}

extension HTTP2ClientSession: SessionListener {
    func fieldsBegan(_ stream: Int32, opensStream: Bool) -> Bool {
        guard let state = self.streams[stream] else { return true }
        // An interim answer's fields, the final one's, or trailers, which nobody reads.
        if !state.hasHead {
            self.streams[stream]?.assembly = ResponseHeadAssembly(self.limits.message)
        }
        return true
    }

    func field(_ stream: Int32, _ name: Span<UInt8>, _ value: Span<UInt8>) -> Bool {
        self.streams[stream]?.assembly?.add(name: name, value: value)
        return true
    }

    func fieldsEnded(_ stream: Int32, endsStream: Bool) {
        guard self.streams[stream] != nil else { return }
        if let assembly = self.streams[stream]?.assembly {
            self.streams[stream]?.assembly = nil
            do throws(HTTPRefusal) {
                let head = try assembly.finish()
                if head.status >= 200 {
                    self.streams[stream]?.hasHead = true
                    self.events.append(.head(stream: stream, head))
                }
            } catch {
                return self.session.reset(stream, .protocolViolation)
            }
        }
        if endsStream, self.streams[stream]?.hasHead == true {
            self.streams[stream]?.isWhole = true
        }
    }

    func data(_ stream: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        guard self.streams[stream] != nil else {
            return self.session.consumeConnection(bytes.count)
        }
        self.streams[stream]?.unconsumed += bytes.count
        self.events.append(.body(stream: stream, Bytes(bytes)))
    }

    func dataEnded(_ stream: Int32) { self.streams[stream]?.isWhole = true }

    func taken(_ stream: Int32, _ count: Int) {
        if count > 0 { self.events.append(.taken(stream: stream, count)) }
    }

    func closed(_ stream: Int32, _ code: HTTP2ErrorCode) {
        guard let state = self.streams.removeValue(forKey: stream) else { return }
        self.session.consumeConnection(state.unconsumed)
        self.events.append(.closed(stream: stream, code, isWhole: state.isWhole))
    }

    func goneAway(lastStream: Int32, _ code: HTTP2ErrorCode) {
        self.isGoingAway = true
        self.events.append(.goneAway(lastStream: lastStream, code))
    }

    func pingAnswered() { self.events.append(.pingAnswered) }
}
