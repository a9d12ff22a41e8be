import StratusModel
import StratusSealing
import Testing

@Suite struct UnitCipherTests {
    static func seal(_ plain: Bytes, _ cipher: UnitCipher, at offset: UInt64) -> Bytes {
        var bytes = plain
        bytes.withUnsafeMutableBytes { cipher.seal($0, at: offset) }
        return bytes
    }

    static func open(_ sealed: Bytes, _ cipher: UnitCipher, at offset: UInt64) -> Bytes {
        var bytes = sealed
        bytes.withUnsafeMutableBytes { cipher.open($0, at: offset) }
        return bytes
    }

    @Test func `AES-256-XTS gives what IEEE 1619 says`() throws {
        let lines = try Vectors.lines("aes-256-xts.txt")
        #expect(lines.count == 5)
        for line in lines {
            let unit = try #require(UInt64(line[1]))
            let plain = Vectors.bytes(line[3])
            let sealed = Vectors.bytes(line[4])
            let cipher = UnitCipher(key: SecretBytes(copying: Vectors.bytes(line[2])))
            let offset = unit * UInt64(UnitCipher.unitSize)
            #expect(Self.seal(plain, cipher, at: offset) == sealed, "vector \(line[0])")
            #expect(Self.open(sealed, cipher, at: offset) == plain, "vector \(line[0])")
        }
    }

    @Test func `any whole blocks of a text seal and open apart from the rest`() {
        let cipher = UnitCipher(key: SecretBytes(copying: Bytes((0..<64).map { UInt8($0) })))
        let plain = Bytes((0..<12_288).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) })
        let sealed = Self.seal(plain, cipher, at: 8_192)
        for (first, count) in [(0, 1), (1, 1), (255, 1), (255, 2), (256, 256), (3, 700), (767, 1)] {
            let range = (first * 16)..<((first + count) * 16)
            let offset = 8_192 + UInt64(range.lowerBound)
            #expect(Self.seal(Bytes(plain[range]), cipher, at: offset) == Bytes(sealed[range]))
            #expect(Self.open(Bytes(sealed[range]), cipher, at: offset) == Bytes(plain[range]))
        }
    }

    @Test func `equal blocks at different places look different`() {
        let cipher = UnitCipher(key: SecretBytes(copying: Bytes((0..<64).map { UInt8($0) })))
        let sealed = Self.seal(Bytes(repeating: 7, count: 3 * 4_096), cipher, at: 0)
        let blocks = stride(from: 0, to: sealed.count, by: 16).map { Bytes(sealed[$0..<($0 + 16)]) }
        #expect(Set(blocks).count == blocks.count)
    }
}
