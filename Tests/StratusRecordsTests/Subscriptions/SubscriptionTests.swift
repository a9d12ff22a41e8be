import StratusDoubles
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// Subscriptions as they are kept, and what they fire for.
@Suite struct SubscriptionTests {
    private typealias Own = SubscriptionBench

    @Test func `they are made, replaced, left alone, deleted and listed by ID`() throws {
        var own = try Own()
        let first = Own.query("b")
        let second = Own.zone("a", "Shelves")
        #expect(try own.modify(.create(first), .create(second)) == [.saved, .saved])
        #expect(try own.list() == [second, first])
        let rows = own.bench.rows.contents
        #expect(try own.modify(.create(first)) == [.saved])
        #expect(own.bench.rows.contents == rows)
        let changed = Own.query("b", on: .deleted)
        #expect(try own.modify(.create(changed)) == [.saved])
        #expect(try own.list() == [second, changed])
        #expect(
            try own.modify(.update(Own.database("none")), .delete("none"), .delete("a"))
                == [.notFound, .notFound, .deleted])
        #expect(try own.list() == [changed])
    }

    @Test func `X-04: nobody sees or touches somebody else's`() throws {
        var own = try Own()
        own.database = Bench.publicDatabase
        try own.modify(.create(Own.query("mine")))
        own.principal = Principal(kind: .user, userRecordName: "_other")
        #expect(try own.list() == [])
        #expect(
            try own.modify(.delete("mine"), .update(Own.query("mine"))) == [.notFound, .notFound])
        try own.modify(.create(Own.query("mine", on: .created)))
        own.principal = Bench.user
        #expect(try own.list() == [Own.query("mine")])
        own.principal = Principal(kind: .anonymous)
        #expect(throws: RequestRefusal.self) { try own.modify(.create(Own.query("x"))) }
        own.principal = Principal(kind: .user, userRecordName: "_other")
        own.database = Bench.privateDatabase
        #expect(throws: RequestRefusal.self) { try own.modify(.create(Own.query("x"))) }
        #expect(throws: BenchError.self) { _ = try own.news() }
    }

    @Test func `a zone that is not there, and one subscription too many, are refused`() throws {
        var own = try Own()
        #expect(try own.modify(.create(Own.zone("z", "Nowhere"))) == [.zoneNotFound])
        #expect(
            try own.modify(
                .create(Own.query("1")), .create(Own.query("2")), .create(Own.query("3")),
                .delete("1"), .create(Own.query("3")), countMax: 2)
                == [.saved, .saved, .tooMany, .deleted, .saved])
    }

    @Test func `all of one owner's are bounded in bytes, and replacing counts the difference`()
        throws
    {
        var own = try Own()
        func large(_ id: String, _ size: Int = 16_000) -> Subscription {
            Subscription(id, .database, content: Bytes(repeating: 0x20, count: size))
        }
        var saved = 0
        while try own.modify(.create(large("s\(saved)"))) == [.saved] { saved += 1 }
        #expect(saved == Subscription.ownSizeMax / 16_020, "\(saved)")
        // One of the same size takes the place of another, and a smaller one makes room.
        #expect(try own.modify(.update(Own.query("s0"))) == [.saved])
        #expect(
            try own.modify(.create(large("new", 16_001)), .create(large("more")))
                == [.saved, .tooMany])
        #expect(try own.modify(.delete("s1"), .create(large("more"))) == [.deleted, .saved])
    }

    @Test func `deleted by a cascade and made again in one batch is a deletion and a creation`()
        throws
    {
        var own = try Own()
        try own.follow()
        try own.modify(.create(Own.query("q")), .create(Own.query("new", on: .created)))
        let up = reference("up", to: "root", .deleteSelf)
        let type = RecordType(
            name: "Book", fields: [FieldDefinition(name: "up", type: FieldType(.reference))])
        _ = try own.bench.apply(.schema(.extend([type])), as: Bench.system)
        for fields in [[], [up]] {
            let name = fields.isEmpty ? "root" : "leaf"
            _ = try own.bench.modify(
                RecordOperation(.create, recordName: name, recordType: "Book", fields: fields))
        }
        _ = try own.taken()
        let results = try own.bench.modify(
            .delete("root"), RecordOperation(.create, recordName: "leaf", recordType: "Book"))
        #expect(results[0].isDeleted && results[1].saved != nil, "\(results)")
        let taken = try own.taken()
        #expect(taken.filter { $0.hasPrefix("q ") && $0.contains("leaf") }.count == 2, "\(taken)")
        #expect(taken.filter { $0.hasPrefix("new ") }.count == 1, "\(taken)")
    }

    @Test func `a query fires for what it matches, with its reason, and for nothing else`() throws {
        var own = try Own()
        try own.follow()
        try own.modify(
            .create(Own.query("all")), .create(Own.query("sea", [Own.titled("Sea")])),
            .create(Own.query("gone", on: .deleted)), .create(Own.query("loan", type: "Loan")),
            .create(Own.query("here", on: .created, zone: "Other")))
        try own.bench.modify(.create("a", [text("title", "Sea")]))
        #expect(try own.taken() == ["all 1 Shelves/a", "sea 1 Shelves/a"])
        try own.bench.modify(
            RecordOperation(.forceUpdate, recordName: "a", fields: [text("title", "Road")]))
        // After the save it matches no more.
        #expect(try own.taken() == ["all 2 Shelves/a"])
        try own.bench.modify(
            RecordOperation(.forceUpdate, recordName: "a", fields: [text("title", "Sea")]))
        #expect(try own.taken() == ["all 2 Shelves/a", "sea 2 Shelves/a"])
        try own.bench.modify(.delete("a"))
        // A deletion is asked as it was before.
        #expect(
            try own.taken() == ["all 4 Shelves/a", "gone 4 Shelves/a", "sea 4 Shelves/a"])
        try own.bench.modify(in: "Other", .create("b"))
        #expect(try own.taken() == ["all 1 Other/b", "here 1 Other/b"])
        #expect(try own.taken() == [])
    }

    @Test func `a zone's changes are one notification until it is taken`() throws {
        var own = try Own()
        try own.follow()
        try own.modify(.create(Own.zone("z", "Shelves")), .create(Own.database("d")))
        for name in ["a", "b", "c"] { try own.bench.modify(.create(name)) }
        #expect(try own.taken() == ["d zone Shelves", "z zone Shelves"])
        try own.bench.modify(in: "Other", .create("x"))
        #expect(try own.taken() == ["d zone Other"])
        // The default zone has no feed, so it has no news.
        _ = try own.bench.modify(in: ZoneID.defaultName, .create("x"))
        #expect(try own.taken() == [])
        try own.bench.zones(.create, "New")
        #expect(try own.taken() == ["d zone New"])
        // A zone that goes fires a last time, and its subscription stays.
        try own.bench.zones(.delete, "Shelves")
        #expect(try own.taken() == ["d zone Shelves", "z zone Shelves"])
        #expect(try own.list().count == 2)
    }

    @Test func `P-16: nothing from before a save is told, and nothing after a deletion`() throws {
        var own = try Own()
        try own.follow()
        try own.modify(.create(Own.query("first")))
        try own.bench.modify(.create("a"))
        try own.modify(.create(Own.query("second")))
        #expect(try own.taken() == ["first 1 Shelves/a"])
        try own.bench.modify(.create("b"))
        try own.modify(.delete("first"))
        #expect(try own.taken() == ["second 1 Shelves/b"])
        // Replaced: it fires from here on.
        try own.bench.modify(.create("c"))
        try own.modify(.create(Own.query("second", on: .created)))
        #expect(try own.taken() == [])
    }

    @Test func `one that fires once is deleted with its first notification`() throws {
        var own = try Own()
        try own.follow()
        try own.modify(.create(Own.query("once", once: true)), .create(Own.query("ever")))
        for name in ["a", "b"] { try own.bench.modify(.create(name)) }
        #expect(
            try own.taken() == ["ever 1 Shelves/a", "once 1 Shelves/a", "ever 1 Shelves/b"])
        #expect(try own.list().map { $0?.id } == ["ever"])
    }

    @Test func `each token follows by itself, from when it began`() throws {
        var own = try Own()
        try own.modify(.create(Own.query("q")))
        try own.follow()
        try own.bench.modify(.create("a"))
        let late = Bytes(repeating: 8, count: 16)
        try own.follow(token: late)
        try own.bench.modify(.create("b"))
        #expect(try own.taken() == ["q 1 Shelves/a", "q 1 Shelves/b"])
        // One that registers again stays where it is.
        try own.follow(token: late)
        #expect(try own.taken(token: late) == ["q 1 Shelves/b"])
        #expect(try own.news(token: Bytes(repeating: 9, count: 16)).follower == nil)
    }

    @Test func `what was not settled is told again, and a repeat of settling changes nothing`()
        throws
    {
        var own = try Own()
        try own.follow()
        try own.modify(.create(Own.query("q")))
        for name in ["a", "b"] { try own.bench.modify(.create(name)) }
        let news = try own.news()
        #expect(news.hit.map(Own.text) == "q 1 Shelves/a")
        #expect(try own.news() == news)
        try own.settle(news)
        try own.settle(news)
        #expect(try own.taken() == ["q 1 Shelves/b"])
    }

    @Test func `events have what is wanted of a record, and say what was too large`() throws {
        var own = try Own()
        try own.follow()
        let long = String(repeating: "x", count: 3_000)
        try own.modify(
            .create(Own.query("a", [Own.titled("Sea")])), .create(Own.query("b", fields: ["pages"]))
        )
        try own.bench.modify(.create("r", [text("title", long), number("pages", 3)]))
        // The title is not there to be asked: one notification too many is harmless.
        let news = try own.news()
        guard case .record(_, let record, let omitted)? = news.hit?.event else {
            Issue.record("no hit")
            return
        }
        #expect(news.hit?.subscription.id == "a")
        #expect(record.fields.map(\.name) == ["pages"])
        #expect(omitted == ["title"])
        try own.modify(.delete("a"))
        try own.bench.modify(.create("s", [text("title", "Sea"), number("pages", 3)]))
        let events = try own.taken()
        #expect(events == ["b 1 Shelves/r", "b 1 Shelves/s"])
    }

    @Test func `only readers are told, by the roles they ask with`() throws {
        var own = try Own()
        own.database = Bench.publicDatabase
        var schema = Own.schema
        schema.version = 2
        schema.types[0].grants = [
            Grant(role: "_creator", permissions: [.read, .write]),
            Grant(role: "_icloud", permissions: [.create]),
        ]
        _ = try own.bench.apply(.schema(.install(schema)), as: Bench.system)
        let other = Principal(kind: .user, userRecordName: "_other")
        for principal in [Bench.user, other] {
            own.principal = principal
            try own.follow()
            try own.modify(.create(Own.query("q")))
        }
        _ = try own.bench.modify(
            in: ZoneID.defaultName, of: Bench.publicDatabase, .create("mine"))
        #expect(try own.taken() == [])
        own.principal = Bench.user
        #expect(try own.taken() == ["q 1 _defaultZone/mine"])
    }

    @Test func `the oldest events give way, and followers go on behind them`() throws {
        var own = try Own()
        try own.follow()
        try own.modify(.create(Own.query("q", on: .created)))
        let count = Int(NewsEdit.eventCountMax) + 100
        for first in stride(from: 0, to: count, by: 100) {
            try own.bench.modify(
                in: "Shelves", (first..<min(first + 100, count)).map { .create("r\($0)") })
        }
        #expect(own.bench.rows.count(.event) == Int(NewsEdit.eventCountMax))
        let taken = try own.taken()
        #expect(taken.count == Int(NewsEdit.eventCountMax))
        #expect(taken.first == "q 1 Shelves/r100")
    }

    /// A client that makes zones and removes them again would leave a mark of each for ever.
    @Test func `marks of zones that came and went give way, the oldest first`() throws {
        var own = try Own()
        try own.follow()
        try own.modify(.create(Own.database("d")))
        let count = Int(NewsEdit.markCountMax) + 150
        for first in stride(from: 0, to: count, by: 150) {
            for kind in [ModifyZones.Kind.create, .delete] {
                let operations = (first..<min(first + 150, count)).map { number in
                    ModifyZones.Operation(
                        kind, zone: "Z\(number)",
                        drawnIncarnation: ZoneIncarnation(UInt64(number) + 1))
                }
                _ = try own.bench.apply(
                    .modifyZones(
                        ModifyZones(database: Bench.privateDatabase, operations: operations)))
            }
        }
        #expect(own.bench.rows.count(.event) == Int(NewsEdit.markCountMax))
        let taken = try own.taken()
        #expect(taken.count == Int(NewsEdit.markCountMax) && taken.first == "d zone Z150")
    }

    @Test func `a zone that is saved every time takes no event out of the window`() throws {
        var own = try Own()
        try own.follow()
        try own.modify(.create(Own.query("q", on: .created)), .create(Own.database("d")))
        for number in 0..<3_600 { try own.bench.modify(.create("r\(number)")) }
        let taken = try own.taken()
        #expect(taken.filter { $0.hasPrefix("q") }.count == 3_600)
        #expect(taken.filter { $0.hasPrefix("d") } == ["d zone Shelves"])
    }

    @Test func `who polls slowly hears of a zone that is saved all the time, in its turn`() throws {
        var own = try Own()
        try own.follow()
        try own.modify(
            .create(Own.query("q")), .create(Own.zone("z", "Shelves")), .create(Own.database("d")))
        var saved = 0
        func save(_ count: Int) throws {
            for _ in 0..<count {
                saved += 1
                try own.bench.modify(.create("r\(saved)"))
            }
        }
        try save(3)
        var told: [String] = []
        for _ in 0..<60 {
            let news = try own.news()
            // It changes while it is told, and afterwards.
            try save(2)
            try own.settle(news)
            told.append(try #require(news.hit.map(Own.text)))
        }
        // The first mark stands behind one event, and each later one behind what was saved when the
        // last one was told.
        let zones = told.indices.filter { told[$0] == "z zone Shelves" }
        #expect(zones.first == 2)
        #expect(zones.count >= 3, "\(told)")
        #expect(told.filter { $0 == "d zone Shelves" }.count >= 3)
    }

    @Test func `two who take turns at a zone leave a third one its place`() throws {
        var own = try Own()
        let tokens = [1, 2, 3].map { Bytes(repeating: $0, count: 16) }
        for token in tokens { try own.follow(token: token) }
        try own.modify(.create(Own.query("q")), .create(Own.zone("z", "Shelves")))
        for number in 0..<20 {
            try own.bench.modify(.create("r\(number)"))
            _ = try own.taken(token: tokens[number % 2])
        }
        #expect(own.bench.rows.count(.event) < 20 + 7)
        let told = try own.taken(token: tokens[2])
        #expect(told.prefix(2) == ["q 1 Shelves/r0", "z zone Shelves"])
        #expect(told.last == "z zone Shelves")
    }

    @Test func `a change while its zone is told is told again, with a tag of its own`() throws {
        var own = try Own()
        try own.follow()
        try own.modify(.create(Own.zone("z", "Shelves")))
        try own.bench.modify(.create("a"))
        let first = try own.news()
        try own.bench.modify(.create("b"))
        try own.settle(first)
        let second = try own.news()
        let (one, two) = (try #require(first.hit?.told), try #require(second.hit?.told))
        #expect(one.raw + 1 == two.raw)
        try own.settle(second)
        #expect(try own.news().hit == nil)
    }

    @Test func `a hundred tokens follow, and the one that moved longest ago gives way`() throws {
        var own = try Own()
        for number in 0...RecordState.followerCountMax {
            try own.follow(token: Bytes(repeating: UInt8(number), count: 16))
        }
        #expect(try own.news(token: Bytes(repeating: 0, count: 16)).follower == nil)
        #expect(try own.news(token: Bytes(repeating: 1, count: 16)).follower != nil)
    }

    @Test func `a database that nobody watches writes no row of it`() throws {
        var own = try Own()
        try own.bench.modify(.create("a"))
        #expect(own.bench.rows.count(.event) == 0 && own.bench.rows.count(.subscription) == 0)
        try own.modify(.create(Own.query("q")), .delete("q"))
        try own.bench.modify(.create("b"))
        #expect(own.bench.rows.count(.event) == 0)
    }

    @Test func `erasing a database takes its subscriptions, events and followers along`() throws {
        var own = try Own()
        try own.follow()
        try own.modify(.create(Own.query("q")), .create(Own.zone("z", "Shelves")))
        for name in ["a", "b"] { try own.bench.modify(.create(name)) }
        var rounds = 0
        while true {
            let outcome = try own.bench.apply(
                .eraseDatabase(EraseDatabase(database: Bench.privateDatabase, zoneCount: 2)),
                as: Bench.system)
            guard case .erased(let progress) = outcome else { throw BenchError("\(outcome)") }
            rounds += 1
            if !progress.hasMore { break }
        }
        #expect(rounds > 2)
        #expect(own.bench.rows.count(.event) == 0 && own.bench.rows.count(.subscription) == 0)
        #expect(try own.list() == [])
        #expect(try own.news().follower == nil)
    }

    @Test func `X-33: who goes is forgotten, and nobody else`() throws {
        var own = try Own()
        own.database = Bench.publicDatabase
        let other = Principal(kind: .user, userRecordName: "_owner2")
        for principal in [Bench.user, other] {
            own.principal = principal
            try own.follow()
            try own.modify(.create(Own.query("q")), .create(Own.query("r", on: .deleted)))
        }
        own.principal = Bench.user
        try own.move(.poll, FollowNews.noToken, .forget)
        #expect(try own.list() == [])
        #expect(try own.news().follower == nil)
        own.principal = other
        #expect(try own.list().count == 2)
        _ = try own.bench.modify(in: ZoneID.defaultName, of: Bench.publicDatabase, .create("a"))
        #expect(try own.taken() == ["q 1 _defaultZone/a"])
        // Nobody but Stratus itself may do that, or move a follower.
        for step in [FollowNews.Step.forget, .begin] {
            let follow = FollowNews(Bench.publicDatabase) {
                $0.subscriber = "_owner2"
                $0.step = step
            }
            #expect(
                try own.bench.apply(follow, as: other) == .failure(RequestRefusal(.accessDenied)))
        }
    }

    @Test func `the rows of subscriptions are laid out as ever`() throws {
        var own = try Own()
        try own.follow()
        try own.modify(
            .create(
                Own.query("q", [Own.titled("Sea")], zone: "Shelves", fields: ["pages"])),
            .create(Own.zone("z", "Shelves")), .create(Own.database("d")))
        try own.bench.modify(
            .create("a", [text("title", "Sea"), number("pages", 3)]), .create("b"))
        try own.bench.modify(.delete("b"))
        try own.settle(try own.news())
        let bytes = own.bench.rows.text([.subscription, .event])
        let rows = GoldenTests.hexadecimal(bytes)
        let golden = try GoldenTests.golden("rows-subscriptions-1", now: bytes)
        #expect(rows == golden, "now \(rows)")
    }
}
