import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// What is written of private databases in buckets, byte for byte.
@Suite struct PartGoldenTests {
    static let bucket = DatabaseID(
        container: Bench.container, scope: .private, owner: Bench.owner, bucket: Bucket(3, of: 4))
    static let publicBucket = DatabaseID(
        container: Bench.container, scope: .public, owner: "", bucket: Bucket(1, of: 4))

    static let commands: [(name: String, command: RecordCommand)] = [
        (
            "command-placed-1",
            .modifyRecords(
                ModifyRecords(
                    database: Self.bucket, zone: "Shelves", drawnIncarnation: ZoneIncarnation(77),
                    operations: [RecordOperation(.forceDelete, recordName: "c")]))
        ),
        (
            "command-placed-2",
            {
                var modify = ModifyZones(
                    database: Self.bucket,
                    operations: [
                        .init(.create, zone: "Shelves", drawnIncarnation: ZoneIncarnation(5))
                    ])
                modify.tagFloor = 3 << 32
                return .modifyZones(modify)
            }()
        ),
        (
            "command-placed-3",
            {
                var reserve = ReserveReferences(
                    database: Self.publicBucket, drawnIncarnation: ZoneIncarnation(78),
                    wishes: [.init(target: "a", action: .validate, referrer: "b")])
                reserve.tagFloor = 1 << 32
                return .reserveReferences(reserve)
            }()
        ),
        (
            "command-note-buckets-1",
            .noteBuckets(
                NoteBuckets(
                    database: Bench.privateDatabase,
                    buckets: ZoneBuckets(
                        count: 4, mask: BucketMask(of: [1, 3]), tagFloor: 1 << 32)))
        ),
    ]

    /// The rows of a home and of a bucket, with a cascade that is left to a job.
    @Test func `the rows of parts are laid out as ever`() throws {
        var bench = Bench()
        _ = try bench.apply(
            .noteBuckets(
                NoteBuckets(
                    database: Bench.privateDatabase,
                    buckets: ZoneBuckets(count: 4, mask: BucketMask(of: [3]), tagFloor: 7))))
        let zone = try #require((0..<100).map { "Zone\($0)" }.first(where: Bucket(3, of: 4).holds))
        try bench.zones(.create, zone, in: Self.bucket)
        try bench.modify(
            in: zone, of: Self.bucket, .create("a"),
            .create("b", [reference("b", to: "a", .deleteSelf)]))
        try bench.modify(
            in: zone, of: Self.bucket, rules: RecordRules(cascadeCountMax: 1), .delete("a"))
        var writer = ByteWriter()
        for table in [Table.database, .zone, .job] {
            try bench.rows.scan(
                table, from: Bytes().span.bytes, to: Bytes().span.bytes, descending: false
            ) { key, row in
                writer.write(table.rawValue)
                writer.write(prefixed: Bytes(copying: key))
                writer.write(prefixed: Bytes(copying: row))
                return .next
            }
        }
        let rows = GoldenTests.hexadecimal(writer.bytes)
        #expect(
            rows == (try GoldenTests.golden("rows-parts-1", now: writer.bytes)), "now \(rows)")
    }

    static let queries: [RecordQuery.Ask] = {
        let predicate = RecordPredicate(recordType: "Book")
        var page = QueryPageAsk(database: Self.bucket, zone: nil, predicate: predicate)
        page.schemaVersion = 3
        page.part = 64
        page.placed = .withRecords
        var judged = ModifyRecords(
            database: Self.bucket, zone: "Shelves", drawnIncarnation: ZoneIncarnation(1),
            operations: [RecordOperation(.forceDelete, recordName: "c")])
        judged.resolvesAssets = true
        return [
            .buckets(BucketsAsk(database: Bench.privateDatabase, count: 16)), .page(page),
            .judge(JudgeAsk(judged, schemaVersion: 3)),
            .lookup(RecordLookup(database: Self.bucket, zone: "Shelves", names: ["a"])),
            .use(Self.bucket),
        ]
    }()

    static let answers: [RecordAnswer] = [
        .buckets(
            BucketsAnswer(
                mask: BucketMask(of: [63]),
                zone: ZoneSummary(
                    name: ZoneID.defaultName, incarnation: ZoneIncarnation(4),
                    lastTag: ChangeTag(9)))),
        .buckets(BucketsAnswer(mask: BucketMask(), zone: nil)),
    ]

    /// What no gateway writes is refused by all builds alike.
    @Test func `a head that no operation has is malformed`() throws {
        func isMalformed(_ bytes: Bytes) -> Bool {
            (try? RecordCommand(decoding: bytes, container: Bench.container)) == nil
        }
        // Erase a database of one zone, in a bucket of it.
        let bucket: Bytes = [4, 1, 0x61, 3, 4]
        #expect(!isMalformed([1, 6, 1] + bucket + [1]))
        // Another number than the count has, no count, a floor for what makes no zone.
        #expect(isMalformed([1, 6, 1, 4, 1, 0x61, 4, 4, 1]))
        #expect(isMalformed([1, 6, 1, 4, 1, 0x61, 0, 0, 1]))
        #expect(isMalformed([1, 6, 3] + bucket + [1, 1]))
        // No database, a flag that is none, nobody's bucket.
        #expect(isMalformed([1, 6, 0, 1]))
        #expect(isMalformed([1, 6, 5] + bucket + [1]))
        #expect(isMalformed([1, 6, 1, 4, 0, 3, 4, 1]))
        // A database for what has none, and a floor of zero.
        #expect(!isMalformed([1, 8, 0]) && isMalformed([1, 8, 1] + bucket))
        let zones = RecordCommand.modifyZones(
            ModifyZones(database: Bench.privateDatabase, operations: [])
        ).encoded()
        let end = 5 + Bench.owner.utf8.count
        #expect(!isMalformed(zones))
        #expect(isMalformed([1, 2, 3] + zones[3..<end] + [0] + zones[end...]))
        #expect(!isMalformed([1, 2, 3] + zones[3..<end] + [7] + zones[end...]))
        // What lies at a database's home, in a bucket.
        #expect(isMalformed([1, 9, 1] + bucket))
    }
}
