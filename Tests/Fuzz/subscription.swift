// modules: StratusGateway
import StratusCoding
import StratusHTTP
import StratusModel
import StratusSealing

@testable import StratusGateway
@testable import StratusRecords

/// Fuzzes subscriptions: as clients send them in JSON, as commands and rows hold them, and what a
/// live stream is asked for.
///
/// For any bytes: nothing traps, what is accepted is written and read again as the same value, and
/// a notification that is made of it fits and is JSON.
#if LIBFUZZER
    @_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzSubscription(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Bytes(UnsafeBufferPointer(start: start, count: count))
    check(bytes, { b throws(DecodingError) in try SubscriptionRow(decoding: b) }, { $0.encoded() })
    if let row = try? SubscriptionRow(decoding: bytes) { tell(row.subscription) }
    follow(String(decoding: bytes, as: UTF8.self))
    guard let document = try? JSONDocument(parsing: bytes), let object = document.root.object
    else { return 0 }
    let input = Input(object)
    _ = try? QueryRequest(input, limits: Limits())
    guard let info = try? NotificationInfo(input["notificationInfo"]) else { return 0 }
    precondition(info.text.count <= NotificationInfo.sizeMax)
    let again = try? JSONDocument(parsing: info.text)
    guard let again, let same = try? NotificationInfo(again.root) else {
        preconditionFailure("what was written cannot be read")
    }
    precondition(same == info, "reading and writing again changed it")
    tell(
        Subscription(
            "s", .database, content: Bytes(#"{"notificationInfo":"#.utf8) + info.text + [0x7D]))
    return 0
}

private let cipher = TokenCipher(key: Bytes(repeating: 9, count: 32))
private let container = ContainerReference(container: "iCloud.c", environment: .development)

/// What a device would be told by it.
private func tell(_ subscription: Subscription) {
    let database = DatabaseID(container: container, scope: .private, owner: "_o")
    let event = NewsEvent.zone("Z", ChangeTag(7))
    let payload = PushPayload(
        container: container, database: database, subscriber: "_o",
        nid: PushPayload.nid(of: event, in: database, cipher),
        hit: News.Hit(subscription: subscription, isShared: false, event: event))
    _ = (payload.isAlert, payload.collapseKey)
    let bytes = payload.bytes()
    precondition(bytes.count <= payload.sizeMax, "a payload of \(bytes.count) bytes")
    precondition(isJSON(bytes), "a payload that is no JSON")
}

/// The text as the parameters of a live stream, and as the ID of its last event.
private func follow(_ text: String) {
    if let query = URLQuery(text), let request = try? LiveRequest(query, lastEventID: nil) {
        precondition(request.feeds.count == request.places.count)
        let id = LiveRequest.id(of: request.places)
        // The parameters say no more than the request, so its own ID leads to the same places.
        if let again = try? LiveRequest(query, lastEventID: id.isEmpty ? nil : id) {
            precondition(LiveRequest.id(of: again.places) == id, "\(request)")
        }
    }
    if let query = URLQuery("zone=A&zone=B&database=1") {
        guard let request = try? LiveRequest(query, lastEventID: text) else { return }
        precondition(request.places.count == 3)
    }
}

private func isJSON(_ bytes: Bytes) -> Bool { (try? JSONDocument(parsing: bytes)) != nil }
