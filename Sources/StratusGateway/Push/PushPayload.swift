import StratusHTTP
import StratusModel
import StratusRecords
import StratusRuntime
import StratusSealing

/// The JSON of one notification, as CloudKit's clients read it.
///
/// What does not fit is pruned in a fixed order, and `ck.p` says so.
struct PushPayload {
    static let textSizeMax = 128

    let container: ContainerReference
    let database: DatabaseID
    let subscriber: String
    let nid: String
    let hit: News.Hit
    /// What the device's badge shows once it has this.
    var badge: UInt64 = 1
    /// The most bytes that its way takes.
    var sizeMax = 4_096

    /// Equal for everybody who is told of the change. It says nothing of the change.
    static func nid(
        of event: NewsEvent, in database: DatabaseID, _ tokens: TokenCipher
    ) -> String {
        var place = FeedPlace(
            container: database.container, scope: database.scope, owner: database.owner,
            zone: nil)
        let tag: ChangeTag
        switch event {
        case .zone(let zone, let through):
            place.zone = zone
            tag = through
        case .record(_, let record, _):
            place.zone = record.zone.name
            tag = record.tag
        }
        var name = String(tag.raw)
        // Each bucket of a public database counts its own tags.
        if let bucket = database.recordBucket { name += " \(bucket.number)" }
        let circumstances = place.circumstances(0x20, Bytes(name.utf8))
        return tokens.identity(of: circumstances).uuid
    }

    private var info: JSONValue? {
        let content = try? JSONDocument(parsing: self.hit.subscription.content).root
        return content?["notificationInfo"]
    }

    /// Whether the badge goes up.
    var raisesBadge: Bool { self.info?["shouldBadge"]?.bool == true }

    /// Whether the device shows or plays something.
    var isAlert: Bool {
        let info = self.info
        return !self.alert(info, .nothing).isEmpty || info?["shouldBadge"]?.bool == true
            || info?["soundName"] != nil
    }

    /// What newer notifications replace this one by, as its subscription says.
    var collapseKey: String? { self.info?["collapseIDKey"]?.string }

    /// What is left out, more with each step.
    private enum Pruning: Int, CaseIterable {
        case nothing, image, action, fields, alert, everythingElse
    }

    func bytes() -> Bytes {
        var last: Bytes = []
        for pruning in Pruning.allCases {
            last = self.written(pruning)
            if last.count <= self.sizeMax { break }
        }
        return last
    }

    private func written(_ pruning: Pruning) -> Bytes {
        let info = self.info
        var writer = JSONWriter(reserving: 1_024)
        writer.object { payload in
            payload.key("aps")
            payload.object { self.writeShown(info, pruning, to: &$0) }
            payload.key("ck")
            payload.object { ck in
                ck.member("ce", 2)
                ck.member("cid", self.container.container)
                ck.member("nid", self.nid)
                ck.member("ckuserid", self.subscriber)
                ck.key("aux")
                ck.object { _ in }
                if pruning != .nothing || self.isReduced { ck.member("p", 1) }
                self.writeChange(info, pruning, to: &ck)
            }
        }
        return writer.finish()
    }

    // MARK: aps

    private func writeShown(
        _ info: JSONValue?, _ pruning: Pruning, to aps: inout JSONWriter
    ) {
        guard pruning.rawValue < Pruning.everythingElse.rawValue else { return }
        let alert = self.alert(info, pruning)
        if !alert.isEmpty {
            aps.key("alert")
            aps.object { object in
                for (key, value) in alert {
                    object.key(key)
                    switch value {
                    case .text(let text): object.write(text)
                    case .list(let texts):
                        object.array { array in for text in texts { array.write(text) } }
                    }
                }
            }
        }
        if info?["shouldBadge"]?.bool == true {
            aps.member("badge", Int64(clamping: self.badge))
        }
        if let sound = info?["soundName"]?.string { aps.member("sound", sound) }
        if let category = info?["category"]?.string { aps.member("category", category) }
        let isSilent =
            alert.isEmpty && info?["shouldBadge"]?.bool != true && info?["soundName"] == nil
        if info?["shouldSendContentAvailable"]?.bool == true || isSilent {
            aps.member("content-available", 1)
        }
        if info?["shouldSendMutableContent"]?.bool == true { aps.member("mutable-content", 1) }
    }

    private enum Shown {
        case text(String)
        case list([String])
    }

