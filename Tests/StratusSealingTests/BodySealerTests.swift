import StratusModel
import StratusSealing
import Testing

@Suite struct AuthenticatedCipherTests {
    @Test func `NIST every case of AES-256-GCM that Wycheproof has`() throws {
        let lines = try Vectors.lines("aes-256-gcm.txt")
        #expect(lines.count >= 60)
        for (number, line) in lines.enumerated() {
            let fields = line.dropFirst().map(Vectors.bytes)
            let (key, nonce, associated, plain, text, tag) = (
                SecretBytes(copying: fields[0]), fields[1], fields[2], fields[3], fields[4],
                fields[5]
            )
            let opened = AuthenticatedCipher.open(
                text + tag, key: key, nonce: nonce, associated: associated)
            if line[0] == "valid" {
                #expect(opened == plain, "case \(number)")
                #expect(
                    AuthenticatedCipher.seal(plain, key: key, nonce: nonce, associated: associated)
                        == text + tag, "case \(number)")
            } else {
                #expect(opened == nil, "case \(number)")
            }
        }
    }

    /// Cases 13 and 14 of McGrew and Viega's submission to NIST.
    @Test func `NIST the key of zeros`() {
        let key = SecretBytes(copying: Bytes(repeating: 0, count: 32))
        let nonce = Bytes(repeating: 0, count: 12)
        let rows = [
            (0, "530f8afbc74536b9a963b4f1c4cb738b"),
            (16, "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"),
        ]
        for (size, expected) in rows {
            let plain = Bytes(repeating: 0, count: size)
            let sealed = AuthenticatedCipher.seal(
                plain, key: key, nonce: nonce, associated: [])
            #expect(Vectors.digits(sealed) == expected)
            #expect(
                AuthenticatedCipher.open(sealed, key: key, nonce: nonce, associated: []) == plain)
        }
    }

    @Test func `what is too short for a tag does not open`() {
        let key = SecretBytes(copying: Bytes(repeating: 1, count: 32))
        for size in 0..<16 {
            let text = Bytes(repeating: 0, count: size)
            let nonce = Bytes(repeating: 0, count: 12)
            #expect(
                AuthenticatedCipher.open(text, key: key, nonce: nonce, associated: []) == nil)
        }
    }
}

@Suite struct BodySealerTests {
    static let body = BodyID(0x0123_4567_89AB_CDEF_0011_2233_4455_6677)
    static let database = DatabaseID(
        container: ContainerReference(container: "iCloud.golden", environment: .production),
        scope: .private, owner: "_golden")
    static let key = Bytes(0..<32)

    static func sealer(
        key: Bytes = key, version: UInt32 = 3, database: DatabaseID = database,
        body: BodyID = body
    ) -> BodySealer {
        BodySealer(
            databaseKey: SecretBytes(copying: key), version: version, database: database,
            body: body)
    }

    static let place = ChunkPlace(ordinal: 7, size: 12, isLast: true)
    static let content = Bytes("golden chunk".utf8)

    /// The expected bytes come from another implementation (Python's cryptography), written from
    /// the table of the format.
    @Test func `a sealed chunk of format 1 is sealed as ever`() {
        let bucket = DatabaseID(
            container: Self.database.container, scope: .public, owner: "", bucket: Bucket(5, of: 8))
        let rows = [
            (Self.database, "015da1c778ade2c7e116f734faab4e2db310576d1adcb373294261a2d6"),
            (bucket, "015da1c778ade2c7e116f734fae90c389dbf64515025ee8ab44a946cc6"),
        ]
        for (database, expected) in rows {
            let sealer = Self.sealer(database: database)
            let sealed = sealer.seal(Self.content, .raw, at: Self.place)
            #expect(Vectors.digits(sealed) == expected)
            #expect(sealer.open(sealed, at: Self.place)?.content == Self.content)
        }
    }

    @Test func `A-08 A-35 a chunk opens for its own place in its own body only`() {
        let sealed = Self.sealer().seal(Self.content, .raw, at: Self.place)
        let other = DatabaseID(
            container: Self.database.container, scope: .private, owner: "_other")
        let strangers: [(String, BodySealer)] = [
            ("key", Self.sealer(key: Bytes(1..<33))), ("version", Self.sealer(version: 4)),
            ("database", Self.sealer(database: other)),
            ("body", Self.sealer(body: BodyID(Self.body.raw + 1))),
        ]
        for (what, sealer) in strangers {
            #expect(sealer.open(sealed, at: Self.place) == nil, "another \(what)")
        }
        let places: [(String, ChunkPlace)] = [
            ("ordinal", ChunkPlace(ordinal: 8, size: 12, isLast: true)),
            ("size", ChunkPlace(ordinal: 7, size: 13, isLast: true)),
            ("end", ChunkPlace(ordinal: 7, size: 12, isLast: false)),
        ]
        for (what, place) in places {
            #expect(Self.sealer().open(sealed, at: place) == nil, "another \(what)")
        }
    }

    @Test func `A-14 a flipped bit or a cut end does not open`() {
        let sealed = Self.sealer().seal(Self.content, .zstd, at: Self.place)
        #expect(Self.sealer().open(sealed, at: Self.place)?.coding == .zstd)
        for bit in 0..<sealed.count * 8 {
            var damaged = sealed
            damaged[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(Self.sealer().open(damaged, at: Self.place) == nil, "bit \(bit)")
        }
        for count in 0..<sealed.count {
            #expect(Self.sealer().open(Bytes(sealed.prefix(count)), at: Self.place) == nil)
        }
        #expect(Self.sealer().open(sealed + [0], at: Self.place) == nil)
    }

    @Test func `A-09 equal chunks of two bodies, or at two ordinals, are sealed differently`() {
        let one = Self.sealer().seal(Self.content, .raw, at: Self.place)
        let body = Self.sealer(body: BodyID(9)).seal(Self.content, .raw, at: Self.place)
        let ordinal = Self.sealer().seal(
            Self.content, .raw, at: ChunkPlace(ordinal: 8, size: 12, isLast: true))
        #expect(Set([one, body, ordinal]).count == 3)
    }
}
