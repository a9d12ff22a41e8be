import StratusCoding
import StratusModel
import Testing

@testable import StratusRecords

/// What is written of private databases in buckets, byte for byte.
@Suite struct PartGoldenTests {
    static let bucket = DatabaseID(
        container: Bench.container, scope: .private, owner: Bench.owner, bucket: Bucket(3, of: 4))
    static let publicBucket = DatabaseID(
        container: Bench.container, scope: .public, owner: "", bucket: Bucket(1, of: 4))

    private static let commands: [(name: String, command: RecordCommand)] = [
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

    @Test(arguments: Self.commands.map(\.name))
    func `commands read and write as ever`(name: String) throws {
        let command = try #require(Self.commands.first { $0.name == name }).command
        let bytes = GoldenTests.hexadecimal(command.encoded())
        #expect(bytes == (try GoldenTests.golden(name)), "now \(bytes)")
        let golden = GoldenTests.bytes(try GoldenTests.golden(name))
        #expect(try RecordCommand(decoding: golden, container: Bench.container) == command)
        #expect(command.level == .two && golden[1] == command.number)
    }

    @Test func `an outcome reads and writes as ever`() throws {
        let outcome = RecordOutcome.bucketsNoted(BucketMask(of: [0, 9]))
        let golden = GoldenTests.bytes(try GoldenTests.golden("outcome-buckets-noted-1"))
        #expect(outcome.encoded() == golden, "now \(GoldenTests.hexadecimal(outcome.encoded()))")
        #expect(try RecordOutcome(decoding: golden) == outcome && outcome.level == .two)
    }

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
            bench.rows.scan(
                table, from: Bytes().span.bytes, to: Bytes().span.bytes, descending: false
            ) { key, row in
                writer.write(table.rawValue)
                writer.write(prefixed: Bytes(copying: key))
                writer.write(prefixed: Bytes(copying: row))
                return .next
            }
        }
        let rows = GoldenTests.hexadecimal(writer.bytes)
        #expect(rows == (try GoldenTests.golden("rows-parts-1")), "now \(rows)")
    }

    @Test func `questions and answers come back as they were`() throws {
        let predicate = RecordPredicate(recordType: "Book")
        var page = QueryPageAsk(database: Self.bucket, zone: nil, predicate: predicate)
        page.schemaVersion = 3
        page.part = 64
        page.placed = .withRecords
        var judged = ModifyRecords(
            database: Self.bucket, zone: "Shelves", drawnIncarnation: ZoneIncarnation(1),
            operations: [RecordOperation(.forceDelete, recordName: "c")])
        judged.resolvesAssets = true
        let asks: [RecordQuery.Ask] = [
            .buckets(BucketsAsk(database: Bench.privateDatabase, count: 16)), .page(page),
            .judge(JudgeAsk(judged, schemaVersion: 3)),
            .lookup(RecordLookup(database: Self.bucket, zone: "Shelves", names: ["a"])),
            .use(Self.bucket),
        ]
        for ask in asks {
            let query = RecordQuery(principal: Bench.user, ask)
            #expect(try RecordQuery(decoding: query.encoded()) == query)
            #expect(query.level == .two)
        }
        let zone = ZoneSummary(
            name: ZoneID.defaultName, incarnation: ZoneIncarnation(4), lastTag: ChangeTag(9))
        for answer in [
            RecordAnswer.buckets(BucketsAnswer(mask: BucketMask(of: [63]), zone: zone)),
            .buckets(BucketsAnswer(mask: BucketMask(), zone: nil)),
        ] {
            #expect(try RecordAnswer(decoding: answer.encoded()) == answer)
            #expect(answer.level == .two)
        }
    }

    /// What no gateway writes is refused by all builds alike.
    @Test func `a command that cannot be in a bucket is malformed there`() throws {
        func isMalformed(_ bytes: Bytes) -> Bool {
            (try? RecordCommand(decoding: bytes, container: Bench.container)) == nil
        }
        let erase = RecordCommand.eraseDatabase(EraseDatabase(database: Bench.privateDatabase))
            .encoded()
        #expect(!isMalformed([1, 50, 3, 4, 0] + erase[1...]))
        // Another number than the count has, none, a floor for what makes no zone, nothing said.
        #expect(isMalformed([1, 50, 4, 4, 0] + erase[1...]))
        #expect(isMalformed([1, 50, 0, 1, 0] + erase[1...]))
        #expect(isMalformed([1, 50, 3, 4, 1] + erase[1...]))
        #expect(isMalformed([1, 50, 0, 0, 0] + erase[1...]))
        // Placed twice; a public database; a command without a database.
        #expect(isMalformed([1, 50, 3, 4, 0, 50, 3, 4, 0] + erase[1...]))
        let open = RecordCommand.eraseDatabase(EraseDatabase(database: Bench.publicDatabase))
            .encoded()
        #expect(isMalformed([1, 50, 3, 4, 0] + open[1...]))
        #expect(isMalformed([1, 50, 3, 4, 0, 8]))
        // A bucket where builds of level 1 would look for it.
        #expect(isMalformed([1, 6, 4, 1, 0x61, 3, 4, 0]))
        #expect(Command.recordKind(of: [1, 50, 3, 4, 0] + erase[1...]) == 6)
        #expect(Command.recordKind(of: erase) == 6 && Command.recordKind(of: [1, 50, 3]) == nil)
    }
}
