import StratusAssets
import StratusCoding
import StratusModel
import StratusSealing
import Testing

@Suite struct BodyReaderTests {
    static func manifest(_ chunks: [SealedChunk], size: Int) -> BodyManifest {
        BodyManifest(
            body: BodyID(7), database: 1, namedAt: LogIndex(1), size: UInt64(size),
            chunkSize: 100, keyVersion: 1,
            chunks: chunks.map {
                .init(storedSize: UInt32($0.bytes.count), crc: CRC32C.of($0.bytes))
            })
    }

    /// Sources that lack copies, answer late or twice, or give other bytes: what is read is what
    /// was written, or the reading fails.
    @Test(arguments: 0..<300 as Range<UInt64>)
    func `A-30 what is read is what was written, from whoever has it`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let size = Int.random(in: 0...1_500, using: &random)
        let plain = SealingLineTests.bytes(size, isText: seed % 2 == 0, &random)
        let (chunks, _) = try SealingLineTests.seal(plain, chunkSize: 100, pieces: 500)
        let manifest = Self.manifest(chunks, size: size)
        let lower = Int.random(in: 0...size, using: &random)
        let range = UInt64(lower)..<UInt64(Int.random(in: lower...size, using: &random))
        let sources: [BodyReader.Source] = [.here, .node(NodeID(2)), .node(NodeID(3))]
        // Which source has which chunk, sound or not.
        var state: [BodyReader.Source: [Int]] = [:]
        for source in sources {
            state[source] = chunks.map { _ in Int.random(in: 0..<4, using: &random) }
        }
        let isWhole = manifest.ordinals(covering: range).allSatisfy { ordinal in
            sources.contains { state[$0]![Int(ordinal)] >= 2 }
        }
        var reader = BodyReader(
            manifest, range, sources: sources, deadline: MonotonicTime(nanoseconds: 1_000))
        var queue = reader.advance()
        var sent = Bytes()
        var repaired: Set<UInt32> = []
        var end: BodyReader.Action?
        var steps = 0
        while end == nil {
            steps += 1
            try #require(steps < 2_000, "seed \(seed)")
            guard !queue.isEmpty else {
                queue += reader.advance()
                try #require(!queue.isEmpty, "seed \(seed): it stands still")
                continue
            }
            let number = Int.random(in: 0..<queue.count, using: &random)
            // Answers come in any order; what is sent leaves in its own.
            let first = queue.firstIndex {
                if case .send = $0 { true } else { false }
            }
            let action = queue.remove(at: first ?? number)
            switch action {
            case .fetch(let name, let source):
                var bytes: Bytes?
                switch state[source]![Int(name.ordinal)] {
                case 0: bytes = nil
                case 1:
                    bytes = chunks[Int(name.ordinal)].bytes
                    bytes![Int.random(in: 0..<bytes!.count, using: &random)] ^= 1
                default: bytes = chunks[Int(name.ordinal)].bytes
                }
                let actions = reader.arrived(bytes, name, from: source)
                queue += actions
                #expect(reader.arrived(bytes, name, from: source).isEmpty || bytes == nil)
            case .open(let ordinal, let bytes):
                let place = ChunkPlace(
                    ordinal: ordinal, size: manifest.plainSize(of: ordinal),
                    isLast: manifest.isLast(ordinal))
                queue += reader.opened(
                    SealingLine.open(bytes, at: place, with: SealingLineTests.sealer()), ordinal)
            case .send(let bytes): sent += bytes
            case .repair(let name, let bytes):
                #expect(state[.here]![Int(name.ordinal)] < 2, "seed \(seed)")
                #expect(bytes == chunks[Int(name.ordinal)].bytes, "seed \(seed)")
                repaired.insert(name.ordinal)
            case .finished, .failed:
                end = action
                // Repairs that were asked for before the end are still carried out.
                for case .repair(let name, _) in queue { repaired.insert(name.ordinal) }
            }
            #expect(reader.openCount <= 4, "seed \(seed)")
        }
        if end == .finished {
            #expect(
                sent == Bytes(plain[Int(range.lowerBound)..<Int(range.upperBound)]), "seed \(seed)")
            for ordinal in manifest.ordinals(covering: range) {
                #expect(
                    repaired.contains(ordinal) == (state[.here]![Int(ordinal)] < 2),
                    "seed \(seed): chunk \(ordinal)")
            }
        } else {
            #expect(!isWhole, "seed \(seed): \(end!)")
            #expect(
                plain[Int(range.lowerBound)...].starts(with: sent), "seed \(seed): never another's")
        }
    }

    @Test func `a reader that nobody takes from asks for nothing more`() throws {
        let plain = Bytes(repeating: 1, count: 1_000)
        let (chunks, _) = try SealingLineTests.seal(plain, chunkSize: 100, pieces: 500)
        var reader = BodyReader(
            Self.manifest(chunks, size: 1_000), 0..<1_000, sources: [.here],
            deadline: MonotonicTime(nanoseconds: 10))
        #expect(reader.advance(sendsMore: false).isEmpty)
        #expect(reader.advance().count == 4)
        #expect(reader.advance().isEmpty, "four are open")
        #expect(reader.tick(MonotonicTime(nanoseconds: 9)).isEmpty)
        #expect(reader.tick(MonotonicTime(nanoseconds: 10)) == [.failed(.deadline)])
        #expect(reader.cancel().isEmpty && reader.openCount == 0)
    }

    @Test func `nothing of an empty range is fetched`() {
        var reader = BodyReader(
            Self.manifest([], size: 0), 0..<0, sources: [], deadline: MonotonicTime(nanoseconds: 1))
        #expect(reader.advance() == [.finished])
        #expect(reader.advance().isEmpty)
    }
}
