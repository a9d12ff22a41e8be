import CShims
import StratusModel
import Testing

/// CRC-32C, which checks everything on disk: every implementation gives the result of the standard.
@Suite struct ChecksumTests {
    /// Bit by bit, as RFC 3720 says it.
    private static func plain(_ crc: UInt32, _ bytes: some Sequence<UInt8>) -> UInt32 {
        var crc = ~crc
        for byte in bytes {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = (crc >> 1) ^ (crc & 1 == 1 ? 0x82F6_3B78 : 0) }
        }
        return ~crc
    }

    @Test func `CRC-32C of the standard's examples`() {
        let examples: [(Bytes, UInt32)] = [
            (Bytes("123456789".utf8), 0xE306_9283),
            (Bytes(repeating: 0, count: 32), 0x8A91_36AA),
            (Bytes(repeating: 0xFF, count: 32), 0x62A8_AB43),
        ]
        for (bytes, crc) in examples {
            #expect(bytes.withUnsafeBytes { stratus_crc32c(0, $0.baseAddress, $0.count) } == crc)
        }
    }

    /// Long pieces are read as three strips at a time.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `CRC-32C is the same however many strips a piece has, and goes on from any other`(
        seed: UInt64
    ) {
        var random = SeededGenerator(seed: seed)
        let bytes = (0..<5_000).map { _ in UInt8.random(in: 0...255, using: &random) }
        let near = (0...5).flatMap { strips in ((1_008 * strips)...(1_008 * strips + 17)) }
        for length in near where length < 4_900 {
            for count in [length, max(0, length - 9)] {
                let start = Int.random(in: 0..<64, using: &random)
                let before = UInt32.random(in: 0 ... .max, using: &random)
                let part = bytes[start..<(start + count)]
                let crc = part.withUnsafeBytes { stratus_crc32c(before, $0.baseAddress, $0.count) }
                #expect(crc == Self.plain(before, part), "seed \(seed), \(count) bytes")
            }
        }
    }
}
