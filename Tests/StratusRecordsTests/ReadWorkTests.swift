import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusQuery
@testable import StratusRecords

/// Every read is bounded by its work, not only a query's page: feeds, look-ups, lists of zones and
/// of people, news (security audit 1, 2, 6). The counts are compared, not times.
@Suite struct ReadWorkTests {
    /// Asks with a bound, and says what it took.
    private static func ask(
        _ ask: RecordQuery.Ask, bound: Int, over bench: Bench, as principal: Principal = Bench.user
    ) throws -> (answer: RecordAnswer, work: ReadWork) {
        let meter = ReadMeter(touchCountMax: bound)
        var state = bench.state
        let query = RecordQuery(principal: principal, ask).enveloped()
        let answer = try state.answer(query, within: nil, meter, over: bench.rows.view)
        return (try RecordAnswer(decoding: answer.body), meter.work)
    }

    /// Zones of records of several sizes, with deletions.
    private static func bench(seed: UInt64, zoneCount: Int = 12) throws -> Bench {
        var library = QueryLibrary(seed: seed)
        var bench = Bench()
        for number in 0..<zoneCount { try bench.zones(.create, "Zone\(number)") }
        for number in 0..<150 {
            let zone = "Zone\(number % library.pick([1, 3, zoneCount]))"
            let size = library.pick([10, 100, 5_000])
            try bench.modify(
                in: zone,
                .create(
                    "r\(number)", [text("body", String(repeating: "x", count: size))],
                    type: library.pick(["Book", "Noise"])))
            if library.chance(20) { try bench.modify(in: zone, .delete("r\(number)")) }
        }
        try bench.zones(.delete, "Zone\(zoneCount - 1)")
        return bench
    }

    /// One step of any read here: a record of 5,000 bytes, found by its feed row; or a zone, and
    /// the search for its position.
    private static let slack = 40

