// modules: StratusHTTP
import StratusHTTP
import StratusModel

/// Fuzzes both sides of HTTP/1.1. The first byte chooses the side and how the rest is cut.
///
/// Whatever the bytes are: nothing traps, every event's range lies in its input and moves forward,
/// and cutting the input does not change what it says.
#if LIBFUZZER
    @_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzHTTP(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard count > 1 else { return 0 }
    let bytes = Bytes(UnsafeBufferPointer(start: start + 1, count: count - 1))
    let cut = Int(start[0] & 0x3F) + 1
    if start[0] & 0x80 == 0 {
        let whole = ServerTrace(bytes, cut: bytes.count)
        let pieces = ServerTrace(bytes, cut: cut)
        precondition(whole.text == pieces.text, "cuts of \(cut) changed the outcome")
    } else {
        let isHead = start[0] & 0x40 != 0
        let whole = clientTrace(bytes, cut: bytes.count, isHead: isHead)
        precondition(
            whole == clientTrace(bytes, cut: cut, isHead: isHead),
            "cuts of \(cut) changed the outcome")
    }
    return 0
}

/// Everything one input makes the server say and send.
private struct ServerTrace {
    private(set) var text = Bytes()

    init(_ bytes: Bytes, cut: Int) {
        var limits = HTTPLimits()
        limits.requestLineSizeMax = 64
        limits.headerSizeMax = 256
        limits.headerCountMax = 6
        limits.trailerSizeMax = 48
        limits.chunkLineSizeMax = 24
        limits.chunkOverheadMax = 64
        limits.drainSizeMax = 32
        limits.bodySizeMax = 96
        var connection = HTTPServerConnection(limits: limits)
        var left = Bytes()
        var answersEarly = false
        var fed = 0
        while fed < bytes.count {
            let next = min(bytes.count, fed + cut)
            left += bytes[fed..<next]
            fed = next
            var at = 0
            loop: while true {
                let before = at
                let event = connection.next(left.span, &at)
                precondition(at >= before && at <= left.count)
                switch event {
                case .needsMore:
                    precondition(at == left.count)
                    break loop
                case .head(let head):
                    self.note(head)
                    connection.writeContinue(into: &self.text)
                    // Some handlers answer before they have read the body.
                    answersEarly = head.path.utf8.count % 2 == 0
                    if answersEarly { self.answer(&connection) }
                case .body(let range):
                    precondition(!range.isEmpty && range.lowerBound >= before)
                    precondition(range.upperBound <= at)
                    self.text += left[range]
                case .bodyEnd:
                    self.answer(&connection)
                case .waiting:
                    preconditionFailure("answered, and still waiting")
                case .refused(let refusal):
                    connection.writeRefusal(refusal, into: &self.text)
                    self.text += Bytes(refusal.rawValue.utf8)
                case .closed:
                    precondition(at == left.count || connection.mustClose)
                    break loop
                }
            }
            left.removeFirst(min(at, left.count))
            if connection.mustClose { break }
        }
    }

    private mutating func note(_ head: RequestHead) {
        self.text += Bytes("\(head.method) \(head.path) \(head.query ?? "-")".utf8)
        self.text.append(UInt8(head.minorVersion))
        for line in head.headers.lines { self.text += Bytes("\(line.name):\(line.value)".utf8) }
        precondition(head.headers["no such field"] == nil)
        _ = URLPath(head.path)
        _ = URLQuery(head.query)
        _ = AcceptEncoding.prefersGzip(head.headers)
    }

    private mutating func answer(_ connection: inout HTTPServerConnection) {
        let body = Bytes("ok".utf8)
        let isKnown = self.text.count % 2 == 0
        connection.beginResponse(
            status: 200, headers: [:], bodyLength: isKnown ? body.count : nil, into: &self.text)
        connection.writeBody(body, into: &self.text)
        connection.endResponse(into: &self.text)
    }
}

private func clientTrace(_ bytes: Bytes, cut: Int, isHead: Bool) -> Bytes {
    var limits = HTTPLimits()
    limits.requestLineSizeMax = 64
    limits.headerSizeMax = 256
    limits.headerCountMax = 6
    limits.trailerSizeMax = 48
    limits.bodySizeMax = 96
    var connection = HTTPClientConnection(limits: limits)
    var sent = Bytes()
    connection.beginRequest(
        method: isHead ? "HEAD" : "GET", target: "/", host: "a", into: &sent)
    connection.endRequest(into: &sent)
    var text = Bytes()
    var fed = 0
    while fed < bytes.count {
        let piece = Bytes(bytes[fed..<min(bytes.count, fed + cut)])
        fed += piece.count
        var at = 0
        loop: while true {
            switch connection.next(piece.span, &at) {
            case .needsMore:
                precondition(at == piece.count)
                break loop
            case .head(let head):
                text += Bytes("\(head.status).\(head.minorVersion)".utf8)
                for line in head.headers.lines { text += Bytes("\(line.name):\(line.value)".utf8) }
            case .body(let range):
                precondition(!range.isEmpty && range.upperBound <= at)
                text += piece[range]
            case .end:
                text += Bytes("end\(connection.mayReuse)".utf8)
                if connection.mayReuse {
                    connection.beginRequest(method: "GET", target: "/", host: "a", into: &sent)
                    connection.endRequest(into: &sent)
                } else {
                    return text
                }
            case .failed(let failure):
                text += Bytes("\(failure)".utf8)
                return text
            }
        }
    }
    switch connection.endOfInput() {
    case .needsMore: text += Bytes("nothing".utf8)
    case .end: text += Bytes("closed".utf8)
    case .failed: text += Bytes("cut".utf8)
    case .head, .body: preconditionFailure("an end of input has neither")
    }
    return text
}
