import StratusModel

/// Percent-encoding (RFC 3986 §2.1), read the way servers must: once, and never failing silently.
package enum PercentEncoding {
    /// Nil where a `%` is not followed by two hexadecimal digits, or the bytes are no UTF-8.
    package static func decode(_ text: Substring) -> String? {
        guard text.utf8.contains(UInt8(ascii: "%")) else { return String(text) }
        return Self.decode(Bytes(text.utf8)[...])
    }

    package static func decode(_ encoded: ArraySlice<UInt8>) -> String? {
        Self.decode(encoded.span)
    }

    package static func decode(_ encoded: Span<UInt8>) -> String? {
        var position = 0
        while position < encoded.count, encoded[position] != UInt8(ascii: "%") { position += 1 }
        if position == encoded.count { return String(utf8: encoded) }
        var bytes: Bytes = []
        bytes.reserveCapacity(encoded.count)
        for position in 0..<position { bytes.append(encoded[position]) }
        while position < encoded.count {
            let byte = encoded[position]
            position += 1
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard position + 1 < encoded.count, let high = Self.digit(encoded[position]),
                let low = Self.digit(encoded[position + 1])
            else { return nil }
            bytes.append(high << 4 | low)
            position += 2
        }
        return String(utf8: bytes.span)
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
