package import StratusModel

/// The form of a log line: text for a person at a terminal, or one JSON object.
///
/// Text from a client stays one line of plain text in any field: control characters are escaped,
/// and so are the invisible ones that reverse text. A long value is cut and says so.
package enum LogFormat: Sendable, Equatable {
    case terminal(colour: Bool)
    case json

    /// A field's longest value. A line has few fields, so a line is bounded too.
    package static let valueLengthMax = 2_048

    /// Appends one line, its newline included.
    package func write(_ record: LogRecord, into bytes: inout Bytes) {
        switch self {
        case .terminal(let colour): Self.writeTerminal(record, colour: colour, into: &bytes)
        case .json: Self.writeJSON(record, into: &bytes)
        }
    }

    private static func writeTerminal(_ record: LogRecord, colour: Bool, into bytes: inout Bytes) {
        let start = bytes.count
        WallTime.append(record.wallMilliseconds, to: &bytes)
        // Without the date.
        bytes.removeSubrange(start..<start + 11)
        bytes.append(0x20)
        if colour { bytes += Self.colour(of: record.level).utf8 }
        bytes += record.level.name.utf8
        if colour { bytes += "\u{1B}[0m".utf8 }
        for _ in record.level.name.utf8.count..<8 { bytes.append(0x20) }
        Self.append(record.text, into: &bytes)
        for field in record.fields.all {
            bytes.append(0x20)
            if colour { bytes += "\u{1B}[2m".utf8 }
            Self.append(field.name, into: &bytes)
            bytes.append(UInt8(ascii: "="))
            if colour { bytes += "\u{1B}[0m".utf8 }
            switch field.value {
            case .text(let text):
                let plain = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x22 }
                if plain, !text.isEmpty, text.utf8.count <= Self.valueLengthMax {
                    Self.append(text, into: &bytes)
                } else {
                    Self.appendQuoted(text, into: &bytes)
                }
            case .duration(let duration):
                Self.append(duration, into: &bytes)
                bytes += "ms".utf8
            default: Self.appendScalar(field.value, into: &bytes)
            }
        }
        bytes.append(0x0A)
    }

    private static func colour(of level: LogLevel) -> String {
        switch level {
        case .debug: "\u{1B}[2m"
        case .info: "\u{1B}[32m"
        case .warning: "\u{1B}[33m"
        case .error: "\u{1B}[31;1m"
        }
    }

    private static func writeJSON(_ record: LogRecord, into bytes: inout Bytes) {
        let constant: (StaticString, inout Bytes) -> Void = Self.append
        constant("{\"time\":\"", &bytes)
        WallTime.append(record.wallMilliseconds, to: &bytes)
        constant("\",\"level\":\"", &bytes)
        Self.append(record.level.name, into: &bytes)
        constant("\",\"text\":\"", &bytes)
        Self.append(record.text, into: &bytes)
        bytes.append(0x22)
        Self.appendMembers(record.fields, into: &bytes)
        constant("}\n", &bytes)
    }

    /// The members of an object that is begun, each with the comma before it.
    static func appendMembers(_ fields: LogFields, into bytes: inout Bytes) {
        for field in fields.all {
            Self.append(",\"", into: &bytes)
            Self.append(field.name, into: &bytes)
            Self.append("\":", into: &bytes)
            switch field.value {
            case .text(let text): Self.appendQuoted(text, into: &bytes)
            case .duration(let duration): Self.append(duration, into: &bytes)
            default: Self.appendScalar(field.value, into: &bytes)
            }
        }
    }

    private static func appendScalar(_ value: LogValue, into bytes: inout Bytes) {
        switch value {
        case .integer(let number): Self.append(number, into: &bytes)
        // JSON has no word for these, and a line that does not parse is lost.
        case .double(let number): bytes += (number.isFinite ? "\(number)" : "\"\(number)\"").utf8
        case .bool(let flag): bytes += (flag ? "true" : "false").utf8
        case .text, .duration: preconditionFailure("written by the caller")
        }
    }

    /// Milliseconds with three digits after the point at most, and one at least.
    static func append(_ duration: Duration, into bytes: inout Bytes) {
        let microseconds = (Double(duration.clampedNanoseconds) / 1_000).rounded()
        guard microseconds >= 0, microseconds < 1e15 else {
            bytes += "\(microseconds / 1_000)".utf8
            return
        }
        let whole = Int64(microseconds)
        Self.append(whole / 1_000, into: &bytes)
        bytes.append(UInt8(ascii: "."))
        var rest = whole % 1_000
        var unit: Int64 = 100
        repeat {
            bytes.append(0x30 + UInt8(rest / unit))
            rest %= unit
            unit /= 10
        } while rest > 0
    }

    static func append(_ number: Int64, into bytes: inout Bytes) {
        if number < 0 { bytes.append(UInt8(ascii: "-")) }
        var rest = number.magnitude
        // Filled from its end.
        var digits = InlineArray<20, UInt8>(repeating: 0)
        var start = 20
        repeat {
            start -= 1
            let quotient = rest / 10
            digits[start] = 0x30 + UInt8(truncatingIfNeeded: rest - quotient * 10)
            rest = quotient
        } while rest > 0
        let span = digits.span.extracting(start..<20)
        unsafe span.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
    }

    /// In one piece: bytes appended one by one cost several times as much.
    static func append(_ text: String, into bytes: inout Bytes) {
        let span = text.utf8Span.span
        unsafe span.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
    }

    static func append(_ text: StaticString, into bytes: inout Bytes) {
        text.withUTF8Buffer { bytes.append(contentsOf: $0) }
    }

    /// Whether no byte needs an escape, or belongs to a letter that might.
    private static func isPlain(_ text: Span<UInt8>) -> Bool {
        for place in text.indices {
            let byte = text[place]
            guard byte >= 0x20, byte < 0x7F, byte != 0x22, byte != 0x5C else { return false }
        }
        return true
    }

    /// A JSON string: also what the terminal shows where a value is not plain.
    static func appendQuoted(_ text: String, into bytes: inout Bytes) {
        // Nearly every value: nothing in it to look at twice.
        let span = text.utf8Span.span
        if span.count <= Self.valueLengthMax, Self.isPlain(span) {
            bytes.append(0x22)
            unsafe span.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
            bytes.append(0x22)
            return
        }
        bytes.append(0x22)
        var count = 0
        for scalar in text.unicodeScalars {
            count += UTF8.width(scalar)
            if count > Self.valueLengthMax {
                bytes += "… (\(text.utf8.count) bytes)".utf8
                break
            }
            switch scalar.value {
            case 0x22: bytes += "\\\"".utf8
            case 0x5C: bytes += "\\\\".utf8
            case 0x0A: bytes += "\\n".utf8
            case 0x0D: bytes += "\\r".utf8
            case 0x09: bytes += "\\t".utf8
            case 0..<0x20, 0x7F..<0xA0, 0x200B...0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF:
                let digits = String(scalar.value, radix: 16)
                bytes += "\\u".utf8
                bytes += String(repeating: "0", count: 4 - digits.utf8.count).utf8
                bytes += digits.utf8
            default: bytes += scalar.utf8
            }
        }
        bytes.append(0x22)
    }
}
