package import StratusHTTP
package import StratusModel
import Synchronization

/// Watches another handler: every request gets its identity in the answer, its line in the log and
/// its place in the metrics.
///
/// The identity in `X-Apple-Request-UUID` is the one in the line: whoever reports it can be told
/// what the server saw. The line names the route, never the query string: tokens travel there. The
/// path's own words (a container, a zone) stand in the line as far as the route says they may.
package final class ObservedHandler: HTTPHandler {
    private let inner: any HTTPHandler
    private let listener: String
    private let log: Log
    private let metrics: Metrics
    private let now: @Sendable () -> MonotonicTime
    private let times: PieceTimes?
    private let writesLines: Atomic<Bool>
    private let inFlight: Gauge
    private let held: Gauge
    /// HTTP/1.1's, and HTTP/2's.
    private let requests: (http1: Counter, http2: Counter)
    private let received: Counter
    private let sent: Counter

    /// - Parameter listener: `client` or `admin`, a label of the metrics and a field of the lines.
    package init(
        _ inner: any HTTPHandler, listener: String, log: Log, metrics: Metrics, writesLines: Bool,
        now: @escaping @Sendable () -> MonotonicTime, times: PieceTimes? = .ofProcess
    ) {
        self.inner = inner
        self.listener = listener
        self.log = log
        self.metrics = metrics
        self.now = now
        self.times = times
        self.writesLines = Atomic(writesLines)
        self.inFlight = metrics.gauge(
            "stratus_http_requests_in_flight", "Requests being answered now",
            ["listener": listener])
        self.held = metrics.gauge(
            "stratus_http_requests_held",
            "Requests that wait until something happens, or whose answers are still being taken",
            ["listener": listener])
        func requests(_ version: HTTPVersion) -> Counter {
            metrics.counter(
                "stratus_http_requests_total", "Requests by the version of HTTP they came in",
                ["listener": listener, "protocol": version.rawValue])
        }
        self.requests = (requests(.http1), requests(.http2))
        self.received = metrics.counter(
            "stratus_http_received_bytes_total", "Bytes of request bodies", ["listener": listener])
        self.sent = metrics.counter(
            "stratus_http_sent_bytes_total", "Bytes of answers' bodies", ["listener": listener])
    }

    /// May change while the process runs.
    package func writeLines(_ flag: Bool) { self.writesLines.store(flag, ordering: .relaxed) }

    /// Requests being answered now. Those that are held do not count.
    package var inFlightCount: Int { self.inFlight.value }

    package func plan(for head: RequestHead) -> RequestPlan {
        self.watched(self.inner.plan(for: head))
    }

    private func watched(_ plan: RequestPlan) -> RequestPlan {
        var watched = plan
        watched.respond = { request in await self.watch(request, by: plan) }
        return watched
    }

    package func answer(
        _ view: RequestView, _ bytes: Span<UInt8>, _ call: SurfaceCall,
        into answer: inout AnswerBuffer
    ) -> AnswerStep {
        let start = self.now()
        switch self.inner.answer(view, bytes, call, into: &answer) {
        case .plan: return .plan
        case .task(let plan): return .task(self.watched(plan))
        case .done(let route):
            let duration = self.now() - start
            self.counter(of: call.version).add()
            self.count(
                route, answer.status, duration, received: 0, sent: answer.bodySize, isHeld: false)
            let level = answer.status >= 500 ? .warning : route.level
            if self.writesLines.load(ordering: .relaxed), self.log.takes(level) {
                AccessLine(
                    identity: call.identity, listener: self.listener,
                    method: view.text(view.method, in: bytes), route: route,
                    status: answer.status, duration: duration, received: 0,
                    sent: answer.bodySize, peer: call.peer
                ).write(to: self.log)
            }
            return .done(route)
        }
    }

    package func form(of refusal: HTTPRefusal) -> (headers: HeaderFields, body: Bytes)? {
        self.inner.form(of: refusal)
    }

    package func form(
        of refusal: CrowdRefusal, _ identity: RequestIdentity
    ) -> (headers: HeaderFields, body: Bytes)? { self.inner.form(of: refusal, identity) }

    private func watch(_ request: HTTPRequest, by plan: RequestPlan) async -> HTTPResponse {
        let start = self.now()
        self.gauge(of: request).add(1)
        self.counter(of: request.version).add()
        let mark = self.times?.name(plan.route.label.template)
        var response = await plan.respond(request)
        if response.ready == nil, !response.headers.contains("X-Apple-Request-UUID") {
            response.headers.append("X-Apple-Request-UUID", request.identity.uuid)
        }
        let (route, status) = (plan.route, response.status)
        switch response.body {
        case .empty: self.finish(request, route, status, start, mark, sent: 0)
        case .bytes(let bytes):
            self.finish(request, route, status, start, mark, sent: bytes.count)
        case .stream(let stream, let length):
            // Finished when the last byte is taken, or when nobody will take any more.
            let watched = CountedStream(stream) { sent, end in
                if case .failed(let error) = end {
                    self.tell(error, in: request, route, sent: sent)
                }
                self.finish(
                    request, route, status, start, mark, sent: sent, isWhole: end.isWhole)
            }
            response.body = .stream(watched, length: length)
        }
        return response
    }

    /// The client has a part and no reason, so the log has the reason, also where it has no lines of
    /// requests.
    private func tell(
        _ error: any Error, in request: HTTPRequest, _ route: RequestRoute, sent: Int
    ) {
        // Whoever asked has gone, or the node stops.
        if error is CancellationError { return }
        self.log.warning(
            "an answer ended before it was complete",
            [
                "request": .text(request.identity.uuid), "listener": .text(self.listener),
                "route": .text(route.label.template), "sent": .count(sent),
                "reason": .text("\(error)"),
            ])
    }

    private func finish(
        _ request: HTTPRequest, _ route: RequestRoute, _ status: Int, _ start: MonotonicTime,
        _ mark: PieceTimes.TaskMark?, sent: Int, isWhole: Bool = true
    ) {
        if let mark { self.times?.forget(mark) }
        let duration = self.now() - start
        let received = request.body.takenSize
        self.gauge(of: request).add(-1)
        self.count(
            route, status, duration, received: received, sent: sent,
            isHeld: request.patience.isHeld)
        guard self.writesLines.load(ordering: .relaxed) else { return }
        AccessLine(
            identity: request.identity, listener: self.listener, method: request.head.method,
            route: route, status: status, duration: duration, received: received, sent: sent,
            isWhole: isWhole, peer: request.peer
        ).write(to: self.log)
    }

    private func count(
        _ route: RequestRoute, _ status: Int, _ duration: Duration, received: Int, sent: Int,
        isHeld: Bool
    ) {
        if received > 0 { self.received.add(received) }
        self.sent.add(sent)
        // How long a held request took says nothing about the server.
        if !isHeld { self.latency(route.label, status).record(duration) }
    }

    private func counter(of version: HTTPVersion) -> Counter {
        version == .http2 ? self.requests.http2 : self.requests.http1
    }

    private func gauge(of request: HTTPRequest) -> Gauge {
        request.patience.isHeld ? self.held : self.inFlight
    }

    private func latency(_ label: RouteLabel, _ status: Int) -> LatencyHistogram {
        label.latency(status, in: self.metrics) { status in
            self.metrics.histogram(
                "stratus_http_request_seconds",
                "From the head of a request to the last byte handed to the connection",
                ["listener": self.listener, "route": label.template, "status": status])
        }
    }
}

/// Counts what is taken of an answer, and says once when that is over: at the end, at an error, or
/// when the connection lets go of it.
private final class CountedStream: ResponseBody {
    enum End {
        case whole
        case failed(any Error)
        /// Nobody takes any more.
        case left

        var isWhole: Bool { if case .whole = self { true } else { false } }
    }

    private let inner: any ResponseBody
    private let total = Atomic(0)
    private let isOver = Flag()
    private let over: @Sendable (_ sent: Int, _ end: End) -> Void

    init(_ inner: any ResponseBody, over: @escaping @Sendable (Int, End) -> Void) {
        self.inner = inner
        self.over = over
    }

    deinit { self.end(.left) }

    func next() async throws -> Bytes? {
        do {
            let bytes = try await self.inner.next()
            if let bytes {
                self.total.add(bytes.count, ordering: .relaxed)
            } else {
                self.end(.whole)
            }
            return bytes
        } catch {
            self.end(.failed(error))
            throw error
        }
    }

    private func end(_ end: End) {
        if !self.isOver.raise() { self.over(self.total.load(ordering: .relaxed), end) }
    }
}
