package import StratusModel

/// One answer that is written where it leaves from: behind what a connection has to send already.
///
/// Its parts are written in their order: status, lines, body. The last one ends it. An answer that
/// is given up leaves nothing behind.
package struct AnswerBuffer: ~Copyable {
    /// What the connection adds to a head by itself.
    struct Framing {
        var isHeadRequest = false
        var minorVersion = 1
        var keepsAlive = true
        /// HTTP/2 has frames for all of it.
        var isFramed = false
        /// A complete line.
        var date: Bytes = []
    }

    private var bytes: Bytes
    private let start: Int
    private let framing: Framing
    /// 0: nothing was written.
    package private(set) var status = 0
    /// The size of the whole body, also where it is not sent.
    package private(set) var bodySize = 0
    private var linesStart = 0
    private var linesEnd = 0

    init(behind bytes: consuming Bytes, _ framing: Framing) {
        self.start = bytes.count
        self.bytes = bytes
        self.framing = framing
    }

    /// For a stream of HTTP/2, and for tests.
    package init() {
        var framing = Framing()
        framing.isFramed = true
        self.init(behind: [], framing)
    }

    /// - Parameter status: a final one, of an answer that has a body.
    package mutating func begin(_ status: Int) {
        precondition((200...599).contains(status) && !HTTPStatus.hasNoBody(status))
        precondition(self.status == 0, "a request is answered once")
        self.status = status
        HTTPResponseHead.begin(status, into: &self.bytes)
        self.linesStart = self.bytes.count
    }

    /// Lines of the head that were put together once for many answers, each with its line end.
    package mutating func write(lines: StaticString) {
        self.bytes.append(literal: lines)
    }

    /// The line that names the request.
    package mutating func write(_ name: StaticString, _ identity: RequestIdentity) {
        self.bytes.append(literal: name)
        self.bytes.append(literal: ": ")
        identity.appendUUID(to: &self.bytes)
        self.bytes.append(literal: "\r\n")
    }

    package mutating func end(_ body: StaticString) {
        self.endHead(body.utf8CodeUnitCount)
        if !self.framing.isHeadRequest { self.bytes.append(literal: body) }
    }

    package mutating func end(_ body: Span<UInt8>) {
        self.endHead(body.count)
        if !self.framing.isHeadRequest { self.bytes.append(copying: body) }
    }

    private mutating func endHead(_ size: Int) {
        self.bodySize = size
        self.linesEnd = self.bytes.count
        if self.framing.isFramed { return }
        self.bytes.append(contentsOf: self.framing.date)
        HTTPResponseHead.append("content-length", size, into: &self.bytes)
        if !self.framing.keepsAlive {
            self.bytes.append(literal: "connection: close\r\n\r\n")
        } else if self.framing.minorVersion == 0 {
            self.bytes.append(literal: "connection: keep-alive\r\n\r\n")
        } else {
            self.bytes.append(literal: "\r\n")
        }
    }

    /// The answer's head as fields, for HTTP/2.
    package var headers: HeaderFields {
        HeaderFields(lines: self.bytes.span.extracting(self.linesStart..<self.linesEnd))
    }

    /// The answer's body, for HTTP/2.
    package var body: Bytes { Bytes(self.bytes[self.linesEnd...]) }

    /// What there is to send, with the answer or without it.
    package consuming func taken(isAnswered: Bool) -> Bytes {
        if !isAnswered { self.bytes.removeSubrange(self.start...) }
        return self.bytes
    }
}

extension HTTPServerConnection {
    /// Lends what is to be sent to the answer to the request in progress.
    package func answer(behind bytes: consuming Bytes, date: Bytes) -> AnswerBuffer {
        AnswerBuffer(
            behind: bytes,
            AnswerBuffer.Framing(
                isHeadRequest: self.isHeadRequest, minorVersion: self.minorVersion,
                keepsAlive: self.clientKeepsAlive, date: date))
    }

    /// The request in progress was answered whole, before anything else was said of it. Its body
    /// lies whole in the input and is used up.
    package mutating func endAnswer(_ at: inout Int) {
        self.takeBody(&at)
        self.state = self.clientKeepsAlive ? .head : .closed
    }
}
