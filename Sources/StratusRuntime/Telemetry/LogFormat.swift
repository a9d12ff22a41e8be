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
        let stamp = WallTime.text(record.wallMilliseconds)
        bytes += stamp.utf8.dropFirst(11)
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
                    bytes += text.utf8
                } else {
                    Self.appendQuoted(text, into: &bytes)
                }
            case .duration(let duration):
                bytes += "\(Self.milliseconds(duration))ms".utf8
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
        bytes += "{\"time\":\"".utf8
        bytes += WallTime.text(record.wallMilliseconds).utf8
        bytes += "\",\"level\":\"".utf8
        bytes += record.level.name.utf8
        bytes += "\",\"text\":\"".utf8
        Self.append(record.text, into: &bytes)
        bytes.append(0x22)
        for field in record.fields.all {
            bytes += ",\"".utf8
            Self.append(field.name, into: &bytes)
            bytes += "\":".utf8
            switch field.value {
            case .text(let text): Self.appendQuoted(text, into: &bytes)
            case .duration(let duration): bytes += "\(Self.milliseconds(duration))".utf8
            default: Self.appendScalar(field.value, into: &bytes)
            }
        }
        bytes += "}\n".utf8
    }

    private static func appendScalar(_ value: LogValue, into bytes: inout Bytes) {
        switch value {
        case .integer(let number): bytes += "\(number)".utf8
        // JSON has no word for these, and a line that does not parse is lost.
        case .double(let number): bytes += (number.isFinite ? "\(number)" : "\"\(number)\"").utf8
        case .bool(let flag): bytes += (flag ? "true" : "false").utf8
        case .text, .duration: preconditionFailure("written by the caller")
        }
    }

    /// Milliseconds with three digits after the point.
    private static func milliseconds(_ duration: Duration) -> Double {
        (Double(duration.clampedNanoseconds) / 1_000).rounded() / 1_000
    }

    private static func append(_ text: StaticString, into bytes: inout Bytes) {
        text.withUTF8Buffer { bytes.append(contentsOf: $0) }
    }

    /// A JSON string: also what the terminal shows where a value is not plain.
    private static func appendQuoted(_ text: String, into bytes: inout Bytes) {
        // Nearly every value: nothing in it to look at twice.
        let utf8 = text.utf8
        if utf8.count <= Self.valueLengthMax,
            utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C })
        {
            bytes.append(0x22)
            bytes += utf8
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
