package import StratusModel

/// The server's side of one HTTP/1.1 connection: received bytes in, events out; answers in, bytes
/// to send out. No socket, no clock, no buffer of bodies.
///
/// Pass what was received to ``next(_:_:)`` until it says `.needsMore`, `.waiting` or `.closed`:
///
///     var at = 0
///     loop: while true {
///         switch connection.next(received, &at) {
///         case .needsMore: break loop              // all of `received` is used up
///         case .head(let head): …                  // set bodySizeMax, start the handler
///         case .body(let range): …                 // hand on received[range]
///         case .bodyEnd: …
///         case .waiting: break loop                // keep received[at...] until the answer is out
///         case .refused(let refusal): connection.writeRefusal(refusal, into: &out)
///         case .closed: break loop                 // flush, then close
///         }
///     }
///
/// Invariants:
/// - One request at a time: the next head is not looked at before ``endResponse(into:)``.
/// - What follows a refused message is never read as a request.
/// - The next request never starts inside a body: an unread one is drained, or the connection ends.
/// - Events depend on the bytes, not on how they were cut into reads.
package struct HTTPServerConnection: Sendable {
    package enum Event: Sendable, Equatable {
        case needsMore
        /// A request begins. Its body, if any, follows as `.body`, and then `.bodyEnd`: also where
        /// there is no body, but not where the answer was complete before.
        case head(RequestHead)
        /// Never empty: this range of the bytes just passed in.
        case body(Range<Int>)
        case bodyEnd
        /// The request is all here and not answered yet; nothing was consumed.
        case waiting
        /// Returned once. Nothing after it is read.
        case refused(HTTPRefusal)
        /// Nothing more will be read: flush what is to be sent, then close.
        case closed
    }

    /// For deadlines: what the connection is waiting for.
    package enum Phase: Sendable, Equatable {
        /// Not a byte of a next request.
        case idle
        /// Part of a head.
        case head
        case body
        /// The request is complete, its answer is not.
        case response
        case closed
    }

    enum State: Sendable {
        case head
        case body
        /// The body's end is still to be reported.
        case bodyEnd
        case waiting
        /// Answered before the body was read: what is left of it is thrown away.
        case draining(left: Int)
        case closed
    }

    package let limits: HTTPLimits
    var state = State.head
    /// A head that is not all there yet.
    private var pending = Bytes()
    private var parser: HTTPHeadParser
    private var requestLine: HTTPRequestLine?
    var body: HTTPBodyReader

    /// From the request in progress; see `HTTPServerConnection+Response.swift`.
    var minorVersion = 1
    var isHeadRequest = false
    var clientKeepsAlive = true
    /// Whether the client holds its body back until it is told to go on, and has not been told.
    package internal(set) var awaitsContinue = false
    var response = ResponseState.none
    /// Set once, for a graceful stop: the answer to come is the last.
    var isStopping = false

    package init(limits: HTTPLimits = HTTPLimits()) {
        self.limits = limits
        self.parser = HTTPHeadParser(limits, forgivesEmptyLine: true)
        self.body = HTTPBodyReader(.none, limits: limits)
    }

    package var phase: Phase {
        switch self.state {
        case .head: self.pending.isEmpty ? .idle : .head
        case .body, .draining: .body
        case .bodyEnd, .waiting: .response
        case .closed: .closed
        }
    }

    /// Stands from one head to the next. Set it when `.head` is returned; a declared length beyond
    /// it, or a chunk that would pass it, is refused with 413 at the next ``next(_:_:)``.
    package var bodySizeMax: ByteCount {
        get { ByteCount(self.body.sizeMax) }
        set { self.body.sizeMax = newValue.raw }
    }

    package mutating func next(_ input: Span<UInt8>, _ at: inout Int) -> Event {
        do throws(HTTPRefusal) {
            switch self.state {
            case .head: return try self.nextHead(input, &at)
            case .body: return try self.nextBody(input, &at)
            case .bodyEnd:
                self.state = .waiting
                return .bodyEnd
            case .waiting:
                return .waiting
            case .draining: return try self.drain(input, &at)
            case .closed:
                at = input.count
                return .closed
            }
        } catch {
            self.state = .closed
            self.pending = []
            at = input.count
            return .refused(error)
        }
    }

    // MARK: Head

    private mutating func nextHead(_ input: Span<UInt8>, _ at: inout Int) throws(HTTPRefusal)
        -> Event
    {
        guard at < input.count else { return .needsMore }
        if self.pending.isEmpty {
            // The common case: a whole head in one read, parsed where it lies.
            let head = input.extracting(at..<input.count)
            if let size = try self.advance(head) {
                let event = try self.begin(Bytes(copying: head.extracting(0..<size)))
                at += size
                return event
            }
            self.pending = Bytes(copying: head)
            at = input.count
            return .needsMore
        }
        let already = self.pending.count
        // Beyond the limits the parser refuses, so what is copied is bounded with them.
        unsafe input.extracting(at..<input.count).withUnsafeBufferPointer {
            unsafe self.pending.append(contentsOf: $0)
        }
        let held = self.pending
        guard let size = try self.advance(held.span) else {
            at = input.count
            return .needsMore
        }
        at += size - already
        self.pending = []
        return try self.begin(Bytes(held[..<size]))
    }

    private mutating func advance(_ head: Span<UInt8>) throws(HTTPRefusal) -> Int? {
        var line: HTTPRequestLine?
        defer { if let line { self.requestLine = line } }
        return try self.parser.advance(head) { text throws(HTTPRefusal) in
            line = try HTTPRequestLine(text)
        }
    }

    /// A complete head: everything about it is decided here.
    private mutating func begin(_ text: Bytes) throws(HTTPRefusal) -> Event {
        guard let line = self.requestLine else { preconditionFailure("a head without a line") }
        let headers = HeaderFields(text: text, fields: self.parser.fields)
        self.parser = HTTPHeadParser(self.limits, forgivesEmptyLine: true)
        self.requestLine = nil
        self.isHeadRequest = false

        try HTTPHost.check(headers, line)
        let framing = try HTTPMessageFraming.read(headers, minorVersion: line.minorVersion)
        let connection = try HTTPConnectionFields(headers, minorVersion: line.minorVersion)
        self.minorVersion = line.minorVersion
        self.isHeadRequest = line.method == "HEAD"
        self.clientKeepsAlive = connection.keepsAlive && !self.isStopping
        self.response = .none
        self.body = HTTPBodyReader(framing ?? .none, limits: self.limits)
        self.awaitsContinue = connection.expectsContinue && !self.body.isFinished
        self.state = self.body.isFinished ? .bodyEnd : .body
        return .head(
            RequestHead(
                method: line.method, path: line.path, query: line.query,
                minorVersion: line.minorVersion, headers: headers))
    }

    // MARK: Body

    private mutating func nextBody(_ input: Span<UInt8>, _ at: inout Int) throws(HTTPRefusal)
        -> Event
    {
        let before = at
        defer { if at > before { self.awaitsContinue = false } }
        switch try self.body.next(input, &at) {
        case .needsMore: return .needsMore
        case .data(let range):
            if self.body.isFinished { self.state = .bodyEnd }
            return .body(range)
        case .end:
            self.state = .waiting
            return .bodyEnd
        }
    }

    private mutating func drain(_ input: Span<UInt8>, _ at: inout Int) throws(HTTPRefusal)
        -> Event
    {
        while case .draining(let left) = self.state {
            switch try self.body.next(input, &at) {
            case .needsMore: return .needsMore
            case .data(let range):
                guard range.count <= left else {
                    self.state = .closed
                    return .closed
                }
                self.state = .draining(left: left - range.count)
            case .end:
                self.state = .head
            }
        }
        return try self.nextHead(input, &at)
    }
}
