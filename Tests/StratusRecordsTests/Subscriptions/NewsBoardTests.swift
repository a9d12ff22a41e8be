import Foundation
import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusQuery
@testable import StratusRecords

/// A look tells the same, whatever other looks have found before it.
@Suite struct NewsBoardTests {
    static let seeds: Range<UInt64> =
        0..<(UInt64(ProcessInfo.processInfo.environment["STRATUS_SEEDS"] ?? "") ?? 20)

    @Test(arguments: Self.seeds)
    func `looks that share what they found answer as one that finds it alone`(seed: UInt64) throws {
        var run = try BoardRun(seed: seed, PlantedBugs())
        do { for _ in 0..<600 { try run.step() } } catch {
            Issue.record("seed \(seed): \(error)")
        }
        #expect(run.hitCount > 50, "seed \(seed): hardly anything fired")
    }

    #if STRATUS_PLANTED
        @Test func `a board that is kept over a change of subscriptions is found`() {
            let found = (0..<20).contains { seed in
                do {
                    var run = try BoardRun(
                        seed: UInt64(seed), PlantedBugs([.boardKeptOverChange]))
                    for _ in 0..<600 { try run.step() }
                    return false
                } catch {
                    return true
                }
            }
            #expect(found)
        }
    #endif

    // MARK: Bounds

    private static func page(_ count: Int, hits: Int = 0) -> NewsPage {
        var page = NewsPage(
            (0..<count).map {
                SubscriptionRow(since: 0, SubscriptionBench.query("s\(1_000 + $0)"))
            }, schemaVersion: 1)
        let stretch = page.stretch(at: NewsPosition(number: 0))
        for number in 0..<UInt64(hits) {
            let position = NewsPosition(number: number + 1, subscription: "s1000")
            page.add(NewsPage.Hit(.zone("z", ChangeTag(1)), at: position, of: 0), to: stretch)
        }
        return page
    }

    private static func owner(_ number: Int) -> NewsBoard.Owner {
        NewsBoard.Owner(database: DatabaseNumber(1), subscriber: "_\(number)")
    }

    @Test func `the longest unused pages go, and a page that does not fit is not kept`() {
        let size = Self.page(10).size
        var board = NewsBoard(sizeMax: 10 * size)
        for number in 0..<100 {
            board.put(Self.page(10), of: Self.owner(number))
            // One is used all the time.
            if let page = board.take(Self.owner(0), schemaVersion: 1) {
                board.put(page, of: Self.owner(0))
            }
            #expect(board.size <= 10 * size && board.size == board.count * size)
        }
        func isThere(_ number: Int, _ version: UInt64 = 1) -> Bool {
            board.take(Self.owner(number), schemaVersion: version) != nil
        }
        #expect([0, 99, 50].map { isThere($0) } == [true, true, false])
        board.put(Self.page(1_000), of: Self.owner(5))
        // Another schema, and no page.
        #expect([isThere(5), isThere(98, 2)] == [false, false])
        board.forget(DatabaseNumber(1))
        #expect(board.size == 0 && board.count == 0)
    }

    @Test func `a page keeps 4,096 hits, and who stands before them asks anew`() {
        var page = Self.page(1, hits: NewsPage.hitCountMax + 10)
        page.trim()
        #expect(page.hitCount <= NewsPage.hitCountMax)
        let kept = page.stretches[0]
        #expect(kept.hits.first.map { $0.position > kept.start } == true)
        let new = page.stretch(at: NewsPosition(number: 0))
        #expect(page.stretches.count == 2 && page.stretches[new].hits.isEmpty)
        // It comes to what is known.
        let isJoined = page.extend(new, through: kept.start)
        #expect(isJoined && page.stretches.count == 1 && page.stretches[0].end == kept.end)
    }

    @Test func `a page keeps sixteen stretches`() {
        var page = Self.page(1)
        for number in (0..<100 as Range<UInt64>).reversed() {
            let place = NewsPosition(number: number * 10)
            let index = page.stretch(at: place)
            #expect(page.stretches[index].start == place)
            #expect(page.stretches.count <= NewsPage.stretchCountMax)
        }
        for number in 0..<100 as Range<UInt64> {
            let place = NewsPosition(number: number * 10 + 5)
            let index = page.stretch(at: place)
            #expect(page.stretches[index].start <= place)
        }
    }

    @Test func `the last 64 events are kept, and no more than a mebibyte of them`() throws {
        let stamp = ChangeStamp(milliseconds: 1, userRecordName: "_o", deviceID: "")
        func asked(_ number: UInt64) -> NewsMatcher.Asked {
            NewsMatcher.Asked(
                .record(
                    .created,
                    Record(
                        name: "r\(number)", type: "Book", zone: ZoneID(name: "z", owner: "_o"),
                        tag: ChangeTag(1), created: stamp, modified: stamp, fields: []),
                    omitted: []))
        }
        var recent = RecentEvents()
        func name(_ number: UInt64) -> RecentEvents.Name {
            RecentEvents.Name(database: DatabaseNumber(number % 2 == 0 ? 1 : 2), number: number)
        }
        for number in 0..<200 as Range<UInt64> {
            recent.put(asked(number), name(number), size: 100)
            #expect(recent.count <= RecentEvents.countMax)
        }
        #expect(recent.count == RecentEvents.countMax)
        for number in 0..<100 as Range<UInt64> {
            recent.put(asked(number), name(number), size: 14 << 10)
            #expect(recent.size <= RecentEvents.sizeMax)
        }
        func isThere(_ number: UInt64) -> Bool { recent.take(name(number)) != nil }
        #expect([99, 99].map(isThere) == [true, false])
        recent.forget(DatabaseNumber(1))
        #expect([98, 97].map(isThere) == [false, true])
    }
}

