import StratusDoubles
import StratusModel
import StratusRecords
import Testing

/// Reference part 1, §8.2–8.4 and §12.3.
@Suite struct ZoneTests {
    private func names(_ bench: Bench, _ names: [String]? = nil) throws -> [String?] {
        guard case .zones(let zones) = try bench.ask(.zones(Bench.privateDatabase, names: names))
        else { return [] }
        return zones.map { if case .zone(let zone) = $0 { zone.name } else { nil } }
    }

    @Test func `zones are made, listed, looked up and deleted; the default zone always is`() throws
    {
        var bench = Bench()
        #expect(try self.names(bench) == ["_defaultZone"])
        try bench.zones(.create, "Shelves", "Loans")
        #expect(try self.names(bench) == ["_defaultZone", "Loans", "Shelves"])
        #expect(
            try self.names(bench, ["Loans", "Nope", "_defaultZone"])
                == ["Loans", nil, "_defaultZone"])
        #expect(try bench.zones(.delete, "Loans") == [.deleted])
        #expect(try self.names(bench) == ["_defaultZone", "Shelves"])
        #expect(try bench.zones(.delete, "Loans") == [.refused(.notFound)])
    }

    @Test(arguments: ["_defaultZone", "_x", "", "naïve", String(repeating: "z", count: 256)])
    func `a name no custom zone may have is refused`(name: String) throws {
        var bench = Bench()
        #expect(try bench.zones(.create, name) == [.refused(.nameInvalid)])
        #expect(try bench.zones(.delete, name) == [.refused(.nameInvalid)])
    }

    @Test func `operations on zones are each on their own, one for each zone`() throws {
        var bench = Bench()
        let results = try bench.zones(.create, "A", "_b", "A", "C")
        #expect(results.count == 4)
        #expect(results[1] == .refused(.nameInvalid))
        #expect(results[2] == .refused(.nameInvalid))
        #expect(try self.names(bench) == ["_defaultZone", "A", "C"])
    }

    @Test func `the public database has its default zone and no other`() throws {
        var bench = Bench()
        #expect(
            try bench.zones(.create, "Shelves", in: Bench.publicDatabase)
                == [.refused(.customZonesUnavailable)])
        let answer = try bench.ask(
            .zones(Bench.publicDatabase, names: ["_defaultZone", "Shelves"]))
        guard case .zones(let zones) = answer, case .zone(let zone) = zones[0] else {
            Issue.record("\(answer)")
            return
        }
        #expect(zone.isDefault)
        #expect(zones[1] == .refused(.notFound))
    }

    @Test func `a zone made again is another zone: empty, with tags above the old ones`() throws {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        let old = try #require(
            try bench.modify(.create("a"), .create("b"))[1].saved)
        let position = try bench.changes().position
        try bench.zones(.delete, "Shelves")
        #expect(try bench.refusal([.create("a")]) == .zoneNotFound)
        try bench.zones(.create, "Shelves")
        #expect(try bench.lookup("a") == nil)
        #expect(try bench.changes().changes.isEmpty)
        let new = try #require(try bench.modify(.create("a"))[0].saved)
        #expect(new.tag > old.tag)
        let answer = try bench.ask(
            .zoneChanges(
                ZoneChangesAsk(
                    database: Bench.privateDatabase, zone: "Shelves", after: position)))
        #expect(answer == .zoneRefused(.positionExpired))
        try bench.finishJobs(budget: 1)
        #expect(bench.rows.count(.record) == 1)
        #expect(bench.rows.count(.feed) == 1)
    }

    @Test func `zones of two owners with one name are two zones`() throws {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        try bench.modify(.create("a"))
        let other = DatabaseID(container: Bench.container, scope: .private, owner: "_other")
        let stranger = Principal(kind: .user, userRecordName: "_other")
        let outcome = try bench.apply(
            .modifyRecords(
                ModifyRecords(
                    database: other, zone: "Shelves", drawnIncarnation: ZoneIncarnation(1),
                    operations: [.create("a")])), as: stranger)
        #expect(outcome == .refused(RequestRefusal(.zoneNotFound, "Shelves")))
        _ = try bench.modify(
            in: ZoneID.defaultName, of: other, as: stranger, .create("a", [number("n", 2)]))
        #expect(try bench.lookup("a")?.fields == [])
        #expect(
            try bench.lookup("a", in: ZoneID.defaultName, database: other, as: stranger)?.fields
                == [number("n", 2)])
    }

    @Test func `nobody but its owner may use a private database`() throws {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        try bench.modify(.create("a"))
        let strangers = [
            Principal(kind: .user, userRecordName: "_stranger"), Principal(kind: .anonymous),
            Principal(kind: .serverKey, userRecordName: "_stranger"),
        ]
        for stranger in strangers {
            // People may be participants of a share, and for them the zone is not there.
            let isPerson = stranger.kind == .user
            #expect(
                try bench.refusal(as: stranger, [.create("b")])
                    == (isPerson ? .zoneNotFound : .accessDenied))
            let denied = RecordAnswer.refused(RequestRefusal(.accessDenied))
            let missing = RecordAnswer.refused(RequestRefusal(.zoneNotFound, "Shelves"))
            let asks: [(ask: RecordQuery.Ask, toPerson: RecordAnswer)] = [
                (
                    .lookup(
                        RecordLookup(
                            database: Bench.privateDatabase, zone: "Shelves", names: ["a"])),
                    missing
                ), (.zones(Bench.privateDatabase, names: nil), denied),
                (
                    .zoneChanges(
                        ZoneChangesAsk(database: Bench.privateDatabase, zone: "Shelves")),
                    .zoneRefused(.notFound)
                ), (.databaseChanges(DatabaseChangesAsk(database: Bench.privateDatabase)), denied),
            ]
            for (ask, toPerson) in asks {
                #expect(try bench.ask(ask, as: stranger) == (isPerson ? toPerson : denied))
            }
        }
    }

    @Test func `the feed is no business of default zones`() throws {
        var bench = Bench()
        try bench.modify(in: ZoneID.defaultName, .create("a"))
        let ask = ZoneChangesAsk(database: Bench.privateDatabase, zone: ZoneID.defaultName)
        #expect(try bench.ask(.zoneChanges(ask)) == .zoneRefused(.noFeed))
        #expect(try bench.databaseChanges().changes.isEmpty)
    }
}
