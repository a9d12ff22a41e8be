import StratusHTTP2

/// The HTTP/2 metrics of a server.
package struct HTTP2Metrics: Sendable {
    let connections: Gauge
    let streams: Gauge
    private let metrics: Metrics
    private let listener: String

    package init(_ metrics: Metrics, listener: String) {
        self.metrics = metrics
        self.listener = listener
        self.connections = metrics.gauge(
            "stratus_http2_connections", "Open connections over HTTP/2", ["listener": listener])
        self.streams = metrics.gauge(
            "stratus_http2_streams", "Streams of HTTP/2 whose handlers have not ended",
            ["listener": listener])
    }

    /// A connection was ended for its client's conduct.
    func goneAway(_ code: HTTP2ErrorCode) {
        self.metrics.counter(
            "stratus_http2_goaways_total",
            "Connections over HTTP/2 that were ended because their client broke a rule",
            ["listener": self.listener, "why": code.description]
        ).add()
    }
}
