package import StratusHTTP
package import StratusModel
package import StratusTLS

/// The server that a client sends its requests to.
package struct HTTPEndpoint: Sendable {
    package struct TLS: Sendable {
        package var context: TLSContext
        /// The name or numeric address that the server's certificate must prove.
        package var name: String

        package init(_ context: TLSContext, name: String) {
            self.context = context
            self.name = name
        }
    }

    /// Tried in order.
    package var addresses: [SocketAddress]
    /// The `Host` header.
    package var host: String
    package var tls: TLS?

    package init(_ addresses: [SocketAddress], host: String, tls: TLS? = nil) {
        self.addresses = addresses
        self.host = host
        self.tls = tls
    }
}

package enum HTTPClientError: Error, Sendable, Equatable {
    /// The name is unknown, or nobody answers there.
    case unreachable(SocketError?)
    /// The server could not prove who it is, or speaks no TLS that we accept.
    case notSecure(TLSError)
    case deadlinePassed
    case cancelled
    /// The connection ended before the answer did. Whether the request was carried out is unknown.
    case cutShort
    /// The answer is not HTTP.
    case malformed(HTTPRefusal)
    /// The body of the request could not be read.
    case bodyFailed
    /// The answer's body is larger than the caller takes.
    case tooLarge
}

package struct HTTPClientRequest: Sendable {
    package enum Body: Sendable {
        case bytes(Bytes)
        /// A body pulled as fast as the server takes it. `length` is declared if known; otherwise
        /// the body is sent chunked.
        case stream(any ResponseBody, length: Int?)
    }
    package var method: String
    /// Path and query, encoded.
    package var target: String
    package var headers: HeaderFields
    package var body: Body

    package init(
        method: String = "GET", target: String, headers: HeaderFields = HeaderFields(),
        body: Body = .bytes([])
    ) {
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
    }
}

/// A small HTTP/1.1 client: for `stratusctl`, for tools and for tests.
///
/// Keeps a few idle connections to its one endpoint and uses them again. It never sends a request a
/// second time: only the caller knows whether that is safe.
package final class HTTPClient: Sendable {
    package let endpoint: HTTPEndpoint
    private let loop: EventLoop
    private let pool: Pool

    package init(
        _ endpoint: HTTPEndpoint, loop: EventLoop, idleCountMax: Int = 4,
        limits: HTTPLimits = HTTPLimits()
    ) {
        self.endpoint = endpoint
        self.loop = loop
        self.pool = Pool(idleCountMax: idleCountMax, limits: limits)
    }

    /// Sends a request and returns once the head of the answer is here.
    ///
    /// `deadline` is for all of it, from connecting to the last byte of the answer's body.
    package func open(
        _ request: HTTPClientRequest, deadline: Duration
    ) async throws(HTTPClientError) -> HTTPClientResponse {
        let time = RealClock.now + deadline
        let result: Result<HTTPClientResponse, HTTPClientError> =
            await withTaskExecutorPreference(self.loop) {
                await self.openOnLoop(request, deadline: time)
            }
        return try result.get()
    }

    /// Sends a request and collects the answer.
    package func send(
        _ request: HTTPClientRequest, deadline: Duration,
        bodySizeMax: ByteCount = .mebibytes(16)
    ) async throws(HTTPClientError) -> (head: ResponseHead, body: Bytes) {
        let response = try await self.open(request, deadline: deadline)
        var body: Bytes = []
        while let piece = try await response.next() {
            body += piece
            if body.count > bodySizeMax.raw {
                await response.abandon()
                throw .tooLarge
            }
        }
        return (response.head, body)
    }

    /// Closes the idle connections but for a few.
    package func rest(keeping count: Int) async {
        await self.loop.run { self.pool.rest(keeping: count) }
    }

    /// Closes the idle connections; those in use close when they are done.
    package func close() async {
        await self.loop.run { self.pool.close() }
    }

    @concurrent
    private func openOnLoop(
        _ request: HTTPClientRequest, deadline: MonotonicTime
    ) async -> Result<HTTPClientResponse, HTTPClientError> {
        do throws(HTTPClientError) {
            let connection: HTTPClientExchange
            if let idle = self.pool.take(deadline: deadline) {
                connection = idle
            } else {
                let transport = try await AsyncTransport.connect(
                    to: self.endpoint.addresses, tls: self.endpoint.tls, loop: self.loop,
                    deadline: deadline)
                connection = HTTPClientExchange(transport, limits: self.pool.limits)
            }
            let head = try await connection.begin(request, host: self.endpoint.host)
            return .success(HTTPClientResponse(head: head, connection: connection, pool: self.pool))
        } catch {
            return .failure(error)
        }
    }

    /// The idle connections. `@unchecked`: touched only on the client's loop.
    final class Pool: @unchecked Sendable {
        let limits: HTTPLimits
        private let idleCountMax: Int
        private var idle: [HTTPClientExchange] = []
        private var isClosed = false

        init(idleCountMax: Int, limits: HTTPLimits) {
            self.idleCountMax = idleCountMax
            self.limits = limits
        }

        func take(deadline: MonotonicTime) -> HTTPClientExchange? {
            while let connection = self.idle.popLast() {
                connection.transport.deadline = deadline
                if connection.transport.isStillIdle { return connection }
                connection.transport.close()
            }
            return nil
        }

        func put(_ connection: HTTPClientExchange) {
            if self.isClosed || self.idle.count >= self.idleCountMax {
                connection.transport.close()
            } else {
                self.idle.append(connection)
            }
        }

        func rest(keeping count: Int) {
            while self.idle.count > count { self.idle.removeFirst().transport.close() }
        }

        func close() {
            self.isClosed = true
            for connection in self.idle { connection.transport.close() }
            self.idle = []
        }
    }
}

/// An answer whose head is here and whose body is pulled. Read it to its end, or ``abandon()`` it.
package final class HTTPClientResponse: Sendable {
    package let head: ResponseHead
    /// The server's certificate, over TLS.
    package let certificate: PeerCertificate?
    package let tlsVersion: String?
    package let isResumed: Bool
    private let connection: HTTPClientExchange
    private let pool: HTTPClient.Pool

    init(head: ResponseHead, connection: HTTPClientExchange, pool: HTTPClient.Pool) {
        self.head = head
        self.connection = connection
        self.pool = pool
        self.certificate = connection.transport.certificate
        self.tlsVersion = connection.transport.session?.version
        self.isResumed = connection.transport.session?.isResumed ?? false
    }

    /// The next bytes of the body; nil at its end.
    package func next() async throws(HTTPClientError) -> Bytes? {
        let result: Result<Bytes?, HTTPClientError> =
            await withTaskExecutorPreference(self.connection.transport.loop) {
                await self.nextOnLoop()
            }
        return try result.get()
    }

    /// Closes the connection: what is left of the answer is not wanted.
    package func abandon() async {
        await self.connection.transport.loop.run { self.connection.transport.close() }
    }

    @concurrent
    private func nextOnLoop() async -> Result<Bytes?, HTTPClientError> {
        do throws(HTTPClientError) {
            if let piece = try await self.connection.next() { return .success(piece) }
            if self.connection.takeReusable() { self.pool.put(self.connection) }
            return .success(nil)
        } catch {
            return .failure(error)
        }
    }
}
