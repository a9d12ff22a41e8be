package import StratusModel

/// The time-outs of a client. Every resource that a slow or malicious client can hold has one of
/// them.
package struct HTTPTimeouts: Sendable, Equatable {
    /// From a request's first byte to the end of its head.
    package var header: Duration = .seconds(10)
    /// Between requests, and before the first.
    package var idle: Duration = .seconds(75)
    /// From a request's first byte to its answer's last, unless the route sets another.
    package var total: Duration = .seconds(300)
    /// A body may fall behind `bodyRateMin` by this much time, an answer behind `sendRateMin`.
    package var grace: Duration = .seconds(10)
    /// Bytes per second that a client has to send while we are reading.
    package var bodyRateMin: ByteCount = .kibibytes(1)
    /// Bytes per second that a client has to take while we have something for it.
    package var sendRateMin: ByteCount = .kibibytes(1)

    package init() {}
}
