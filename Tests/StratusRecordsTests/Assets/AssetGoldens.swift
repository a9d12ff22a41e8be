import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// Every format of assets, as it is written.
enum AssetGoldens {
    static let key = WrappedKey {
        $0.wrapped = Bytes(repeating: 0xAB, count: 60)
        $0.wrappingVersion = 3
        $0.check = [1, 2, 3, 4]
    }

    static func pin(
        _ asset: UInt128 = 0xA1, body: UInt128 = 0xB1, upload: UInt128 = 0xC1,
        digest: UInt128? = 0xD1, size: UInt64 = 300
    ) -> PinAsset {
        let count = BodyManifest.chunkCount(size: size, chunkSize: 256)
        let stored = StoredBody(
            body: BodyID(body), size: size, chunkSize: 256, keyVersion: 1,
            chunks: (0..<count).map {
                BodyManifest.Chunk(
                    storedSize: UInt32(min(256, size - $0 * 256)) + 17, crc: UInt32($0) + 7)
            }, orphanAfterMilliseconds: 1_700_003_600_000,
            storers: [CopyHolding(node: NodeID(2), at: LogIndex(300))])
        return PinAsset(Bench.privateDatabase) {
            $0.upload = UploadID(upload)
            $0.asset = AssetID(asset)
            $0.stored = stored
            $0.fileChecksum = "AbCd"
            $0.digest = digest.map(AssetDigest.init)
        }
    }

    static let reference = AssetReference(
        fileChecksum: "AbCd", size: 300, asset: AssetID(0x0123_4567_89AB_CDEF << 64 | 0xA1))

    static let modify: ModifyRecords = {
        var modify = ModifyRecords(
            database: Bench.privateDatabase, zone: "Shelves",
            drawnIncarnation: ZoneIncarnation(77),
            operations: [
                RecordOperation(
                    .create, recordName: "book-0007", recordType: "Book",
                    fields: [
                        Field(name: "cover", value: .scalar(.asset(Self.reference))),
                        Field(
                            name: "pages",
                            value: .list(
                                .asset,
                                [.asset(AssetReference(fileChecksum: "AbCd", size: 300))])),
                    ])
            ])
        modify.resolvesAssets = true
        return modify
    }()

    static let commands: [(name: String, command: RecordCommand)] = [
        ("command-modify-records-3", .modifyRecords(Self.modify))
    ]

    static let queries: [RecordQuery.Ask] = [.judge(JudgeAsk(Self.modify, schemaVersion: 3))]

    static let answers: [RecordAnswer] = [
        .use(
            StorageUse(recordCount: 3, size: 9), zoneCount: 2,
            assets: AssetUse(count: 3, size: 1 << 33, unattachedCount: 1, unattachedSize: 300))
    ]

    static let samples: [TypedGolden] =
        Self.operations + Self.outcomes + Self.questions + Self.typedAnswers
        + ReplaceGoldens.samples

    // MARK: Operations

    private static let hold = HoldAssets(Bench.privateDatabase) {
        $0.assets = [AssetID(0xA1), AssetID(.max)]
        $0.pins = [UploadID(0xC1), UploadID(.max)]
    }
    static let find = FindBody {
        $0.body = BodyID(0xB1)
        $0.orphanAfterMilliseconds = 1_234_567
        $0.storers = [
            CopyHolding(node: NodeID(1), at: LogIndex(7)),
            CopyHolding(node: NodeID(300), at: LogIndex(1 << 40)),
        ]
    }

    private static let operations = [
        TypedGolden.command("command-pin-asset-1", Self.pin()),
        TypedGolden.command("command-hold-assets-1", Self.hold),
        TypedGolden.command("command-lose-body-1", LoseBody(BodyID(0xB1))),
        TypedGolden.command("command-find-body-1", Self.find),
    ]

    private static let pinned = PinnedAsset {
        $0.asset = AssetID(0xA1)
        $0.fileChecksum = "AbCd"
        $0.isShared = true
    }
    private static let heldAsset = HeldAsset {
        $0.fileChecksum = "AbCd"
        $0.size = 300
    }
    private static let held = HeldAssets { $0.assets = [nil, Self.heldAsset] }

