package import StratusHTTP
package import StratusModel

/// Every bound of one HTTP/2 connection in one place. Tests run with tiny ones.
package struct HTTP2Limits: Sendable, Equatable {
    /// Heads, lines and bodies, as for HTTP/1.1.
    package var message = HTTPLimits()
    /// Streams that are open, or that were reset and still have a handler at work.
    package var streamCountMax = 128
    /// The bytes that a peer may send of one body, and of all together, before somebody takes them.
    package var streamWindow: ByteCount = .kibibytes(64)
    package var connectionWindow: ByteCount = .mebibytes(1)
    /// Frames after the first that one header block may have.
    package var continuationCountMax = 8
    /// Settings in one frame, and acknowledgements that wait to be sent.
    package var settingCountMax = 32
    package var acknowledgementCountMax = 100
    /// Streams that end without an answer: so many at once, then so many a second.
    package var unansweredBurst = 200
    package var unansweredRate = 33
    /// Frames that carry nothing: so many at once, then so many a second.
    package var emptyFrameBurst = 1_000
    package var emptyFrameRate = 100
    /// Bytes of a DATA frame below which it counts as one that carries nothing, unless it ends a
    /// body.
    package var dataFrameSizeMin = 16

    package init() {}
}