    // MARK: Feeds

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `pages of a zone's feed keep their bound and tell what one page tells`(
        seed: UInt64
    ) throws {
        let bench = try Self.bench(seed: seed)
        var library = QueryLibrary(seed: seed &+ 10)
        for round in 0..<12 {
            var ask = ZoneChangesAsk(
                database: Bench.privateDatabase, zone: "Zone\(round % 3)", limit: 200,
                reverse: library.chance(40),
                recordTypes: library.chance(50) ? ["Noise"] : nil)
            guard
                case .zoneChanges(let whole) = try Self.ask(
                    .zoneChanges(ask), bound: 1 << 40, over: bench
                ).answer
            else { throw BenchError("no page") }
            #expect(!whole.moreComing)
            let bound = library.pick([1, 3, 10, 40])
            var changes: [ZoneChangesPage.Change] = []
            var pageCount = 0
            while true {
                let (answer, work) = try Self.ask(.zoneChanges(ask), bound: bound, over: bench)
                guard case .zoneChanges(let page) = answer else { throw BenchError("no page") }
                #expect(
                    work.touchCount <= bound + Self.slack,
                    "seed \(seed) round \(round) bound \(bound): \(work)")
                changes += page.changes
                pageCount += 1
                guard page.moreComing else { break }
                #expect(page.position != ask.after, "a page ended where it began")
                ask.after = page.position
                guard pageCount < 1_000 else { throw BenchError("a feed without end") }
            }
            #expect(changes == whole.changes, "seed \(seed) round \(round)")
            if bound < 10, whole.changes.count > 20 { #expect(pageCount > 3) }
        }
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `pages of a database's feed keep their bound and tell of every zone`(
        seed: UInt64
    ) throws {
        var bench = try Self.bench(seed: seed, zoneCount: 40)
        guard
            case .databaseChanges(let start) = try Self.ask(
                .databaseChanges(DatabaseChangesAsk(database: Bench.privateDatabase)),
                bound: 1 << 40, over: bench
            ).answer
        else { throw BenchError("no page") }
        // Some of them go on, so that their positions are searched for.
        for number in 0..<20 {
            try bench.modify(in: "Zone\(number)", .create("later", [text("body", "x")]))
        }
        for after in [nil, start.position] {
            for bound in [1, 5, 30, 100] {
                var ask = DatabaseChangesAsk(database: Bench.privateDatabase, after: after)
                guard
                    case .databaseChanges(let whole) = try Self.ask(
                        .databaseChanges(ask), bound: 1 << 40, over: bench
                    ).answer
                else { throw BenchError("no page") }
                var names: [String] = []
                var pageCount = 0
                while true {
                    let (answer, work) = try Self.ask(
                        .databaseChanges(ask), bound: bound, over: bench)
                    guard case .databaseChanges(let page) = answer else {
                        throw BenchError("no page")
                    }
                    #expect(work.touchCount <= bound + Self.slack, "bound \(bound): \(work)")
                    names += page.changes.map(\.name)
                    pageCount += 1
                    guard page.moreComing else { break }
                    #expect(page.position != ask.after, "a page ended where it began")
                    ask.after = page.position
                    guard pageCount < 1_000 else { throw BenchError("a feed without end") }
                }
                #expect(Set(names) == Set(whole.changes.map(\.name)), "bound \(bound)")
                #expect(Set(names).count == names.count)
                if bound == 1 { #expect(pageCount > 5) }
            }
        }
    }

    // MARK: Look-ups

    @Test func `a look-up ends at its bound, and what is left is asked for again`() throws {
        let bench = try Self.bench(seed: 3)
        let names = (0..<150).map { "r\($0)" }
        for bound in [1, 10, 60] {
            var open = names
            var found: Set<String> = []
            while !open.isEmpty {
                let (answer, work) = try Self.ask(
                    .lookup(
                        RecordLookup(
                            database: Bench.privateDatabase, zone: "Zone0", names: open)),
                    bound: bound, over: bench)
                guard case .lookup(let page) = answer else { throw BenchError("no answer") }
                #expect(work.touchCount <= bound + Self.slack)
                let done = page.items.prefix { $0 != .deferred }
                #expect(!done.isEmpty, "nothing was answered")
                #expect(page.items.dropFirst(done.count).allSatisfy { $0 == .deferred })
                for case .found(let record) in done { found.insert(record.name) }
                open.removeFirst(done.count)
            }
            guard
                case .lookup(let whole) = try Self.ask(
                    .lookup(
                        RecordLookup(
                            database: Bench.privateDatabase, zone: "Zone0", names: names)),
                    bound: 1 << 40, over: bench
                ).answer
            else { throw BenchError("no answer") }
            let all = whole.items.compactMap {
                if case .found(let record) = $0 { record.name } else { nil }
            }
            #expect(found == Set(all) && !all.isEmpty)
        }
    }

    @Test func `records that the caller may not see are counted, too (security audit 2)`() throws {
        var bench = Bench()
        _ = try bench.apply(.schema(.install(AccessTests.schema)), as: Bench.system)
        let other = Principal(kind: .user, userRecordName: "_other")
        let type = "Diary"
        let large = String(repeating: "x", count: 100_000)
        for number in 0..<20 {
            try bench.modify(
                in: ZoneID.defaultName, of: Bench.publicDatabase, as: Bench.user,
                .create("p\(number)", [text("title", large)], type: type))
        }
        let (_, work) = try Self.ask(
            .lookup(
                RecordLookup(
                    database: Bench.publicDatabase, names: (0..<20).map { "p\($0)" })),
            bound: 200, over: bench, as: other)
        #expect(work.touchCount <= 200 + 60)
    }

    // MARK: Zones

    @Test func `zones are listed in pages, each once, and the default zone first`() throws {
        for isWritten in [false, true] {
            var bench = try Self.bench(seed: 5, zoneCount: 60)
            if isWritten {
                try bench.modify(in: ZoneID.defaultName, .create("d", [text("body", "x")]))
            }
            guard
                case .zones(let whole) = try bench.ask(
                    .zones(Bench.privateDatabase, names: nil))
            else { throw BenchError("no zones") }
            for (limit, bound) in [(2_000, 1), (7, 1 << 40), (1, 10), (2_000, 1 << 40)] {
                var zones: [ZoneAnswer] = []
                var after: String?
                repeat {
                    let (answer, work) = try Self.ask(
                        .zonePage(Bench.privateDatabase, after: after, limit: limit),
                        bound: bound, over: bench)
                    guard case .zonePage(let page, let next) = answer else {
                        throw BenchError("no page")
                    }
                    #expect(work.touchCount <= bound + 10)
                    #expect(page.count <= limit)
                    #expect(next != after || after == nil, "a page ended where it began")
                    zones += page
                    after = next
                } while after != nil
                func names(_ answers: [ZoneAnswer]) -> [String] {
                    answers.map { if case .zone(let zone) = $0 { zone.name } else { "?" } }
                }
                #expect(names(zones).sorted() == names(whole).sorted())
                #expect(names(zones).first == ZoneID.defaultName)
            }
        }
    }

    @Test func `a query of all zones is refused where there are more than a page may read`() throws
    {
        var bench = Bench()
        _ = try bench.apply(
            try IndexJobTests.schema("title STRING QUERYABLE", version: 1), as: Bench.system)
        for number in 0..<30 { try bench.zones(.create, "Zone\(number)") }
        func ask(_ touchCountMax: Int) throws -> RecordAnswer {
            try bench.ask(
                .page(
                    QueryPageAsk(
                        database: Bench.privateDatabase, zone: nil,
                        predicate: RecordPredicate(
                            recordType: "Book",
                            filters: [
                                RecordFilter(
                                    field: .field("title"), comparator: .equals,
                                    operand: .scalar(.string("x")))
                            ]), touchCountMax: touchCountMax)))
        }
        #expect(
            try ask(29)
                == .refused(RequestRefusal(.queryInvalid, "More than 29 zones: ask in one zone")))
        guard case .page(let page) = try ask(30) else { throw BenchError("no page") }
        // The zones' own rows are counted.
        #expect(page.touchCount >= 30)
    }

    // MARK: People

    @Test func `lists of identity rows end by bytes`() throws {
        let rows = Rows()
        let home = Bytes("home".utf8)
        var hasErased = false
        for number in 0..<40 {
            let key = IdentityKey(.user, of: home, [UInt8(number)])
            let command = IdentityCommand([
                IdentityCommand.Edit(
                    key, .put(body: Bytes(repeating: 1, count: 60_000), expiresAtMilliseconds: 0))
            ]).enveloped(
                identity: RequestIdentity(high: 1, low: UInt64(number)),
                deadlineMilliseconds: .max)
            let outcome = try IdentityState.apply(
                command, at: HybridTime(milliseconds: 5), hasErased: &hasErased, over: rows)
            #expect(try IdentityOutcome(decoding: outcome.body) == .done([1]))
        }
        var after: Bytes?
        var counts: [Int] = []
        repeat {
            let answer = try IdentityState.answer(
                IdentityQuery.list(.user, home: home, after: after, limit: 1_000).enveloped(),
                over: rows.view)
            guard case .list(let page) = try IdentityAnswer(decoding: answer.body) else {
                throw BenchError("no list")
            }
            after = page.last?.name
            counts.append(page.count)
        } while after != nil
        // 17 rows of 60,000 bytes are the first to reach a mebibyte.
        #expect(counts.dropLast(2).allSatisfy { $0 == 18 } && counts.reduce(0, +) == 40)
    }

    // MARK: Time

    @Test func `a feed's page ends when its time is over, and the next goes on`() throws {
        let bench = try Self.bench(seed: 4)
        var ask = ZoneChangesAsk(database: Bench.privateDatabase, zone: "Zone0")
        var changes: [ZoneChangesPage.Change] = []
        var pageCount = 0
        while true {
            var now = MonotonicTime(nanoseconds: 0)
            let time = ReadTime(until: now + .milliseconds(5)) {
                now = now + .milliseconds(1)
                return now
            }
            var state = bench.state
            let query = RecordQuery(principal: Bench.user, .zoneChanges(ask)).enveloped()
            let answer = try state.answer(query, within: time, over: bench.rows.view)
            guard case .zoneChanges(let page) = try RecordAnswer(decoding: answer.body) else {
                throw BenchError("no page")
            }
            changes += page.changes
            pageCount += 1
            guard page.moreComing else { break }
            ask.after = page.position
        }
        #expect(pageCount > 5)
        #expect(changes == (try bench.changes(in: "Zone0")).changes)
    }
}
