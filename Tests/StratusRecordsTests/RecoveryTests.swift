import StratusCoding
import StratusDoubles
import StratusModel
import StratusRows
import StratusSQLite
import StratusStorage
import Testing

@testable import StratusRecords

/// M-19: a partition that goes on from one replica: no token or tag of the lost entries may fit
/// again.
@Suite struct RecoveryTests {
    private static func recover(
        _ bench: inout Bench, as principal: Principal = Bench.system
    ) throws -> Outcome {
        bench.index += 1
        let command = RecordCommand.recover.enveloped(
            container: Bench.container, identity: RequestIdentity(high: 9, low: bench.index),
            deadlineMilliseconds: .max, schemaVersion: 0, principal: principal)
        return try bench.state.apply(
            command, at: EntryPosition(index: LogIndex(bench.index), time: bench.time),
            over: bench.rows)
    }

    private static func shelves() throws -> Bench {
        var bench = Bench()
        try bench.zones(.create, "Shelves", "Lamps", "Old")
        try bench.modify((0..<9).map { .create("r\($0)") })
        try bench.modify(.delete("r3"), .delete("r4"))
        try bench.modify(in: "Lamps", .create("l"))
        try bench.zones(.delete, "Old")
        try bench.modify(in: ZoneID.defaultName, .create("d"))
        try bench.modify(
            in: ZoneID.defaultName, of: Bench.publicDatabase, .create("p"))
        return bench
    }

    private static func isExpired(_ bench: Bench, _ position: FeedPosition, in zone: String) throws
        -> Bool
    {
        let answer = try bench.ask(
            .zoneChanges(
                ZoneChangesAsk(
                    database: Bench.privateDatabase, zone: zone, after: position, limit: 10,
                    reverse: false, recordTypes: nil)))
        return answer == .zoneRefused(.positionExpired)
    }

    private static func wholeFeed(_ bench: Bench, limit: Int) throws -> ([String], FeedPosition) {
        var names: [String] = []
        var position: FeedPosition?
        for _ in 0..<100 {
            let page = try bench.changes(after: position, limit: limit)
            names += page.changes.filter { !$0.isDeletion }.map(\.name)
            position = page.position
            if !page.moreComing { return (names, page.position) }
        }
        throw BenchError("the feed does not end")
    }

    @Test(arguments: [1, 2, 200])
    func `no place in a zone's feed from before is honoured, and a fetch from the start is whole`(
        limit: Int
    ) throws {
        var bench = try Self.shelves()
        let places = try (1...11).map { try bench.changes(limit: $0).position }
        for round in 1...2 {
            #expect(try Self.recover(&bench).verdict == .decided)
            for place in places {
                #expect(try Self.isExpired(bench, place, in: "Shelves"), "\(round) \(place)")
            }
            let (names, end) = try Self.wholeFeed(bench, limit: limit)
            #expect(names.sorted() == ["r0", "r1", "r2", "r5", "r6", "r7", "r8"])
            #expect(try bench.changes(after: end).changes.isEmpty)
            try bench.modify(.create("new\(round)"))
            #expect(try bench.changes(after: end).changes.map(\.name) == ["new\(round)"])
            try bench.modify(.delete("new\(round)"))
            try bench.finishJobs()
        }
    }

    @Test(arguments: [1, 200])
    func `no place in a database's feed from before is honoured, nor is anything missed`(
        limit: Int
    ) throws {
        var bench = try Self.shelves()
        let before = try bench.databaseChanges().position
        _ = try Self.recover(&bench)
        let refused = try bench.ask(
            .databaseChanges(
                DatabaseChangesAsk(database: Bench.privateDatabase, after: before, limit: 10)))
        #expect(refused == .zoneRefused(.positionExpired))
        var names: [String] = []
        var position: DatabasePosition?
        repeat {
            let page = try bench.databaseChanges(after: position, limit: limit)
            names += page.changes.filter { !$0.isDeleted }.map(\.name)
            position = page.position
            if !page.moreComing { break }
        } while names.count < 10
        #expect(names.sorted() == ["Lamps", "Shelves"])
        #expect(try bench.databaseChanges(after: position).changes.isEmpty)
        try bench.modify(in: "Lamps", .create("k"))
        #expect(try bench.databaseChanges(after: position).changes.map(\.name) == ["Lamps"])
        // The client's position in that zone is unknown, so it is sent back to the start of it.
        let change = try #require(try bench.databaseChanges(after: position).changes.first)
        let since: FeedPosition = try #require(change.since)
        #expect(try Self.isExpired(bench, since, in: "Lamps"))
    }

