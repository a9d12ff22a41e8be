// modules: StratusHTTP2
import StratusHTTP
import StratusHTTP2
import StratusModel

/// Fuzzes both sides of HTTP/2. The first byte chooses the side, how the rest is cut, and whether
/// it is taken as it is or as a list of frames: type, flags, stream, length, payload.
///
/// Whatever the bytes are: nothing traps, no more streams are at work than allowed, what waits of
/// received bodies stays within the connection's window, and what is to be sent comes to an end.
#if LIBFUZZER
    @_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzHTTP2(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard count > 1 else { return 0 }
    let input = Bytes(UnsafeBufferPointer(start: start + 1, count: count - 1))
    let bytes = start[0] & 0x40 == 0 ? framed(input) : input
    let cut = Int(start[0] & 0x3F) * 4 + 1
    if start[0] & 0x80 == 0 { serve(bytes, cut: cut) } else { ask(bytes, cut: cut) }
    return 0
}

private var limits: HTTP2Limits {
    var limits = HTTP2Limits()
    limits.streamCountMax = 4
    return limits
}

/// Sending must end within so many turns: each moves at least a byte.
private let sendTurnMax = 4_096

/// The frames that the bytes list, with their lengths as they have to be.
private func framed(_ input: Bytes) -> Bytes {
    var bytes: Bytes = []
    var rest = input[...]
    while rest.count >= 4 {
        let (type, flags, stream, length) = (
            rest[rest.startIndex] & 0x0F, rest[rest.startIndex + 1], rest[rest.startIndex + 2] & 7,
            rest[rest.startIndex + 3]
        )
        rest = rest.dropFirst(4)
        let payload = rest.prefix(Int(length))
        rest = rest.dropFirst(Int(length))
        bytes += [0, 0, UInt8(payload.count), type, flags, 0, 0, 0, stream] + payload
    }
    return bytes
}

private func pieces(of bytes: Bytes, _ cut: Int) -> [ArraySlice<UInt8>] {
    stride(from: 0, to: bytes.count, by: cut).map { bytes[$0..<min($0 + cut, bytes.count)] }
}

private func serve(_ bytes: Bytes, cut: Int) {
    let session = HTTP2ServerSession(limits)
    let now = MonotonicTime(nanoseconds: 1_000_000_000)
    var waiting = 0
    var output: Bytes = []
    func settle() {
        for _ in 0..<sendTurnMax {
            let events = session.takeEvents()
            for event in events {
                switch event {
                case .request(let stream, _, _):
                    session.respond(
                        stream, FieldBlock(status: 200, headers: [:], bodyLength: 100),
                        hasBody: true)
                    session.append(Bytes(repeating: 1, count: 100), to: stream)
                    session.endBody(of: stream)
                    session.handlerEnded(stream)
                case .refused(let stream, _):
                    session.respond(
                        stream, FieldBlock(status: 400, headers: [:], bodyLength: 0),
                        hasBody: false)
                    session.handlerEnded(stream)
                case .body(let stream, let body):
                    waiting += body.count
                    // Bodies of every other stream are never taken.
                    guard stream % 4 == 1 else { continue }
                    waiting -= body.count
                    session.consume(body.count, of: stream)
                case .bodyEnded, .taken, .closed: break
                }
            }
            let before = output.count
            session.send(into: &output, sizeMax: 1 << 20)
            precondition(session.busyCount <= limits.streamCountMax)
            if events.isEmpty, output.count == before { return }
        }
        preconditionFailure("sending does not end")
    }
    Bytes("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8).withUnsafeBufferPointer {
        session.receive($0, at: now)
    }
    for piece in pieces(of: bytes, cut) {
        piece.withUnsafeBufferPointer { session.receive($0, at: now) }
        settle()
        precondition(UInt64(waiting) <= limits.connectionWindow.raw)
        if session.isOver { return }
    }
    session.announceShutdown()
    session.terminate(.none)
    settle()
}

private func ask(_ bytes: Bytes, cut: Int) {
    let session = HTTP2ClientSession(limits)
    let now = MonotonicTime(nanoseconds: 1_000_000_000)
    var output: Bytes = []
    for number in 0..<3 {
        let head = FieldBlock(
            method: "POST", scheme: "https", authority: "a", target: "/\(number)", headers: [:],
            bodyLength: 3)
        guard let stream = session.request(head, hasBody: true) else { continue }
        session.append([1, 2, 3], to: stream)
        session.endBody(of: stream)
    }
    func settle() {
        for _ in 0..<sendTurnMax {
            let events = session.takeEvents()
            for case .body(let stream, let body) in events where stream % 4 == 1 {
                session.consume(body.count, of: stream)
            }
            let before = output.count
            session.send(into: &output, sizeMax: 1 << 20)
            precondition(session.openCount <= 3)
            if events.isEmpty, output.count == before { return }
        }
        preconditionFailure("sending does not end")
    }
    settle()
    for piece in pieces(of: bytes, cut) {
        piece.withUnsafeBufferPointer { session.receive($0, at: now) }
        settle()
        if session.isOver { return }
    }
    session.terminate(.none)
    settle()
}
