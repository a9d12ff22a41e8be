import Foundation
import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusQuery
@testable import StratusRecords

/// Every format of this module still reads and writes as it did: one list of names and values, and
/// a file in `Golden/` for each. Once a release has written one, its file is never edited, and a new
/// version adds another. With `STRATUS_GOLDEN=write` the files are written anew.
@Suite struct GoldenTests {
    static let zone = ZoneID(name: "Shelves", owner: Bench.owner)

    /// A record with a value of every type.
    static let record: Record = {
        var place = Location(latitude: 59.91, longitude: 10.75)
        place.speed = -1
        place.timestamp = 1_700_000_000_000
        var asset = AssetReference(fileChecksum: "AbCd", size: 48_211, receipt: "r")
        asset.wrappingKey = "w"
        let scalars: [Scalar] = [
            .string("Sea Roads"), .int64(-312), .double(4.5), .timestamp(-62_135_596_800_000),
            .bytes([0xDE, 0xAD]), .location(place),
            .reference(Reference(recordName: "author-03", zone: Self.zone, action: .validate)),
            .asset(asset),
        ]
        var fields: [Field] = []
        for scalar in scalars {
            let name = scalar.type.tag.lowercased()
            fields.append(Field(name: name, value: .scalar(scalar)))
            fields.append(Field(name: name + "_list", value: .list(scalar.type, [scalar, scalar])))
        }
        fields.append(Field(name: "none", value: .list(.string, [])))
        let sealed = FieldType(.string, isList: true, isEncrypted: true)
        fields.append(Field(name: "secret", value: .sealed(sealed, [1, 2, 3])))
        fields.sort { $0.name < $1.name }
        let created = ChangeStamp(
            milliseconds: 1_700_000_000_000, userRecordName: Bench.owner, deviceID: "2")
        var modified = created
        modified.milliseconds += 450_123
        return Record(
            name: "book-0007", type: "Book", zone: Self.zone, tag: ChangeTag(36_411_920),
            created: created, modified: modified, fields: fields, parent: "shelf-1",
            shortGUID: "0a1B2c3D", share: "Share-1")
    }()

    static let summary = ZoneSummary(
        name: "Shelves", incarnation: ZoneIncarnation(0x0123_4567_89AB_CDEF),
        lastTag: ChangeTag(300), recordCount: 12)

    /// A zone operation that says all that one may say.
    static let scoped = {
        var operation = ModifyZones.Operation(
            .create, zone: "New", drawnIncarnation: ZoneIncarnation(7))
        operation.scope = .perZone
        operation.reason = .purged
        return operation
    }()

    static let bucket = DatabaseID(
        container: Bench.container, scope: .public, owner: "", bucket: Bucket(3, of: 64))

    static let reservation = ReserveReferences(
        database: Self.bucket, drawnIncarnation: ZoneIncarnation(78),
        wishes: [
            ReserveReferences.Wish(target: "author-03", action: .deleteSelf, referrer: "book-0007")
        ])

    /// A short text and a long one, cut.
    private static func cut(resolvesAssets: Bool) -> ModifyRecords {
        let long = (0..<1_001).map { "w\($0)" }.joined(separator: " ")
        var modify = ModifyRecords(
            database: Bench.privateDatabase, zone: "Shelves",
            drawnIncarnation: ZoneIncarnation(77),
            operations: [RecordOperation(.forceDelete, recordName: "c")])
        modify.words = [("title", "Sea Roads"), ("body", long)].map { field, text in
            ModifyRecords.CutText(
                recordName: "c", field: field, words: TextWords(of: .scalar(.string(text))))
        }
        modify.resolvesAssets = resolvesAssets
        return modify
    }

