package import StratusHTTP
package import StratusHTTP2
package import StratusModel
import StratusTLS

/// Limits on what one client may cost, and on how long it waits.
package struct HTTP2ClientLimits: Sendable {
    /// Requests that wait or are under way. Beyond: ``HTTP2ClientError/full``.
    package var requestCountMax = 2_000
    /// Streams until the first answer of class 2xx; nil for what the server's settings allow.
    package var firstStreamCountMax: Int?
    /// Streams at a time, whatever the server allows.
    package var streamCountMax = 1_000
    package var connectDeadline: Duration = .seconds(10)
    /// After so long without a byte from the server it is asked for a sign of life, and given so
    /// long.
    package var silence: Duration = .seconds(60)
    package var pingDeadline: Duration = .seconds(15)
    /// Bytes of requests that wait for the socket.
    package var outputSizeMax: ByteCount = .kibibytes(256)
    package var pace = ReconnectPace()
    package var session = HTTP2Limits()

    package init() {}
}

package enum HTTP2ClientError: Error, Sendable, Equatable {
    /// Nobody answers, could prove who it is, or speaks HTTP/2 there; nothing was sent.
    case unreachable(HTTPClientError)
    case notSpoken
    /// A connection has failed and the next is not tried before its time; nothing was sent.
    case resting
    /// Too many requests wait; nothing was sent.
    case full
    /// The server says that it has not looked at the request: it may be sent again.
    case notProcessed
    /// The server ended the stream. Whether the request was carried out is unknown, as in the rest.
    case reset(HTTP2ErrorCode)
    case cutShort
    case deadlinePassed
    case tooLarge
    case closed
}

package struct HTTP2Answer: Sendable, Equatable {
    package var head: ResponseHead
    package var body: Bytes
}

