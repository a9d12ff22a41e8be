import StratusCoding
import StratusDoubles
import StratusModel
import StratusRows
import Testing

@testable import StratusQuery
@testable import StratusRecords

/// A text with more different words than are indexed has a summary of them, so that a word search
/// reads few such texts whole (security audit 2).
@Suite struct LongTextTests {
    static let schema: IndexedSchema = {
        var schema = IndexedSchema()
        schema.install(QueryLibrary.schema.schema, over: .none)
        return schema
    }()

    private static func long(_ words: Range<Int>) -> String {
        words.map { QueryWorkTests.word($0) }.joined(separator: " ")
    }

    private static func shelf(_ schema: IndexedSchema, records: Int, words: Int) -> QueryShelf {
        var shelf = QueryShelf(schema)
        for number in 0..<records {
            let start = number * words
            let record = QueryWorkTests.record(
                "n\(number)",
                [
                    Field(
                        name: "title",
                        value: .scalar(.string(Self.long(start..<(start + words)))))
                ], zone: shelf.zones[0].id)
            shelf.set(record.name, to: record, zone: 0)
        }
        return shelf
    }

    private static func search(_ text: String, all: Bool = false) -> RecordFilter {
        RecordFilter(
            field: .field("title"), comparator: all ? .containsAllTokens : .containsAnyTokens,
            operand: .scalar(.string(text)))
    }

    // MARK: Summaries

    @Test func `a summary denies no word of its text, and most words of others`() {
        for count in [1_001, 5_000, 16_000] {
            guard
                case .many(let summary) = TextWords(of: .scalar(.string(Self.long(0..<count))))
            else {
                Issue.record("\(count) words are few")
                return
            }
            #expect(summary.row.count == 1 + count)
            let words = (0..<count).map { Bytes(QueryWorkTests.word($0).utf8) }
            for word in words { #expect(summary.mayHold(SoughtWords([word], all: true))) }
            #expect(summary.mayHold(SoughtWords(words, all: true)))
            let others = (0..<10_000).map { Bytes(QueryWorkTests.word(500_000 + $0).utf8) }
            let wrong = others.filter { summary.mayHold(SoughtWords([$0], all: false)) }
            #expect(wrong.count < 400, "\(count): \(wrong.count) of 10,000")
        }
    }

    @Test func `a summary has a bound, and is decoded as it was written`() throws {
        guard case .many(let summary) = TextWords(of: .scalar(.string(Self.long(0..<40_000))))
        else {
            Issue.record("40,000 words are few")
            return
        }
        #expect(summary.row.count == 1 + WordSummary.sizeMax)
        #expect(try WordSummary(decoding: summary.row) == summary)
        #expect(throws: DecodingError(.unknownVersion(2), at: 0)) {
            try WordSummary(decoding: [2, 0])
        }
        #expect(throws: DecodingError.self) { try WordSummary(decoding: [1]) }
        #expect(throws: DecodingError.self) { try WordSummary(decoding: []) }
    }

