import StratusDoubles
import StratusModel
import StratusRecords
import Testing

/// Reference part 1, §8.5–8.8.
@Suite struct FeedTests {
    private func bench(_ zones: String...) throws -> Bench {
        var bench = Bench()
        for zone in zones.isEmpty ? ["Shelves"] : zones { try bench.zones(.create, zone) }
        return bench
    }

    @Test func `450 changes come in three pages, in the order of the changes`() throws {
        var bench = try self.bench()
        for start in stride(from: 0, to: 450, by: 150) {
            try bench.modify((start..<(start + 150)).map { .create("r\($0)") })
        }
        var names: [String] = []
        var sizes: [Int] = []
        var position: FeedPosition?
        while true {
            let page = try bench.changes(after: position, limit: 1_000)
            names += page.changes.map(\.name)
            sizes.append(page.changes.count)
            position = page.position
            if !page.moreComing { break }
        }
        #expect(sizes == [200, 200, 50])
        #expect(names == (0..<450).map { "r\($0)" })
        #expect(try bench.changes(after: position).position == position)
    }

    @Test
    func `who follows the database's feed past a forgotten deletion is sent back to the start`()
        throws
    {
        var bench = try self.bench("Shelves", "Lamps")
        var rules = RecordRules.standard
        rules.tombstoneCountMin = 2
        try bench.modify((0..<5).map { .create("r\($0)") })
        try bench.modify(in: "Lamps", .create("l"))
        let seen = try bench.databaseChanges().position
        // Nothing is forgotten yet: going on from what was seen of the zone is enough.
        try bench.modify(rules: rules, .delete("r0"))
        var change = try #require(try bench.databaseChanges(after: seen).changes.first)
        let place: FeedPosition = try #require(change.since)
        #expect(try bench.changes(after: place).changes.map(\.name) == ["r0"])
        for number in 1..<5 { try bench.modify(rules: rules, .delete("r\(number)")) }
        try bench.finishJobs()
        change = try #require(try bench.databaseChanges(after: seen).changes.first)
        let since: FeedPosition = try #require(
            change.since, "from the zone's start nobody hears of r0 again")
        #expect(change.name == "Shelves" && !change.isDeleted)
        let answer = try bench.ask(
            .zoneChanges(
                ZoneChangesAsk(
                    database: Bench.privateDatabase, zone: "Shelves", after: since, limit: 9,
                    reverse: false, recordTypes: nil)))
        #expect(answer == .zoneRefused(.positionExpired))
    }

    @Test func `a page that ends the feed exactly says nothing more comes`() throws {
        var bench = try self.bench()
        try bench.modify(.create("a"), .create("b"))
        let page = try bench.changes(limit: 2)
        #expect(page.changes.count == 2)
        #expect(!page.moreComing)
    }

    @Test func `only the latest state comes, at the place of its last change`() throws {
        var bench = try self.bench()
        try bench.modify(.create("a"), .create("b"), .create("c"))
        let first = try bench.changes(limit: 1)
        try bench.modify(RecordOperation(.forceUpdate, recordName: "b"))
        let rest = try bench.changes(after: first.position)
        #expect(rest.changes.map(\.name) == ["c", "b"])
        try bench.modify(.delete("c"))
        try bench.modify(.create("c"))
        #expect(try bench.changes().changes.map(\.name) == ["a", "b", "c"])
        #expect(try bench.changes().changes.allSatisfy { !$0.isDeletion })
    }

    @Test func `G-32 reading consumes nothing, and page size changes nothing`() throws {
        var bench = try self.bench()
        try bench.modify((0..<30).map { .create("r\($0)") })
        let whole = try bench.changes()
        for limit in [1, 7, 29, 30] {
            var changes: [ZoneChangesPage.Change] = []
            var page = try bench.changes(limit: limit)
            changes += page.changes
            while page.moreComing {
                page = try bench.changes(after: page.position, limit: limit)
                changes += page.changes
            }
            #expect(changes == whole.changes)
            #expect(page.position == whole.position)
        }
    }

    @Test func `reverse comes newest first and its position marks the oldest seen`() throws {
        var bench = try self.bench()
        try bench.modify((0..<5).map { .create("r\($0)") })
        let first = try bench.changes(limit: 2, reverse: true)
        #expect(first.changes.map(\.name) == ["r4", "r3"])
        #expect(first.moreComing)
        let second = try bench.changes(after: first.position, limit: 200, reverse: true)
        #expect(second.changes.map(\.name) == ["r2", "r1", "r0"])
        #expect(!second.moreComing)
        // Going forward from there misses nothing.
        #expect(
            try bench.changes(after: first.position).changes.map(\.name) == ["r4"])
    }

    @Test func `record types filter changes; deletions always come`() throws {
        var bench = try self.bench()
        try bench.modify(.create("a"), .create("b", type: "Loan"), .create("c"))
        try bench.modify(.delete("c"))
        let page = try bench.changes(types: ["Loan"])
        #expect(page.changes.map(\.name) == ["b", "c"])
        let whole = try bench.changes()
        #expect(page.position == whole.position)
    }

    @Test func `a filter that matches nothing still pages within bounds`() throws {
        var bench = try self.bench()
        for start in stride(from: 0, to: 2_400, by: 200) {
            try bench.modify((start..<(start + 200)).map { .create("r\($0)") })
        }
        let first = try bench.changes(types: ["Loan"])
        #expect(first.changes.isEmpty)
        #expect(first.moreComing)
        let second = try bench.changes(after: first.position, types: ["Loan"])
        #expect(!second.moreComing)
    }

    @Test(
        arguments: [
            ("from the future", 0, 1_000), ("another incarnation", 1, 1),
        ] as [(String, UInt64, UInt64)])
    func `G-31 a position that is not of this feed is expired`(
        name: String, incarnation: UInt64, tag: UInt64
    ) throws {
        var bench = try self.bench()
        try bench.modify(.create("a"))
        var position = try bench.changes().position
        position.incarnation.raw += incarnation
        position.tag = ChangeTag(tag)
        let ask = ZoneChangesAsk(
            database: Bench.privateDatabase, zone: "Shelves", after: position)
        #expect(try bench.ask(.zoneChanges(ask)) == .zoneRefused(.positionExpired), "\(name)")
    }

    // MARK: Tombstones

    @Test func `G-31 the oldest tombstones go, and positions that have not seen them expire`()
        throws
    {
        var bench = try self.bench()
        let rules = RecordRules(tombstoneCountMin: 8)
        try bench.modify((0..<20).map { .create("r\($0)") })
        let early = try bench.changes().position
        var late: FeedPosition?
        for name in 0..<12 {
            try bench.modify(rules: rules, .delete("r\(name)"))
            if name == 9 { late = try bench.changes().position }
        }
        try bench.finishJobs(budget: 3)
        #expect(bench.rows.count(.job) == 0)
        // Twelve tombstones were more than max(8, 8 / 2): seven are kept.
        let page = try bench.changes()
        #expect(page.changes.filter(\.isDeletion).map(\.name) == (5..<12).map { "r\($0)" })
        #expect(page.changes.count == 15)
        let ask = ZoneChangesAsk(
            database: Bench.privateDatabase, zone: "Shelves", after: early)
        #expect(try bench.ask(.zoneChanges(ask)) == .zoneRefused(.positionExpired))
        #expect(try bench.changes(after: late).changes.map(\.name) == ["r10", "r11"])
    }

    @Test func `C-44 a position from before the first change never expires`() throws {
        var bench = try self.bench()
        let start = try bench.changes().position
        try bench.modify((0..<20).map { .create("r\($0)") })
        for name in 0..<20 {
            try bench.modify(rules: RecordRules(tombstoneCountMin: 2), .delete("r\(name)"))
        }
        try bench.finishJobs()
        let whole = try bench.changes()
        #expect(try bench.changes(after: start).changes == whole.changes)
    }

    @Test func `C-44 a client that begins behind forgotten deletions gets to the end`() throws {
        var bench = try self.bench()
        try bench.modify((0..<12).map { .create("old\($0)") })
        try bench.modify((0..<12).map { .create("gone\($0)") })
        let rules = RecordRules(tombstoneCountMin: 4)
        for name in 0..<12 { try bench.modify(rules: rules, .delete("gone\(name)")) }
        try bench.finishJobs()
        var names: [String] = []
        var page = try bench.changes(limit: 2)
        names += page.changes.map(\.name)
        let early = page.position
        while page.moreComing {
            page = try bench.changes(after: page.position, limit: 2)
            names += page.changes.map(\.name)
        }
        #expect(Array(names.prefix(12)) == (0..<12).map { "old\($0)" })
        #expect(page.position.floor == ChangeTag(0))
        // What is forgotten after it began, it may have seen alive.
        try bench.modify((0..<12).map { .create("more\($0)") })
        for name in 0..<12 { try bench.modify(rules: rules, .delete("more\(name)")) }
        try bench.finishJobs()
        let ask = ZoneChangesAsk(
            database: Bench.privateDatabase, zone: "Shelves", after: early)
        #expect(try bench.ask(.zoneChanges(ask)) == .zoneRefused(.positionExpired))
    }

    /// A position between pages is only as old as the fetch: the client never saw records deleted
    /// before the fetch began.
    @Test func `C-44 a first fetch goes on when older deletions are forgotten between its pages`()
        throws
    {
        var bench = try self.bench()
        let rules = RecordRules(tombstoneCountMin: 4)
        try bench.modify((0..<6).map { .create("old\($0)") })
        try bench.modify((0..<4).map { .create("gone\($0)") })
        for number in 0..<4 { try bench.modify(rules: rules, .delete("gone\(number)")) }
        var page = try bench.changes(limit: 2)
        let early = page.position
        var names = page.changes.map(\.name)
        for number in 0..<4 {
            // Each of them drops the oldest deletion that is left.
            try bench.modify(.create("new\(number)"))
            try bench.modify(rules: rules, .delete("new\(number)"))
            try bench.finishJobs()
            if !page.moreComing { continue }
            page = try bench.changes(after: page.position, limit: 2)
            names += page.changes.map(\.name)
        }
        #expect(Array(names.prefix(6)) == (0..<6).map { "old\($0)" })
        // What it has seen and what went since it must hear of.
        try bench.modify(rules: rules, .delete("old0"))
        let answer = try bench.changes(after: early)
        #expect(answer.changes.last?.name == "old0" && answer.changes.last?.isDeletion == true)
        for number in 4..<9 {
            try bench.modify(.create("new\(number)"))
            try bench.modify(rules: rules, .delete("new\(number)"))
        }
        try bench.finishJobs()
        let ask = ZoneChangesAsk(
            database: Bench.privateDatabase, zone: "Shelves", after: early)
        #expect(try bench.ask(.zoneChanges(ask)) == .zoneRefused(.positionExpired))
    }

    // MARK: changes/database

    /// A bench whose databases remember three deleted zones.
    private func forgetfulBench(_ zones: String...) throws -> Bench {
        var bounds = RecordState.Bounds()
        bounds.deletedZoneCountMax = 3
        var bench = Bench()
        bench.state = DataState(bounds: bounds)
        for zone in zones { try bench.zones(.create, zone) }
        return bench
    }

    @Test func `a first fetch goes on when deleted zones are forgotten between its pages`() throws {
        var bench = try self.forgetfulBench("A", "B", "C", "D", "E", "F")
        for number in 0..<8 { try bench.zones(.create, "g\(number)") }
        for number in 0..<3 { try bench.zones(.delete, "g\(number)") }
        var page = try bench.databaseChanges(limit: 2)
        #expect(page.changes.map(\.name) == ["A", "B"])
        // Those that were gone when it began are forgotten, one after the other.
        try bench.zones(.delete, "g3")
        page = try bench.databaseChanges(after: page.position, limit: 2)
        #expect(page.changes.map(\.name) == ["C", "D"])
        try bench.zones(.delete, "g4")
        // One that it has heard of goes, and comes to its end.
        try bench.zones(.delete, "A")
        var names: [String] = []
        var deleted: [String] = []
        while page.moreComing {
            page = try bench.databaseChanges(after: page.position, limit: 2)
            names += page.changes.filter { !$0.isDeleted }.map(\.name)
            deleted += page.changes.filter(\.isDeleted).map(\.name)
        }
        #expect(names == ["E", "F", "g5", "g6", "g7"])
        #expect(deleted.contains("A"))
        #expect(page.position.floor == 0 && !page.position.isMidway)
    }

    @Test func `a first fetch is refused where a deletion that it needs is forgotten`() throws {
        var bench = try self.forgetfulBench("A", "B", "C", "D", "E", "F")
        let page = try bench.databaseChanges(limit: 2)
        try bench.zones(.delete, "A")
        for zone in ["D", "E"] { try bench.zones(.delete, zone) }
        #expect(
            try bench.databaseChanges(after: page.position).changes.filter(\.isDeleted)
                .map(\.name) == ["A", "D", "E"])
        // A fourth, and nobody hears of A any more.
        try bench.zones(.delete, "F")
        let ask = DatabaseChangesAsk(database: Bench.privateDatabase, after: page.position)
        #expect(try bench.ask(.databaseChanges(ask)) == .zoneRefused(.positionExpired))
        #expect(try bench.databaseChanges().changes.map(\.name) == ["B", "C"])
    }

    @Test func `a database position comes back from its bytes as it was`() throws {
        for position in [
            DatabasePosition(turn: 9, tag: ChangeTag(300)),
            DatabasePosition(turn: 9, tag: ChangeTag(300), isMidway: true),
            DatabasePosition(turn: 9, tag: ChangeTag(0), isMidway: true, floor: 1 << 40),
        ] {
            let ask = RecordQuery.Ask.databaseChanges(
                DatabaseChangesAsk(database: Bench.privateDatabase, after: position))
            let query = RecordQuery(principal: Bench.user, ask)
            #expect(try RecordQuery(decoding: query.encoded()) == query)
            let answer = RecordAnswer.databaseChanges(
                DatabaseChangesPage(changes: [], position: position, moreComing: true))
            #expect(try RecordAnswer(decoding: answer.encoded()) == answer)
        }
    }

    @Test func `the database's feed names the zones that changed since`() throws {
        var bench = try self.bench("A", "B", "C")
        let all = try bench.databaseChanges()
        #expect(all.changes.map(\.name) == ["A", "B", "C"])
        #expect(!all.moreComing)
        #expect(try bench.databaseChanges(after: all.position).changes.isEmpty)

        try bench.modify(in: "B", .create("x"))
        let one = try bench.databaseChanges(after: all.position)
        #expect(one.changes.map(\.name) == ["B"])
        try bench.modify(in: "B", .create("y"))
        let again = try bench.databaseChanges(after: one.position)
        #expect(again.changes.map(\.name) == ["B"], "a zone changed twice in a row comes twice")
        #expect(again.position > one.position)
        #expect(try bench.databaseChanges(after: again.position).changes.isEmpty)
        #expect(try bench.databaseChanges(after: again.position).position == again.position)
    }

    @Test func `a deleted zone comes as deleted, to those who could know it`() throws {
        var bench = try self.bench("A", "B")
        let all = try bench.databaseChanges()
        try bench.zones(.delete, "A")
        let page = try bench.databaseChanges(after: all.position)
        #expect(page.changes.map(\.name) == ["A"])
        #expect(page.changes[0].isDeleted)
        #expect(try bench.databaseChanges().changes.map(\.name) == ["B"])
        try bench.zones(.create, "A")
        let last = try bench.databaseChanges(after: page.position)
        #expect(last.changes.map(\.isDeleted) == [false])
    }

    private func isExpired(_ position: FeedPosition, in zone: String, _ bench: Bench) throws -> Bool
    {
        try bench.ask(
            .zoneChanges(
                ZoneChangesAsk(database: Bench.privateDatabase, zone: zone, after: position)))
            == .zoneRefused(.positionExpired)
    }

    /// Seed 7614: its holder fetched a zone by name, kept records of the zone that took its place,
    /// and never lost them.
    @Test func `a token of an empty database hears that a zone was deleted and made again`() throws
    {
        var bench = Bench()
        let empty = try bench.databaseChanges().position
        #expect(empty == .start)
        try bench.zones(.create, "Attic")
        #expect(try bench.databaseChanges(after: empty).changes.map(\.since) == [nil])
        try bench.modify(in: "Attic", .create("a"))
        #expect(try bench.changes(in: "Attic").changes.map(\.name) == ["a"])
        try bench.zones(.delete, "Attic")
        #expect(try bench.databaseChanges(after: empty).changes.map(\.isDeleted) == [true])
        #expect(try bench.databaseChanges().changes.isEmpty)
        try bench.zones(.create, "Attic")
        let change = try #require(try bench.databaseChanges(after: empty).changes.first)
        let since: FeedPosition = try #require(
            change.since, "a token of the new zone's start is good, and nothing tells of a")
        #expect(try self.isExpired(since, in: "Attic", bench))
        // Who begins with no token is told to forget by that.
        #expect(try bench.databaseChanges().changes.map(\.since) == [nil])
    }

    @Test func `a token of an empty database expires where a deleted zone was forgotten`() throws {
        var bench = try self.forgetfulBench()
        let empty = try bench.databaseChanges().position
        for zone in ["A", "B", "C", "D"] { try bench.zones(.create, zone) }
        for zone in ["A", "B", "C"] { try bench.zones(.delete, zone) }
        #expect(
            try bench.databaseChanges(after: empty).changes.filter(\.isDeleted).map(\.name)
                == ["A", "B", "C"])
        try bench.zones(.delete, "D")
        let ask = DatabaseChangesAsk(database: Bench.privateDatabase, after: empty)
        #expect(try bench.ask(.databaseChanges(ask)) == .zoneRefused(.positionExpired))
    }

    @Test func `a zone that goes on in its turn between first pages is not new on the second`()
        throws
    {
        var bench = try self.bench("A", "B")
        var rules = RecordRules.standard
        rules.tombstoneCountMin = 2
        try bench.modify(in: "B", (0..<5).map { .create("r\($0)") })
        let first = try bench.databaseChanges(limit: 1)
        #expect(first.changes.map(\.name) == ["A"])
        // Whoever fetches B by name now has what is deleted and forgotten before the second page.
        for number in 0..<5 {
            try bench.modify(in: "B", rules: rules, .delete("r\(number)"))
        }
        try bench.finishJobs()
        let second = try bench.databaseChanges(after: first.position, limit: 1)
        #expect(second.changes.map(\.name) == ["B"])
        let since: FeedPosition = try #require(second.changes.first?.since)
        #expect(try self.isExpired(since, in: "B", bench))
    }

    @Test func `pages of the database's feed join up`() throws {
        var bench = try self.bench("A", "B", "C", "D", "E")
        try bench.modify(in: "C", .create("x"))
        var names: [String] = []
        var page = try bench.databaseChanges(limit: 2)
        names += page.changes.map(\.name)
        while page.moreComing {
            page = try bench.databaseChanges(after: page.position, limit: 2)
            names += page.changes.map(\.name)
        }
        #expect(names == ["A", "B", "D", "E", "C"])
    }

    @Test func `midway through its pages the database's feed names no zone position`() throws {
        var bench = try self.bench("A", "B", "C")
        let seen = try bench.databaseChanges().position
        try bench.modify(in: "C", .create("early"))
        try bench.modify(in: "A", .create("a"))
        try bench.modify(in: "C", .create("late"))
        let first = try bench.databaseChanges(after: seen, limit: 1)
        #expect(first.changes.map(\.name) == ["A"])
        #expect(first.position.isMidway)
        // C changed in a turn that the first page passed: its position there would skip `early`.
        let second = try bench.databaseChanges(after: first.position, limit: 1)
        #expect(second.changes.map(\.name) == ["C"])
        #expect(second.changes[0].since == nil)
        #expect(!second.position.isMidway)
    }

    @Test func `the zone position in the database's feed is where the incoming one stood`() throws {
        var bench = try self.bench("A", "B")
        try bench.modify(in: "A", .create("a1"), .create("a2"))
        try bench.modify(in: "B", .create("b1"))
        let seenA = try bench.changes(in: "A").position
        let seen = try bench.databaseChanges().position
        for round in 0..<4 {
            try bench.modify(in: "A", .create("a\(round + 3)"))
            try bench.modify(in: "B", .create("b\(round + 2)"))
        }
        let page = try bench.databaseChanges(after: seen)
        let a = try #require(page.changes.first { $0.name == "A" })
        #expect(a.since == seenA)
        #expect(
            try bench.changes(in: "A", after: a.since).changes.map(\.name)
                == ["a3", "a4", "a5", "a6"])
        let b = try #require(page.changes.first { $0.name == "B" })
        #expect(
            try bench.changes(in: "B", after: b.since).changes.map(\.name)
                == ["b2", "b3", "b4", "b5"])
        #expect(try bench.databaseChanges().changes.allSatisfy { $0.since == nil })
    }

    @Test func `a database position from the future is expired`() throws {
        let bench = try self.bench("A")
        let answer = try bench.ask(
            .databaseChanges(
                DatabaseChangesAsk(
                    database: Bench.privateDatabase,
                    after: DatabasePosition(turn: 99, tag: ChangeTag(0)))))
        #expect(answer == .zoneRefused(.positionExpired))
    }
}
