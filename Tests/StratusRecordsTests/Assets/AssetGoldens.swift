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
        return PinAsset(
            database: Bench.privateDatabase, upload: UploadID(upload), asset: AssetID(asset),
            body: BodyID(body), fileChecksum: "AbCd", size: size, chunkSize: 256, keyVersion: 1,
            chunks: (0..<count).map {
                BodyManifest.Chunk(
                    storedSize: UInt32(min(256, size - $0 * 256)) + 17, crc: UInt32($0) + 7)
            }, digest: digest.map(AssetDigest.init), orphanAfterMilliseconds: 1_700_003_600_000,
            storers: [CopyHolding(node: NodeID(2), at: LogIndex(300))])
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
        ("command-pin-asset-1", .pinAsset(Self.pin())),
        (
            "command-hold-assets-1",
            .holdAssets(
                HoldAssets(
                    database: Bench.privateDatabase, assets: [AssetID(0xA1), AssetID(.max)],
                    pins: [UploadID(0xC1), UploadID(.max)]))
        ),
        ("command-lose-body-1", .loseBody(LoseBody(body: BodyID(0xB1)))),
        ("command-find-body-1", .findBody(Self.find)),
        ("command-modify-records-3", .modifyRecords(Self.modify)),
    ]

    static let find = FindBody(
        body: BodyID(0xB1), orphanAfterMilliseconds: 1_234_567,
        storers: [
            CopyHolding(node: NodeID(1), at: LogIndex(7)),
            CopyHolding(node: NodeID(300), at: LogIndex(1 << 40)),
        ])
    static let bodiesAsk = BodiesAsk([BodyID(0xB1), BodyID(.max)])
    static let bodies = FoundBodies([Self.pin().manifest(of: 1, namedAt: LogIndex(9)), nil])

    static let outcomes: [(name: String, of: RecordCommand.Kind, outcome: RecordOutcome)] = [
        (
            "outcome-pinned-1", .pinAsset,
            .pinned(PinnedAsset(asset: AssetID(0xA1), fileChecksum: "AbCd", isShared: true))
        ),
        ("outcome-held-1", .holdAssets, .held([nil, HeldAsset(fileChecksum: "AbCd", size: 300)])),
        ("outcome-body-lost-1", .loseBody, .bodyLost(true)),
        ("outcome-body-found-1", .findBody, .bodyFound(true)),
    ]

    static let queries: [RecordQuery.Ask] = [
        .asset(AssetID(0xA1)),
        .judge(JudgeAsk(Self.modify, schemaVersion: 3)),
        .lostFiles(LostFilesAsk()), .lostFiles(LostFilesAsk(after: AssetID(0xA1))),
        .assetRows(AssetRowsAsk()), .assetRows(AssetRowsAsk(after: [1, 2, 3])),
        .bodies(Self.bodiesAsk),
        .databaseFiles(DatabaseFilesAsk(Bench.privateDatabase)),
        .databaseFiles(DatabaseFilesAsk(Bench.privateDatabase, after: AssetID(0xA1))),
    ]

    static let rowFaults = AssetRowFaults(
        faults: AssetRowFault.Kind.allCases.map { AssetRowFault($0, of: AssetID(0xA1)) }
            + [
                AssetRowFault(
                    .notInRecord, of: AssetID(0xA2), database: Bench.privateDatabase,
                    zone: "Shelves", record: "a")
            ], next: [2, 0, 1])

    static let answers: [RecordAnswer] = [
        .asset(nil),
        .asset(
            StoredAsset(
                asset: AssetID(0xA1), database: Bench.privateDatabase, fileChecksum: "AbCd",
                body: Self.pin().manifest(of: 1, namedAt: LogIndex(9)), key: Self.key)),
        .lostFiles(
            LostFiles(
                files: [
                    LostFile(
                        asset: AssetID(0xA1), database: Bench.privateDatabase,
                        fileChecksum: "AbCd", size: 300,
                        holder: .init(zone: "Shelves", record: "a")),
                    LostFile(
                        asset: AssetID(0xA2), database: Bench.publicDatabase, fileChecksum: "",
                        size: 0, holder: nil),
                ], next: AssetID(0xA2))),
        .assetRows(Self.rowFaults), .assetRows(AssetRowFaults()), .bodies(Self.bodies),
        .databaseFiles(DatabaseFiles(bodies: [BodyExtent(BodyID(0xB1), chunkCount: 3)])),
        .databaseFiles(
            DatabaseFiles(
                bodies: [
                    BodyExtent(BodyID(0xB1), chunkCount: 3),
                    BodyExtent(BodyID(0xB2), chunkCount: 0),
                ], next: AssetID(0xA2))),
        .use(
            StorageUse(recordCount: 3, size: 9), zoneCount: 2,
            assets: AssetUse(count: 3, size: 1 << 33, unattachedCount: 1, unattachedSize: 300)),
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
        pin.size += 600
        #expect(Self.isMalformed(pin))
        pin = AssetGoldens.pin()
        pin.keyVersion = 0
        #expect(Self.isMalformed(pin))
        pin = AssetGoldens.pin()
        pin.fileChecksum = String(repeating: "x", count: PinAsset.checksumLengthMax + 1)
        #expect(Self.isMalformed(pin))
        pin = AssetGoldens.pin()
        pin.storers = Array(repeating: pin.storers[0], count: PinAsset.storerCountMax + 1)
        #expect(Self.isMalformed(pin))
        pin = AssetGoldens.pin()
        pin.rules.graceMilliseconds = .max
        #expect(Self.isMalformed(pin))
    }

    private static func isMalformed(_ pin: PinAsset) -> Bool {
        let bytes = RecordCommand.pinAsset(pin).encoded()
        return (try? RecordCommand(decoding: bytes, container: Bench.container)) == nil
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
        find.storers = Array(repeating: find.storers[0], count: PinAsset.storerCountMax + 1)
        let bytes = RecordCommand.findBody(find).encoded()
        #expect(throws: DecodingError.self) {
            _ = try RecordCommand(decoding: bytes, container: Bench.container)
        }
    }

    @Test func `the rows of assets are laid out as ever`() throws {
        let bytes = try Self.rowsOfASmallLife()
        let rows = GoldenTests.hexadecimal(bytes)
        #expect(rows == (try GoldenTests.golden("rows-assets-1", now: bytes)), "now \(rows)")
    }
}
