import StratusHTTP
import StratusModel

/// One connection of a client with the protocol's state: request out, answer in.
///
/// `@unchecked`: used by one task at a time, on the connection's loop.
final class HTTPClientExchange: @unchecked Sendable {
    let transport: AsyncTransport
    private var machine: HTTPClientConnection
    private var received: Bytes = []
    private var used = 0
    private var hasEnded = false

    init(_ transport: AsyncTransport, limits: HTTPLimits) {
        self.transport = transport
        self.machine = HTTPClientConnection(limits: limits)
    }

    func begin(
        _ request: HTTPClientRequest, host: String
    ) async throws(HTTPClientError) -> ResponseHead {
        self.hasEnded = false
        try await self.write(request, host: host)
        guard case .head(let head) = try await self.event() else { throw self.fail(.cutShort) }
        return head
    }

    /// The next bytes of the answer's body; nil at its end.
    func next() async throws(HTTPClientError) -> Bytes? {
        guard !self.hasEnded else { return nil }
        switch try await self.event() {
        case .body(let range): return Bytes(self.received[range])
        case .end:
            self.hasEnded = true
            if !self.machine.mayReuse { self.transport.close() }
            return nil
        case .head, .needsMore, .failed: throw self.fail(.cutShort)
        }
    }

    private var isTaken = false

    /// True once after each answer that leaves the connection fit for another request.
    func takeReusable() -> Bool {
        guard self.hasEnded, self.machine.mayReuse, !self.isTaken else { return false }
        self.isTaken = true
        return true
    }

    private func write(
        _ request: HTTPClientRequest, host: String
    ) async throws(HTTPClientError) {
        self.isTaken = false
        var output: Bytes = []
        let length: Int? =
            switch request.body {
            case .bytes(let bytes): bytes.count
            case .stream(_, let length): length
            }
        self.machine.beginRequest(
            method: request.method, target: request.target, host: host, headers: request.headers,
            bodyLength: length, into: &output)
        switch request.body {
        case .bytes(let bytes):
            self.machine.writeBody(bytes, into: &output)
            self.machine.endRequest(into: &output)
            _ = try await self.transport.write(output)
        case .stream(let body, _):
            while let piece = try await self.pull(body) {
                self.machine.writeBody(piece, into: &output)
                // An early answer ends the sending: it is final (RFC 9110 §15).
                guard try await self.transport.write(output) else { return }
                output.removeAll(keepingCapacity: true)
            }
            self.machine.endRequest(into: &output)
            _ = try await self.transport.write(output)
        }
    }

    private func pull(_ body: any ResponseBody) async throws(HTTPClientError) -> Bytes? {
        do {
            return try await body.next()
        } catch {
            throw self.fail(.bodyFailed)
        }
    }

    /// The next event that is not a wish for more input.
    private func event() async throws(HTTPClientError) -> HTTPClientConnection.Event {
        while true {
            let event = self.machine.next(self.received.span, &self.used)
            switch event {
            case .head, .body, .end: return event
            case .failed(let failure): throw self.fail(Self.error(failure))
            case .needsMore: break
            }
            self.received = try await self.transport.read()
            self.used = 0
            guard self.received.isEmpty else { continue }
            switch self.machine.endOfInput() {
            case .end: return .end
            case .failed(let failure): throw self.fail(Self.error(failure))
            case .needsMore, .head, .body: throw self.fail(.cutShort)
            }
        }
    }

    private static func error(_ failure: HTTPClientConnection.Failure) -> HTTPClientError {
        switch failure {
        case .malformed(.bodyTooLarge): .tooLarge
        case .malformed(let refusal): .malformed(refusal)
        case .cutShort: .cutShort
        case .unexpectedBytes, .protocolSwitched: .malformed(.requestLine)
        }
    }

    private func fail(_ error: HTTPClientError) -> HTTPClientError {
        self.transport.close()
        return error
    }
}