    private func alert(_ info: JSONValue?, _ pruning: Pruning) -> [(String, Shown)] {
        guard let info, pruning.rawValue < Pruning.alert.rawValue else { return [] }
        var alert: [(String, Shown)] = []
        func text(_ key: String, _ name: String) {
            if let text = info[name]?.string { alert.append((key, .text(text))) }
        }
        func arguments(_ key: String, _ name: String) {
            guard let names = info[name]?.array else { return }
            alert.append((key, .list(names.map { self.text(of: $0.string ?? "") })))
        }
        text("title", "title")
        text("title-loc-key", "titleLocalizationKey")
        arguments("title-loc-args", "titleLocalizationArgs")
        text("subtitle", "subtitle")
        text("subtitle-loc-key", "subtitleLocalizationKey")
        arguments("subtitle-loc-args", "subtitleLocalizationArgs")
        // The key is shown in place of the text.
        if info["alertLocalizationKey"] == nil { text("body", "alertBody") }
        text("loc-key", "alertLocalizationKey")
        arguments("loc-args", "alertLocalizationArgs")
        if pruning.rawValue < Pruning.action.rawValue {
            text("action-loc-key", "alertActionLocalizationKey")
        }
        if pruning == .nothing { text("launch-image", "alertLaunchImage") }
        return alert
    }

    // MARK: ck

    private var scope: Int {
        if self.database.scope == .public { return 0 }
        return self.hit.isShared ? 2 : 1
    }

    private var isReduced: Bool {
        guard case .record(_, _, let omitted) = self.hit.event else { return false }
        return self.hit.subscription.fields.contains { omitted.contains($0) }
    }

    private func writeChange(
        _ info: JSONValue?, _ pruning: Pruning, to ck: inout JSONWriter
    ) {
        switch self.hit.event {
        case .zone(let zone, _):
            // A change of a zone, or of a database.
            ck.key(self.hit.subscription.kind == .zone ? "fet" : "met")
            ck.object {
                $0.member("dbs", self.scope)
                $0.member("sid", self.hit.subscription.id)
                $0.member("zid", zone)
                $0.member("zoid", self.database.owner)
            }
        case .record(let reason, let record, _):
            ck.key("qry")
            ck.object { query in
                query.member("dbs", self.scope)
                query.member("fo", reason == .created ? 1 : reason == .updated ? 2 : 3)
                query.member("rid", record.name)
                query.member("sid", self.hit.subscription.id)
                query.member("zid", record.zone.name)
                query.member(
                    "zoid", record.zone.owner.isEmpty ? "_defaultOwner" : record.zone.owner)
                guard pruning.rawValue < Pruning.fields.rawValue,
                    let names = info?["additionalFields"]?.array
                else { return }
                query.key("af")
                query.object { object in
                    for name in names.compactMap(\.string) {
                        guard case .scalar(let scalar)? = record.value(of: name) else { continue }
                        object.key(name)
                        object.writePlain(scalar, textSizeMax: Self.textSizeMax)
                    }
                }
            }
        }
    }

    private func text(of field: String) -> String {
        guard case .record(_, let record, _) = self.hit.event,
            case .scalar(let scalar)? = record.value(of: field)
        else { return "" }
        switch scalar {
        case .string(let text): return Self.cut(text, to: Self.textSizeMax)
        case .int64(let number), .timestamp(let number): return String(number)
        case .double(let number): return String(number)
        case .reference(let reference):
            return Self.cut(reference.recordName, to: Self.textSizeMax)
        case .location, .bytes, .asset: return ""
        }
    }

    /// As many whole characters as fit.
    static func cut(_ text: String, to size: Int) -> String {
        if text.utf8.count <= size { return text }
        var end = text.startIndex
        var count = 0
        while end < text.endIndex {
            let next = text.index(after: end)
            count += text[end..<next].utf8.count
            if count > size { break }
            end = next
        }
        return String(text[..<end])
    }
}

extension JSONWriter {
    /// A value by itself, not a field's dictionary.
    fileprivate mutating func writePlain(_ scalar: Scalar, textSizeMax: Int) {
        switch scalar {
        case .string(let text): self.write(PushPayload.cut(text, to: textSizeMax))
        case .int64(let number), .timestamp(let number): self.write(number)
        case .double(let number): self.write(number)
        case .reference(let reference):
            self.write(PushPayload.cut(reference.recordName, to: textSizeMax))
        case .location(let place):
            self.object {
                $0.member("latitude", place.latitude)
                $0.member("longitude", place.longitude)
            }
        case .bytes, .asset: self.writeNull()
        }
    }
}