    /// Whether changes of a partition that holds nothing, or was recovered before, make the token
    /// of the lost one fit.
    private static func isHonoured(
        _ bench: inout Bench, _ lost: DatabasePosition, recoveryCount: Int = 1
    ) throws -> Bool {
        for _ in 0..<recoveryCount { _ = try Self.recover(&bench) }
        for number in 1...20 {
            try bench.zones(.create, "new\(number)")
            try bench.modify(in: "new\(number)", .create("a"))
            let answer = try bench.ask(
                .databaseChanges(
                    DatabaseChangesAsk(database: Bench.privateDatabase, after: lost, limit: 10)))
            if answer != .zoneRefused(.positionExpired) { return true }
        }
        return false
    }

    @Test func `core audit 5: no token fits a database that is made again after a recovery`()
        throws
    {
        let lost = try Self.shelves().databaseChanges().position
        var bench = Bench()
        // Without one it would.
        #expect(try Self.isHonoured(&bench, lost, recoveryCount: 0))
        for count in 1...2 {
            bench = Bench()
            #expect(try !Self.isHonoured(&bench, lost, recoveryCount: count), "\(count)")
        }
        // What a partition gave out between two recoveries fits nothing after the second.
        bench = Bench()
        _ = try Self.recover(&bench)
        try bench.zones(.create, "Shelves", "Lamps", "Old")
        let between = try bench.databaseChanges().position
        bench = Bench()
        #expect(try !Self.isHonoured(&bench, between, recoveryCount: 2))
        let whole = try bench.databaseChanges()
        #expect(Set(whole.changes.map(\.name)) == Set((1...20).map { "new\($0)" }))
        #expect(try bench.databaseChanges(after: whole.position).changes.isEmpty)
    }

    @Test(.enabled(if: PlantedBugs.isPossible))
    func `core audit 5: a recovery that forgets new databases is found`() throws {
        #if STRATUS_PLANTED
            let lost = try Self.shelves().databaseChanges().position
            var bench = Bench()
            bench.state = DataState(bugs: PlantedBugs([.newDatabaseNotLifted]))
            #expect(try Self.isHonoured(&bench, lost))
        #endif
    }

