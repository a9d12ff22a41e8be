import StratusModel

/// Puts the lines of a head together. Nothing that is written through here can end a line early:
/// what HTTP does not allow in a value goes out percent-encoded.
enum HTTPResponseHead {
    static func begin(_ status: Int, into bytes: inout Bytes) {
        Self.append("HTTP/1.1 ", into: &bytes)
        bytes.append(0x30 + UInt8(status / 100))
        bytes.append(0x30 + UInt8(status / 10 % 10))
        bytes.append(0x30 + UInt8(status % 10))
        bytes.append(0x20)
        Self.append(HTTPStatus.phrase(status), into: &bytes)
        Self.append("\r\n", into: &bytes)
    }

    static func append(_ headers: HeaderFields, into bytes: inout Bytes) {
        for field in headers.fields where !Self.isOurs(headers, field) {
            Self.append(headers, field, into: &bytes)
        }
    }

    /// One line. A name that is not a token is a bug: names are chosen by code, not by clients.
    static func append(
        _ headers: HeaderFields, _ field: HeaderFields.Field, into bytes: inout Bytes
    ) {
        let name = headers.text[field.name]
        precondition(
            !name.isEmpty && name.allSatisfy(HTTPCharacters.token.contains),
            "not a header's name: \(headers.string(field.name))")
        bytes.append(contentsOf: name)
        Self.append(": ", into: &bytes)
        let value = headers.text[field.value]
        if value.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) {
            bytes.append(contentsOf: value)
        } else {
            for byte in value {
                if byte >= 0x20 && byte < 0x7F || byte == 0x09 {
                    bytes.append(byte)
                } else {
                    bytes.append(0x25)
                    bytes.append(ASCII.hexDigit(byte >> 4))
                    bytes.append(ASCII.hexDigit(byte))
                }
            }
        }
        Self.append("\r\n", into: &bytes)
    }

    static func append(_ name: StaticString, _ value: Int, into bytes: inout Bytes) {
        Self.append(name, into: &bytes)
        Self.append(": ", into: &bytes)
        bytes.append(decimal: Int64(value))
        Self.append("\r\n", into: &bytes)
    }

    static func append(_ text: StaticString, into bytes: inout Bytes) {
        bytes.append(literal: text)
    }

    static func append(hexadecimal value: Int, into bytes: inout Bytes) {
        var shift = max(0, (Int.bitWidth - 1 - value.leadingZeroBitCount) / 4 * 4)
        while shift >= 0 {
            bytes.append(ASCII.hexDigit(UInt8(truncatingIfNeeded: value >> shift)))
            shift -= 4
        }
    }

    /// Framing is decided by the connection, never by a handler.
    private static func isOurs(_ headers: HeaderFields, _ field: HeaderFields.Field) -> Bool {
        switch field.nameCount {
        case 10: HTTPMessageFraming.isNamed(headers, field, "connection")
        case 14: HTTPMessageFraming.isNamed(headers, field, "content-length")
        case 17: HTTPMessageFraming.isNamed(headers, field, "transfer-encoding")
        default: false
        }
    }
}