struct BoardRun {
    private static let owners = [Bench.owner, "_owner2"]
    private static let ids = ["a", "b", "c", "d", "e"]

    private var own: SubscriptionBench
    private var random: SeededGenerator
    private let bugs: PlantedBugs
    private var version: UInt64 = 2
    private var saved = 0
    private(set) var hitCount = 0

    init(seed: UInt64, _ bugs: PlantedBugs) throws {
        self.random = SeededGenerator(seed: seed)
        self.bugs = bugs
        self.own = try SubscriptionBench()
        self.own.bench.state = DataState(bounds: RecordState.Bounds(), bugs: bugs)
        for database in 0..<3 {
            self.turn(to: database)
            for token in 0..<3 { try self.own.follow(token: Self.token(token)) }
        }
    }

    private static func token(_ number: Int) -> Bytes {
        Bytes(repeating: UInt8(number), count: 16)
    }

    private mutating func draw(_ count: Int) -> Int {
        Int.random(in: 0..<count, using: &self.random)
    }

    /// The private database of one, or the public one as either sees it.
    private mutating func turn(to database: Int) {
        self.own.database = database == 0 ? Bench.privateDatabase : Bench.publicDatabase
        self.own.principal = Principal(
            kind: .user, userRecordName: Self.owners[database == 2 ? 1 : 0])
    }

    mutating func step() throws {
        self.turn(to: self.draw(3))
        switch self.draw(24) {
        case 0...1: try self.subscribe()
        case 2: try self.own.modify(.delete(Self.ids[self.draw(5)]))
        case 3: if self.draw(4) == 0 { try self.install() }
        case 4: if self.draw(8) == 0 { self.own.bench.state.forget() }
        case 5...10: try self.change()
        default: try self.look()
        }
    }

    private mutating func subscribe() throws {
        let id = Self.ids[self.draw(5)]
        let filters =
            self.draw(2) == 0 ? [] : [SubscriptionBench.titled(["Sea", "Road"][self.draw(2)])]
        var subscription = SubscriptionBench.query(
            id, filters, on: Subscription.Reasons(rawValue: UInt8(1 + self.draw(7))))
        if self.own.database.scope == .private, self.draw(2) == 0 {
            subscription =
                self.draw(2) == 0
                ? SubscriptionBench.database(id) : SubscriptionBench.zone(id, "Shelves")
        }
        try self.own.modify(.create(subscription))
    }

    /// Another version, and now and then other rights.
    private mutating func install() throws {
        var schema = SubscriptionBench.schema
        self.version += 1
        schema.version = self.version
        let reader = ["_creator", "_world"][self.draw(2)]
        schema.types[0].grants = [
            Grant(role: reader, permissions: [.read]),
            Grant(role: "_creator", permissions: [.write]),
            Grant(role: "_icloud", permissions: [.create]),
        ]
        _ = try self.own.bench.apply(.schema(.install(schema)), as: Bench.system)
    }

    private mutating func change() throws {
        let isPrivate = self.own.database.scope == .private
        var operations: [RecordOperation] = []
        for _ in 0...self.draw(3) {
            self.saved += 1
            operations.append(
                .create("r\(self.saved)", [text("title", ["Sea", "Road", "Hill"][self.draw(3)])]))
        }
        try self.own.bench.modify(
            in: isPrivate ? ["Shelves", "Other"][self.draw(2)] : ZoneID.defaultName,
            of: self.own.database, as: self.own.principal, operations)
    }

    private mutating func look() throws {
        let token = Self.token(self.draw(3))
        var after: NewsPosition?
        for _ in 0..<(1 + self.draw(4)) {
            let shared = try self.ask(token, after, within: .max >> 1)
            // As a leader that has only just begun.
            var alone = self
            alone.own.bench.state = DataState(bounds: RecordState.Bounds(), bugs: self.bugs)
            let expected = try alone.ask(token, after, within: .max >> 1)
            guard shared == expected else {
                throw BenchError("\(shared) instead of \(expected)")
            }
            // One that ends early comes to the same.
            if self.draw(3) == 0 { try self.lookInPieces(token, after, expected) }
            guard shared.hit != nil else { return }
            self.hitCount += 1
            after = shared.position
            if self.draw(3) == 0 {
                try self.own.settle(shared, token: token)
                after = nil
            }
        }
    }

    private mutating func lookInPieces(
        _ token: Bytes, _ after: NewsPosition?, _ expected: News
    ) throws {
        var after = after
        for _ in 0..<10_000 {
            let news = try self.ask(token, after, within: 1 + self.draw(20))
            if news.hit != nil || !news.hasMore {
                guard news == expected else {
                    throw BenchError("in pieces \(news) instead of \(expected)")
                }
                return
            }
            after = news.position
        }
        throw BenchError("pieces without end")
    }

    private mutating func ask(
        _ token: Bytes, _ after: NewsPosition?, within bound: Int
    ) throws -> News {
        let ask = NewsAsk(self.own.database) {
            $0.token = token
            $0.after = after
        }
        let query = ask.enveloped(as: self.own.principal)
        let answer = try self.own.bench.state.answer(
            query, within: nil, ReadMeter(touchCountMax: bound), over: self.own.bench.rows.view)
        return try NewsAsk.answer(decoding: answer.body)
    }
}
