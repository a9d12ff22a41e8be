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
        if headers.isWritten { return bytes.append(copying: headers.text.span) }
        for field in headers.fields where !Self.isOurs(headers.text.span, field) {
            Self.append(headers, field, into: &bytes)
        }
    }

    /// Whether a field of an answer goes out as it stands.
    static func isWritten(_ text: Span<UInt8>, _ field: HeaderFields.Field) -> Bool {
        Self.isToken(text.extracting(field.name)) && field.nameCount > 0
            && Self.isPrintable(text.extracting(field.value)) && !Self.isOurs(text, field)
    }

    /// One line. A name that is not a token is a bug: names are chosen by code, not by clients.
    static func append(
        _ headers: HeaderFields, _ field: HeaderFields.Field, into bytes: inout Bytes
    ) {
        let name = headers.text.span.extracting(field.name)
        precondition(
            !name.isEmpty && Self.isToken(name),
            "not a header's name: \(headers.string(field.name))")
        bytes.append(copying: name)
        Self.append(": ", into: &bytes)
        let value = headers.text.span.extracting(field.value)
        if Self.isPrintable(value) {
            bytes.append(copying: value)
        } else {
            for place in value.indices {
                let byte = value[place]
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

    private static func isToken(_ name: Span<UInt8>) -> Bool {
        for place in name.indices where !HTTPCharacters.token.contains(name[place]) {
            return false
        }
        return true
    }

    /// Whether every byte is printable ASCII.
    private static func isPrintable(_ value: Span<UInt8>) -> Bool {
        let bytes = unsafe value.bytes
        var place = 0
        while place + 8 <= value.count {
            let word = bytes.word(at: place)
            if WordScan.below(word, 0x20) | WordScan.equal(word, 0x7F) | (word & WordScan.highs)
                != 0
            {
                return false
            }
            place += 8
        }
        while place < value.count {
            if value[place] < 0x20 || value[place] >= 0x7F { return false }
            place += 1
        }
        return true
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
    private static func isOurs(_ text: Span<UInt8>, _ field: HeaderFields.Field) -> Bool {
        switch field.nameCount {
        case 10: HTTPMessageFraming.isNamed(text, field, "connection")
        case 14: HTTPMessageFraming.isNamed(text, field, "content-length")
        case 17: HTTPMessageFraming.isNamed(text, field, "transfer-encoding")
        default: false
        }
    }
}
