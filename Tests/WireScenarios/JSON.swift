/// JSON as a test sees it: keys in the order received, numbers as written. It shares no code with
/// the server, so that both cannot be wrong in the same way.
package indirect enum JSON: Sendable, Hashable {
    case null
    case bool(Bool)
    /// The number's own text: 9007199254740993 must stay what it is.
    case number(String)
    case string(String)
    case array([JSON])
    case object([Member])

    package struct Member: Sendable, Hashable {
        package var key: String
        package var value: JSON
    }

    /// A member of an object; nil where there is none, which is not the same as `null`.
    package subscript(_ key: String) -> JSON? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.key == key }?.value
    }

    /// An element of an array.
    package subscript(_ index: Int) -> JSON? {
        guard case .array(let elements) = self, elements.indices.contains(index) else {
            return nil
        }
        return elements[index]
    }

    package var keys: [String] {
        guard case .object(let members) = self else { return [] }
        return members.map(\.key)
    }
    package var elements: [JSON] { if case .array(let all) = self { all } else { [] } }
    package var text: String? { if case .string(let text) = self { text } else { nil } }
    package var integer: Int64? { if case .number(let text) = self { Int64(text) } else { nil } }
    package var bool: Bool? { if case .bool(let bool) = self { bool } else { nil } }

    package func setting(_ key: String, _ value: JSON?) -> JSON {
        guard case .object(var members) = self else { return self }
        members.removeAll { $0.key == key }
        if let value { members.append(Member(key: key, value: value)) }
        return .object(members)
    }
}

extension Optional where Wrapped == JSON {
    package subscript(_ key: String) -> JSON? { self.flatMap { $0[key] } }
    package subscript(_ index: Int) -> JSON? { self.flatMap { $0[index] } }
    package var elements: [JSON] { self?.elements ?? [] }
    package var keys: [String] { self?.keys ?? [] }
    package var text: String? { self.flatMap(\.text) }
    package var integer: Int64? { self.flatMap(\.integer) }
    package var bool: Bool? { self.flatMap(\.bool) }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral,
    ExpressibleByNilLiteral, ExpressibleByStringInterpolation
{
    package init(stringLiteral value: String) { self = .string(value) }
    package init(integerLiteral value: Int64) { self = .number("\(value)") }
    package init(floatLiteral value: Double) { self = .number("\(value)") }
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    package init(nilLiteral: ()) { self = .null }
    package init(arrayLiteral elements: JSON...) { self = .array(elements) }
    package init(dictionaryLiteral elements: (String, JSON)...) {
        self = .object(elements.map { Member(key: $0.0, value: $0.1) })
    }
}

extension JSON: CustomStringConvertible {
    package var description: String {
        switch self {
        case .null: "null"
        case .bool(let bool): bool ? "true" : "false"
        case .number(let text): text
        case .string(let text): Self.quoted(text)
        case .array(let all): "[" + all.map(\.description).joined(separator: ",") + "]"
        case .object(let members):
            "{"
                + members.map { Self.quoted($0.key) + ":" + $0.value.description }
                .joined(separator: ",") + "}"
        }
    }

    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\u{0}"..<" ":
                let digits = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}

extension JSON {
    package struct Malformed: Error { package let offset: Int }

    /// Reads exactly one value (RFC 8259).
    package init(parsing bytes: [UInt8]) throws(Malformed) {
        var parser = Parser(bytes: bytes)
        self = try parser.value()
        parser.skipSpace()
        guard parser.offset == bytes.count else { throw Malformed(offset: parser.offset) }
    }

    private struct Parser {
        let bytes: [UInt8]
        var offset = 0

        var next: UInt8? { self.offset < self.bytes.count ? self.bytes[self.offset] : nil }

        mutating func skipSpace() {
            while let byte = self.next, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { self.offset += 1 }
        }

        mutating func take(_ text: String) throws(Malformed) {
            for byte in text.utf8 {
                guard self.next == byte else { throw Malformed(offset: self.offset) }
                self.offset += 1
            }
        }

        mutating func value() throws(Malformed) -> JSON {
            self.skipSpace()
            switch self.next {
            case UInt8(ascii: "n"):
                try self.take("null")
                return .null
            case UInt8(ascii: "t"):
                try self.take("true")
                return .bool(true)
            case UInt8(ascii: "f"):
                try self.take("false")
                return .bool(false)
            case UInt8(ascii: "\""): return .string(try self.string())
            case UInt8(ascii: "["):
                var elements: [JSON] = []
                try self.list(from: "[", to: "]") { (parser: inout Parser) throws(Malformed) in
                    elements.append(try parser.value())
                }
                return .array(elements)
            case UInt8(ascii: "{"):
                var members: [Member] = []
                try self.list(from: "{", to: "}") { (parser: inout Parser) throws(Malformed) in
                    parser.skipSpace()
                    let key = try parser.string()
                    parser.skipSpace()
                    try parser.take(":")
                    members.append(Member(key: key, value: try parser.value()))
                }
                return .object(members)
            default: return .number(try self.number())
            }
        }

        mutating func list(
            from open: String, to close: String,
            _ element: (inout Parser) throws(Malformed) -> Void
        ) throws(Malformed) {
            try self.take(open)
            self.skipSpace()
            if self.next == close.utf8.first { return try self.take(close) }
            while true {
                try element(&self)
                self.skipSpace()
                if self.next == UInt8(ascii: ",") {
                    self.offset += 1
                } else {
                    return try self.take(close)
                }
            }
        }

        mutating func number() throws(Malformed) -> String {
            let start = self.offset
            while let byte = self.next, "+-.0123456789eE".utf8.contains(byte) { self.offset += 1 }
            let text = String(decoding: self.bytes[start..<self.offset], as: UTF8.self)
            guard Double(text) != nil else { throw Malformed(offset: start) }
            return text
        }

        mutating func string() throws(Malformed) -> String {
            try self.take("\"")
            var units: [UInt16] = []
            var run: [UInt8] = []
            func flush(_ run: inout [UInt8], _ units: inout [UInt16]) {
                units += String(decoding: run, as: UTF8.self).utf16
                run = []
            }
            while let byte = self.next {
                self.offset += 1
                switch byte {
                case UInt8(ascii: "\""):
                    flush(&run, &units)
                    return String(decoding: units, as: UTF16.self)
                case UInt8(ascii: "\\"):
                    flush(&run, &units)
                    units.append(try self.escape())
                case 0..<0x20: throw Malformed(offset: self.offset)
                default: run.append(byte)
                }
            }
            throw Malformed(offset: self.offset)
        }

        mutating func escape() throws(Malformed) -> UInt16 {
            guard let byte = self.next else { throw Malformed(offset: self.offset) }
            self.offset += 1
            switch byte {
            case UInt8(ascii: "n"): return 0x0A
            case UInt8(ascii: "t"): return 0x09
            case UInt8(ascii: "r"): return 0x0D
            case UInt8(ascii: "b"): return 0x08
            case UInt8(ascii: "f"): return 0x0C
            case UInt8(ascii: "u"):
                guard self.offset + 4 <= self.bytes.count,
                    let unit = UInt16(
                        String(
                            decoding: self.bytes[self.offset..<self.offset + 4], as: UTF8.self),
                        radix: 16)
                else { throw Malformed(offset: self.offset) }
                self.offset += 4
                return unit
            default: return UInt16(byte)
            }
        }
    }
}
