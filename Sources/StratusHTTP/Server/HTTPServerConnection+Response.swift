package import StratusModel

/// The answering half: writes heads and body framing, and decides whether the connection lives on.
extension HTTPServerConnection {
    /// How far the answer to the request in progress has come.
    enum ResponseState: Sendable, Equatable {
        case none
        /// Its head is written; `remaining` bytes of a declared length are to come.
        case length(remaining: Int)
        case chunked
        /// HTTP/1.0 has no chunks: the end of the connection is the end of the body.
        case untilClose
        /// HEAD, 204, 304: whatever body is offered is dropped.
        case bodiless
    }

    /// Whether an answer has begun, so that nothing else can be said any more.
    package var hasResponseBegun: Bool { self.response != .none }

    /// Whether the connection ends once what was written is flushed.
    package var mustClose: Bool {
        if case .closed = self.state { true } else { false }
    }

    /// For a graceful stop: closes now where no request has begun, otherwise after the next answer.
    package mutating func stopKeepingAlive() {
        self.isStopping = true
        self.clientKeepsAlive = false
        if self.phase == .idle { self.state = .closed }
    }

    /// Tells a client that holds its body back to send it. Does nothing if the client is not
    /// waiting, so it may be called whenever the body is first asked for.
    package mutating func writeContinue(into bytes: inout Bytes) {
        guard self.awaitsContinue, self.response == .none,
            // A client that declares a length to be refused need not send the body first.
            self.body.remaining.map({ $0 <= self.body.sizeMax }) ?? true
        else { return }
        self.awaitsContinue = false
        bytes.append(contentsOf: "HTTP/1.1 100 Continue\r\n\r\n".utf8)
    }

    /// Writes the answer's head. After `.refused` this may stand in place of ``writeRefusal``;
    /// after that or ``abandon()``, everything written is dropped.
    ///
    /// - Parameters:
    ///   - headers: without Content-Length, Transfer-Encoding and Connection. Those are decided
    ///     here, and dropped if given, except that `Connection: close` is honoured.
    ///   - bodyLength: nil if unknown: then chunked, or for HTTP/1.0 until the connection closes.
    ///   - ready: lines that stand before `headers`, with the identity of this request.
    ///   - prewritten: complete header lines, such as the date, written once for many answers.
    package mutating func beginResponse(
        status: Int, headers: HeaderFields, bodyLength: Int?,
        ready: (lines: ReadyLines, identity: RequestIdentity)? = nil, prewritten: Bytes = [],
        into bytes: inout Bytes
    ) {
        precondition((200...599).contains(status), "not a final status: \(status)")
        switch self.state {
        case .head, .draining: preconditionFailure("an answer without a request")
        case .body, .bodyEnd, .waiting:
            precondition(self.response == .none, "a request is answered once")
        case .closed:
            // The body was refused while the handler worked; its answer may still be the better
            // one. After a refusal was written, or the connection given up, nothing more is sent.
            guard self.response == .none else { return }
            self.clientKeepsAlive = false
        }
        if headers.saysClose || !self.canDrainRequest {
            self.clientKeepsAlive = false
        }
        HTTPResponseHead.begin(status, into: &bytes)
        if let ready { ready.lines.append(ready.identity, to: &bytes) }
        HTTPResponseHead.append(headers, into: &bytes)
        bytes.append(contentsOf: prewritten)
        if HTTPStatus.hasNoBody(status) {
            self.response = .bodiless
        } else if let bodyLength {
            HTTPResponseHead.append("content-length", bodyLength, into: &bytes)
            self.response = self.isHeadRequest ? .bodiless : .length(remaining: bodyLength)
        } else if self.isHeadRequest {
            self.response = .bodiless
        } else if self.minorVersion == 0 {
            self.clientKeepsAlive = false
            self.response = .untilClose
        } else {
            HTTPResponseHead.append("transfer-encoding: chunked\r\n", into: &bytes)
            self.response = .chunked
        }
        if !self.clientKeepsAlive {
            HTTPResponseHead.append("connection: close\r\n", into: &bytes)
        } else if self.minorVersion == 0 {
            HTTPResponseHead.append("connection: keep-alive\r\n", into: &bytes)
        }
        HTTPResponseHead.append("\r\n", into: &bytes)
    }

