import StratusModel

/// Percent-encoding (RFC 3986 §2.1). Decoding happens once; what does not decode is not guessed at.
package enum PercentCoding {
    /// - Returns: nil for `%` without two hexadecimal digits, and for what is not UTF-8 afterwards.
    package static func decode(_ text: some Collection<UInt8>, plusIsSpace: Bool = false) -> String?
    {
        var bytes = Bytes()
        bytes.reserveCapacity(text.count)
        var rest = text.makeIterator()
        while let byte = rest.next() {
            switch byte {
            case 0x25:
                guard let high = rest.next().flatMap(ASCII.hexValue),
                    let low = rest.next().flatMap(ASCII.hexValue)
                else { return nil }
                bytes.append(high << 4 | low)
            case 0x2B where plusIsSpace: bytes.append(0x20)
            default: bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }

    package static func decode(_ text: String, plusIsSpace: Bool = false) -> String? {
        Self.decode(text.utf8, plusIsSpace: plusIsSpace)
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
