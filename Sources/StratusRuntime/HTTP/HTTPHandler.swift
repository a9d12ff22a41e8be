package import StratusHTTP
package import StratusModel
package import StratusTLS
import Synchronization

/// Answers requests: what the gateway and the administrators' API are to the HTTP server, and to a
/// test or the simulator, which call it without a socket.
package protocol HTTPHandler: Sendable {
    /// What is known of a request from its head alone, and who answers it. Asked once for each
    /// request, before any of its body is read.
    func plan(for head: RequestHead) -> RequestPlan
    /// Answers a request that lies whole in the input of its loop, or says who does. Called, not
    /// awaited: whatever has to wait needs a task.
    ///
    /// - Parameters:
    ///   - bytes: what the view's places are in. Neither outlives the call.
    ///   - answer: written whole where the answer is `.done`; otherwise what is in it is dropped.
    func answer(
        _ view: RequestView, _ bytes: Span<UInt8>, _ call: SurfaceCall,
        into answer: inout AnswerBuffer
    ) -> AnswerStep
    /// The form of an answer that the server gives by itself to a message that breaks HTTP's rules
    /// or deadlines. Nil: the reason as plain text. The status is the refusal's.
    func form(of refusal: HTTPRefusal) -> (headers: HeaderFields, body: Bytes)?
    /// The form of an answer to a request that the server has no place for. Nil: the reason as plain
    /// text.
    func form(
        of refusal: CrowdRefusal, _ identity: RequestIdentity
    ) -> (headers: HeaderFields, body: Bytes)?
}

/// Why the server has no place for a request that is in order. It is answered 503.
package enum CrowdRefusal: String, Error, Sendable, CaseIterable {
    case ofAddress = "too many requests of this address"

    package var retryAfterSeconds: Int {
        switch self {
        case .ofAddress: 1
        }
    }
}

extension HTTPHandler {
    /// Answers a request that no connection has planned.
    package func respond(to request: HTTPRequest) async -> HTTPResponse {
        await self.plan(for: request.head).respond(request)
    }

    package func answer(
        _ view: RequestView, _ bytes: Span<UInt8>, _ call: SurfaceCall,
        into answer: inout AnswerBuffer
    ) -> AnswerStep { .plan }

    package func form(of refusal: HTTPRefusal) -> (headers: HeaderFields, body: Bytes)? { nil }

    package func form(
        of refusal: CrowdRefusal, _ identity: RequestIdentity
    ) -> (headers: HeaderFields, body: Bytes)? { nil }
}

/// What came of a call.
package enum AnswerStep: Sendable {
    /// It is answered.
    case done(RequestRoute)
    /// It needs a task, and what is known of its caller says by which plan.
    case task(RequestPlan)
    /// It needs a task, by the plan for its head.
    case plan
}

/// What a handler is told of a request besides its bytes.
package struct SurfaceCall: Sendable {
    /// Drawn before the call, so that a task goes on under the same one.
    package let identity: RequestIdentity
    package let peer: String
    /// Whether it came over TLS.
    package let isSecure: Bool
    package let version: HTTPVersion
    /// The callers that the connection knows.
    package let callers: KnownCallers

    package init(
        identity: RequestIdentity, peer: String, isSecure: Bool, version: HTTPVersion,
        callers: KnownCallers
    ) {
        self.identity = identity
        self.peer = peer
        self.isSecure = isSecure
        self.version = version
        self.callers = callers
    }
}

/// What a handler says of a request once it has seen the head.
package struct RequestPlan: Sendable {
    /// What the request is called in the log and the metrics.
    package var route: RequestRoute
    package var bodySizeMax: ByteCount
    package var patience: RequestPatience
    /// Never throws: every fault becomes an answer there, where its form is known.
    package var respond: @Sendable (HTTPRequest) async -> HTTPResponse

    package init(
        _ route: RequestRoute = RequestRoute(RouteLabel("other")), bodySizeMax: ByteCount,
        patience: RequestPatience = .usual,
        respond: @escaping @Sendable (HTTPRequest) async -> HTTPResponse
    ) {
        self.route = route
        self.bodySizeMax = bodySizeMax
        self.patience = patience
        self.respond = respond
    }
}

/// How long a request may take, from the first byte of its head to the last byte of its answer.
///
/// Whatever the patience, a client that sends a body or takes an answer too slowly is cut off.
package enum RequestPatience: Sendable, Hashable {
    /// ``HTTPTimeouts/total``.
    case usual
    case total(Duration)
    /// No total: the request lives as long as its bytes keep moving.
    case transfer
    /// No total: the handler waits until something happens, and bounds that wait by itself.
    ///
    /// The task of the handler is cancelled when the client is gone, when the client has closed its
    /// half of the connection, and when a stop of the server begins. The handler then ends its wait
    /// and answers at once; the answer is sent if somebody still listens.
    case held

    package var isHeld: Bool { self == .held }

    /// What the deadlines are told; nil: the usual total.
    var total: Duration? {
        switch self {
        case .usual: nil
        case .total(let total): total
        // Longer than any process lives, and short enough to be added to a time.
        case .transfer, .held: .seconds(1 << 32)
        }
    }
}

