import StratusHTTP
import StratusModel

/// What a notification shows and carries. Unknown keys are dropped, known ones are checked.
struct NotificationInfo: Sendable, Equatable {
    static let sizeMax = 2 << 10
    static let textSizeMax = 1 << 10
    static let additionalFieldCountMax = 3
    static let argumentCountMax = 16
    static let collapseIDSizeMax = 64

    static let texts = [
        "alertBody", "alertLocalizationKey", "title", "titleLocalizationKey", "subtitle",
        "subtitleLocalizationKey", "alertActionLocalizationKey", "alertLaunchImage", "soundName",
        "category", "collapseIDKey",
    ]
    static let arguments = [
        "alertLocalizationArgs", "titleLocalizationArgs", "subtitleLocalizationArgs",
    ]
    static let flags = ["shouldBadge", "shouldSendContentAvailable", "shouldSendMutableContent"]

    private(set) var strings: [String: String] = [:]
    private(set) var lists: [String: [String]] = [:]
    private(set) var switches: [String: Bool] = [:]
    /// The dictionary as answers repeat it.
    private(set) var text: Bytes = []

    /// Nil where there is none.
    init?(_ value: JSONValue?) throws {
        guard let value, !value.isNull else { return nil }
        let input = try Input(value, at: "notificationInfo")
        for key in Self.texts {
            guard let text = try input.string(key) else { continue }
            try Self.check(text, key)
            self.strings[key] = text
        }
        for key in Self.arguments { try self.take(key, input, most: Self.argumentCountMax) }
        try self.take("additionalFields", input, most: Self.additionalFieldCountMax)
        for key in Self.flags {
            if let flag = try input.flag(key) { self.switches[key] = flag }
        }
        if let id = self.strings["collapseIDKey"], id.utf8.count > Self.collapseIDSizeMax {
            throw ClientError(
                .badRequest, "collapseIDKey is longer than \(Self.collapseIDSizeMax) bytes")
        }
        self.text = self.written()
        guard self.text.count <= Self.sizeMax else {
            throw ClientError(
                .badRequest, "notificationInfo is larger than \(Self.sizeMax) bytes")
        }
    }

    private mutating func take(_ key: String, _ input: Input, most: Int) throws {
        guard let names = try input.names(key, limit: most) else { return }
        for name in names { try Self.check(name, key) }
        self.lists[key] = names
    }

    private static func check(_ text: String, _ key: String) throws(ClientError) {
        guard text.utf8.count <= Self.textSizeMax else {
            throw ClientError(.badRequest, "\(key) is longer than \(Self.textSizeMax) bytes")
        }
        let isClean = text.unicodeScalars.allSatisfy {
            $0 == "\t" || $0 == "\n" || ($0.value >= 0x20 && !(0x7F...0x9F).contains($0.value))
        }
        guard isClean else { throw ClientError(.badRequest, "\(key) holds a control character") }
    }

    private func written() -> Bytes {
        var writer = JSONWriter()
        writer.object { object in
            for key in Self.texts {
                if let text = self.strings[key] { object.member(key, text) }
            }
            for key in Self.arguments + ["additionalFields"] {
                guard let names = self.lists[key] else { continue }
                object.key(key)
                object.array { array in for name in names { array.write(name) } }
            }
            for key in Self.flags {
                if let flag = self.switches[key] { object.member(key, flag) }
            }
        }
        return writer.finish()
    }

    var collapses: Bool { self.strings["collapseIDKey"] != nil }

    /// The record fields that a notification takes values from, sorted.
    var fields: [String] { Set(self.lists.values.joined()).sorted() }

    /// Strings, numbers, dates, locations and references, one of each.
    static func mayCarry(_ type: FieldType) -> Bool {
        guard !type.isList, !type.isEncrypted else { return false }
        switch type.scalar {
        case .string, .int64, .double, .timestamp, .location, .reference: return true
        case .bytes, .asset: return false
        }
    }
}
