import StratusModel

/// Percent-encoding (RFC 3986 §2.1). Decoding happens once; what does not decode is not guessed at.
package enum PercentCoding {
    /// - Returns: nil for `%` without two hexadecimal digits, and for what is not UTF-8 afterwards.
    package static func decode(_ encoded: Span<UInt8>, plusIsSpace: Bool = false) -> String? {
        var position = 0
        while position < encoded.count, encoded[position] != UInt8(ascii: "%"),
            !plusIsSpace || encoded[position] != UInt8(ascii: "+")
        { position += 1 }
        if position == encoded.count { return String(utf8: encoded) }
        var bytes: Bytes = []
        bytes.reserveCapacity(encoded.count)
        for position in 0..<position { bytes.append(encoded[position]) }
        while position < encoded.count {
            let byte = encoded[position]
            position += 1
            switch byte {
            case UInt8(ascii: "%"):
                guard position + 1 < encoded.count, let high = ASCII.hexValue(encoded[position]),
                    let low = ASCII.hexValue(encoded[position + 1])
                else { return nil }
                bytes.append(high << 4 | low)
                position += 2
            case UInt8(ascii: "+") where plusIsSpace: bytes.append(UInt8(ascii: " "))
            default: bytes.append(byte)
            }
        }
        return String(utf8: bytes.span)
    }

    package static func decode(_ encoded: some Collection<UInt8>) -> String? {
        Self.decode(Bytes(encoded).span)
    }

    package static func decode(_ encoded: ArraySlice<UInt8>) -> String? {
        Self.decode(encoded.span)
    }

    package static func decode(_ text: String, plusIsSpace: Bool = false) -> String? {
        Self.decode(text.utf8Span.span, plusIsSpace: plusIsSpace)
    }

    /// Everything but letters, digits and `-._~` is encoded: right for a path segment, a query's
    /// name or value, and everywhere else.
    package static func encode(_ text: String) -> String {
        var bytes = Bytes()
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: bytes.append(byte)
            default:
                bytes.append(0x25)
                bytes.append(ASCII.hexDigit(byte >> 4))
                bytes.append(ASCII.hexDigit(byte))
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
