// modules: StratusPush
import StratusHTTP
import StratusModel
import StratusPush

/// Fuzzes the answers of push providers. The first two bytes are the status, the rest is one field
/// of the head up to a zero byte, and then the body.
///
/// For any bytes: nothing traps, no pause is longer than an hour or negative, and a reason is a
/// short text that a line of a log can hold.
#if LIBFUZZER
    @_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzProvider(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard count >= 2 else { return 0 }
    let bytes = Bytes(UnsafeBufferPointer(start: start, count: count))
    let status = 100 + (Int(bytes[0]) << 8 | Int(bytes[1])) % 500
    let parts = bytes[2...].split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
    let field = String(decoding: parts[0], as: UTF8.self)
    let body = parts.count == 2 ? Bytes(parts[1]) : []
    var head = ResponseHead(status: status)
    head.headers = ["retry-after": field, "apns-id": field]
    for now in [Int64(0), 1_700_000_000] {
        switch APNsVerdict(head, body, at: now) {
        case .accepted: precondition(status == 200)
        case .gone: precondition(status == 410)
        case .unknownDevice, .tooLarge: break
        case .dropped(let reason), .tokenRefused(let reason): judge(reason)
        case .deviceBusy(let pause): judge(pause)
        case .unavailable(let reason, let pause):
            judge(reason)
            judge(pause)
        }
        switch WebPushVerdict(head, at: now) {
        case .accepted: precondition((200..<300).contains(status))
        case .gone: precondition(status == 404 || status == 410)
        case .tooLarge, .tokenRefused, .dropped: break
        case .deviceBusy(let pause), .unavailable(_, let pause): judge(pause)
        }
    }
    return 0
}

private func judge(_ reason: String) {
    precondition((1...256).contains(reason.utf8.count), "a reason of \(reason.utf8.count) bytes")
    precondition(reason.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F })
}

private func judge(_ pause: Duration?) {
    guard let pause else { return }
    precondition(pause >= .zero && pause <= .seconds(3_600), "a pause of \(pause)")
}
