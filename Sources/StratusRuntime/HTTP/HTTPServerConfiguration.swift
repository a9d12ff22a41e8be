package import StratusHTTP
package import StratusHTTP2
package import StratusModel
package import StratusTLS

/// The addresses on which a server listens, and the limits on what clients may cost.
package struct HTTPServerConfiguration: Sendable {
    package struct Listener: Sendable {
        package var address: SocketAddress
        /// Nil: plain.
        package var tls: TLSContextSource?

        package init(_ address: SocketAddress, tls: TLSContextSource? = nil) {
            self.address = address
            self.tls = tls
        }
    }

    package var listeners: [Listener]
    package var limits: HTTPServerLimits
    /// Answers from this size on are sent as gzip to those who accept it, when their kind is worth
    /// it. Nil: never.
    package var gzipSizeMin: ByteCount?
    /// Whether a plain connection that begins with HTTP/2's preface is served in HTTP/2. Under TLS
    /// the handshake decides: see ``TLSServerConfiguration/protocols``.
    package var plainHTTP2 = false
    package var http2Metrics: HTTP2Metrics?

    package init(
        listeners: [Listener], limits: HTTPServerLimits = HTTPServerLimits(),
        gzipSizeMin: ByteCount? = ByteCount(1_024)
    ) {
        self.listeners = listeners
        self.limits = limits
        self.gzipSizeMin = gzipSizeMin
    }
}

/// Every bound of the server in one place. Tests run with tiny ones.
package struct HTTPServerLimits: Sendable, Equatable {
    /// Heads, chunks, drains.
    package var message = HTTPLimits()

    /// Open connections over all loops. Beyond: 503 and closed, TLS closed at once.
    package var connectionCountMax = 16_384
    /// From one address, so that one client cannot take all of them.
    package var connectionCountPerAddressMax = 2_048
    /// Connections that the kernel holds ready for us.
    package var backlog = 1_024
    /// Accepted in one go before other sockets have their turn.
    package var acceptCountMax = 64
    /// How long accepting rests when the process has no descriptor left.
    package var acceptPause: Duration = .milliseconds(100)

    /// TLS handshakes.
    package var handshakeDeadline: Duration = .seconds(15)
    /// Heads, bodies, readers, idleness.
    package var timeouts = HTTPTimeouts()
    /// How long a closed connection waits for the peer to send more or close too, so that it can
    /// read the last answer: many clients read nothing before all of their request is sent.
    package var lingerDeadline: Duration = .seconds(2)
    /// All of that together.
    package var lingerTotal: Duration = .seconds(30)
    /// The most that a peer may send while its connection lingers, before it is cut. The bytes are
    /// discarded as they come.
    package var lingerSizeMax: ByteCount = .mebibytes(64)

    /// How long a stop waits for the first request of a connection that has carried none, and for a
    /// handshake that has begun.
    package var stopGrace: Duration = .milliseconds(200)
    package var stopHandshakeDeadline: Duration = .seconds(1)

    /// Received bytes of one body that wait for the handler.
    package var bodyBufferSizeMax: ByteCount = .kibibytes(64)
    /// Bytes of answers that wait for the socket; the last piece may exceed it.
    package var outputBufferSizeMax: ByteCount = .kibibytes(64)

    /// Streams, windows and floods of one HTTP/2 connection. Its `message` is not used: the one
    /// above is.
    package var http2 = HTTP2Limits()
    /// The same for all streams of an HTTP/2 connection together.
    package var http2OutputSizeMax: ByteCount = .kibibytes(256)
    /// Requests over HTTP/2, or through trusted proxies, that are being answered for one address.
    package var requestCountPerAddressMax = 1_024

    /// Whose requests count for the address that they name, and whose connections count for none.
    package var trustedProxies = TrustedProxies()

    package init() {}
}