    static let commands: [(name: String, command: RecordCommand)] =
        [
            (
                "command-modify-records-1",
                .modifyRecords(
                    ModifyRecords(
                        database: Bench.privateDatabase, zone: "Shelves", isAtomic: true,
                        drawnIncarnation: ZoneIncarnation(77),
                        rules: RecordRules(flags: [.repeatedCreateSucceeds], cascadeCountMax: 9),
                        operations: [
                            RecordOperation(
                                .create, recordName: "book-0007", recordType: "Book",
                                fields: Self.record.fields, parent: .set("shelf-1"),
                                drawnShortGUID: ShareLink(drawn: 1 << 100, part: 3, owner: 300)),
                            RecordOperation(
                                .update, recordName: "b", changeTag: "lq2k9",
                                clearedFields: ["digest", "rating"], parent: .cleared),
                            RecordOperation(.forceDelete, recordName: "c"),
                        ]))
            ),
            (
                "command-modify-zones-1",
                .modifyZones(
                    ModifyZones(
                        database: Bench.privateDatabase,
                        operations: [
                            ModifyZones.Operation(
                                .create, zone: "Shelves", drawnIncarnation: ZoneIncarnation(5)),
                            ModifyZones.Operation(
                                .delete, zone: "Old", drawnIncarnation: ZoneIncarnation(6)),
                            Self.scoped,
                        ]))
            ),
            ("command-install-schema-1", .schema(.install(AccessTests.schema))),
            ("command-extend-schema-1", .schema(.extend(AccessTests.schema.types))),
            ("command-modify-records-2", .modifyRecords(Self.cut(resolvesAssets: false))),
            ("command-modify-records-4", .modifyRecords(Self.cut(resolvesAssets: true))),
            ("command-continue-jobs-1", .continueJobs(ContinueJobs(budget: 500))),
            (
                "command-erase-database-1",
                .eraseDatabase(EraseDatabase(database: Bench.privateDatabase, zoneCount: 300))
            ),
            (
                "command-modify-bucket-1",
                .modifyRecords(
                    ModifyRecords(
                        database: Self.bucket, drawnIncarnation: ZoneIncarnation(77),
                        operations: [
                            RecordOperation(
                                .create, recordName: "book-0007", recordType: "Book",
                                reservations: [
                                    ReferenceReservation(
                                        target: "author-03", action: .validate,
                                        identity: RequestIdentity(high: 5, low: 600),
                                        deadlineMilliseconds: 1_700_000_030_000)
                                ])
                        ]))
            ),
            ("command-reserve-references-1", .reserveReferences(Self.reservation)),
            ("command-recover-1", .recover),
            ("command-forget-outcomes-1", .forgetOutcomes),
            ("command-audit-links-1", .auditLinks(AuditLinks(database: Self.bucket))),
        ] + AssetGoldens.commands
        + DocumentGoldens.commands + PartGoldenTests.commands

