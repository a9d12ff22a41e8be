import StratusCoding
import StratusModel
import StratusQuery
import StratusRecords
import StratusRows
import Testing

/// The planner's answers are those of reading everything, whatever it chose to read.
@Suite struct QueryPropertyTests {
    /// Orders two records by the sorts, value by value, without any key: the other way to say it.
    static func isOrdered(_ one: Record, before other: Record, _ sorts: [RecordSort]) -> Bool? {
        for sort in sorts {
            if case .system(.recordName) = sort.field {
                if one.name == other.name { return nil }
                return (one.name < other.name) == sort.ascending
            }
            let order = Self.order(Self.value(one, sort), Self.value(other, sort))
            if order != 0 { return (order < 0) == sort.ascending }
        }
        return nil
    }

    enum SortValue {
        case missingFirst, missingLast, distance(Double), value(ComparableValue)
    }

    static func value(_ record: Record, _ sort: RecordSort) -> SortValue {
        switch sort.field {
        case .system(let field):
            return ComparableValue(field, of: record).map(SortValue.value) ?? .missingFirst
        case .field(let name):
            guard case .scalar(let scalar)? = record.value(of: name) else {
                return sort.relativeLocation == nil ? .missingFirst : .missingLast
            }
            if let centre = sort.relativeLocation, case .location(let place) = scalar {
                let cell = GeoCell(code: GeoCell.code(of: place))
                return .distance(cell.middle.squaredChord(to: SpherePoint(centre)))
            }
            return ComparableValue(scalar).map(SortValue.value) ?? .missingFirst
        case .anySearchable:
            return .missingFirst
        }
    }

    static func order(_ one: SortValue, _ two: SortValue) -> Int {
        switch (one, two) {
        case (.missingFirst, .missingFirst), (.missingLast, .missingLast): return 0
        case (.missingFirst, _), (_, .missingLast): return -1
        case (_, .missingFirst), (.missingLast, _): return 1
        case (.distance(let first), .distance(let second)):
            return first < second ? -1 : first == second ? 0 : 1
        case (.value(let first), .value(let second)):
            // What indexes order by: the first 240 bytes of text, references by zone after name.
            switch (first, second) {
            case (.text(let a), .text(let b)), (.bytes(let a), .bytes(let b)):
                if a.count > 240, b.count > 240, a.prefix(240) == b.prefix(240) { return 0 }
            default: break
            }
            if case .reference(let a, let zone) = first, case .reference(let b, let other) = second,
                a == b
            {
                let (here, there) = (zone.name == "Elsewhere", other.name == "Elsewhere")
                return here == there ? 0 : here ? 1 : -1
            }
            return first.ordered(to: second) ?? 0
        case (.distance, .value), (.value, .distance): return 0
        }
    }

    struct Pages {
        var records: [Record] = []
        var counters: [QueryCounters] = []
    }

    /// Follows a query to its end, with something done between pages.
    static func follow(
        _ predicate: RecordPredicate, _ shelf: inout QueryShelf, limits: () -> (Int, Int),
        sizeMax: () -> Int = { 16 << 20 }, requiresIndexes: Bool = true,
        between: (inout QueryShelf) -> Void = { _ in }
    ) throws -> Pages {
        var pages = Pages()
        var after: Bytes?
        for _ in 0..<20_000 {
            let (limit, touchCountMax) = limits()
            let request = QueryPageRequest(
                predicate, zones: shelf.zones, limit: limit, after: after,
                touchCountMax: touchCountMax, sizeMax: sizeMax(), requiresIndexes: requiresIndexes)
            let page = try QueryExecutor(shelf.schema, shelf.source).page(
                request, over: shelf.rows.view
            ).get()
            #expect(page.records.count <= limit)
            // The page's records are read again: the query itself read only the fields that it
            // needed.
            for (record, row) in zip(page.records, page.rows) {
                var reader = ByteReader(row)
                pages.records.append(try reader.recordBody(name: record.name, zone: record.zone))
            }
            #expect(page.rows.count == page.records.count)
            pages.counters.append(page.counters)
            guard let next = page.next else { return pages }
            #expect(next != after, "a page ended where it began")
            after = next
            between(&shelf)
        }
        Issue.record("a query without end: \(predicate)")
        return pages
    }

