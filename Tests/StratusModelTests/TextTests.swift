import StratusModel
import Testing

@Suite struct TextTests {
    /// Agrees with the standard library's decoder of any sequence, for bytes that are often nearly
    /// UTF-8.
    @Test(arguments: 0..<20 as Range<UInt64>)
    func `text is made of exactly the bytes that are UTF-8`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let parts: [Bytes] = [
            Bytes("a".utf8), Bytes("plain ASCII, sixteen".utf8), Bytes("é".utf8), Bytes("漢".utf8),
            Bytes("🙂".utf8), [0], [0x80], [0xC3], [0xED, 0xA0, 0x80], [0xF5], [0xC0, 0xAF],
        ]
        var validCount = 0
        for round in 0..<500 {
            let count = Int.random(in: 0...6, using: &random)
            // Half of them without a bad part.
            let last = Bool.random(using: &random) ? 6 : parts.count
            let bytes = (0..<count).flatMap { _ in parts[Int.random(in: 0..<last, using: &random)] }
            let expected = String(validating: bytes, as: UTF8.self)
            let text = String(utf8: bytes.span)
            #expect(
                text.map { Bytes($0.utf8) } == expected.map { Bytes($0.utf8) },
                "seed \(seed) round \(round): \(bytes)")
            if text != nil { validCount += 1 }
        }
        #expect((200..<500).contains(validCount), "seed \(seed)")
    }
}
