/// The GUID in the link of a share: 16 drawn bytes, and 17 bytes under a mask that say where the
/// share is. Whoever has the mask's key opens it; a partition looks for the whole of it.
///
/// Clients see 45 letters. Each link has exactly one text.
package struct ShareLink: Sendable, Hashable {
    package static let letterCount = 45
    package static let byteCount = 33

    package var drawn: UInt128
    /// The part of the owner's database, under the mask.
    package var part: UInt8
    /// The 16 bytes of the owner's record name, under the mask.
    package var owner: UInt128

    package init(drawn: UInt128, part: UInt8, owner: UInt128) {
        self.drawn = drawn
        self.part = part
        self.owner = owner
    }

    /// The 33 bytes.
    package var bytes: Bytes {
        var bytes = Bytes()
        bytes.reserveCapacity(Self.byteCount)
        Self.append(self.drawn, to: &bytes)
        bytes.append(self.part)
        Self.append(self.owner, to: &bytes)
        return bytes
    }

    package init?(bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount else { return nil }
        func number(_ bytes: some Sequence<UInt8>) -> UInt128 {
            bytes.reduce(0) { $0 << 8 | UInt128($1) }
        }
        let rest = bytes.dropFirst(16)
        self.drawn = number(bytes.prefix(16))
        self.part = rest.first ?? 0
        self.owner = number(rest.dropFirst())
    }

    private static func append(_ number: UInt128, to bytes: inout Bytes) {
        for shift in stride(from: 120, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: number >> UInt128(shift)))
        }
    }
}

// The text is the 33 bytes as one number, in base 62 with the digits 0-9, A-Z, a-z.

extension ShareLink {
    private static let digits = Bytes(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)

    package var text: String {
        var rest = self.bytes
        var letters = Bytes(repeating: Self.digits[0], count: Self.letterCount)
        for place in letters.indices.reversed() {
            var remainder = 0
            for index in rest.indices {
                let value = remainder << 8 | Int(rest[index])
                rest[index] = UInt8(value / 62)
                remainder = value % 62
            }
            letters[place] = Self.digits[remainder]
        }
        return String(decoding: letters, as: UTF8.self)
    }

    /// Nil for text that is of no link.
    package init?(text: String) {
        let letters = text.utf8
        guard letters.count == Self.letterCount else { return nil }
        var bytes = Bytes(repeating: 0, count: Self.byteCount)
        for letter in letters {
            guard let digit = Self.digit(letter) else { return nil }
            var carry = digit
            for index in bytes.indices.reversed() {
                let value = Int(bytes[index]) * 62 + carry
                bytes[index] = UInt8(truncatingIfNeeded: value)
                carry = value >> 8
            }
            // More than 33 bytes hold.
            if carry != 0 { return nil }
        }
        self.init(bytes: bytes)
    }

    private static func digit(_ letter: UInt8) -> Int? {
        switch letter {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(letter - UInt8(ascii: "0"))
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): Int(letter - UInt8(ascii: "A")) + 10
        case UInt8(ascii: "a")...UInt8(ascii: "z"): Int(letter - UInt8(ascii: "a")) + 36
        default: nil
        }
    }
}
