import StratusModel
import StratusQuery
import StratusRecords
import StratusRows
import Testing

/// G-33: a page is bounded by its work, which grows no faster than the request: the tests compare
/// counts, not times.
@Suite struct QueryWorkTests {
    static func record(_ name: String, _ fields: [Field], by user: String = "_a", zone: ZoneID)
        -> Record
    {
        let stamp = ChangeStamp(milliseconds: 1, userRecordName: user, deviceID: "2")
        return Record(
            name: name, type: "Book", zone: zone, tag: ChangeTag(1), created: stamp,
            modified: stamp, fields: fields)
    }

    static func work(
        _ filter: RecordFilter?, sorts: [RecordSort] = [], over shelf: QueryShelf,
        visible: VisibleRecords = .all
    ) throws -> ReadWork {
        let request = QueryPageRequest(
            RecordPredicate(recordType: "Book", filters: filter.map { [$0] } ?? [], sorts: sorts),
            zones: shelf.zones, touchCountMax: 1 << 40)
        return try QueryExecutor(shelf.schema, shelf.source).page(
            request, over: shelf.rows.view, visible: visible
        )
        .get().counters.work
    }

    static func word(_ number: Int) -> String { "w\(1_000_000 + number)" }

    // MARK: Operands and words

    /// The audit's query: none of the operands is in the record but the last ones.
    private static func hostile(_ operandCount: Int, list: Bool) -> RecordFilter {
        let absent = (0..<operandCount).map { "a\(1_000_000 + $0)" }
        return list
            ? RecordFilter(
                field: .field("tags"), comparator: .listContainsAny,
                operand: .list(.string, (absent + [Self.word(0)]).map { .string($0) }))
            : RecordFilter(
                field: .field("title"), comparator: .containsAnyTokens,
                operand: .scalar(.string((absent + [Self.word(0)]).joined(separator: " "))))
    }

    private static func shelf(words: Int, records: Int = 1) -> QueryShelf {
        var shelf = QueryShelf(QueryLibrary.schema)
        let texts = (0..<words).map { Self.word($0) }
        for number in 0..<records {
            let fields = [
                Field(name: "tags", value: .list(.string, texts.map { .string($0) })),
                Field(
                    name: "title", value: .scalar(.string(texts.joined(separator: " ")))),
            ]
            let record = Self.record("n\(number)", fields, zone: shelf.zones[0].id)
            shelf.set(record.name, to: record, zone: 0)
        }
        return shelf
    }

    @Test(arguments: [true, false])
    func `operands and words of a record add up and do not multiply (security audit 1)`(
        list: Bool
    ) throws {
        // All of the operands, and all of the words: each alone, and both.
        var shelf = Self.shelf(words: 800)
        for operands in [100, 200, 400, 800] {
            let work = try Self.work(Self.hostile(operands, list: list), over: shelf)
            #expect(work.comparisonCount <= 3 * (operands + 800) + 100, "\(operands): \(work)")
            #expect(work.seekCount <= operands + 20)
        }
        for words in [100, 200, 400, 800] {
            shelf = Self.shelf(words: words)
            let all = Self.word(0) + (1..<words).map { " " + Self.word($0) }.joined()
            let filter =
                list
                ? RecordFilter(
                    field: .field("tags"), comparator: .listContainsAny,
                    operand: .list(.string, (0..<words).map { .string(Self.word($0)) }))
                : RecordFilter(
                    field: .field("title"), comparator: .containsAnyTokens,
                    operand: .scalar(.string(all)))
            let work = try Self.work(filter, over: shelf)
            #expect(work.comparisonCount <= 5 * words + 100, "\(words): \(work)")
            #expect(work.cutByteCount <= 28 * words + 100, "\(words): \(work)")
        }
    }

    // MARK: Every comparator

