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
    private var current: JudgedHead?

    /// The last head, and what was decided of it: a client that keeps its connection mostly sends
    /// the same one again.
    private struct Last {
        let text: Bytes
        let judged: JudgedHead
    }
    private var last: Last?
    /// The same to keep, made when somebody wants to.
    private var lastHead: RequestHead?
    /// Larger heads are not kept.
    private static let keptSizeMax = 1 << 10

    /// From the request in progress; see `HTTPServerConnection+Response.swift`.
    var minorVersion = 1
    var isHeadRequest = false
    var clientKeepsAlive = true
    /// Whether the client holds its body back until it is told to go on, and has not been told.
    package internal(set) var awaitsContinue = false
    var response = ResponseState.none
    /// Set once, for a graceful stop: the answer to come is the last.
    var isStopping = false

    private let bugs: PlantedBugs

    package init(limits: HTTPLimits = HTTPLimits(), bugs: PlantedBugs = PlantedBugs()) {
        self.bugs = bugs
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

    /// The next request where it lies, if it begins here and its head has come whole. What follows
    /// is its body, as after `.head`. Nil: ``next(_:_:)`` says what there is.
    package mutating func nextView(_ input: Span<UInt8>, _ at: inout Int) -> RequestView? {
        guard case .head = self.state, self.pending.isEmpty, at < input.count else { return nil }
        do throws(HTTPRefusal) {
            guard let head = try self.judged(input.extracting(at..<input.count)),
                head.line.authority == nil
            else { return nil }
            at += head.view.head.count
            self.begin(head)
            return head.view
        } catch {
            // It is read again there, and refused.
            self.forgetLine()
            return nil
        }
    }

    /// The head of the request in progress, to keep. `bytes` are those of its view.
    package mutating func keptHead(_ bytes: Span<UInt8>) -> RequestHead {
        guard let judged = self.current else { preconditionFailure("a head that has not begun") }
        return self.keptHead(judged, bytes)
    }

    /// The body of the request in progress lies whole in the input and is used up.
    package mutating func takeBody(_ at: inout Int) {
        if !self.bugs.contains(.bodyOfNextRequestAnswered) { at += self.body.remaining ?? 0 }
        self.body = HTTPBodyReader(.none, limits: self.limits)
        self.awaitsContinue = false
        self.state = .waiting
    }

    private mutating func nextHead(_ input: Span<UInt8>, _ at: inout Int) throws(HTTPRefusal)
        -> Event
    {
        guard at < input.count else { return .needsMore }
        if self.pending.isEmpty {
            // The common case: a whole head in one read, parsed where it lies.
            let rest = input.extracting(at..<input.count)
            if let head = try self.judged(rest) {
                at += head.view.head.count
                self.begin(head)
                return .head(self.keptHead(head, rest))
            }
            self.pending = Bytes(copying: rest)
            at = input.count
            return .needsMore
        }
        let already = self.pending.count
        // Beyond the limits the parser refuses, so what is copied is bounded with them.
        unsafe input.extracting(at..<input.count).withUnsafeBufferPointer {
            unsafe self.pending.append(contentsOf: $0)
        }
        let held = self.pending
        guard let head = try self.judged(held.span) else {
            at = input.count
            return .needsMore
        }
        at += head.view.head.count - already
        self.pending = []
        self.begin(head)
        return .head(self.keptHead(head, held.span))
    }

    /// The head that the bytes begin with; nil while it is not all there.
    private mutating func judged(_ bytes: Span<UInt8>) throws(HTTPRefusal) -> JudgedHead? {
        // What is decided depends on the bytes alone: equal ones need not be read again.
        if let last = self.last,
            Self.begins(bytes, with: last.text.span)
                || self.bugs.contains(.viewOutlivesBuffer) && bytes.count >= last.text.count
        {
            if !self.pending.isEmpty { self.forgetLine() }
            return last.judged
        }
        guard let size = try self.advance(bytes) else { return nil }
        guard let line = self.requestLine else { preconditionFailure("a head without a line") }
        let fields = self.parser.fields
        self.forgetLine()
        self.isHeadRequest = false
        let text = bytes.extracting(0..<size)
        let judged = try JudgedHead(text, line, fields)
        (self.last, self.lastHead) = (nil, nil)
        if size <= Self.keptSizeMax {
            self.last = Last(text: Bytes(copying: text), judged: judged)
        }
        return judged
    }

    private static func begins(_ bytes: Span<UInt8>, with text: Span<UInt8>) -> Bool {
        guard bytes.count >= text.count else { return false }
        let (one, other) = unsafe (bytes.bytes, text.bytes)
        var at = 0
        while at + 8 <= text.count {
            if one.word(at: at) != other.word(at: at) { return false }
            at += 8
        }
        while at < text.count {
            if bytes[at] != text[at] { return false }
            at += 1
        }
        return true
    }

    private mutating func advance(_ head: Span<UInt8>) throws(HTTPRefusal) -> Int? {
        var line: HTTPRequestLine?
        defer { if let line { self.requestLine = line } }
        return try self.parser.advance(head) { text, start throws(HTTPRefusal) in
            line = try HTTPRequestLine(text, at: start)
        }
    }

    private mutating func forgetLine() {
        self.parser = HTTPHeadParser(self.limits, forgivesEmptyLine: true)
        self.requestLine = nil
    }

    private mutating func begin(_ head: JudgedHead) {
        self.current = head
        self.minorVersion = head.line.minorVersion
        self.isHeadRequest = head.line.isHead
        self.clientKeepsAlive = head.keepsAlive && !self.isStopping
        self.response = .none
        self.body = HTTPBodyReader(head.framing ?? .none, limits: self.limits)
        self.awaitsContinue = head.expectsContinue && !self.body.isFinished
        self.state = self.body.isFinished ? .bodyEnd : .body
    }

    private mutating func keptHead(_ judged: JudgedHead, _ bytes: Span<UInt8>) -> RequestHead {
        let text = bytes.extracting(judged.view.head)
        let fields = judged.view.fields
        guard let last = self.last else {
            return judged.line.head(text, HeaderFields(text: Bytes(copying: text), fields: fields))
        }
        if let head = self.lastHead { return head }
        let head = judged.line.head(text, HeaderFields(text: last.text, fields: fields))
        self.lastHead = head
        return head
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