/// Many requests to one server over one HTTP/2 connection, each a stream with a callback.
///
/// - Connects when there is something to send. A connection that fails ends what waits, and the
///   next is tried by ``ReconnectPace``; it never sends a request a second time: only the caller
///   knows whether that is safe.
/// - After GOAWAY what waits goes to a new connection, and the old one ends with its last stream.
///
/// `@unchecked`: everything but ``submit(_:deadline:bodySizeMax:completion:)`` and its like runs on
/// the loop.
package final class HTTP2Client: @unchecked Sendable {
    package typealias Completion = @Sendable (Result<HTTP2Answer, HTTP2ClientError>) -> Void

    /// A request whose completion was not called.
    final class Pending {
        let request: HTTPClientRequest
        let body: Bytes
        let bodySizeMax: ByteCount
        private var completion: Completion?
        var timer: EventLoop.Timer?
        var head: ResponseHead?
        var answer: Bytes = []
        /// Once it has a stream.
        weak var connection: HTTP2ClientConnection?
        var stream: Int32 = 0

        init(
            _ request: HTTPClientRequest, _ body: Bytes, _ bodySizeMax: ByteCount,
            _ completion: @escaping Completion
        ) {
            self.request = request
            self.body = body
            self.bodySizeMax = bodySizeMax
            self.completion = completion
        }

        var isOver: Bool { self.completion == nil }

        func take() -> Completion? {
            defer { self.completion = nil }
            return self.completion
        }
    }

    let endpoint: HTTPEndpoint
    let loop: EventLoop
    let limits: HTTP2ClientLimits
    private let random: @Sendable () -> UInt64

    private var waiting: [Pending] = []
    private var waitingStart = 0
    private var pendingCount = 0
    private var connection: HTTP2ClientConnection?
    /// After GOAWAY, until their last stream ends. A few: beyond them the oldest is cut.
    private var leaving: [HTTP2ClientConnection] = []
    private var isConnecting = false
    private var pace: ReconnectPace
    private var isClosed = false

    package init(
        _ endpoint: HTTPEndpoint, loop: EventLoop, limits: HTTP2ClientLimits = HTTP2ClientLimits(),
        random: @escaping @Sendable () -> UInt64
    ) {
        self.endpoint = endpoint
        self.loop = loop
        self.limits = limits
        self.pace = limits.pace
        self.random = random
    }

    /// Sends a request once the connection takes it. `completion` is called once, on the loop.
    ///
    /// - Parameter deadline: for all of it, from now to the last byte of the answer.
    package func submit(
        _ request: HTTPClientRequest, deadline: Duration,
        bodySizeMax: ByteCount = .kibibytes(64), completion: @escaping Completion
    ) {
        guard case .bytes(let body) = request.body else {
            preconditionFailure("a request of many streams has its body at hand")
        }
        self.loop.perform {
            self.take(Pending(request, body, bodySizeMax, completion), self.loop.now + deadline)
        }
    }

    /// The same for one who waits.
    package func send(
        _ request: HTTPClientRequest, deadline: Duration, bodySizeMax: ByteCount = .kibibytes(64)
    ) async throws(HTTP2ClientError) -> HTTP2Answer {
        let result = await withCheckedContinuation { continuation in
            self.submit(request, deadline: deadline, bodySizeMax: bodySizeMax) {
                continuation.resume(returning: $0)
            }
        }
        return try result.get()
    }

    /// Ends what waits and what is under way.
    package func close() async {
        await self.loop.run {
            self.isClosed = true
            self.failWaiting(.closed)
            self.connection?.close(.closed)
            for connection in self.leaving { connection.close(.closed) }
        }
    }

    // MARK: On the loop

    private func take(_ pending: Pending, _ deadline: MonotonicTime) {
        guard !self.isClosed else { return self.end(pending, .failure(.closed), counted: false) }
        guard self.pendingCount < self.limits.requestCountMax else {
            return self.end(pending, .failure(.full), counted: false)
        }
        guard self.connection != nil || self.isConnecting || self.pace.mayTry(at: self.loop.now)
        else { return self.end(pending, .failure(.resting), counted: false) }
        self.pendingCount += 1
        pending.timer = self.loop.schedule(at: deadline) {
            pending.timer = nil
            guard !pending.isOver else { return }
            pending.connection?.forget(pending)
            self.end(pending, .failure(.deadlinePassed))
        }
        self.waiting.append(pending)
        self.advance()
    }

    /// The one place where a request ends.
    func end(
        _ pending: Pending, _ result: Result<HTTP2Answer, HTTP2ClientError>, counted: Bool = true
    ) {
        guard let completion = pending.take() else { return }
        if counted { self.pendingCount -= 1 }
        if let timer = pending.timer { self.loop.cancel(timer) }
        pending.timer = nil
        pending.answer = []
        completion(result)
    }

    /// Gives what waits to the connection, which is made when there is none.
    func advance() {
        while let connection = self.connection, connection.hasRoom, let next = self.nextWaiting() {
            connection.begin(next)
        }
        self.connection?.pumpSoon()
        guard self.connection == nil, !self.isConnecting, !self.isClosed, self.hasWaiting else {
            return
        }
        guard self.pace.mayTry(at: self.loop.now) else { return self.failWaiting(.resting) }
        self.isConnecting = true
        let loop = self.loop
        Task.immediate(executorPreference: loop) { await self.connect() }
    }

    private var hasWaiting: Bool {
        self.waiting[self.waitingStart...].contains { !$0.isOver }
    }

    private func nextWaiting() -> Pending? {
        while self.waitingStart < self.waiting.count {
            let next = self.waiting[self.waitingStart]
            self.waitingStart += 1
            if self.waitingStart == self.waiting.count || self.waitingStart > 1_024 {
                self.waiting.removeFirst(self.waitingStart)
                self.waitingStart = 0
            }
            if !next.isOver { return next }
        }
        return nil
    }

    private func failWaiting(_ error: HTTP2ClientError) {
        while let next = self.nextWaiting() { self.end(next, .failure(error)) }
    }

    private func connect() async {
        self.loop.assertCurrent()
        do throws(HTTPClientError) {
            let opened = try await AsyncTransport.connect(
                to: self.endpoint.addresses, tls: self.endpoint.tls, loop: self.loop,
                deadline: self.loop.now + self.limits.connectDeadline)
            self.loop.assertCurrent()
            self.isConnecting = false
            if self.isClosed { return opened.close() }
            if let session = opened.session, session.applicationProtocol != "h2" {
                opened.close()
                self.pace.failed(at: self.loop.now, draw: self.random())
                return self.failWaiting(.notSpoken)
            }
            guard let (transport, registration) = opened.release() else { throw .cutShort }
            self.connection = HTTP2ClientConnection(transport, registration, of: self)
            self.advance()
        } catch {
            self.loop.assertCurrent()
            self.isConnecting = false
            self.pace.failed(at: self.loop.now, draw: self.random())
            self.failWaiting(.unreachable(error))
        }
    }

    func wasAnswered() { self.pace.succeeded() }

    /// The server takes no more on this connection.
    func isLeaving(_ connection: HTTP2ClientConnection) {
        guard self.connection === connection else { return }
        self.connection = nil
        self.leaving.append(connection)
        if self.leaving.count > 2 { self.leaving[0].close(.cutShort) }
        self.advance()
    }

    /// - Parameter wasHealthy: it had answered something.
    func hasEnded(_ connection: HTTP2ClientConnection, wasHealthy: Bool) {
        self.leaving.removeAll { $0 === connection }
        if self.connection === connection { self.connection = nil }
        if !wasHealthy, !self.isClosed {
            self.pace.failed(at: self.loop.now, draw: self.random())
        }
        self.advance()
    }
}