    static func check(
        _ records: [Record], against shelf: QueryShelf, _ predicate: RecordPredicate,
        only: (Record) -> Bool = { _ in true }, _ note: String
    ) throws {
        let expected = try zip(shelf.zones, shelf.live).flatMap { zone, live in
            let query = try CompiledQuery(predicate, in: shelf.schema, home: zone.id)
            return live.values.filter { query.matches($0) && only($0) }
        }
        let found = records.filter(only)
        let names = Set(found.map { $0.zone.name + "/" + $0.name })
        #expect(names.count == found.count, "a record twice: \(predicate) \(note)")
        #expect(
            names == Set(expected.map { $0.zone.name + "/" + $0.name }), "\(predicate) \(note)")
        for (one, two) in zip(found, found.dropFirst()) {
            #expect(
                Self.isOrdered(two, before: one, predicate.sorts) != true,
                "\(one.name) before \(two.name): \(predicate) \(note)")
        }
    }

    static func shelf(_ library: inout QueryLibrary, count: Int, zones: Int) -> QueryShelf {
        var shelf = QueryShelf(QueryLibrary.schema, zoneCount: zones)
        for number in 0..<count {
            let zone = number % zones
            let type = library.chance(15) ? "Noise" : "Book"
            let record = library.record("n\(number)", zone: shelf.zones[zone].id, type: type)
            shelf.set(record.name, to: record, zone: zone)
        }
        return shelf
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>, [false, true])
    func `what the planner finds is what reading everything finds`(
        seed: UInt64, sharesHeads: Bool
    ) throws {
        var library = QueryLibrary(seed: seed)
        library.sharesHeads = sharesHeads
        var shelf = Self.shelf(&library, count: 60, zones: seed % 3 == 0 ? 3 : 1)
        for round in 0..<30 {
            let home = shelf.zones[0].id
            let predicate = library.predicate(home: home, names: ["n1", "n2", "n3", "n40"])
            // A big page, then small ones within small budgets.
            let sizes = round % 2 == 0 ? [200] : [1, 2, 3, 7, 50]
            let budgets = round % 2 == 0 ? [10_000] : [1, 3, 10, 40, 10_000]
            let pages = try Self.follow(
                predicate, &shelf, limits: { (library.pick(sizes), library.pick(budgets)) },
                sizeMax: { library.pick([1, 200, 1_000, 16 << 20]) })
            try Self.check(pages.records, against: shelf, predicate, "seed \(seed) round \(round)")
            for counters in pages.counters { #expect(counters.plan != .scan) }
        }
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `writes between pages neither repeat nor hide a record that stands still`(
        seed: UInt64
    ) throws {
        var library = QueryLibrary(seed: seed &+ 100)
        var shelf = Self.shelf(&library, count: 60, zones: seed % 2 == 0 ? 2 : 1)
        for round in 0..<12 {
            let predicate = library.predicate(
                home: shelf.zones[0].id, names: ["n1", "n2", "n3", "n40"])
            // Records with an odd number come, change and go; the others stand still.
            func isStill(_ record: Record) -> Bool { Int(record.name.dropFirst())! % 2 == 0 }
            var writer = QueryLibrary(seed: seed &* 1_000 &+ UInt64(round))
            let pages = try Self.follow(
                predicate, &shelf,
                limits: { (library.pick([1, 2, 5]), library.pick([5, 30, 10_000])) },
                between: { shelf in
                    for _ in 0..<3 {
                        let number = Int.random(in: 0..<60, using: &writer.generator) * 2 + 1
                        let zone = number % shelf.zones.count
                        let record =
                            writer.chance(70)
                            ? writer.record("n\(number)", zone: shelf.zones[zone].id) : nil
                        shelf.set("n\(number)", to: record, zone: zone)
                    }
                })
            try Self.check(
                pages.records, against: shelf, predicate, only: isStill,
                "seed \(seed) round \(round)")
        }
        #expect(shelf.indexKeys == shelf.indexFromScratch(), "seed \(seed)")
    }

    /// Operands that share the head which an index row holds, and so its key.
    enum SharedKey: CaseIterable {
        case listContainsAny, listOfBytes, anyToken, anyTokenOfAnyField, oneOf

        private static let head = String(repeating: "z", count: 240)
        private static let texts = ["a", "b", "c"].map { Scalar.string(Self.head + $0) }
        private static let bytes = (1...3).map {
            Scalar.bytes(Bytes(repeating: 9, count: 240) + [UInt8($0)])
        }
        private static let words = FieldValue.scalar(
            .string("\(Self.head)b \(Self.head)a \(Self.head)c"))

        var filter: RecordFilter {
            switch self {
            case .listContainsAny:
                RecordFilter(
                    field: .field("tags"), comparator: .listContainsAny,
                    operand: .list(.string, Self.texts))
            case .listOfBytes:
                RecordFilter(
                    field: .field("blobs"), comparator: .listContainsAny,
                    operand: .list(.bytes, Self.bytes))
            case .anyToken:
                RecordFilter(
                    field: .field("title"), comparator: .containsAnyTokens, operand: Self.words)
            case .anyTokenOfAnyField:
                RecordFilter(
                    field: .anySearchable, comparator: .containsAnyTokens, operand: Self.words)
            case .oneOf:
                RecordFilter(
                    field: .field("title"), comparator: .in, operand: .list(.string, Self.texts))
            }
        }

        /// With one of them, with another, with both, and with one that nobody asks for.
        static func fields(_ number: Int) -> [Field] {
            let picks = [[0], [1], [0, 1], [2, 1], []][number % 5]
            return [
                Field(name: "blobs", value: .list(.bytes, picks.map { Self.bytes[$0] })),
                Field(
                    name: "tags",
                    value: .list(
                        .string, picks.map { Self.texts[$0] } + [.string(Self.head + "d")])),
                Field(
                    name: "title",
                    value: .scalar(picks.first.map { Self.texts[$0] } ?? .string(Self.head))),
            ]
        }
    }

    @Test(arguments: SharedKey.allCases, [1, 3, 200])
    func `operands that share an index key find a record once`(
        _ operands: SharedKey, limit: Int
    ) throws {
        var library = QueryLibrary(seed: 300)
        var shelf = QueryShelf(QueryLibrary.schema, zoneCount: 2)
        for number in 0..<20 {
            var record = library.record("n\(number)", zone: shelf.zones[number % 2].id)
            record.fields = SharedKey.fields(number)
            shelf.set(record.name, to: record, zone: number % 2)
        }
        var predicate = RecordPredicate(recordType: "Book")
        predicate.filters = [operands.filter]
        for budget in [10_000, 1] {
            let pages = try Self.follow(predicate, &shelf, limits: { (limit, budget) })
            try Self.check(pages.records, against: shelf, predicate, "\(operands) by \(limit)")
            #expect(pages.records.count == 16)
        }
    }

    @Test(arguments: 1...2 as ClosedRange<UInt64>)
    func `without indexes the same records are found`(seed: UInt64) throws {
        var library = QueryLibrary(seed: seed &+ 200)
        var shelf = Self.shelf(&library, count: 60, zones: 2)
        let bare = RecordType(
            name: "Book",
            fields: QueryLibrary.type.fields.filter { SystemField(mappedName: $0.name) == nil }.map
            {
                FieldDefinition(name: $0.name, type: $0.type)
            })
        for round in 0..<12 {
            let predicate = library.predicate(
                home: shelf.zones[0].id, names: ["n1", "n2", "n3", "n40"])
            var lenient = shelf
            lenient.schema = IndexedSchema(schema: Schema(version: 1, types: [bare]))
            let pages = try Self.follow(
                predicate, &lenient, limits: { (library.pick([1, 5, 200]), 10_000) },
                requiresIndexes: false)
            // Without any index every string field may be searched, so ask the shelf that has them.
            try Self.check(pages.records, against: shelf, predicate, "seed \(seed) round \(round)")
            for counters in pages.counters {
                #expect(counters.plan == .scan || counters.plan == .names)
            }
        }
        shelf.set("n1", to: nil, zone: 1)
    }
}