    @Test func `tags go on far behind those that were given, wherever something is made`() throws {
        var bench = try Self.shelves()
        let before = try #require(try bench.lookup("r0")).tag
        let lamp = try #require(try bench.lookup("l", in: "Lamps")).tag
        _ = try Self.recover(&bench)
        // What is there is as it was.
        #expect(try bench.lookup("r0")?.tag == before)
        #expect(try bench.modify(.update("r0", before))[0].saved?.tag.raw ?? 0 > 1 << 40)
        try bench.zones(.create, "Old")
        let stranger = DatabaseID(
            container: Bench.container, scope: .private, owner: "_other")
        let other = Principal(kind: .user, userRecordName: "_other")
        for (zone, database, principal) in [
            ("Old", Bench.privateDatabase, Bench.user),
            (ZoneID.defaultName, Bench.privateDatabase, Bench.user),
            (ZoneID.defaultName, Bench.publicDatabase, Bench.user),
            (ZoneID.defaultName, stranger, other),
        ] {
            let saved = try bench.modify(in: zone, of: database, as: principal, .create("n"))
            #expect(saved[0].saved?.tag.raw ?? 0 > 1 << 40, "\(zone) \(database)")
        }
        #expect(
            try bench.modify(in: "Lamps", .update("l", ChangeTag(lamp.raw + 1)))[0].refusal
                == .tagMismatch)
    }

    @Test func `what is held stays counted, deletions nobody needs are dropped`() throws {
        var bench = try Self.shelves()
        let use = try bench.ask(.use(Bench.privateDatabase))
        _ = try Self.recover(&bench)
        #expect(try bench.ask(.use(Bench.privateDatabase)) == use)
        try bench.finishJobs()
        #expect(try bench.ask(.use(Bench.privateDatabase)) == use)
        #expect(try bench.changes().changes.allSatisfy { !$0.isDeletion })
        // Later ones are kept, and told to whoever has come so far.
        let place = try bench.changes().position
        try bench.modify(.delete("r0"))
        try bench.finishJobs()
        #expect(try bench.changes(after: place).changes.map(\.isDeletion) == [true])
    }

    @Test func `only Stratus itself may say it, and nothing is changed otherwise`() throws {
        var bench = try Self.shelves()
        let rows = bench.rows.contents
        _ = try Self.recover(&bench, as: Bench.user)
        _ = try Self.recover(&bench, as: Principal(kind: .administrator))
        #expect(bench.rows.contents == rows)
    }

    /// What a token, and a device, are told behind a place that somebody was given.
    private static func told(
        _ own: inout SubscriptionBench, after: NewsPosition?
    ) throws -> [String] {
        var (told, place): ([String], NewsPosition?) = ([], after)
        for _ in 0..<100 {
            let news = try own.news(after: place)
            if let hit = news.hit { told.append(SubscriptionBench.text(hit)) }
            if !news.hasMore { return told }
            place = news.position
        }
        throw BenchError("news without end")
    }

    /// A watched database of which some replica has lost the end.
    private static func watched() throws -> (here: SubscriptionBench, lost: SubscriptionBench) {
        var own = try SubscriptionBench()
        try own.follow()
        try own.follow(as: .device)
        try own.modify(
            .create(SubscriptionBench.query("q")), .create(SubscriptionBench.zone("z", "Shelves")))
        for name in ["a", "b", "c"] { try own.bench.modify(.create(name)) }
        try own.settle(try own.news())
        var lost = own
        lost.bench = own.bench.copied()
        for name in ["d", "e", "f", "g"] { try lost.bench.modify(.create(name)) }
        return (own, lost)
    }

    @Test(arguments: [1, 2])
    func `a place in the news from before names no later event, and nothing is missed`(
        rounds: Int
    ) throws {
        var (own, lost) = try Self.watched()
        var taken: NewsPosition?
        while true {
            let news = try lost.news(after: taken)
            taken = news.position
            if !news.hasMore { break }
        }
        let due = try Self.told(&own, after: nil)
        #expect(due == ["z zone Shelves", "q 1 Shelves/b", "q 1 Shelves/c"])
        for _ in 0..<rounds { #expect(try Self.recover(&own.bench).verdict == .decided) }
        // What was not taken is told, from its own place on, and to whoever shows a lost one.
        #expect(try Self.told(&own, after: nil) == due)
        #expect(try Self.told(&own, after: taken) == due)
        for name in ["r", "s", "t", "u", "v", "w"] { try own.bench.modify(.create(name)) }
        let all =
            due.filter { $0.hasPrefix("q") } + "rstuvw".map { "q 1 Shelves/\($0)" }
            + ["z zone Shelves"]
        #expect(try Self.told(&own, after: taken).sorted() == all.sorted())
        // A settlement by a lost place moves nobody: its owner finds that it stands behind it.
        let follower = try #require(try own.news().follower)
        #expect(follower > (try #require(taken)))
        #expect(try own.taken().sorted() == all.sorted())
        let device = try own.news(as: .device)
        #expect(device.hit.map(SubscriptionBench.text) == "q 1 Shelves/a")
    }

    @Test func `a place in the news of a lost database names no event of the one made again`()
        throws
    {
        let taken = try Self.watched().lost.news().position
        var own = try SubscriptionBench()
        _ = try Self.recover(&own.bench)
        try own.follow()
        try own.modify(.create(SubscriptionBench.query("q")))
        for name in ["a", "b", "c", "d"] { try own.bench.modify(.create(name)) }
        #expect(
            try Self.told(&own, after: taken)
                == ["a", "b", "c", "d"].map { "q 1 Shelves/\($0)" })
        // The same where the database is erased and watched again.
        while case .erased(let progress) = try own.bench.apply(
            .eraseDatabase(EraseDatabase(database: own.database, zoneCount: 10)),
            as: Bench.system), progress.hasMore
        {}
        try own.bench.zones(.create, "Shelves")
        try own.follow()
        #expect(try #require(try own.news().follower) > taken)
    }

    @Test func `after a recovery a lost place in the news passes nothing over`() throws {
        var (own, lost) = try Self.watched()
        while try lost.news().hit != nil { try lost.settle(try lost.news()) }
        let taken = try #require(try lost.news().follower)
        _ = try Self.recover(&own.bench)
        for name in ["r", "s", "t", "u", "v", "w"] { try own.bench.modify(.create(name)) }
        #expect(try Self.told(&own, after: taken).contains("q 1 Shelves/r"))
    }

    @Test func `an erasure after a recovery waits for no outcome but its own`() throws {
        let world = SimulatedWorld(seed: 1)
        let store = try PartitionStore(
            DataState(), group: GroupID(1), in: "partitions", of: FileSystem(world.files))
        let start = Bench().time.milliseconds
        func take(_ index: UInt64, _ time: HybridTime, _ command: Command) throws -> Outcome? {
            var outcomes: [Outcome] = []
            let entry = Entry(
                index: LogIndex(index), term: Term(1), time: time, kind: .command,
                payload: command.encoded())
            try store.apply([entry], into: &outcomes)
            try store.commit()
            return outcomes.last
        }
        let recovered = HybridTime(milliseconds: start)
        let first = RecoverPartition.firstCommand(
            at: recovered, identity: RequestIdentity(high: 1, low: 1))
        #expect(RecoverPartition.isDone(try #require(try take(1, recovered, first))))
        let zone = ModifyZones(
            database: Bench.privateDatabase, rules: .standard,
            operations: [
                .init(.create, zone: "Shelves", drawnIncarnation: ZoneIncarnation(1))
            ])
        let made = RecordCommand.modifyZones(zone).enveloped(
            container: Bench.container, identity: RequestIdentity(high: 1, low: 3),
            deadlineMilliseconds: start + 30_000, schemaVersion: 0, principal: Bench.user)
        _ = try take(2, recovered, made)
        // A minute later.
        let deadline = start + 90_000
        let erasure = RecordCommand.eraseDatabase(
            EraseDatabase(database: Bench.privateDatabase, zoneCount: 10)
        ).enveloped(
            container: Bench.container, identity: RequestIdentity(high: 1, low: 2),
            deadlineMilliseconds: deadline, schemaVersion: 0, principal: Bench.system)
        _ = try take(3, HybridTime(milliseconds: start + 60_000), erasure)
        #expect(try #require(store.erasure).outcomesThrough <= deadline)
    }

    @Test func `a partition that holds nothing is recovered too`() throws {
        var bench = Bench()
        _ = try Self.recover(&bench)
        try bench.zones(.create, "Shelves")
        let saved = try bench.modify(.create("a"))[0].saved
        #expect(saved?.tag.raw ?? 0 > 1 << 40)
        let (names, _) = try Self.wholeFeed(bench, limit: 1)
        #expect(names == ["a"])
    }
}

@Suite struct PartitionCountersTests {
    @Test func `counters read and write as ever`() throws {
        var counters = PartitionCounters()
        #expect(counters.encoded() == [1, 1, 1, 0, 0, 0])
        counters.nextDatabase = 7
        counters.nextZone = 9
        counters.tagFloor = 5
        counters.turnFloor = 6
        counters.eventFloor = 8
        #expect(counters.encoded() == [1, 7, 9, 5, 6, 8])
        #expect(try PartitionCounters(decoding: counters.encoded()) == counters)
        #expect(throws: DecodingError.self) { try PartitionCounters(decoding: [2, 7, 9, 5]) }
    }
}
