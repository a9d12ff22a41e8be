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
    /// The subject of a path, with everything that differs from request to request taken out.
    package struct Route: Sendable, Equatable {
        /// `records/modify`. One of a fixed set: it becomes a label.
        package var template: String
        /// The fields that may be logged about this request: the container, the database. They are
        /// made when a line is written.
        package var fields: @Sendable () -> LogFields
        /// The level of the request's line while all is well: what a balancer asks every second
        /// need not be read.
        package var level: LogLevel

        package init(
            _ template: String, fields: @autoclosure @escaping @Sendable () -> LogFields = [:],
            level: LogLevel = .info
        ) {
            self.template = template
            self.fields = fields
            self.level = level
        }

        package static func == (one: Self, other: Self) -> Bool { one.template == other.template }
    }

    private let inner: any HTTPHandler
    private let listener: String
    private let log: Log
    private let metrics: Metrics
    private let now: @Sendable () -> MonotonicTime
    private let route: @Sendable (RequestHead) -> Route
    private let times: PieceTimes?
    private let writesLines: Atomic<Bool>
    private let inFlight: Gauge
    private let held: Gauge
    /// HTTP/1.1's, and HTTP/2's.
    private let requests: (http1: Counter, http2: Counter)
    private let received: Counter
    private let sent: Counter
    private struct Series: Hashable {
        var route: String
        /// The first digit of the status.
        var statusClass: Int
    }
    /// Few: routes are a fixed set.
    private let latencies = Mutex<[Series: LatencyHistogram]>([:])

    /// - Parameters:
    ///   - listener: `client` or `admin`, a label of the metrics and a field of the lines.
    ///   - route: a pure function of the head; its templates are a fixed set.
    package init(
        _ inner: any HTTPHandler, listener: String, log: Log, metrics: Metrics, writesLines: Bool,
        now: @escaping @Sendable () -> MonotonicTime, times: PieceTimes? = .ofProcess,
        route: @escaping @Sendable (RequestHead) -> Route
    ) {
        self.inner = inner
        self.listener = listener
        self.log = log
        self.metrics = metrics
        self.now = now
        self.route = route
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

    package func bodyLimit(for head: RequestHead) -> ByteCount { self.inner.bodyLimit(for: head) }

    package func patience(for head: RequestHead) -> RequestPatience {
        self.inner.patience(for: head)
    }

    package func form(of refusal: HTTPRefusal) -> (headers: HeaderFields, body: Bytes)? {
        self.inner.form(of: refusal)
    }

    package func respond(to request: HTTPRequest) async -> HTTPResponse {
        let start = self.now()
        let body = CountedBody(request.body)
        var observed = request
        observed.body = body
        self.gauge(of: request).add(1)
        (request.version == .http2 ? self.requests.http2 : self.requests.http1).add()
        let mark = self.times?.name(self.route(request.head).template)
        var response = await self.inner.respond(to: observed)
        if !response.headers.contains("X-Apple-Request-UUID") {
            response.headers.append("X-Apple-Request-UUID", request.identity.uuid)
        }
        let status = response.status
        switch response.body {
        case .empty: self.finish(request, status, start, mark, received: body.count, sent: 0)
        case .bytes(let bytes):
            self.finish(request, status, start, mark, received: body.count, sent: bytes.count)
        case .stream(let stream, let length):
            // Finished when the last byte is taken, or when nobody will take any more.
            let watched = CountedStream(stream) { sent, end in
                if case .failed(let error) = end { self.tell(error, in: request, sent: sent) }
                self.finish(
                    request, status, start, mark, received: body.count, sent: sent,
                    isWhole: end.isWhole)
            }
            response.body = .stream(watched, length: length)
        }
        return response
    }

    /// The client has a part and no reason, so the log has the reason, also where it has no lines of
    /// requests.
    private func tell(_ error: any Error, in request: HTTPRequest, sent: Int) {
        // Whoever asked has gone, or the node stops.
        if error is CancellationError { return }
        self.log.warning(
            "an answer ended before it was complete",
            [
                "request": .text(request.identity.uuid), "listener": .text(self.listener),
                "route": .text(self.route(request.head).template), "sent": .count(sent),
                "reason": .text("\(error)"),
            ])
    }

    private func finish(
        _ request: HTTPRequest, _ status: Int, _ start: MonotonicTime,
        _ mark: PieceTimes.TaskMark?, received: Int, sent: Int, isWhole: Bool = true
    ) {
        if let mark { self.times?.forget(mark) }
        let duration = self.now() - start
        let route = self.route(request.head)
        self.gauge(of: request).add(-1)
        self.received.add(received)
        self.sent.add(sent)
        // How long a held request took says nothing about the server.
        if !request.patience.isHeld { self.latency(route.template, status).record(duration) }
        guard self.writesLines.load(ordering: .relaxed) else { return }
        self.log.write(status >= 500 ? .warning : route.level, "request") {
            var fields: LogFields = [
                "request": .text(request.identity.uuid), "listener": .text(self.listener),
                "method": .text(request.head.method), "route": .text(route.template),
            ]
            fields.all += route.fields().all
            fields.append("status", .count(status))
            fields.append("duration", .duration(duration))
            fields.append("received", .count(received))
            fields.append("sent", .count(sent))
            if !isWhole { fields.append("cutShort", true) }
            fields.append("peer", .text(request.peer))
            return fields
        }
    }

    private func gauge(of request: HTTPRequest) -> Gauge {
        request.patience.isHeld ? self.held : self.inFlight
    }

    private func latency(_ route: String, _ status: Int) -> LatencyHistogram {
        let series = Series(route: route, statusClass: status / 100)
        return self.latencies.withLock { latencies in
            if let known = latencies[series] { return known }
            let isKnown = (1...5).contains(series.statusClass)
            let statusClass = isKnown ? "\(series.statusClass)xx" : "other"
            let made = self.metrics.histogram(
                "stratus_http_request_seconds",
                "From the head of a request to the last byte handed to the connection",
                ["listener": self.listener, "route": route, "status": statusClass])
            // The registry bounds the series; this bounds what finds them.
            if latencies.count < Metrics.seriesCountMax { latencies[series] = made }
            return made
        }
    }
}

/// Counts what is read of a request's body.
private final class CountedBody: RequestBody {
    private let inner: any RequestBody
    private let total = Atomic(0)

    init(_ inner: any RequestBody) { self.inner = inner }

    var count: Int { self.total.load(ordering: .relaxed) }

    func next() async throws(RequestBodyError) -> Bytes? {
        let bytes = try await self.inner.next()
        if let bytes { self.total.add(bytes.count, ordering: .relaxed) }
        return bytes
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
