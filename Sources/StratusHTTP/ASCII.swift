/// The few questions about ASCII that JSON, HTTP and URLs share.
package enum ASCII {
    @inline(__always)
    package static func hexValue(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte &- 0x30
        case 0x41...0x46: byte &- 0x37
        case 0x61...0x66: byte &- 0x57
        default: nil
        }
    }

    @inline(__always)
    package static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

    @inline(__always)
    package static func lowered(_ byte: UInt8) -> UInt8 {
        byte &- 0x41 < 26 ? byte | 0x20 : byte
    }

    /// `0`–`9`, `A`–`F`.
    package static func hexDigit(_ value: UInt8) -> UInt8 {
        let low = value & 15
        return low < 10 ? 0x30 + low : 0x37 + low
    }

    /// Equal but for the case of letters.
    package static func equalIgnoringCase(_ one: String, _ other: String) -> Bool {
        let one = one.utf8
        let other = other.utf8
        return one.count == other.count
            && zip(one, other).allSatisfy { Self.lowered($0) == Self.lowered($1) }
    }
}
