package import StratusModel

/// A client's connection to a server that speaks in lines, plain or under TLS. It may turn to TLS
/// midway.
///
/// Every step has the deadline that the connection was opened with.
package final class TextConnection: Sendable {
    private let transport: AsyncTransport
    private let loop: EventLoop

    private init(_ transport: AsyncTransport, loop: EventLoop) {
        self.transport = transport
        self.loop = loop
    }

    /// Connects to the first of the addresses that answers.
    ///
    /// - Parameter deadline: for all of the conversation.
    package static func open(
        to addresses: [SocketAddress], tls: HTTPEndpoint.TLS?, loop: EventLoop, deadline: Duration
    ) async throws(HTTPClientError) -> TextConnection {
        let time = RealClock.now + deadline
        let result: Result<AsyncTransport, HTTPClientError> =
            await withTaskExecutorPreference(loop) {
                await Self.connect(to: addresses, tls: tls, loop: loop, deadline: time)
            }
        return TextConnection(try result.get(), loop: loop)
    }

    @concurrent
    private static func connect(
        to addresses: [SocketAddress], tls: HTTPEndpoint.TLS?, loop: EventLoop,
        deadline: MonotonicTime
    ) async -> Result<AsyncTransport, HTTPClientError> {
        do throws(HTTPClientError) {
            return .success(
                try await AsyncTransport.connect(
                    to: addresses, tls: tls, loop: loop, deadline: deadline))
        } catch { return .failure(error) }
    }

    /// Sends bytes. Where the server speaks before it has taken them all, the rest is left out:
    /// what it says ends the conversation.
    package func write(_ bytes: Bytes) async throws(HTTPClientError) {
        try await self.onLoop { (transport) throws(HTTPClientError) in
            _ = try await transport.write(bytes)
        }
    }

    /// What came; empty at the end.
    package func read() async throws(HTTPClientError) -> Bytes {
        try await self.onLoop { (transport) throws(HTTPClientError) in try await transport.read() }
    }

    /// Turns to TLS. Nothing that the server sent before is taken for what it says under TLS.
    package func secure(_ tls: HTTPEndpoint.TLS) async throws(HTTPClientError) {
        try await self.onLoop { (transport) throws(HTTPClientError) in
            try await transport.secure(tls)
        }
    }

    package func close() async {
        await self.loop.run { self.transport.close() }
    }

    private func onLoop<Value: Sendable>(
        _ work: @escaping @Sendable (AsyncTransport) async throws(HTTPClientError) -> Value
    ) async throws(HTTPClientError) -> Value {
        let result: Result<Value, HTTPClientError> = await withTaskExecutorPreference(self.loop) {
            await Self.run(self.transport, work)
        }
        return try result.get()
    }

    @concurrent
    private static func run<Value: Sendable>(
        _ transport: AsyncTransport,
        _ work: @Sendable (AsyncTransport) async throws(HTTPClientError) -> Value
    ) async -> Result<Value, HTTPClientError> {
        do throws(HTTPClientError) { return .success(try await work(transport)) } catch {
            return .failure(error)
        }
    }
}