    static let subscription = Subscription(
        "new", .query, zone: "Shelves",
        predicate: RecordPredicate(
            recordType: "Book",
            filters: [
                RecordFilter(
                    field: .field("title"), comparator: .equals, operand: .scalar(.string("Sea")))
            ]), reasons: [.created, .deleted], firesOnce: true, fields: ["pages", "title"],
        content: Bytes(#"{"subscriptionType":"query"}"#.utf8))

    static let outcomes: [(name: String, of: RecordCommand.Kind, outcome: RecordOutcome)] =
        [
            (
                "outcome-records-1", .modifyRecords,
                .records(
                    ModifiedRecords(
                        zone: Self.summary,
                        results: [
                            .saved(
                                SavedRecord(
                                    tag: ChangeTag(299), milliseconds: 1_700_000_000_000,
                                    record: nil)),
                            .deleted(tag: nil), .deleted(tag: ChangeTag(300)),
                            .refused(RecordRefusal(.referenced, "loan")),
                        ]))
            ),
            (
                "outcome-zones-1", .modifyZones,
                .zones([.created(Self.summary), .deleted, .refused(.nameInvalid)])
            ),
            ("outcome-schema-1", .installSchema, .schema(version: 300)),
            ("outcome-jobs-1", .continueJobs, .jobs(JobProgress(rowCount: 400, hasMore: true))),
            ("outcome-refused-1", .modifyRecords, .refused(RequestRefusal(.zoneNotFound, "Nope"))),
            (
                "outcome-erased-1", .eraseDatabase,
                .erased(ErasureProgress(zoneCount: 3, recordCount: 300, hasMore: true))
            ),
            (
                "outcome-reserved-1", .reserveReferences,
                .reserved([nil, RecordRefusal(.tooManyReferrers, "author-03")])
            ),
            ("outcome-recovered-1", .recover, .recovered),
            (
                "outcome-buckets-noted-1", .noteBuckets,
                .bucketsNoted(BucketMask(of: [0, 9]))
            ),
        ] + DocumentGoldens.outcomes

    static let placedAsk: QueryPageAsk = {
        var ask = QueryPageAsk(
            database: Self.bucket, predicate: RecordPredicate(recordType: "Book"), limit: 3)
        ask.placed = .withRecords
        return ask
    }()

    /// The same, by a schema that the partition must have.
    static let versionedAsk: QueryPageAsk = {
        var ask = Self.placedAsk
        ask.schemaVersion = 300
        return ask
    }()

    static let queries: [RecordQuery.Ask] =
        [
            .page(Self.placedAsk), .page(Self.versionedAsk),
            .lookup(RecordLookup(database: Bench.publicDatabase, names: ["a", "a"])),
            .zones(Bench.privateDatabase, names: nil),
            .zonePage(Bench.privateDatabase, after: "A", limit: 7),
            .use(Bench.privateDatabase),
            .zones(Bench.privateDatabase, names: ["A"]),
            .zoneChanges(
                ZoneChangesAsk(
                    database: Bench.privateDatabase, zone: "Shelves", after: Self.summary.position,
                    limit: 7, reverse: true, recordTypes: ["Book"])),
            .databaseChanges(
                DatabaseChangesAsk(
                    database: Bench.privateDatabase,
                    after: DatabasePosition(turn: 4, tag: ChangeTag(9)))),
            .page(
                QueryPageAsk(
                    database: Bench.privateDatabase, zone: nil,
                    predicate: RecordPredicate(
                        recordType: "Book",
                        filters: [
                            RecordFilter(
                                field: .field("place"), comparator: .near,
                                operand: .scalar(.location(Location(latitude: 1, longitude: 2))),
                                distance: 50),
                            RecordFilter(
                                field: .anySearchable, comparator: .containsAllTokens,
                                operand: .list(.string, [.string("sea")])),
                        ],
                        sorts: [
                            RecordSort(
                                field: .system(.createdTimestamp), ascending: false,
                                relativeLocation: Location(latitude: 3, longitude: 4))
                        ]), after: [9, 9])),
            .page(Self.placedAsk),
            .schema(Bench.container), .jobs, .work(asOf: -5),
            .heldRecords(HeldRecordsAsk()), .heldRecords(HeldRecordsAsk(after: [0, 1], limit: 7)),
            .judge(
                JudgeAsk(
                    ModifyRecords(
                        database: Bench.publicDatabase, zone: ZoneID.defaultName, isAtomic: false,
                        drawnIncarnation: ZoneIncarnation(7), operations: [.create("a")]),
                    schemaVersion: 3)),
            .judge(
                JudgeAsk(
                    ModifyRecords(
                        database: Bench.publicDatabase, zone: ZoneID.defaultName, isAtomic: false,
                        drawnIncarnation: ZoneIncarnation(7), operations: [.create("a")]),
                    schemaVersion: 3,
                    growth: [JustInTime.recordType(named: "New", holding: [])])),
        ] + AssetGoldens.queries
        + DocumentGoldens.queries + PartGoldenTests.queries

    static let answers: [RecordAnswer] =
        [
            .lookup(
                LookupAnswer(
                    items: [.found(Self.record), .refused(RecordRefusal(.notFound)), .deferred],
                    zone: Self.summary)),
            .zones([.zone(Self.summary), .refused(.notFound)]),
            .zonePage([.zone(Self.summary)], next: "Shelves"), .zonePage([], next: nil),
            .use(StorageUse(recordCount: 3, size: 1 << 40), zoneCount: 2),
            .zoneChanges(
                ZoneChangesPage(
                    changes: [
                        .changed(Self.record), .deleted(name: "x", tag: ChangeTag(3)),
                        .changed(Self.record),
                    ], position: Self.summary.position, moreComing: true)),
            .zoneRefused(.positionExpired),
            .databaseChanges(
                DatabaseChangesPage(
                    changes: [
                        DatabaseChangesPage.Change(
                            name: "A", deletedBefore: .purged, since: Self.summary.position,
                            zone: Self.summary),
                        DatabaseChangesPage.Change(
                            name: "B", deletion: .encryptedDataReset, since: nil, zone: nil),
                    ], position: DatabasePosition(turn: 1, tag: ChangeTag(2)), moreComing: false)),
            .page(QueryPage(records: [Self.record], next: [1], zone: nil, touchCount: 4)),
            .schema(AccessTests.schema), .schema(nil), .jobs(isWaiting: true),
            .work(isWaiting: false, willWait: true),
            .placedPage(
                PlacedPage(
                    places: [MergePlace(key: [1, 2], marker: [3])], records: [Self.record],
                    end: MergePlace(key: [9], marker: []))),
            .placedPage(PlacedPage(places: [], records: [], end: nil)),
            .heldRecords(HeldRecords(use: StorageUse(recordCount: 300, size: 1 << 33))),
            .heldRecords(HeldRecords(use: .none, next: [0, 0, 0, 1, 0x41])),
            .refused(RequestRefusal(.typeUnknown, "Ghost")),
            .judged([nil, RecordRefusal(.referenced, "loan")]),
        ] + AssetGoldens.answers
        + DocumentGoldens.answers + PartGoldenTests.answers

    /// Everything that is written for other nodes, by the name of its file.
    static let samples: [(name: String, bytes: Bytes)] =
        Self.commands.map { ($0.name, $0.command.encoded()) }
        + Self.outcomes.map { ($0.name, $0.outcome.encoded(of: $0.of)) }
        + Self.named("query", Self.queries.map { RecordQuery(principal: AccessTests.editor, $0) }) {
            ("\($0.kind)", $0.encoded())
        }
        + Self.named("answer", Self.answers) { answer in
            let bytes = answer.encoded()
            return (RecordQuery.Kind(rawValue: bytes[1]).map { "\($0)" } ?? "refused", bytes)
        }
        + Self.typed.map { ($0.name, $0.bytes) }

    /// Those of the operations and questions that are types.
    static let typed =
        KeyGoldens.samples + ShareGoldens.samples + AssetGoldens.samples
        + SubscriptionGoldens.samples + KeyValueGoldens.samples

    /// Each by its kind, and a number among those of its kind.
    private static func named<Value>(
        _ what: String, _ values: [Value], _ write: (Value) -> (kind: String, bytes: Bytes)
    ) -> [(name: String, bytes: Bytes)] {
        var counts: [String: Int] = [:]
        return values.map { value in
            let (kind, bytes) = write(value)
            counts[kind, default: 0] += 1
            let words = kind.reduce("") { $0 + ($1.isUppercase ? "-\($1.lowercased())" : "\($1)") }
            return ("\(what)-\(words)-\(counts[kind] ?? 0)", bytes)
        }
    }

    /// - Parameter now: what is written today. It becomes the file where that is asked for.
    static func golden(_ name: String, now: Bytes? = nil) throws -> String {
        let url = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "Golden/\(name).hex")
        if let now, ProcessInfo.processInfo.environment["STRATUS_GOLDEN"] == "write" {
            try Data((Self.hexadecimal(now) + "\n").utf8).write(to: url)
        }
        return try String(contentsOf: url, encoding: .utf8).filter(\.isHexDigit)
    }

    static func hexadecimal(_ bytes: Bytes) -> String {
        bytes.map { String(Int($0) + 0x100, radix: 16).suffix(2) }.joined()
    }

    static func bytes(_ hexadecimal: String) -> Bytes {
        var bytes = Bytes()
        var rest = hexadecimal[...]
        while let byte = UInt8(rest.prefix(2), radix: 16) {
            bytes.append(byte)
            rest = rest.dropFirst(2)
        }
        return bytes
    }

    @Test func `no two forms have one name`() {
        #expect(Set(Self.samples.map(\.name)).count == Self.samples.count)
    }

    @Test(arguments: Self.samples.map(\.name))
    func `forms are written as ever`(name: String) throws {
        let bytes = try #require(Self.samples.first { $0.name == name }).bytes
        let now = Self.hexadecimal(bytes)
        #expect(now == (try Self.golden(name, now: bytes)), "now \(now)")
    }

    @Test func `commands and outcomes are read as ever`() throws {
        for (name, command) in Self.commands {
            let golden = Self.bytes(try Self.golden(name, now: command.encoded()))
            #expect(
                try RecordCommand(decoding: golden, container: Bench.container) == command,
                "\(name)")
            #expect(golden[1] == command.number && command.level == .one, "\(name)")
        }
        for (name, operation, outcome) in Self.outcomes {
            let golden = Self.bytes(try Self.golden(name, now: outcome.encoded(of: operation)))
            #expect(try RecordOutcome(decoding: golden) == outcome, "\(name)")
        }
    }