    /// Writes a piece of the body with its framing.
    ///
    /// Writing more than the declared length is a bug of the handler and stops the process; after
    /// too little the connection closes.
    package mutating func writeBody(_ piece: Span<UInt8>, into bytes: inout Bytes) {
        guard !piece.isEmpty else { return }
        switch self.response {
        case .none: preconditionFailure("a body before its head")
        case .bodiless: return
        case .length(let remaining):
            precondition(piece.count <= remaining, "a body longer than declared")
            self.response = .length(remaining: remaining - piece.count)
            bytes.append(copying: piece)
        case .untilClose:
            bytes.append(copying: piece)
        case .chunked:
            HTTPResponseHead.append(hexadecimal: piece.count, into: &bytes)
            HTTPResponseHead.append("\r\n", into: &bytes)
            bytes.append(copying: piece)
            HTTPResponseHead.append("\r\n", into: &bytes)
        }
    }

    package mutating func writeBody(_ piece: Bytes, into bytes: inout Bytes) {
        self.writeBody(piece.span, into: &bytes)
    }

    /// Ends the answer. Afterwards either ``mustClose`` is true or ``next(_:_:)`` drops the rest of
    /// the request and continues with the next one.
    package mutating func endResponse(into bytes: inout Bytes) {
        var isComplete = true
        switch self.response {
        case .none: preconditionFailure("an end before the beginning")
        case .length(let remaining): isComplete = remaining == 0
        case .chunked: HTTPResponseHead.append("0\r\n\r\n", into: &bytes)
        case .untilClose, .bodiless: break
        }
        guard isComplete, self.clientKeepsAlive else {
            self.state = .closed
            return
        }
        switch self.state {
        case .body:
            self.state = .draining(left: self.limits.drainSizeMax.raw)
        case .bodyEnd, .waiting:
            self.state = .head
        case .closed: break  // The rest of the request was refused meanwhile.
        case .head, .draining: preconditionFailure("an answer ended twice")
        }
        self.response = .none
    }

    /// Cuts the connection without an end, so that a part is not taken for the whole.
    package mutating func abandon() {
        self.state = .closed
        self.response = .bodiless
    }

    /// Answers a message that was refused, unless an answer has begun already. Either way the
    /// connection closes.
    ///
    /// - Parameter body: for example a JSON error; without one the reason as plain text.
    package mutating func writeRefusal(
        _ refusal: HTTPRefusal, headers: HeaderFields = HeaderFields(), body: Bytes? = nil,
        prewritten: Bytes = [], into bytes: inout Bytes
    ) {
        self.state = .closed
        guard self.response == .none else { return }
        self.response = .bodiless
        HTTPResponseHead.begin(refusal.status, into: &bytes)
        HTTPResponseHead.append(headers, into: &bytes)
        bytes.append(contentsOf: prewritten)
        let text = body ?? Bytes("\(refusal.rawValue)\n".utf8)
        if body == nil {
            HTTPResponseHead.append("content-type: text/plain; charset=utf-8\r\n", into: &bytes)
        }
        HTTPResponseHead.append("content-length", text.count, into: &bytes)
        HTTPResponseHead.append("connection: close\r\n\r\n", into: &bytes)
        bytes.append(contentsOf: text)
    }

    /// Whether what is left of the request can be read away, so that the connection may live on.
    private var canDrainRequest: Bool {
        switch self.state {
        case .body:
            // A client still waiting for the go-ahead may now send the body or leave it: RFC 9110
            // §10.1.1 lets it do either, so what follows could not be told apart.
            !self.awaitsContinue
                && (self.body.remaining.map { $0 <= self.limits.drainSizeMax.raw } ?? true)
        case .head, .bodyEnd, .waiting, .draining, .closed: true
        }
    }
}