    @Test func `a thousand words have rows, and one word more a summary`() {
        let zone = QueryShelf(Self.schema).zones[0]
        for (count, rowCount) in [(1_000, 1_000), (1_001, 2)] {
            let record = QueryWorkTests.record(
                "n", [Field(name: "title", value: .scalar(.string(Self.long(0..<count))))],
                zone: zone.id)
            let indexes = Self.schema.indexes(of: "Book").filter {
                $0.field == "title" && ($0.kind == .tokens || $0.kind == .longTexts)
            }
            #expect(indexes.count == 2)
            #expect(
                IndexMaintenance.rows(of: record, for: indexes, zone: zone).count == rowCount)
        }
    }

    @Test func `words that a gateway has cut give the rows that the state cuts itself`() {
        let zone = QueryShelf(Self.schema).zones[0]
        for text in [Self.long(0..<20), Self.long(0..<3_000), "", "größe 東京 " + Self.long(0..<9)] {
            let value = FieldValue.scalar(.string(text))
            let record = QueryWorkTests.record(
                "n", [Field(name: "title", value: value)], zone: zone.id)
            let indexes = Self.schema.indexes(of: "Book")
            #expect(
                IndexMaintenance.rows(
                    of: record, for: indexes, zone: zone, words: ["title": TextWords(of: value)])
                    == IndexMaintenance.rows(of: record, for: indexes, zone: zone))
        }
    }

    // MARK: Searches

    @Test func `a search among long texts reads few of them whole (security audit 2)`() throws {
        let indexed = Self.shelf(Self.schema, records: 40, words: 3_000)
        let work = try QueryWorkTests.work(Self.search("nosuchword"), over: indexed)
        // Forty summaries of 3,000 bytes, and not the texts of 24,000 bytes.
        #expect(work.cutByteCount < 100_000, "\(work)")
        #expect(work.touchCount < 1_000, "\(work)")
        // The last word of one text, and of two.
        for (words, found) in [
            (QueryWorkTests.word(2_999), ["n0"]),
            (QueryWorkTests.word(2_999) + " " + QueryWorkTests.word(3_000), ["n0", "n1"]),
        ] {
            let predicate = RecordPredicate(
                recordType: "Book", filters: [Self.search(words)])
            let request = QueryPageRequest(predicate, zones: indexed.zones)
            let page = try QueryExecutor(indexed.schema, indexed.source).page(
                request, over: indexed.rows.view
            ).get()
            #expect(page.records.map(\.name).sorted() == found)
            let all = RecordPredicate(
                recordType: "Book", filters: [Self.search(words, all: true)])
            let both = QueryPageRequest(all, zones: indexed.zones)
            #expect(
                try QueryExecutor(indexed.schema, indexed.source).page(
                    both, over: indexed.rows.view
                ).get()
                    .records.count == (found.count == 1 ? 1 : 0))
        }
    }

    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func `searches among short and long texts find what reading everything finds`(
        seed: UInt64
    ) throws {
        var library = QueryLibrary(seed: seed &+ 900)
        let zoneCount = library.pick([1, 2])
        var shelf = QueryShelf(Self.schema, zoneCount: zoneCount)
        let fields = QueryLibrary.plain.filter { $0.1 == .string }.map(\.0)
        func set(_ number: Int, _ library: inout QueryLibrary) {
            let zone = number % zoneCount
            var record = library.record("n\(number)", zone: shelf.zones[zone].id, type: "Book")
            for field in fields where library.chance(40) {
                let start = library.pick([0, 500, 900])
                let text = Self.long(start..<(start + library.pick([3, 600, 1_200]))) + " sea"
                record.fields.removeAll { $0.name == field }
                record.fields.append(Field(name: field, value: .scalar(.string(text))))
            }
            record.fields.sort { $0.name < $1.name }
            shelf.set(record.name, to: library.chance(10) ? nil : record, zone: zone)
        }
        for number in 0..<30 { set(number, &library) }
        for round in 0..<20 {
            for _ in 0..<5 { set(library.pick(Array(0..<30)), &library) }
            let words = library.pick([
                "sea", "nosuchword", QueryWorkTests.word(0), QueryWorkTests.word(1_500),
                QueryWorkTests.word(901) + " sea", QueryWorkTests.word(3) + " nosuchword",
                QueryWorkTests.word(2) + " " + QueryWorkTests.word(1_699),
            ])
            var predicate = RecordPredicate(
                recordType: "Book",
                filters: [
                    RecordFilter(
                        field: library.chance(50)
                            ? .anySearchable : .field(library.pick(fields)),
                        comparator: library.chance(50) ? .containsAllTokens : .containsAnyTokens,
                        operand: .scalar(.string(words)))
                ])
            if library.chance(30) {
                predicate.sorts = [RecordSort(field: .field(library.pick(fields)))]
            }
            let pages = try QueryPropertyTests.follow(
                predicate, &shelf,
                limits: { (library.pick([1, 3, 200]), library.pick([1, 20, 500, 10_000])) })
            try QueryPropertyTests.check(
                pages.records, against: shelf, predicate, "seed \(seed) round \(round)")
        }
        #expect(shelf.indexKeys == shelf.indexFromScratch())
    }

    // MARK: Schemas

    private static func schema(_ fields: String, version: UInt64) throws -> Schema {
        var schema = try SchemaText.read(
            """
            DEFINE SCHEMA RECORD TYPE Book ("___recordID" REFERENCE QUERYABLE, \(fields),
                GRANT READ, CREATE TO "_icloud");
            """)
        schema.version = version
        return schema
    }

    private static func bench(_ fields: String = "title STRING SEARCHABLE") throws -> Bench {
        var bench = Bench()
        let schema = try Self.schema(fields, version: 1)
        _ = try bench.apply(.schema(.install(schema)), as: Bench.system)
        try bench.zones(.create, "Shelves")
        return bench
    }

    private static func found(_ word: String, in bench: Bench) throws -> (names: [String], Int) {
        let ask = QueryPageAsk(
            database: Bench.privateDatabase, zone: "Shelves",
            predicate: RecordPredicate(recordType: "Book", filters: [Self.search(word)]))
        guard case .page(let page) = try bench.ask(.page(ask)) else { throw BenchError("no page") }
        return (page.records.map(\.name), page.touchCount)
    }

    @Test func `a newer schema brings the index to records that are there`() throws {
        var bench = try Self.bench("title STRING")
        for number in 0..<5 {
            let start = number * 3_000
            try bench.modify(
                .create("n\(number)", [text("title", Self.long(start..<(start + 3_000)))]))
        }
        let fields = "title STRING SEARCHABLE, more STRING"
        let schema = try Self.schema(fields, version: 2)
        _ = try bench.apply(.schema(.install(schema)), as: Bench.system)
        try bench.finishJobs()
        #expect(try Self.found(QueryWorkTests.word(3_001), in: bench).names == ["n1"])
        let (_, touched) = try Self.found("nosuchword", in: bench)
        #expect(touched < 200, "\(touched)")
        // A later schema does not take it away.
        _ = try bench.apply(
            .schema(.install(try Self.schema(fields, version: 3))), as: Bench.system)
        #expect(try Self.found("nosuchword", in: bench).1 == touched)
        // Deleting the records leaves nothing behind.
        for number in 0..<5 { try bench.modify(.delete("n\(number)")) }
        #expect(bench.rows.count(.index) == 0)
    }

    @Test func `a command with words leaves the rows that one without leaves`() throws {
        var rows: [[Table: [KeyedRow]]] = []
        for isCut in [false, true] {
            var bench = try Self.bench()
            for (number, count) in [20, 3_000, 900, 1_500].enumerated() {
                let value = FieldValue.scalar(.string(Self.long(0..<count)))
                // The same record again and again: from few words to many and back.
                var modify = ModifyRecords(
                    database: Bench.privateDatabase, zone: "Shelves",
                    drawnIncarnation: ZoneIncarnation(1),
                    operations: [
                        RecordOperation(
                            .forceReplace, recordName: "n", recordType: "Book",
                            fields: [Field(name: "title", value: value)])
                    ])
                if isCut {
                    modify.words = [
                        ModifyRecords.CutText(
                            recordName: "n", field: "title", words: TextWords(of: value))
                    ]
                }
                let command = RecordCommand.modifyRecords(modify)
                #expect(
                    try RecordCommand(decoding: command.encoded(), container: Bench.container)
                        == command, "\(number)")
                _ = try bench.apply(command)
            }
            rows.append(bench.rows.contents)
        }
        #expect(rows[0] == rows[1])
    }
}