    private static func operand(
        _ comparator: Comparator, _ type: FieldType, count: Int
    ) -> FieldValue {
        func scalar(_ number: Int) -> Scalar {
            switch type.scalar {
            case .string: .string(Self.word(number))
            case .int64: .int64(Int64(number))
            case .double: .double(Double(number))
            case .timestamp: .timestamp(Int64(number))
            case .bytes: .bytes([UInt8(number & 0xFF)])
            case .location: .location(Location(latitude: 1, longitude: Double(number % 180)))
            case .reference, .asset:
                .reference(
                    Reference(
                        recordName: "r\(number)",
                        zone: ZoneID(name: "Zone0", owner: "_owner"), action: .none))
            }
        }
        switch comparator {
        case .in, .notIn, .listContainsAll, .notListContainsAll, .listContainsAny,
            .notListContainsAny:
            return .list(type.scalar, (0..<count).map(scalar))
        case .containsAllTokens, .containsAnyTokens:
            return .scalar(.string((0..<count).map { Self.word($0) }.joined(separator: " ")))
        case .beginsWith, .notBeginsWith, .listMemberBeginsWith, .notListMemberBeginsWith:
            return .scalar(.string("w"))
        default: return .scalar(scalar(1))
        }
    }

    private static func shelf(records: Int, elements: Int) -> QueryShelf {
        var shelf = QueryShelf(QueryLibrary.schema)
        let zone = shelf.zones[0].id
        for number in 0..<records {
            func element(_ type: ScalarType, _ number: Int) -> Scalar {
                let value = Self.operand(.equals, FieldType(type), count: 1)
                switch type {
                case .string: return .string(Self.word(number))
                case .int64: return .int64(Int64(number))
                case .reference:
                    return .reference(
                        Reference(recordName: "r\(number)", zone: zone, action: .none))
                default:
                    guard case .scalar(let scalar) = value else { return .int64(0) }
                    return scalar
                }
            }
            var fields = QueryLibrary.plain.map {
                Field(name: $0.0, value: .scalar(element($0.1, number)))
            }
            fields += QueryLibrary.lists.map { name, type in
                Field(
                    name: name, value: .list(type, (0..<elements).map { element(type, $0) }))
            }
            for (position, field) in fields.enumerated() where field.name == "title" {
                let text = (0..<elements).map { Self.word($0) }.joined(separator: " ")
                fields[position].value = .scalar(.string(text))
            }
            let record = Self.record(
                "n\(number)", fields.sorted { $0.name < $1.name }, zone: zone)
            shelf.set(record.name, to: record, zone: 0)
        }
        return shelf
    }

    private static let sizes = [25, 50, 100, 200]

    /// Twice as much asked is at most a little more than twice the work.
    private static func expectLinear(_ works: [Int], _ note: String) {
        for (one, two) in zip(works, works.dropFirst()) {
            #expect(two <= 2 * one + one / 4 + 200, "\(note): \(works)")
        }
    }

    @Test(arguments: Comparator.allCases)
    func `work is at most linear in operands, in record size and in rows (security audit 1)`(
        comparator: Comparator
    ) throws {
        let fields =
            QueryLibrary.plain.map { ($0.0, FieldType($0.1)) }
            + QueryLibrary.lists.map { ($0.0, FieldType($0.1, isList: true)) }
        let shelves = (
            Self.shelf(records: 20, elements: 20),
            Self.sizes.map { Self.shelf(records: 5, elements: $0) },
            Self.sizes.map { Self.shelf(records: $0, elements: 5) }
        )
        for (name, type) in fields where FilterCompiler.accepts(comparator, type) {
            func total(_ count: Int, _ shelf: QueryShelf) throws -> Int {
                let work = try Self.work(
                    RecordFilter(
                        field: .field(name), comparator: comparator,
                        operand: Self.operand(comparator, type, count: count), distance: 1e6),
                    over: shelf)
                return work.seekCount + work.rowCount + work.byteCount + work.cutByteCount
                    + work.comparisonCount
            }
            let note = "\(comparator) \(name)"
            Self.expectLinear(
                try Self.sizes.map { try total($0, shelves.0) }, "\(note) by operands")
            Self.expectLinear(try shelves.1.map { try total(10, $0) }, "\(note) by record size")
            Self.expectLinear(try shelves.2.map { try total(10, $0) }, "\(note) by rows")
        }
    }

