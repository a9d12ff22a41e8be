import StratusCompression
import StratusModel
import Testing

@Suite struct CompressionTests {
    private static let samples: [Bytes] = [
        [], [1], Bytes(repeating: 65, count: 1_000_000),
        {
            var generator = SeededGenerator(seed: 1)
            return (0..<100_000).map { _ in UInt8.random(in: 0...255, using: &generator) }
        }(),
    ]

    @Test(arguments: samples.indices)
    func `gzip and zstd give back what they took`(index: Int) throws {
        let sample = Self.samples[index]
        #expect(try Gzip.expand(Gzip.compress(sample), sizeMax: sample.count) == sample)
        #expect(try Zstd.expand(Zstd.compress(sample), sizeMax: sample.count) == sample)
    }

    @Test func `one encoder makes many frames, each whole by itself`() throws {
        let encoder = ZstdEncoder()
        for sample in Self.samples {
            #expect(try Zstd.expand(encoder.frame(of: sample), sizeMax: 1 << 20) == sample)
        }
    }

    @Test func `G-18: a bomb is stopped at the limit`() {
        let bomb = Bytes(repeating: 0, count: 5_000_000)
        #expect(throws: Gzip.Failure.tooLarge) {
            try Gzip.expand(Gzip.compress(bomb), sizeMax: 4_999_999)
        }
        #expect(throws: Zstd.Failure.tooLarge) {
            try Zstd.expand(Zstd.compress(bomb), sizeMax: 4_999_999)
        }
    }

    @Test func `damage, a missing end and a tail are refused`() {
        let text = Bytes(repeating: 65, count: 1_000) + Bytes(repeating: 66, count: 1_000)
        let gzip = Gzip.compress(text)
        let zstd = Zstd.compress(text)
        var flipped = (gzip, zstd)
        flipped.0[gzip.count - 6] ^= 1
        flipped.1[zstd.count - 2] ^= 1
        for bad in [flipped.0, gzip.dropLast(), gzip + [0], []] {
            #expect(throws: Gzip.Failure.malformed) {
                try Gzip.expand(Bytes(bad), sizeMax: 1 << 20)
            }
        }
        for bad in [flipped.1, zstd.dropLast(), zstd + [0], []] {
            #expect(throws: Zstd.Failure.malformed) {
                try Zstd.expand(Bytes(bad), sizeMax: 1 << 20)
            }
        }
    }
}
