import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusQuery
@testable import StratusRecords

/// What a look for news costs, in counted work and not in time.
@Suite struct NewsWorkTests {
    private typealias Own = SubscriptionBench

    private static let unbounded = 1 << 40

    // MARK: Words to drive it

    private static func fields(_ types: [(String, FieldType)]) -> Schema {
        Schema(
            version: 2,
            types: [
                RecordType(
                    name: "Book",
                    fields: types.map { FieldDefinition(name: $0.0, type: $0.1) })
            ])
    }

    /// Six texts and a list.
    private static func own() throws -> Own {
        var own = try Own()
        let texts = (0..<6).map { ("f\($0)", FieldType(.string)) }
        _ = try own.bench.apply(
            .schema(
                .install(
                    Self.fields(texts + [("tags", FieldType(.string, isList: true))]))),
            as: Bench.system)
        return own
    }

    private static func search(
        _ words: Range<Int>, in field: String = "f0", _ comparator: Comparator = .containsAnyTokens
    ) -> RecordFilter {
        RecordFilter(
            field: .field(field), comparator: comparator,
            operand: .scalar(
                .string(words.map { "absentword\(10_000 + $0)" }.joined(separator: " "))))
    }

    /// The largest texts that an event keeps.
    private static func save(_ name: String, in own: inout Own) throws {
        let word = "word"
        var fields = (0..<5).map { field in
            text(
                "f\(field)",
                String((0..<300).map { "\(word)\(field)x\($0) " }.joined().prefix(2_000)))
        }
        fields.append(
            Field(name: "tags", value: .list(.string, (0..<150).map { .string("element\($0)") })))
        try own.bench.modify(.create(name, fields))
    }

    private static func look(
        _ own: Own, bound: Int = Self.unbounded, after: NewsPosition? = nil,
        token: Bytes = Own.token
    ) throws -> (news: News, work: ReadWork) {
        let meter = ReadMeter(touchCountMax: bound)
        var state = own.bench.state
        let ask = NewsAsk(own.database) {
            $0.token = token
            $0.after = after
        }
        let query = ask.enveloped(as: own.principal)
        let answer = try state.answer(query, within: nil, meter, over: own.bench.rows.view)
        return (try NewsAsk.answer(decoding: answer.body), meter.work)
    }

    /// Saves subscriptions until one is too many.
    private static func fill(
        _ own: inout Own, _ filters: (Int) -> [RecordFilter]
    ) throws -> Int {
        for number in 0..<Int.max {
            let subscription = Own.query("s\(10_000 + number)", filters(number))
            if try own.modify(.create(subscription)) != [.saved] { return number }
        }
        return 0
    }

    // MARK: Once

    @Test func `a predicate is compiled once in a look, however many events there are`() throws {
        func cut(events: Int) throws -> Int {
            var own = try Self.own()
            try own.follow()
            try own.modify(.create(Own.query("q", [Self.search(0..<60)])))
            for number in 0..<events {
                try own.bench.modify(.create("r\(number)", [text("f0", "a few words")]))
            }
            let look = try Self.look(own)
            #expect(!look.news.hasMore && look.news.hit == nil)
            return look.work.cutByteCount
        }
        let one = try cut(events: 1)
        // Each event more is its own text and nothing else.
        #expect(try cut(events: 50) == one + 49 * "a few words".utf8.count)
    }

    @Test func `an event's text is cut once, however many filters ask about it`() throws {
        var own = try Self.own()
        try own.follow()
        let filters = (0..<20).map { Self.search(($0)..<($0 + 3)) }
        // The others are asked, too: one that fails ends its subscription.
        for (number, filter) in filters.enumerated() {
            try own.modify(.create(Own.query("s\(number)", [filter])))
        }
        let body = String(repeating: "many words ", count: 150)
        try own.bench.modify(.create("r", [text("f0", body)]))
        var compiling = ReadWork()
        for filter in filters { filter.countCompiling(in: &compiling) }
        let work = try Self.look(own).work
        #expect(work.cutByteCount == compiling.cutByteCount + body.utf8.count)
    }

    @Test func `operands in other zones are compiled anew only where they name a record`()
        throws
    {
        func cut(_ filter: RecordFilter) throws -> Int {
            var own = try Self.own()
            try own.follow()
            try own.modify(.create(Own.query("q", [filter])))
            for number in 0..<10 {
                let zone = number % 2 == 0 ? "Shelves" : "Other"
                try own.bench.modify(in: zone, .create("r\(number)"))
            }
            return try Self.look(own).work.comparisonCount
        }
        let names = RecordFilter(
            field: .system(.parent), comparator: .equals,
            operand: .scalar(
                .reference(
                    Reference(
                        recordName: "p", zone: ZoneID(name: "", owner: ""), action: .none))))
        let plain = try cut(Self.search(0..<1))
        #expect(try cut(names) > plain + 9 * 4)
    }