    // MARK: Bounds

    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func
        `no page passes its bound by more than a record, and pages find what one page finds (security audit 1)`(
            seed: UInt64
        ) throws
    {
        var library = QueryLibrary(seed: seed &+ 700)
        let zoneCount = library.pick([1, 1, 2, 5])
        var shelf = QueryPropertyTests.shelf(&library, count: 50, zones: zoneCount)
        // A few large records: some with more words than are indexed.
        for number in 0..<4 {
            let words = library.pick([50, 400, 1_500])
            let text = (0..<words).map { Self.word($0) }.joined(separator: " ") + " sea"
            let zone = number % zoneCount
            let record = Self.record(
                "large\(number)", [Field(name: "title", value: .scalar(.string(text)))],
                zone: shelf.zones[zone].id)
            shelf.set(record.name, to: record, zone: zone)
        }
        // The whole cost of one record: read, cut by three filters and for its place, and its rows
        // compared.
        let slack = 5 * 20_000 / ReadWork.cutBytesPerTouch + 100 + 40 * zoneCount
        for round in 0..<25 {
            var predicate = library.predicate(
                home: shelf.zones[0].id, names: ["n1", "n2", "large0", "n40"])
            predicate.sorts.removeAll { $0.relativeLocation != nil }
            let bound = library.pick([1, 20, 100, 500])
            let pages = try QueryPropertyTests.follow(
                predicate, &shelf, limits: { (200, bound) })
            try QueryPropertyTests.check(
                pages.records, against: shelf, predicate, "seed \(seed) round \(round)")
            for counters in pages.counters {
                #expect(
                    counters.work.touchCount <= bound + slack,
                    "seed \(seed) round \(round) bound \(bound): \(counters) \(predicate)")
            }
        }
    }

    @Test func `a page ends when its time is over, and the next goes on (security audit 1)`() throws
    {
        var library = QueryLibrary(seed: 9)
        let shelf = QueryPropertyTests.shelf(&library, count: 80, zones: 2)
        for _ in 0..<20 {
            let predicate = library.predicate(home: shelf.zones[0].id, names: ["n1"])
            var names: [String] = []
            var after: Bytes?
            var pageCount = 0
            repeat {
                var now = MonotonicTime(nanoseconds: 0)
                let time = ReadTime(until: now + .milliseconds(5)) {
                    now = now + .milliseconds(1)
                    return now
                }
                let request = QueryPageRequest(predicate, zones: shelf.zones, after: after)
                let page = try QueryExecutor(shelf.schema, shelf.source)
                    .page(request, over: shelf.rows.view, within: time).get()
                names += page.records.map { $0.zone.name + $0.name }
                #expect(page.next != after || after == nil, "a page ended where it began")
                after = page.next
                pageCount += 1
            } while after != nil && pageCount < 1_000
            let request = QueryPageRequest(predicate, zones: shelf.zones)
            let whole = try QueryExecutor(shelf.schema, shelf.source).page(
                request, over: shelf.rows.view
            ).get()
            #expect(Set(names).count == names.count)
            #expect(Set(names) == Set(whole.records.map { $0.zone.name + $0.name }), "\(predicate)")
            if !names.isEmpty { #expect(pageCount > 1, "\(predicate)") }
        }
    }

    @Test func `names that nobody has cost pages, not one long page (security audit 6)`() throws {
        var library = QueryLibrary(seed: 3)
        var shelf = QueryPropertyTests.shelf(&library, count: 20, zones: 1)
        let names = (0..<2_000).map { Scalar.string("nobody\($0)") } + [.string("n1")]
        for sorts in [[], [RecordSort(field: .field("title"))]] {
            let predicate = RecordPredicate(
                recordType: "Book",
                filters: [
                    RecordFilter(
                        field: .system(.recordName), comparator: .in,
                        operand: .list(.string, names))
                ], sorts: sorts)
            let pages = try QueryPropertyTests.follow(predicate, &shelf, limits: { (200, 100) })
            try QueryPropertyTests.check(pages.records, against: shelf, predicate, "names")
            for counters in pages.counters { #expect(counters.work.touchCount <= 200) }
        }
    }

    @Test func `a query of all zones ends its page between zones (security audit 6)`() throws {
        var library = QueryLibrary(seed: 4)
        var shelf = QueryPropertyTests.shelf(&library, count: 10, zones: 200)
        let predicate = RecordPredicate(
            recordType: "Book",
            filters: [
                RecordFilter(
                    field: .field("flag"), comparator: .notEquals, operand: .scalar(.int64(77)))
            ])
        let pages = try QueryPropertyTests.follow(predicate, &shelf, limits: { (200, 20) })
        try QueryPropertyTests.check(pages.records, against: shelf, predicate, "zones")
        #expect(pages.counters.count > 10)
        for counters in pages.counters { #expect(counters.work.touchCount <= 60) }
        let sorted = RecordPredicate(
            recordType: "Book", sorts: [RecordSort(field: .field("title"))])
        let request = QueryPageRequest(sorted, zones: shelf.zones, touchCountMax: 100)
        #expect(throws: QueryRefusal.self) {
            try QueryExecutor(shelf.schema, shelf.source).page(request, over: shelf.rows.view).get()
        }
    }

    @Test func `large texts end a page by what is cut of them (security audit 2)`() throws {
        var shelf = QueryShelf(QueryLibrary.schema)
        let text = (0..<3_000).map { Self.word($0) }.joined(separator: " ")
        for number in 0..<20 {
            let record = Self.record(
                "n\(number)", [Field(name: "title", value: .scalar(.string(text)))],
                zone: shelf.zones[0].id)
            shelf.set(record.name, to: record, zone: 0)
        }
        // A word of all of them: no summary denies it, so every text is cut.
        let predicate = RecordPredicate(
            recordType: "Book",
            filters: [
                RecordFilter(
                    field: .field("title"), comparator: .containsAnyTokens,
                    operand: .scalar(.string(Self.word(7))))
            ])
        // Each costs about 850: two to a page.
        let pages = try QueryPropertyTests.follow(predicate, &shelf, limits: { (200, 1_000) })
        #expect(pages.records.count == 20)
        #expect((8...20).contains(pages.counters.count), "\(pages.counters.count)")
    }

    // MARK: Markers

    /// A schema in which the field has an index, or has none.
    private static func schema(_ indexed: [String], version: UInt64) -> Schema {
        Schema(
            version: version,
            types: [
                RecordType(
                    name: "Book",
                    fields: ["flag", "rating"].map {
                        FieldDefinition(
                            name: $0, type: FieldType(.int64),
                            indexes: indexed.contains($0) ? QueryLibrary.all : [])
                    })
            ])
    }

    @Test
    func `a marker goes on by its own index, or is refused (semantics audit 2)`()
        throws
    {
        var shelf = QueryShelf(IndexedSchema(schema: Self.schema(["flag"], version: 1)))
        for number in 0..<30 {
            let fields = ["flag", "rating"].map {
                Field(name: $0, value: .scalar(.int64(Int64(number % 3))))
            }
            let name = "p\(100 + number)"
            shelf.set(
                name, to: Self.record(name, fields, zone: shelf.zones[0].id), zone: 0)
        }
        let predicate = RecordPredicate(
            recordType: "Book",
            filters: ["flag", "rating"].map {
                RecordFilter(
                    field: .field($0), comparator: .lessThan, operand: .scalar(.int64(2)))
            })
        func page(_ shelf: QueryShelf, after: Bytes?) throws -> QueryResult {
            let request = QueryPageRequest(
                predicate, zones: shelf.zones, limit: 8, after: after, requiresIndexes: false)
            return try QueryExecutor(shelf.schema, shelf.source).page(
                request, over: shelf.rows.view
            ).get()
        }
        let first = try page(shelf, after: nil)
        #expect(first.records.count == 8 && first.counters.plan == .index)
        // Another index comes, and stands before the marker's in the list of paths or after it.
        var more = shelf
        more.schema.install(Self.schema(["flag", "rating"], version: 2), over: .checked)
        more.schema.markReady(more.schema.building.map(\.number))
        var names = first.records.map(\.name)
        var after = first.next
        while let marker = after {
            let next = try page(more, after: marker)
            names += next.records.map(\.name)
            after = next.next
        }
        #expect(names.count == 20 && Set(names).count == 20)
        // Its index goes.
        var fewer = shelf
        fewer.schema.install(Self.schema([], version: 2), over: .checked)
        #expect(throws: QueryRefusal.invalid("Invalid continuation marker")) {
            try page(fewer, after: first.next)
        }
    }
}