    private static let outcomes = [
        TypedGolden.outcome("outcome-pinned-1", of: PinAsset.self, Self.pinned),
        TypedGolden.outcome("outcome-held-1", of: HoldAssets.self, Self.held),
        TypedGolden.outcome("outcome-body-lost-1", of: LoseBody.self, true),
        TypedGolden.outcome("outcome-body-found-1", of: FindBody.self, true),
    ]

    // MARK: Questions

    private static let search = ZoneSearch(for: ZoneNumber(7))
    private static let rowsPlace = AssetRowsPlace {
        $0.range = .records
        $0.last = [0, 1]
        $0.doneCount = 300
        $0.search = Self.search
    }
    private static let lostPlace = LostFilesPlace {
        $0.asset = AssetID(0xA2)
        $0.search = Self.search
    }
    private static let databaseFiles = DatabaseFilesAsk(Bench.privateDatabase) { _ in }
    private static let nextDatabaseFiles = DatabaseFilesAsk(Bench.privateDatabase) {
        $0.after = AssetID(0xA1)
    }
    private static let asset = AssetAsk(Bench.privateDatabase) { $0.asset = AssetID(0xA1) }

    private static let questions = [
        TypedGolden.query("query-asset-1", Self.asset),
        TypedGolden.query("query-lost-files-1", LostFilesAsk()),
        TypedGolden.query("query-lost-files-2", LostFilesAsk { $0.after = Self.lostPlace }),
        TypedGolden.query("query-asset-rows-1", AssetRowsAsk()),
        TypedGolden.query("query-asset-rows-2", AssetRowsAsk { $0.after = Self.rowsPlace }),
        TypedGolden.query("query-bodies-1", BodiesAsk([BodyID(0xB1), BodyID(.max)])),
        TypedGolden.query("query-database-files-1", Self.databaseFiles),
        TypedGolden.query("query-database-files-2", Self.nextDatabaseFiles),
    ]

    private static let manifest = Self.pin().stored.manifest(of: 1, namedAt: LogIndex(9))
    private static let stored = StoredAsset {
        $0.asset = AssetID(0xA1)
        $0.database = Bench.privateDatabase
        $0.fileChecksum = "AbCd"
        $0.body = Self.manifest
        $0.key = Self.key
    }
    private static let holder = LostFile.Holder {
        $0.zone = "Shelves"
        $0.record = "a"
    }
    private static let lostFile = LostFile {
        $0.asset = AssetID(0xA1)
        $0.database = Bench.privateDatabase
        $0.fileChecksum = "AbCd"
        $0.size = 300
        $0.holder = Self.holder
    }
    private static let otherLostFile = LostFile {
        $0.asset = AssetID(0xA2)
        $0.database = Bench.publicDatabase
    }
    private static let lost = LostFiles {
        $0.files = [Self.lostFile, Self.otherLostFile]
        $0.next = Self.lostPlace
    }
    private static let fault = AssetRowFault(.notInRecord, of: AssetID(0xA2)) {
        $0.database = Bench.privateDatabase
        $0.zone = "Shelves"
        $0.record = "a"
    }
    private static let rowFaults = AssetRowFaults {
        $0.faults =
            AssetRowFault.Kind.allCases.map { AssetRowFault($0, of: AssetID(0xA1)) }
            + [Self.fault]
        $0.next = Self.rowsPlace
    }
    private static let bodies = FoundBodies { $0.bodies = [Self.manifest, nil] }
    private static let files = DatabaseFiles {
        $0.bodies = [BodyExtent(BodyID(0xB1), chunkCount: 3)]
    }
    private static let moreFiles = DatabaseFiles {
        $0.bodies = [
            BodyExtent(BodyID(0xB1), chunkCount: 3), BodyExtent(BodyID(0xB2), chunkCount: 0),
        ]
        $0.next = AssetID(0xA2)
    }