    // MARK: Bounds

    @Test(arguments: ["words", "members", "elements", "equals"])
    func `the worst legal subscriptions cost a bounded number of units for an event`(
        shape: String
    ) throws {
        var own = try Self.own()
        try own.follow()
        let count = try Self.fill(&own) { number in
            let first = number * 61
            func name(_ place: Int) -> Scalar { .string("absentword\(10_000 + first + place)") }
            switch shape {
            case "words": return [Self.search(first..<(first + 61), in: "f\(number % 6)")]
            case "members":
                return [
                    RecordFilter(
                        field: .field("f\(number % 6)"), comparator: .in,
                        operand: .list(.string, (0..<61).map(name)))
                ]
            case "elements":
                return [
                    RecordFilter(
                        field: .field("tags"), comparator: .listContainsAny,
                        operand: .list(.string, (0..<61).map(name)))
                ]
            default:
                // All but the last hold.
                return (0..<60).map { _ in
                    RecordFilter(
                        field: .field("f0"), comparator: .notEquals,
                        operand: .scalar(.string("absent")))
                } + [Self.search(0..<1)]
            }
        }
        #expect(count == Subscription.ownOperandCountMax / 61, "\(count)")
        try Self.save("first", in: &own)
        let one = try Self.look(own).work
        // Reading 1 MiB of a thousand rows, compiling 16,000 operands of 16 bytes, and the event.
        #expect(one.touchCount < 1_550 + 9_500 + 2_400, "\(one)")
        for number in 0..<4 { try Self.save("r\(number)", in: &own) }
        let five = try Self.look(own).work
        let each = (five.touchCount - one.touchCount) / 4
        // 12 KiB of text and 16,000 operands (and filters, where each has one), and the event's row.
        #expect(each < 2_400, "\(each)")
        if shape != "equals" { #expect(each < 1_400, "\(each)") }
    }

    @Test func `P-17: a look with one event and many subscriptions ends by its meter and goes on`()
        throws
    {
        var own = try Self.own()
        try own.follow()
        for number in 0..<200 {
            try own.modify(
                .create(
                    Own.query(
                        "s\(1_000 + number)", [Self.search((number * 60)..<(number * 60 + 60))])))
        }
        try own.modify(.create(Own.query("z")))
        try Self.save("r", in: &own)
        let whole = try Self.look(own).news
        #expect(whole.hit?.subscription.id == "z")
        for bound in [1, 600, 1_500, 3_000] {
            var looks = 0
            var after: NewsPosition?
            var news: News
            repeat {
                let look = try Self.look(own, bound: bound, after: after)
                news = look.news
                // What it reads first, and one subscription that passes the bound.
                #expect(look.work.touchCount < max(bound, 450) + 400, "\(bound): \(look.work)")
                #expect(after.map { $0 < news.position } ?? true)
                #expect(news.hit != nil || news.hasMore)
                after = news.position
                looks += 1
            } while news.hit == nil && looks < 1_000
            #expect(news == whole)
            #expect(bound == 1 ? looks == 201 : looks > 2, "\(bound): \(looks)")
        }
    }

    /// What each of a hundred followers costs, of an owner with a thousand plain subscriptions.
    private static func followers(_ bugs: PlantedBugs = PlantedBugs()) throws -> [Int] {
        var own = try Self.own()
        for first in stride(from: 0, to: 1_000, by: 200) {
            let operations = (first..<(first + 200)).map {
                ModifySubscriptions.Operation.create(
                    Own.query(
                        "s\(1_000 + $0)",
                        [
                            RecordFilter(
                                field: .field("f0"), comparator: .equals,
                                operand: .scalar(.string("absent \($0)")))
                        ]))
            }
            let modify = ModifySubscriptions(own.database) { $0.operations = operations }
            _ = try own.bench.apply(modify, as: own.principal).get()
        }
        let tokens = (0..<100).map { Bytes(repeating: UInt8($0), count: 16) }
        for token in tokens { try own.follow(token: token) }
        for number in 0..<20 { try Self.save("r\(number)", in: &own) }
        own.bench.state = DataState(bounds: RecordState.Bounds(), bugs: bugs)
        var positions: Set<NewsPosition> = []
        let costs = try tokens.map { token in
            let meter = ReadMeter(touchCountMax: Self.unbounded)
            let ask = NewsAsk(own.database) { $0.token = token }
            let answer = try own.bench.state.answer(
                ask.enveloped(as: own.principal), within: nil, meter, over: own.bench.rows.view)
            let news = try NewsAsk.answer(decoding: answer.body)
            positions.insert(news.position)
            #expect(news.hit == nil && !news.hasMore)
            return meter.work.touchCount
        }
        #expect(positions.count == 1)
        return costs
    }

    @Test func `a hundred followers cost what one costs`() throws {
        let costs = try Self.followers()
        #expect(costs.dropFirst().allSatisfy { $0 <= 4 }, "\(costs)")
        #expect(costs.dropFirst().reduce(0, +) < costs[0] / 2, "\(costs)")
    }

    #if STRATUS_PLANTED
        @Test func `a look that finds everything itself is found`() throws {
            let costs = try Self.followers(PlantedBugs([.newsForEachFollower]))
            #expect(costs.dropFirst().reduce(0, +) > 50 * costs[0])
        }
    #endif

    @Test func `a hundred followers, each looks once, and each look compiles each predicate once`()
        throws
    {
        var own = try Self.own()
        for number in 0..<50 {
            try own.modify(
                .create(Own.query("s\(100 + number)", [Self.search(number..<(number + 20))])))
        }
        let tokens = (0..<100).map { Bytes(repeating: UInt8($0), count: 16) }
        for token in tokens { try own.follow(token: token) }
        for number in 0..<20 { try Self.save("r\(number)", in: &own) }
        let first = try Self.look(own, token: tokens[0])
        #expect(first.news.hit == nil && !first.news.hasMore)
        let compiling = 50 * 20 * 16
        #expect(first.work.cutByteCount < compiling + 20 * 12_288, "\(first.work)")
        for token in tokens.dropFirst() {
            let look = try Self.look(own, token: token)
            #expect(look.work == first.work && look.news.position == first.news.position)
        }
    }

    @Test func `the filters of one owner have a bound together, and making room makes room`() throws
    {
        var own = try Self.own()
        func large(_ id: String, _ count: Int) -> ModifySubscriptions.Operation {
            .create(
                Own.query(
                    id,
                    [
                        RecordFilter(
                            field: .field("pages"), comparator: .in,
                            operand: .list(
                                .int64, (0..<Int64(count)).map { Scalar.int64(1 << 50 + $0) }))
                    ]))
        }
        #expect(Subscription.ownOperandCountMax == 16_000)
        #expect(try own.modify(large("a", 8_000), large("b", 8_001)) == [.saved, .tooMany])
        #expect(try own.modify(large("b", 8_000)) == [.saved])
        #expect(try own.modify(large("c", 1)) == [.tooMany])
        // It takes the place of itself.
        #expect(try own.modify(large("a", 7_999), large("c", 1)) == [.saved, .saved])
        #expect(try own.modify(.delete("b"), large("d", 8_000)) == [.deleted, .saved])
        #expect(try own.modify(large("e", 1)) == [.tooMany])
        // Those without operands are no question of it.
        #expect(try own.modify(.create(Own.query("f"))) == [.saved])
        // Another owner has as many.
        own.database = Bench.publicDatabase
        own.principal = Principal(kind: .user, userRecordName: "_other")
        #expect(try own.modify(large("a", 16_000)) == [.saved])
    }

    @Test func `an operand counts by its bytes, and a search by its words`() {
        func count(_ comparator: Comparator, _ operand: FieldValue) -> Int {
            RecordFilter(field: .field("x"), comparator: comparator, operand: operand).operandCount
        }
        #expect(count(.equals, .scalar(.int64(3))) == 1)
        #expect(count(.equals, .scalar(.string(""))) == 1)
        #expect(count(.equals, .scalar(.string(String(repeating: "x", count: 16)))) == 1)
        #expect(count(.equals, .scalar(.string(String(repeating: "x", count: 17)))) == 2)
        #expect(count(.in, .list(.string, [.string("a"), .string("b")])) == 2)
        #expect(count(.containsAnyTokens, .scalar(.string("the sea, the sea"))) == 4)
        #expect(count(.containsAnyTokens, .scalar(.string("東京 タワー"))) == 3)
        let long = String(repeating: "x", count: 160)
        #expect(count(.containsAnyTokens, .scalar(.string(long))) == 10)
    }
}
