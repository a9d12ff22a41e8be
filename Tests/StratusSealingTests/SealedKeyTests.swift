import StratusCoding
import StratusModel
import StratusSealing
import Testing

@Suite struct SealedKeyTests {
    static let above = SecretBytes(copying: Bytes(repeating: 1, count: 32))
    static let key = SecretBytes(copying: Bytes(0..<32))
    static let nonce = Bytes(repeating: 9, count: 12)
    static let purpose = Bytes("a container".utf8)

    static let wrapped = SealedKey(
        key, under: above, version: 3, for: purpose, nonce: nonce)

    @Test func `a key comes back under the key that wrapped it, for the same purpose`() throws {
        let read = try SealedKey(decoding: Self.wrapped.encoded)
        #expect(read == Self.wrapped)
        #expect(read.version == 3)
        #expect(Self.wrapped.encoded.count == SealedKey.encodedSize)
        #expect(try read.open(under: Self.above, for: Self.purpose).isEqual(to: Self.key))
        #expect(throws: SealedKey.Problem.damaged) {
            try read.open(under: Self.above, for: Bytes("another".utf8))
        }
    }

    @Test func `A-13 another key above is told from a damaged row`() throws {
        let other = SecretBytes(copying: Bytes(repeating: 2, count: 32))
        #expect(throws: SealedKey.Problem.otherKey) {
            try Self.wrapped.open(under: other, for: Self.purpose)
        }
        // The version, the nonce, the text and the tag are all authenticated.
        for position in [0, 12, 24, 60, 71] {
            var bytes = Self.wrapped.encoded
            bytes[position] ^= 1
            let altered = try SealedKey(decoding: bytes)
            #expect(throws: SealedKey.Problem.damaged) {
                try altered.open(under: Self.above, for: Self.purpose)
            }
        }
        #expect(throws: (any Error).self) {
            try SealedKey(decoding: Self.wrapped.encoded.dropLast())
        }
        #expect(throws: (any Error).self) { try SealedKey(decoding: Self.wrapped.encoded + [0]) }
    }

    /// Computed by a program in another language from the byte table.
    @Test func `a wrapped key of version 1 is written as ever`() {
        let text = Self.wrapped.encoded.map { byte in
            let digits = String(byte, radix: 16)
            return byte < 16 ? "0" + digits : digits
        }.joined()
        #expect(text == Self.golden)
    }

    static let golden =
        "030000009f810f6058c100e2090909090909090909090909cf6a5dcdfbbb50d64c914b01f33b84735b9a036e54bc"
        + "ed17ddee9336854d08282c98b4b9a921f03e41cb784a5b032b34"
}
