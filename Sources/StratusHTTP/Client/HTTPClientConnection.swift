package import StratusModel

/// The client's side of one HTTP/1.1 connection: one request at a time, bytes in and events out.
///
/// Write a request with ``beginRequest(method:target:host:headers:bodyLength:into:)``, then pass
/// the received bytes to ``next(_:_:)``. After `.end` the next request may be written, if
/// ``mayReuse`` says so.
package struct HTTPClientConnection: Sendable {
    package enum Event: Sendable, Equatable {
        case needsMore
        case head(ResponseHead)
        /// Never empty: this range of the bytes just passed in.
        case body(Range<Int>)
        case end
        /// The connection is of no more use.
        case failed(Failure)
    }

    package enum Failure: Error, Sendable, Equatable {
        /// The answer breaks HTTP.
        case malformed(HTTPRefusal)
        /// The connection ended before the answer did.
        case cutShort
        /// Bytes that answer nothing we asked.
        case unexpectedBytes
        /// We never ask to switch protocols.
        case protocolSwitched
    }

    private enum State: Sendable {
        case idle
        case head
        case body
        case bodyUntilClose
        case done
        case failed
    }

    private enum RequestBody: Sendable, Equatable { case none, length(Int), chunked }

    private let limits: HTTPLimits
    private var state = State.idle
    private var requestBody = RequestBody.none
    private var isHeadRequest = false
    private var pending = Bytes()
    private var parser: HTTPHeadParser
    private var statusLine: HTTPStatusLine?
    private var interimCount = 0
    private var body: HTTPBodyReader
    /// Whether the connection can carry another request now.
    package private(set) var mayReuse = true

    /// - Parameter limits: `bodySizeMax` bounds the answer's body.
    package init(limits: HTTPLimits = HTTPLimits()) {
        self.limits = limits
        self.parser = HTTPHeadParser(limits, forgivesEmptyLine: false)
        self.body = HTTPBodyReader(.none, limits: limits)
    }

    // MARK: Request

    /// - Parameters:
    ///   - target: path and query, encoded.
    ///   - headers: without Host and the framing, which are written here.
    ///   - bodyLength: 0 for none, nil for a body whose length is not known yet.
    package mutating func beginRequest(
        method: String, target: String, host: String, headers: HeaderFields = HeaderFields(),
        bodyLength: Int? = 0, into bytes: inout Bytes
    ) {
        precondition(self.mayReuse, "the connection cannot carry another request")
        precondition(
            !method.isEmpty && method.utf8.allSatisfy(HTTPCharacters.token.contains),
            "not a method: \(method)")
        precondition(
            target.utf8.first == 0x2F && target.utf8.allSatisfy(HTTPCharacters.target.contains),
            "not a target: encode it first")
        precondition(HTTPHost.isValid(ArraySlice(host.utf8)), "not a host: \(host)")
        self.mayReuse = false
        self.state = .head
        self.isHeadRequest = method == "HEAD"
        self.interimCount = 0
        bytes.append(contentsOf: method.utf8)
        bytes.append(0x20)
        bytes.append(contentsOf: target.utf8)
        bytes.append(literal: " HTTP/1.1\r\nhost: ")
        bytes.append(contentsOf: host.utf8)
        bytes.append(literal: "\r\n")
        HTTPResponseHead.append(headers, into: &bytes)
        switch bodyLength {
        case nil:
            bytes.append(literal: "transfer-encoding: chunked\r\n")
            self.requestBody = .chunked
        case 0:
            // Some servers insist on a length where a body would be usual (RFC 9110 §8.6).
            if method == "POST" || method == "PUT" || method == "PATCH" {
                bytes.append(literal: "content-length: 0\r\n")
            }
            self.requestBody = .none
        case let length?:
            HTTPResponseHead.append("content-length", length, into: &bytes)
            self.requestBody = .length(length)
        }
        bytes.append(literal: "\r\n")
    }

    package mutating func writeBody(_ piece: Span<UInt8>, into bytes: inout Bytes) {
        guard !piece.isEmpty else { return }
        switch self.requestBody {
        case .none: preconditionFailure("a body where none was announced")
        case .length(let remaining):
            precondition(piece.count <= remaining, "a body longer than declared")
            self.requestBody = remaining == piece.count ? .none : .length(remaining - piece.count)
            bytes.append(copying: piece)
        case .chunked:
            HTTPResponseHead.append(hexadecimal: piece.count, into: &bytes)
            bytes.append(literal: "\r\n")
            bytes.append(copying: piece)
            bytes.append(literal: "\r\n")
        }
    }

    package mutating func writeBody(_ piece: Bytes, into bytes: inout Bytes) {
        self.writeBody(piece.span, into: &bytes)
    }

    package mutating func endRequest(into bytes: inout Bytes) {
        switch self.requestBody {
        case .none: break
        case .length: preconditionFailure("a body shorter than declared")
        case .chunked:
            bytes.append(literal: "0\r\n\r\n")
            self.requestBody = .none
        }
    }

    // MARK: Response

    package mutating func next(_ input: Span<UInt8>, _ at: inout Int) -> Event {
        do throws(HTTPRefusal) {
            switch self.state {
            case .idle, .failed:
                guard at < input.count else { return .needsMore }
                at = input.count
                return self.fail(.unexpectedBytes)
            case .head:
                return try self.nextHead(input, &at)
            case .body:
                switch try self.body.next(input, &at) {
                case .needsMore: return .needsMore
                case .data(let range):
                    if self.body.isFinished { self.state = .done }
                    return .body(range)
                case .end: return self.end()
                }
            case .bodyUntilClose:
                guard at < input.count else { return .needsMore }
                // Up to the limit, so that where a read was cut makes no difference.
                guard self.body.sizeMax > 0 else { throw .bodyTooLarge }
                let range = at..<min(input.count, at + self.body.sizeMax)
                at = range.upperBound
                self.body.sizeMax -= range.count
                return .body(range)
            case .done: return self.end()
            }
        } catch {
            at = input.count
            return self.fail(.malformed(error))
        }
    }

    /// The server closed its side. - Returns: `.end` where that is how the body ends, `.needsMore`
    /// where nothing was under way.
    package mutating func endOfInput() -> Event {
        self.mayReuse = false
        switch self.state {
        case .idle, .failed: return .needsMore
        case .bodyUntilClose, .done:
            self.state = .failed
            return .end
        case .head, .body: return self.fail(.cutShort)
        }
    }

    private mutating func end() -> Event {
        self.state = .idle
        // Before the request is out whole, what follows on the connection is its rest.
        self.mayReuse = self.keepsAlive && self.requestBody == .none
        if !self.mayReuse { self.state = .failed }
        return .end
    }

    private var keepsAlive = true

    private mutating func fail(_ failure: Failure) -> Event {
        self.state = .failed
        self.mayReuse = false
        self.pending = []
        return .failed(failure)
    }

    private mutating func nextHead(_ input: Span<UInt8>, _ at: inout Int) throws(HTTPRefusal)
        -> Event
    {
        while true {
            guard at < input.count else { return .needsMore }
            let already = self.pending.count
            self.pending.append(copying: input.extracting(at..<input.count))
            let held = self.pending
            var line: HTTPStatusLine?
            defer { if let line { self.statusLine = line } }
            let size = try self.parser.advance(held.span) { text, _ throws(HTTPRefusal) in
                line = try HTTPStatusLine(text)
            }
            guard let size else {
                at = input.count
                return .needsMore
            }
            at += size - already
            let headers = HeaderFields(text: Bytes(held[..<size]), fields: self.parser.fields)
            self.pending = []
            self.parser = HTTPHeadParser(self.limits, forgivesEmptyLine: false)
            guard let status = line ?? self.statusLine else {
                preconditionFailure("a head without a line")
            }
            guard status.code >= 200 else {
                if status.code == 101 { return self.fail(.protocolSwitched) }
                // Interim answers tell nothing we act on, and a server may send only so many.
                self.interimCount += 1
                guard self.interimCount <= 8 else { throw .tooManyHeaders }
                continue
            }
            return try self.begin(status, headers)
        }
    }

    /// RFC 9112 §6.3, except that contradicting lengths fail: an answer one cannot delimit is not
    /// one to believe.
    private mutating func begin(_ status: HTTPStatusLine, _ headers: HeaderFields)
        throws(HTTPRefusal) -> Event
    {
        let framing = try HTTPMessageFraming.read(headers, minorVersion: status.minorVersion)
        let options = headers.list("connection").map(\.utf8)
        let saysClose = options.contains { $0.map(ASCII.lowered).elementsEqual("close".utf8) }
        let saysKeepAlive = options.contains {
            $0.map(ASCII.lowered).elementsEqual("keep-alive".utf8)
        }
        self.keepsAlive = !saysClose && (status.minorVersion == 1 || saysKeepAlive)
        if self.isHeadRequest || HTTPStatus.hasNoBody(status.code) {
            self.body = HTTPBodyReader(.none, limits: self.limits)
            self.state = .done
        } else if let framing {
            self.body = HTTPBodyReader(framing, limits: self.limits)
            self.state = self.body.isFinished ? .done : .body
        } else {
            self.body = HTTPBodyReader(.none, limits: self.limits)
            self.keepsAlive = false
            self.state = .bodyUntilClose
        }
        return .head(
            ResponseHead(
                status: status.code, minorVersion: status.minorVersion, headers: headers))
    }
}
