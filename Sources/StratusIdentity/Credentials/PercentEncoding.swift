import StratusModel

/// Percent-encoding (RFC 3986 §2.1), read the way servers must: once, and never failing silently.
package enum PercentEncoding {
    /// Nil where a `%` is not followed by two hexadecimal digits, or the bytes are no UTF-8.
    package static func decode(_ text: Substring) -> String? {
        guard text.utf8.contains(UInt8(ascii: "%")) else { return String(text) }
        return Self.decode(Bytes(text.utf8)[...])
    }

    package static func decode(_ encoded: ArraySlice<UInt8>) -> String? {
        guard encoded.contains(UInt8(ascii: "%")) else {
            return String(validating: encoded, as: UTF8.self)
        }
        var bytes: Bytes = []
        bytes.reserveCapacity(encoded.count)
        var position = encoded.startIndex
        while position < encoded.endIndex {
            let byte = encoded[position]
            position += 1
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard position + 1 < encoded.endIndex, let high = Self.digit(encoded[position]),
                let low = Self.digit(encoded[position + 1])
            else { return nil }
            bytes.append(high << 4 | low)
            position += 2
        }
        return String(validating: bytes, as: UTF8.self)
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