/// The version that a request came in.
package enum HTTPVersion: String, Sendable, Hashable {
    case http1 = "http/1.1"
    case http2 = "h2"
}

/// A request that is answered in a task. It owns all that it is made of.
package final class HTTPRequest: Sendable {
    package let head: RequestHead
    package let body: any RequestBody
    package let peer: String
    /// Drawn for every request; stands in the answer and in its log line.
    package let identity: RequestIdentity
    /// Whether it came over TLS.
    package let isSecure: Bool
    /// The client's certificate, when the listener asks for one and it was verified.
    package let certificate: PeerCertificate?
    /// The long work of the loop that the request came to.
    package let longWork: LongWork
    package let version: HTTPVersion
    /// What the handler said of the head.
    package let patience: RequestPatience
    /// The callers that the connection knows; nil for a request without one.
    package let callers: KnownCallers?

    package init(
        head: RequestHead, body: any RequestBody, peer: String, identity: RequestIdentity,
        isSecure: Bool = false, certificate: PeerCertificate? = nil,
        longWork: LongWork = LongWork(), version: HTTPVersion = .http1,
        patience: RequestPatience = .usual, callers: KnownCallers? = nil
    ) {
        self.head = head
        self.body = body
        self.peer = peer
        self.identity = identity
        self.isSecure = isSecure
        self.certificate = certificate
        self.longWork = longWork
        self.version = version
        self.patience = patience
        self.callers = callers
    }

    /// The same request as a proxy's client has made it. Nothing is known of its caller from
    /// earlier ones: what is known holds an address.
    func passedOn(for client: String) -> HTTPRequest {
        HTTPRequest(
            head: self.head, body: self.body, peer: client, identity: self.identity,
            isSecure: self.isSecure, certificate: self.certificate, longWork: self.longWork,
            version: self.version, patience: self.patience)
    }
}

/// The bytes of a request's body, pulled: what is not asked for is not read from the socket.
package protocol RequestBody: Sendable {
    /// The next bytes, never empty; nil at the end.
    func next() async throws(RequestBodyError) -> Bytes?
    /// The bytes that were taken so far. Only bodies that connections make count them.
    var takenSize: Int { get }
}

package enum RequestBodyError: Error, Sendable, Equatable {
    /// Beyond the handler's limit.
    case tooLarge
    /// The client went away, was too slow, or broke the framing.
    case cutShort
}

extension RequestBody {
    package var takenSize: Int { 0 }

    /// All of the body at once; bounded by the handler's limit.
    package func collect() async throws(RequestBodyError) -> Bytes {
        guard var whole = try await self.next() else { return [] }
        while let more = try await self.next() { whole += more }
        return whole
    }
}

/// A body that is already there: for tests, and for requests that came with their head.
/// What was taken is not held any more.
package final class CollectedBody: RequestBody {
    private let chunk: Mutex<Bytes?>
    private let size: Int

    package init(_ bytes: Bytes) {
        self.chunk = Mutex(bytes.isEmpty ? nil : bytes)
        self.size = bytes.count
    }

    package var takenSize: Int { self.chunk.withLock { $0 == nil } ? self.size : 0 }

    package func next() async throws(RequestBodyError) -> Bytes? {
        self.chunk.withLock { $0.take() }
    }
}

package struct HTTPResponse: Sendable {
    package enum Body: Sendable {
        case empty
        case bytes(Bytes)
        /// Pulled as fast as the client takes it. `length` is sent as Content-Length when known,
        /// otherwise the body goes out chunked.
        case stream(any ResponseBody, length: Int?)
    }
    package var status: Int
    /// Lines that are ready, before ``headers``.
    package var ready: ReadyLines?
    package var headers: HeaderFields
    package var body: Body
    /// Lives until the answer has left, or nobody will take it any more.
    package var held: (any AnyObject & Sendable)?

    package init(
        status: Int, ready: ReadyLines? = nil, headers: HeaderFields = HeaderFields(),
        body: Body = .empty
    ) {
        self.status = status
        self.ready = ready
        self.headers = headers
        self.body = body
    }
}

extension HTTPResponse {
    /// All fields of the head, of an answer to the request with this identity.
    package func allHeaders(_ identity: RequestIdentity) -> HeaderFields {
        guard let ready else { return self.headers }
        var all = ready.fields(identity)
        for line in self.headers.lines { all.append(line.name, line.value) }
        return all
    }
}

package protocol ResponseBody: Sendable {
    /// The next bytes, never empty; nil at the end. A throw cuts the connection, so that the client
    /// cannot take a part for the whole.
    func next() async throws -> Bytes?
}
