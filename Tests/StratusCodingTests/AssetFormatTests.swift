import StratusCoding
import StratusModel
import Testing

/// Rows of bodies, packs and copy messages. The files in `Golden/` are never edited; a new version
/// adds a file.
@Suite struct AssetFormatTests {
    static let body = BodyID(0x0123_4567_89AB_CDEF_0011_2233_4455_6677)

    /// Two chunks and a half.
    static let manifest = BodyManifest(
        body: body, database: 300, namedAt: LogIndex(70_000), size: 640 << 10,
        chunkSize: 256 << 10, keyVersion: 2,
        chunks: [
            .init(storedSize: 262_161, crc: 0x0102_0304),
            .init(storedSize: 1_000, crc: 0xFFFF_FFFF),
            .init(storedSize: 131_089, crc: 0),
        ])

    static let pack = PackHeader(group: GroupID(12), number: 7, salt: 0xA1B2_C3D4_E5F6_0718)
    static let record = PackRecord(
        copy: HeldCopy(
            name: CopyName(body: body, ordinal: 3), orphanAfterMilliseconds: 1_700_000_000_000,
            storedSize: 1_001, crc: 0xE306_9283), position: 64)

    static let messages: [CopyMessage] = [
        .put(
            number: 300, group: GroupID(12),
            copy: StoredCopy(
                name: CopyName(body: body, ordinal: 200), orphanAfterMilliseconds: -5,
                bytes: Bytes("sealed".utf8))),
        .confirm(number: 1, group: GroupID(12), body: body, chunkCount: 262_144),
        .stored(number: 2, at: LogIndex(70_000)), .refused(number: 3, .nearlyFull),
        .fetch(number: 4, group: GroupID(0), name: CopyName(body: body, ordinal: .max)),
        .fetched(number: 5, bytes: nil), .fetched(number: 6, bytes: Bytes("sealed".utf8)),
        .drop(group: GroupID(12), body: body),
    ]

    @Test func `a body's row of version 1 reads and writes as ever`() throws {
        let pages = BodyCoding.pages(of: Self.manifest)
        let bytes = try GoldenTests.golden("body-1", now: pages.flatMap { $0 })
        #expect(GoldenTests.hexadecimal(pages.flatMap { $0 }) == GoldenTests.hexadecimal(bytes))
        #expect(try BodyCoding.manifest(of: Self.body, pages: [bytes]) == Self.manifest)
    }

    @Test func `a pack of version 1 reads and writes as ever`() throws {
        let written =
            PackFormat.encode(Self.pack) + PackFormat.encode(Self.record, in: Self.pack)
            + PackFormat.encodeSeal(at: 128, in: Self.pack)
        let bytes = try GoldenTests.golden("pack-1", now: written)
        #expect(GoldenTests.hexadecimal(written) == GoldenTests.hexadecimal(bytes))
        #expect(try PackFormat.decodeHeader(Bytes(bytes[..<64])) == Self.pack)
        #expect(PackFormat.record(Bytes(bytes[64..<128]), at: 64, in: Self.pack) == Self.record)
        #expect(PackFormat.isSeal(Bytes(bytes[128...]), at: 128, in: Self.pack))
    }

    @Test func `copy messages of version 1 read and write as ever`() throws {
        let written = GoldenTests.joined(Self.messages.map { $0.encoded() })
        var reader = ByteReader(try GoldenTests.golden("copy-messages-1", now: written))
        for message in Self.messages {
            let bytes = try reader.prefixed()
            #expect(try CopyMessage(decoding: bytes) == message)
            #expect(GoldenTests.hexadecimal(message.encoded()) == GoldenTests.hexadecimal(bytes))
        }
        try reader.finish()
    }

    // MARK: Rows of bodies

