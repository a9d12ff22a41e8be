/// Operations that many scenarios need.
enum Operation {
    static func create(_ name: String, type: String = "Book", _ fields: JSON = [:]) -> JSON {
        [
            "operationType": "create",
            "record": [
                "recordName": .string(name), "recordType": .string(type), "fields": fields,
            ],
        ]
    }

    static func of(
        _ type: String, _ name: String, tag: JSON? = nil, recordType: JSON? = nil,
        fields: JSON? = nil
    ) -> JSON {
        var record: JSON = ["recordName": .string(name)]
        if let recordType { record = record.setting("recordType", recordType) }
        if let tag { record = record.setting("recordChangeTag", tag) }
        if let fields { record = record.setting("fields", fields) }
        return ["operationType": .string(type), "record": record]
    }
}

/// A value of every type, as it is written, and how it must come back.
struct Sample {
    let field: String
    let tag: String
    let value: JSON
    /// The value that comes back; nil: as it was written.
    let answer: JSON?

    init(_ field: String, _ tag: String, _ value: JSON, answer: JSON? = nil) {
        self.field = field
        self.tag = tag
        self.value = value
        self.answer = answer
    }

    var written: JSON { ["value": self.value, "type": .string(self.tag)] }

    static let all: [Sample] = [
        Sample("title", "STRING", "Sea \"Roads\" \u{1F4D6} \\ \n ä"),
        Sample("pages", "INT64", -9_223_372_036_854_775_808),
        Sample("rating", "DOUBLE", 4.5),
        Sample("published", "TIMESTAMP", -62_135_596_800_000),
        Sample("digest", "BYTES", "+/+/3q2+7w=="),
        Sample(
            "place", "LOCATION",
            [
                "latitude": 59.91, "longitude": -10.75, "horizontalAccuracy": 0.5,
                "verticalAccuracy": 1.5, "altitude": -3.5, "speed": -1.0, "course": -1.0,
                "timestamp": 1_700_000_000_000,
            ]),
        Sample("tags", "STRING_LIST", ["travel", "", "maps"]),
        Sample("counts", "INT64_LIST", [0, -1, 9_007_199_254_740_993, 9_223_372_036_854_775_807]),
        Sample(
            "ratios", "DOUBLE_LIST", [0.5, -1e300, 1e-7],
            answer: [0.5, .number("-1e+300"), .number("1e-07")]),
        Sample("dates", "TIMESTAMP_LIST", [0, -5]),
        Sample("digests", "BYTES_LIST", ["", "AA=="]),
        Sample(
            "places", "LOCATION_LIST",
            [["latitude": 0.5, "longitude": 180.0], ["latitude": -90.0, "longitude": 1.25]]),
    ]
}

let documentedCodes: Set<String> = [
    "ACCESS_DENIED", "ATOMIC_ERROR", "AUTHENTICATION_FAILED", "AUTHENTICATION_REQUIRED",
    "BAD_REQUEST", "CONFLICT", "EXISTS", "INTERNAL_ERROR", "NOT_FOUND", "QUOTA_EXCEEDED",
    "THROTTLED", "TRY_AGAIN_LATER", "VALIDATING_REFERENCE_ERROR", "ZONE_NOT_FOUND",
]

extension Optional where Wrapped == JSON {
    /// Every `serverErrorCode` anywhere inside.
    var codes: [String] { self?.codes ?? [] }
}

extension JSON {
    var codes: [String] {
        switch self {
        case .array(let elements): elements.flatMap(\.codes)
        case .object(let members):
            members.flatMap { member in
                member.key == "serverErrorCode"
                    ? [member.value.text ?? "?"] : member.value.codes
            }
        case .null, .bool, .number, .string: []
        }
    }
}

/// Base64 as a strict decoder reads it, written without the server's own.
enum Base64Text {
    static func isCanonical(_ text: String) -> Bool {
        guard let bytes = Self.decode(text) else { return false }
        return Self.encode(bytes) == text
    }

    private static let letters = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")

    static func decode(_ text: String) -> [UInt8]? {
        guard text.count % 4 == 0 else { return nil }
        var bits = ""
        for letter in text.prefix(while: { $0 != "=" }) {
            guard let value = Self.letters.firstIndex(of: letter) else { return nil }
            let digits = String(value, radix: 2)
            bits += String(repeating: "0", count: 6 - digits.count) + digits
        }
        guard text.drop(while: { $0 != "=" }).allSatisfy({ $0 == "=" }) else { return nil }
        var bytes: [UInt8] = []
        while bits.count >= 8 {
            bytes.append(UInt8(bits.prefix(8), radix: 2) ?? 0)
            bits.removeFirst(8)
        }
        return bytes
    }

    static func encode(_ bytes: [UInt8]) -> String {
        var bits = bytes.map { byte in
            let digits = String(byte, radix: 2)
            return String(repeating: "0", count: 8 - digits.count) + digits
        }.joined()
        while bits.count % 6 != 0 { bits += "0" }
        var text = ""
        while !bits.isEmpty {
            text.append(Self.letters[Int(bits.prefix(6), radix: 2) ?? 0])
            bits.removeFirst(6)
        }
        while text.count % 4 != 0 { text += "=" }
        return text
    }
}
