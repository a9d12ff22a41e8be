import StratusAssets
import StratusModel
import StratusSealing
import Testing

@Suite struct SealingLineTests {
    static let database = DatabaseID(
        container: ContainerReference(container: "iCloud.org.example", environment: .production),
        scope: .private, owner: "_u")

    static func sealer(_ body: UInt128 = 7) -> BodySealer {
        BodySealer(
            databaseKey: SecretBytes(copying: Bytes(0..<32)), version: 1, database: database,
            body: BodyID(body))
    }

    static func bytes(_ count: Int, isText: Bool, _ random: inout SeededGenerator) -> Bytes {
        (0..<count).map { _ in
            isText
                ? UInt8.random(in: 97...100, using: &random)
                : UInt8.random(in: .min ... .max, using: &random)
        }
    }

    /// Seals all of it, given in pieces.
    static func seal(
        _ plain: Bytes, chunkSize: UInt32, pieces: Int, compresses: Bool = true
    ) throws -> ([SealedChunk], BodySums) {
        let line = SealingLine(
            Self.sealer(), chunkSize: chunkSize, sizeMax: 1 << 30, compresses: compresses)
        var chunks: [SealedChunk] = []
        var rest = plain[...]
        while !rest.isEmpty {
            let piece = rest.prefix(pieces)
            chunks += try line.add(Bytes(piece))
            rest = rest.dropFirst(piece.count)
        }
        let (last, sums) = line.finish()
        return (chunks + (last.map { [$0] } ?? []), sums)
    }

    static func open(_ chunks: [SealedChunk]) -> Bytes? {
        var plain = Bytes()
        for chunk in chunks {
            let place = ChunkPlace(
                ordinal: chunk.ordinal, size: chunk.plainSize, isLast: chunk.isLast)
            guard let bytes = SealingLine.open(chunk.bytes, at: place, with: Self.sealer()) else {
                return nil
            }
            plain += bytes
        }
        return plain
    }

    @Test(arguments: [0, 1, 99, 100, 101, 199, 200, 201, 1_000, 3_333], [1, 37, 100, 250, 5_000])
    func `sizes at the edges of a chunk come back, however they come`(size: Int, pieces: Int) throws
    {
        for isText in [false, true] {
            var random = SeededGenerator(seed: UInt64(size))
            let plain = Self.bytes(size, isText: isText, &random)
            let (chunks, sums) = try Self.seal(plain, chunkSize: 100, pieces: pieces)
            #expect(chunks.count == (size + 99) / 100)
            #expect(chunks.map(\.ordinal) == (0..<UInt32(chunks.count)).map { $0 })
            #expect(chunks.map(\.isLast) == chunks.indices.map { $0 == chunks.count - 1 })
            #expect(Self.open(chunks) == plain)
            #expect(sums.size == UInt64(size) && Int(sums.chunkCount) == chunks.count)
            #expect(sums.sha256 == SHA256.hash(plain))
            for chunk in chunks { #expect(chunk.bytes.count <= Int(chunk.plainSize) + 17) }
        }
    }

    @Test func `text is compressed, noise is not, and neither is what is asked to stay raw`() throws
    {
        var random = SeededGenerator(seed: 3)
        let text = Self.bytes(300_000, isText: true, &random)
        let noise = Self.bytes(300_000, isText: false, &random)
        func size(_ plain: Bytes, compresses: Bool = true) throws -> Int {
            try Self.seal(plain, chunkSize: 256 << 10, pieces: 65_536, compresses: compresses).0
                .reduce(0) { $0 + $1.bytes.count }
        }
        #expect(try size(text) < 150_000)
        #expect(try size(noise) == 300_000 + 2 * 17)
        #expect(try size(text, compresses: false) == 300_000 + 2 * 17)
    }

    /// The salt and the value for `abc`: SHA-1 of CloudKit's two names and the bytes.
    @Test func `the checksum begins with what it is given`() throws {
        let salt = Bytes("com.apple.XattrObjectSalt\0com.apple.DataObjectSalt\0".utf8)
        let line = SealingLine(Self.sealer(), sizeMax: 10, checksumPrefix: salt)
        _ = try line.add(Bytes("abc".utf8))
        let hash = RunningHash(.sha1)
        hash.update(salt + Bytes("abc".utf8))
        #expect(line.finish().sums.sha1 == hash.finish())
        #expect(salt.count == 51)
    }

    @Test func `a body beyond its size is refused at the first byte too many`() throws {
        let line = SealingLine(Self.sealer(), chunkSize: 64, sizeMax: 100)
        _ = try line.add(Bytes(repeating: 0, count: 100))
        #expect(throws: SealingLine.Refusal.tooLarge) { try line.add([1]) }
    }

    @Test
    func `A-14 A-35 chunks that were swapped, cut off or taken from another body do not open`()
        throws
    {
        var random = SeededGenerator(seed: 9)
        let plain = Self.bytes(350, isText: true, &random)
        let (chunks, _) = try Self.seal(plain, chunkSize: 100, pieces: 350)
        var swapped = chunks
        (swapped[0].bytes, swapped[1].bytes) = (swapped[1].bytes, swapped[0].bytes)
        #expect(Self.open(swapped) == nil)
        var cut = Array(chunks.dropLast())
        cut[cut.count - 1].isLast = true
        #expect(Self.open(cut) == nil, "the chunk before the last one says that it is not the last")
        let place = ChunkPlace(ordinal: 0, size: 100, isLast: false)
        #expect(SealingLine.open(chunks[0].bytes, at: place, with: Self.sealer(8)) == nil)
        #expect(SealingLine.open(chunks[0].bytes, at: place, with: Self.sealer()) != nil)
    }
}