    @Test(arguments: 0..<200 as Range<UInt64>)
    func `any manifest comes back from its pages`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let chunkSize = UInt32.random(in: 64...1_024, using: &random)
        let size = UInt64.random(in: 0...UInt64(chunkSize) * 9_000, using: &random) / (seed % 5 + 1)
        var manifest = BodyManifest(
            body: BodyID(UInt128(random.next()) << 64 | UInt128(random.next())),
            database: .random(in: 0 ... .max, using: &random), namedAt: LogIndex(random.next()),
            size: size, chunkSize: chunkSize, keyVersion: .random(in: 0 ... .max, using: &random),
            isLost: Bool.random(using: &random), chunks: [])
        for ordinal in 0..<BodyManifest.chunkCount(size: size, chunkSize: chunkSize) {
            let plain = manifest.plainSize(of: UInt32(ordinal))
            manifest.chunks.append(
                .init(
                    storedSize: .random(in: 18...(plain + 17), using: &random),
                    crc: .random(in: 0 ... .max, using: &random)))
        }
        let pages = BodyCoding.pages(of: manifest)
        #expect(pages.count == max(1, (manifest.chunks.count + 4_095) / 4_096), "seed \(seed)")
        #expect(
            try BodyCoding.manifest(of: manifest.body, pages: pages) == manifest, "seed \(seed)")
        if pages.count > 1 {
            #expect(throws: DecodingError.self, "a page is missing, seed \(seed)") {
                try BodyCoding.manifest(of: manifest.body, pages: pages.dropLast())
            }
        }
        // Bytes that were changed, or cut, are refused or say something else: never a trap.
        var damaged = pages
        let page = Int.random(in: 0..<pages.count, using: &random)
        damaged[page][Int.random(in: 0..<damaged[page].count, using: &random)] ^=
            1 << UInt8.random(in: 0..<8, using: &random)
        if let other = try? BodyCoding.manifest(of: manifest.body, pages: damaged) {
            #expect(other != manifest, "seed \(seed)")
        }
        damaged[page].removeLast(Int.random(in: 1...damaged[page].count, using: &random))
        #expect(throws: DecodingError.self, "seed \(seed)") {
            try BodyCoding.manifest(of: manifest.body, pages: damaged)
        }
    }

    @Test func `keys of bodies sort as names do, and pages behind their body`() throws {
        let bodies = [0, 1, 0xFF, 0x100, UInt128(1) << 64, .max].map { BodyID($0) }
        var last: Bytes = []
        for body in bodies {
            for page in [0, 1, 255, 256, 63] as [UInt32] {
                let key = BodyCoding.key(of: body, page: page)
                #expect(try BodyCoding.decodeKey(key) == (body, page))
                if page != 63 {
                    #expect(last.lexicographicallyPrecedes(key))
                    last = key
                }
            }
        }
        for bad in [Bytes(), Bytes(repeating: 0, count: 15), Bytes(repeating: 0, count: 20)] {
            #expect(throws: DecodingError.self) { try BodyCoding.decodeKey(bad) }
        }
    }

    @Test func `sizes at the edges of a chunk have as many chunks as they need`() {
        let rows: [(UInt64, UInt64)] = [
            (0, 0), (1, 1), (99, 1), (100, 1), (101, 2), (199, 2), (200, 2), (201, 3),
        ]
        for (size, count) in rows {
            #expect(BodyManifest.chunkCount(size: size, chunkSize: 100) == count, "\(size)")
        }
        #expect(Self.manifest.ordinals(covering: 0..<0) == 0..<0)
        #expect(Self.manifest.ordinals(covering: 0..<1) == 0..<1)
        #expect(Self.manifest.ordinals(covering: 262_143..<262_145) == 0..<2)
        #expect(Self.manifest.ordinals(covering: 0..<(640 << 10)) == 0..<3)
        #expect((0..<4).map { Self.manifest.plainSize(of: $0) } == [262_144, 262_144, 131_072, 0])
    }

    // MARK: Packs

    @Test func `S-11 S-12 S-24 a record is one at its own place of its own pack only`() {
        let bytes = PackFormat.encode(Self.record, in: Self.pack)
        #expect(PackFormat.record(bytes, at: 72, in: Self.pack) == nil)
        var other = Self.pack
        other.salt += 1
        #expect(PackFormat.record(bytes, at: 64, in: other) == nil)
        other = Self.pack
        other.group = GroupID(13)
        #expect(PackFormat.record(bytes, at: 64, in: other) == nil)
        let seal = PackFormat.encodeSeal(at: 64, in: Self.pack)
        #expect(!PackFormat.isSeal(seal, at: 72, in: Self.pack))
        #expect(!PackFormat.isSeal(seal, at: 64, in: other))
        #expect(PackFormat.record(seal, at: 64, in: Self.pack) == nil, "a seal is no record")
    }

    @Test func `a flipped bit leaves no header, no record and no seal`() {
        let header = PackFormat.encode(Self.pack)
        let record = PackFormat.encode(Self.record, in: Self.pack)
        let seal = PackFormat.encodeSeal(at: 128, in: Self.pack)
        for bit in 0..<512 {
            func flipped(_ bytes: Bytes) -> Bytes {
                var bytes = bytes
                bytes[bit / 8] ^= 1 << UInt8(bit % 8)
                return bytes
            }
            #expect(throws: DecodingError.self) { try PackFormat.decodeHeader(flipped(header)) }
            #expect(PackFormat.record(flipped(record), at: 64, in: Self.pack) == nil)
            #expect(!PackFormat.isSeal(flipped(seal), at: 128, in: Self.pack))
        }
        #expect(throws: DecodingError(.unknownVersion(2), at: 7)) {
            var later = header
            later[7] = 2
            _ = try PackFormat.decodeHeader(later)
        }
    }

    // MARK: Messages

    @Test(arguments: 0..<500 as Range<UInt64>)
    func `X-25 damaged copy messages never trap, and never carry other bytes`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let message = Self.messages[Int.random(in: 0..<Self.messages.count, using: &random)]
        var bytes = message.encoded()
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(
                in: 0...255, using: &random)
        }
        if case .put(_, _, let copy)? = try? CopyMessage(decoding: bytes) {
            #expect(copy.bytes == Bytes("sealed".utf8), "seed \(seed)")
        }
        _ = try? CopyMessage(
            decoding: Bytes(bytes.prefix(Int.random(in: 0..<bytes.count, using: &random))))
    }

    @Test func `a copy larger than any can be is refused`() {
        let copy = StoredCopy(
            name: CopyName(body: Self.body, ordinal: 0), orphanAfterMilliseconds: 0,
            bytes: Bytes(repeating: 0, count: Int(AssetLimits.storedSizeMax) + 1))
        let message = CopyMessage.put(number: 0, group: GroupID(0), copy: copy)
        #expect(throws: DecodingError.self) { try CopyMessage(decoding: message.encoded()) }
    }
}