    private static let typedAnswers = [
        TypedGolden.answer("answer-asset-1", to: AssetAsk.self, nil),
        TypedGolden.answer("answer-asset-2", to: AssetAsk.self, Self.stored),
        TypedGolden.answer("answer-lost-files-1", to: LostFilesAsk.self, Self.lost),
        TypedGolden.answer("answer-asset-rows-1", to: AssetRowsAsk.self, Self.rowFaults),
        TypedGolden.answer("answer-asset-rows-2", to: AssetRowsAsk.self, AssetRowFaults()),
        TypedGolden.answer("answer-bodies-1", to: BodiesAsk.self, Self.bodies),
        TypedGolden.answer("answer-database-files-1", to: DatabaseFilesAsk.self, Self.files),
        TypedGolden.answer("answer-database-files-2", to: DatabaseFilesAsk.self, Self.moreFiles),
    ]
}

@Suite struct AssetGoldenTests {
    @Test func `a save that names an asset is malformed where assets are not resolved`() throws {
        var bytes = RecordCommand.modifyRecords(AssetGoldens.modify).encoded()
        // The byte of flags, behind the head and the database.
        let place =
            try #require(bytes.firstIndex(of: UInt8(Bench.owner.utf8.count))) + 1
            + Bench.owner.utf8.count
        #expect(bytes[place] == 1)
        bytes[place] = 0
        #expect(throws: DecodingError(.malformed, at: place)) {
            _ = try RecordCommand(decoding: bytes, container: Bench.container)
        }
    }

    @Test func `a pin whose numbers do not agree is malformed`() {
        var pin = AssetGoldens.pin()
        pin.stored.size += 600
        #expect(Self.isMalformed(pin))
        pin = AssetGoldens.pin()
        pin.stored.keyVersion = 0
        #expect(Self.isMalformed(pin))
        pin = AssetGoldens.pin()
        pin.fileChecksum = String(repeating: "x", count: PinAsset.checksumLengthMax + 1)
        #expect(Self.isMalformed(pin))
        pin = AssetGoldens.pin()
        pin.stored.storers = Array(
            repeating: pin.stored.storers[0], count: StoredBody.storerCountMax + 1)
        #expect(Self.isMalformed(pin))
        pin = AssetGoldens.pin()
        pin.rules.graceMilliseconds = .max
        #expect(Self.isMalformed(pin))
    }

    private static func isMalformed(_ pin: PinAsset) -> Bool {
        (try? PinAsset(decoding: pin.encoded(), container: Bench.container)) == nil
    }

    /// All rows that assets leave in a small life, so that no key or row changes its form unseen.
    static func rowsOfASmallLife() throws -> Bytes {
        var bench = AssetBench()
        try bench.putKey(0)
        try bench.putKey(1)
        try bench.zone("Shelves")
        _ = try bench.pin(1, content: 9, size: 300)
        _ = try bench.pin(2, content: nil, size: 0)
        _ = try bench.pin(3, content: 8, size: 64)
        try bench.save("a", in: "Shelves", [1])
        try bench.save("b", in: "Shelves", [3])
        try bench.save("b", in: "Shelves", [])
        var writer = ByteWriter()
        for table in [Table.zone, .asset, .body, .key] {
            try bench.rows.scan(
                table, from: Bytes().span.bytes, to: Bytes().span.bytes, descending: false
            ) { key, row in
                writer.write(table.rawValue)
                writer.write(prefixed: Bytes(copying: key))
                writer.write(prefixed: Bytes(copying: row))
                return .next
            }
        }
        return writer.bytes
    }

    @Test func `a body that too many nodes have is malformed`() {
        var find = AssetGoldens.find
        find.storers = Array(repeating: find.storers[0], count: StoredBody.storerCountMax + 1)
        let bytes = find.encoded()
        #expect(throws: DecodingError.self) {
            _ = try FindBody(decoding: bytes, container: Bench.container)
        }
    }

    @Test func `the rows of assets are laid out as ever`() throws {
        let bytes = try Self.rowsOfASmallLife()
        let rows = GoldenTests.hexadecimal(bytes)
        #expect(rows == (try GoldenTests.golden("rows-assets-1", now: bytes)), "now \(rows)")
    }
}
