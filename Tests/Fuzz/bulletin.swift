// modules: StratusGateway
import StratusCoding
import StratusHTTP
import StratusModel
import StratusRows
import StratusSealing

@testable import StratusGateway
@testable import StratusRecords

/// Fuzzes what nodes and partitions say of changes that somebody subscribed to: rows of events and
/// of who follows them, the answers about them, and the place that a live stream's client holds.
///
/// For any bytes: nothing traps, an accepted value is written and read again to the same bytes, and
/// a notification that is made of it fits and is JSON.
#if LIBFUZZER
    @_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzBulletin(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Bytes(UnsafeBufferPointer(start: start, count: count))
    check(bytes, { b throws(DecodingError) in try WatchRow(decoding: b) }, { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try InterestRow(decoding: b) }, { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try ZoneMarksRow(decoding: b) }, { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try FollowerRow(decoding: b) }, { $0.encoded() })
    check(
        bytes, { b throws(DecodingError) in try NewsEvent(decoding: b, owner: "_o") },
        { $0.encoded() })
    check(bytes, News.self)
    check(bytes, WaitingDevices.self)
    check(bytes, Audience.self)
    check(bytes, AudienceAsk.self)
    check(bytes, FoundSubscriptions.self)
    if let event = try? NewsEvent(decoding: bytes, owner: "_o") { tell(event) }
    hold(bytes)
    return 0
}

private let cipher = TokenCipher(key: Bytes(repeating: 9, count: 32))
private let container = ContainerReference(container: "iCloud.c", environment: .development)
private let place = FeedPlace(container: container, scope: .private, owner: "_o")

private func check<Value: FormValue & Equatable>(_ bytes: Bytes, _ type: Value.Type) {
    check(
        bytes,
        { bytes throws(DecodingError) in
            var reader = ByteReader(bytes)
            let value = try reader.form(type)
            try reader.finish()
            return value
        },
        { value in
            var writer = ByteWriter()
            writer.write(form: value)
            return writer.bytes
        })
}

/// What a device would be told of the event.
private func tell(_ event: NewsEvent) {
    let database = DatabaseID(container: container, scope: .private, owner: "_o")
    var kind = Subscription.Kind.database
    if case .record = event { kind = .query }
    let subscription = Subscription(
        "s", kind, predicate: kind == .query ? RecordPredicate(recordType: "T") : nil,
        content: Bytes(#"{"notificationInfo":{"alertBody":"a","additionalFields":["f"]}}"#.utf8))
    var payload = PushPayload(
        container: container, database: database, subscriber: "_o",
        nid: PushPayload.nid(of: event, in: database, cipher),
        hit: News.Hit(subscription: subscription, isShared: false, event: event))
    for size in [4_096, 3_993] {
        payload.sizeMax = size
        let bytes = payload.bytes()
        precondition(bytes.count <= size, "a payload of \(bytes.count) bytes")
        precondition(isJSON(bytes), "a payload that is no JSON")
    }
}

/// The bytes as what the seal of a stream's place holds.
private func hold(_ bytes: Bytes) {
    let token = Bytes(repeating: 4, count: 16)
    let text = Base64.encode(
        cipher.seal(bytes, for: place.circumstances(TakenNews.purpose, token)))
    guard
        let taken = try? TakenNews(text: text, at: place, of: token, openedWith: cipher)
    else { return }
    let again = try? TakenNews(
        text: taken.text(at: place, of: token, sealedWith: cipher), at: place, of: token,
        openedWith: cipher)
    precondition(again == taken, "\(taken)")
}

private func isJSON(_ bytes: Bytes) -> Bool { (try? JSONDocument(parsing: bytes)) != nil }
