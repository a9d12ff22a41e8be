import StratusHTTP
import StratusModel
import StratusTLS

/// A connection as the server sees it, whichever version of HTTP it speaks.
protocol ServedConnection: AnyObject {
    /// Without port; nil on a Unix socket and for a trusted proxy: they count for no address.
    var address: String? { get }
    /// Its place among the server's connections.
    var place: UInt64 { get }
    /// For a graceful stop, and for one whose place another has: ends after what is in flight.
    func closeWhenDone()
    func close(isCut: Bool)
}

/// A server's part on one loop: its listeners, its connections, and the buffers they share.
///
/// `@unchecked`: touched only on its loop, except for what is immutable; see ``EventLoop``.
final class HTTPServerShard: @unchecked Sendable {
    let loop: EventLoop
    let world: any World
    let handler: any HTTPHandler
    /// For connections from now on; those that exist keep what they began with where it is theirs.
    var limits: HTTPServerLimits
    let gzipSizeMin: ByteCount?
    let plainHTTP2: Bool
    let http2Metrics: HTTP2Metrics?
    let admission: Admission
    let longWork = LongWork()

    /// The buffer that every connection reads into. Bytes that are not used up at once are copied
    /// out.
    let room = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: 64 << 10)
    /// Lent to the connection that writes.
    var spareOutput: Bytes = []
    private var date = HTTPDateLine()
    private var dateText: Bytes = []
    private var dateExpiry = MonotonicTime(nanoseconds: .min)

    private var listeners: [HTTPListener] = []
    /// By their places.
    private var connections: [UInt64: any ServedConnection] = [:]
    private(set) var isStopping = false
    private var stoppers: [CheckedContinuation<Void, Never>] = []

    init(
        loop: EventLoop, world: any World, handler: any HTTPHandler,
        configuration: HTTPServerConfiguration, admission: Admission
    ) {
        self.loop = loop
        self.world = world
        self.handler = handler
        self.limits = configuration.limits
        self.gzipSizeMin = configuration.gzipSizeMin
        self.plainHTTP2 = configuration.plainHTTP2
        self.http2Metrics = configuration.http2Metrics
        self.admission = admission
    }

    deinit { self.room.deallocate() }

    func listen(
        on socket: consuming Socket, tls: TLSContextSource?
    ) throws(SocketError) {
        let listener = HTTPListener(socket, tls: tls, shard: self)
        try listener.open()
        self.listeners.append(listener)
    }

    func add(_ connection: HTTPConnection) {
        self.connections[connection.place] = connection
        connection.open()
        if self.isStopping { connection.closeWhenDone() }
    }

    /// The socket goes on in HTTP/2, with what it has brought already.
    func handOver(_ old: HTTPConnection, _ received: Bytes) {
        let connection = HTTP2Connection(of: old, shard: self)
        self.connections[connection.place] = connection
        connection.open(received)
        if old.endsSoon { connection.closeWhenDone() }
    }

    func didClose(_ connection: any ServedConnection) {
        self.admission.leave(connection.place)
        self.connections[connection.place] = nil
        if self.connections.isEmpty { self.endStop() }
    }

    /// What a connection may still take that has given up its place.
    private static let endPatience = Duration.seconds(10)

    /// Another has the connection's place. It closes if it is idle, and otherwise after what is in
    /// flight, or is cut. Called on any loop.
    func endSoon(_ place: UInt64) {
        self.loop.submit {
            self.connections[place]?.closeWhenDone()
            guard self.connections[place] != nil else { return }
            _ = self.loop.schedule(at: self.loop.now + Self.endPatience) {
                self.connections[place]?.close(isCut: true)
            }
        }
    }

    /// The handler's answer. What a trusted proxy passes on is its client's request, which has a
    /// place of its address.
    func respond(to request: HTTPRequest, by plan: RequestPlan) async -> HTTPResponse {
        let proxies = self.limits.trustedProxies
        guard let client = proxies.client(behind: request.peer, request.head.headers) else {
            return await plan.respond(request)
        }
        guard self.admission.enterRequest(client) else {
            return self.refusal(.ofAddress, request)
        }
        defer { self.admission.leaveRequest(client) }
        return await plan.respond(request.passedOn(for: client))
    }

    private func refusal(_ refusal: CrowdRefusal, _ request: HTTPRequest) -> HTTPResponse {
        let form = self.handler.form(of: refusal, request.identity)
        var response = HTTPResponse(
            status: 503, headers: form?.headers ?? ["Content-Type": "text/plain"],
            body: .bytes(form?.body ?? Bytes("\(refusal.rawValue)\n".utf8)))
        response.headers.set("Retry-After", "\(refusal.retryAfterSeconds)")
        return response
    }

    func dateLine() -> Bytes {
        // The clock is asked a few times a second, not for every answer.
        if self.loop.now >= self.dateExpiry {
            self.dateExpiry = self.loop.now + .milliseconds(200)
            self.dateText = self.date.line(at: self.world.wallMilliseconds)
        }
        return self.dateText
    }

    // MARK: Stop

    func closeListeners() {
        for listener in self.listeners { listener.close() }
        self.listeners = []
    }

    /// Ends every connection after what is in flight, or cuts it at the deadline.
    func stop(at deadline: MonotonicTime) async {
        self.loop.assertCurrent()
        self.isStopping = true
        self.closeListeners()
        for connection in self.inOrder { connection.closeWhenDone() }
        if self.connections.isEmpty { return }
        let timer = self.loop.schedule(at: deadline) {
            for connection in self.inOrder { connection.close(isCut: true) }
        }
        await withCheckedContinuation { continuation in
            // The way here may lead through the loop's queue: they may all have closed meanwhile.
            if self.connections.isEmpty { return continuation.resume() }
            self.stoppers.append(continuation)
        }
        self.loop.cancel(timer)
    }

    /// Apart from the dictionary, which changes while they close.
    private var inOrder: [any ServedConnection] {
        self.connections.sorted { $0.key < $1.key }.map(\.value)
    }

    private func endStop() {
        for stopper in self.stoppers { stopper.resume() }
        self.stoppers = []
    }
}
