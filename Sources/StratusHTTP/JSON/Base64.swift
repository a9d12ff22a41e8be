package import StratusModel

/// Standard base64 (RFC 4648 §4): padded, and strict when read.
package enum Base64 {
    private static let alphabet = Bytes(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// 64 where a byte is not in the alphabet.
    private static let values: Bytes = {
        var values = Bytes(repeating: 64, count: 256)
        for (value, byte) in Self.alphabet.enumerated() { values[Int(byte)] = UInt8(value) }
        return values
    }()

    package static func encode(_ bytes: Bytes) -> String {
        let count = (bytes.count + 2) / 3 * 4
        return unsafe String(unsafeUninitializedCapacity: count) { text in
            var at = 0
            Self.encode(bytes.span) { word in
                // Four characters of the room for all of them.
                for place in 0..<4 {
                    unsafe text[at + place] = UInt8(
                        truncatingIfNeeded: word >> UInt64(8 * place))
                }
                at += 4
            }
            return at
        }
    }

    package static func encode(_ bytes: Span<UInt8>, into text: inout Bytes) {
        text.reserveCapacity(text.count + (bytes.count + 2) / 3 * 4)
        Self.encode(bytes) { word in
            for shift in stride(from: 0 as UInt32, to: 32, by: 8) {
                text.append(UInt8(truncatingIfNeeded: word >> UInt64(shift)))
            }
        }
    }

    /// Hands on four characters at a time, the first in the lowest byte.
    @inline(__always)
    static func encode(_ bytes: Span<UInt8>, _ emit: (UInt64) -> Void) {
        let letters = Self.alphabet
        let alphabet = letters.span
        @inline(__always)
        func letter(_ value: Int, _ place: UInt64) -> UInt64 {
            UInt64(alphabet[value & 63]) << (8 * place)
        }
        var at = 0
        while at + 3 <= bytes.count {
            let group = Int(bytes[at]) << 16 | Int(bytes[at + 1]) << 8 | Int(bytes[at + 2])
            emit(
                letter(group >> 18, 0) | letter(group >> 12, 1) | letter(group >> 6, 2)
                    | letter(group, 3))
            at += 3
        }
        switch bytes.count - at {
        case 1:
            let group = Int(bytes[at]) << 4
            emit(letter(group >> 6, 0) | letter(group, 1) | 0x3D3D_0000)
        case 2:
            let group = (Int(bytes[at]) << 8 | Int(bytes[at + 1])) << 2
            emit(letter(group >> 12, 0) | letter(group >> 6, 1) | letter(group, 2) | 0x3D00_0000)
        default: break
        }
    }

    package static func decode(_ text: String) -> Bytes? { Self.decode(text.utf8Span.span) }

    /// Nil unless this is exactly what ``encode(_:)`` writes for some bytes: no white space, no
    /// missing padding, no stray bits in the last character.
    package static func decode(_ text: Span<UInt8>) -> Bytes? {
        guard text.count % 4 == 0 else { return nil }
        guard text.count > 0 else { return [] }
        var paddingCount = 0
        if text[text.count - 1] == 0x3D { paddingCount = text[text.count - 2] == 0x3D ? 2 : 1 }
        var bytes = Bytes()
        bytes.reserveCapacity(text.count / 4 * 3)
        let values = Self.values.span
        let end = paddingCount == 0 ? text.count : text.count - 4
        var at = 0
        while at < end {
            let one = values[Int(text[at])]
            let two = values[Int(text[at + 1])]
            let three = values[Int(text[at + 2])]
            let four = values[Int(text[at + 3])]
            guard (one | two | three | four) < 64 else { return nil }
            bytes.append(one << 2 | two >> 4)
            bytes.append(two << 4 | three >> 2)
            bytes.append(three << 6 | four)
            at += 4
        }
        guard paddingCount > 0 else { return bytes }
        let one = values[Int(text[at])]
        let two = values[Int(text[at + 1])]
        guard (one | two) < 64 else { return nil }
        bytes.append(one << 2 | two >> 4)
        if paddingCount == 2 { return two & 15 == 0 ? bytes : nil }
        let three = values[Int(text[at + 2])]
        guard three < 64, three & 3 == 0 else { return nil }
        bytes.append(two << 4 | three >> 2)
        return bytes
    }
}