    @Test func `every operation and every question has a form`() {
        #expect(Set(Self.commands.map(\.command.kind)) == Set(RecordCommand.Kind.allCases))
        let asked = Self.queries.map { RecordQuery(principal: AccessTests.editor, $0).kind }
        #expect(Set(asked) == Set(RecordQuery.Kind.allCases))
        let answered = Self.answers.compactMap { RecordQuery.Kind(rawValue: $0.encoded()[1]) }
        #expect(Set(answered) == Set(RecordQuery.Kind.allCases))
        let typed = Set(Self.typed.map { $0.bytes.prefix(2) })
        for row in RecordState.operations.rows { #expect(typed.contains([1, row.type.number])) }
        let questions = Self.typed.filter { $0.name.hasPrefix("query") }.compactMap { golden in
            RecordState.questions.question(in: Query(kind: .records, body: golden.bytes))
        }
        for row in RecordState.questions.rows {
            #expect(questions.contains { type(of: $0.question).number == row.type.number })
        }
    }

    @Test(arguments: Self.typed.map(\.name))
    func `a form of a type is read and written as ever`(name: String) throws {
        let sample = try #require(Self.typed.first { $0.name == name })
        let golden = Self.bytes(try Self.golden(name, now: sample.bytes))
        #expect(try sample.rewrite(golden) == golden)
    }

    @Test func `a record's row reads and writes as ever`() throws {
        var writer = ByteWriter()
        writer.write(recordBody: Self.record)
        #expect(
            Self.hexadecimal(writer.bytes) == (try Self.golden("record-1", now: writer.bytes)))
        var reader = ByteReader(Self.bytes(try Self.golden("record-1")))
        #expect(
            try reader.recordBody(name: Self.record.name, zone: Self.record.zone) == Self.record)
        try reader.finish()
    }

    /// All rows that a small life leaves, so that no key or row changes its form unseen.
    static func rowsOfASmallLife() throws -> Bytes {
        var bench = Bench()
        let indexed = FieldDefinition(
            name: "title", type: FieldType(.string), indexes: [.queryable, .sortable])
        let loan = FieldDefinition(name: "b", type: FieldType(.reference))
        let schema = Schema(
            version: 1, types: [RecordType(name: "Book", fields: [loan, indexed])])
        _ = try bench.apply(.schema(.install(schema)), as: Bench.system)
        try bench.zones(.create, "Shelves", "Old")
        try bench.modify(
            .create("a", [text("title", "Sea Roads")]),
            .create("b", [reference("b", to: "a", .deleteSelf)]),
            .create("c", [reference("b", to: "a", .validate)]), .create("d"))
        try bench.modify(
            .create("f"), .create("g", parent: "f"),
            .create("h", [reference("b", to: "f", .deleteSelf)], parent: "f"))
        try bench.modify(.delete("d"))
        try bench.modify(rules: RecordRules(cascadeCountMax: 1), .delete("c"), .delete("a"))
        try bench.zones(.delete, "Old")
        _ = try bench.modify(in: ZoneID.defaultName, .create("e"))
        var writer = ByteWriter()
        for table in Table.all {
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

    @Test func `the rows of a partition are laid out as ever`() throws {
        let bytes = try Self.rowsOfASmallLife()
        let rows = Self.hexadecimal(bytes)
        #expect(rows == (try Self.golden("rows-1", now: bytes)), "now \(rows)")
    }

    @Test func `queries and answers come back as they were`() throws {
        for ask in Self.queries {
            let query = RecordQuery(principal: AccessTests.editor, ask)
            #expect(try RecordQuery(decoding: query.encoded()) == query)
        }
        for answer in Self.answers {
            #expect(try RecordAnswer(decoding: answer.encoded()) == answer)
        }
    }

    @Test func `a version from the future is named, not guessed at`() {
        for sample in Self.samples {
            var bytes = sample.bytes
            bytes[0] = 9
            #expect(throws: DecodingError(.unknownVersion(9), at: 0), "\(sample.name)") {
                _ = try RecordCommand(decoding: bytes, container: Bench.container)
            }
        }
    }
}
