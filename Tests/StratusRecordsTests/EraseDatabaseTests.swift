import StratusDoubles
import StratusModel
import StratusRecords
import StratusRows
import Testing

/// An erased database leaves nothing behind, and no earlier token fits a later one.
@Suite struct EraseDatabaseTests {
    private func erase(
        _ bench: inout Bench, _ database: DatabaseID = Bench.privateDatabase, zones: Int = 1_000
    ) throws -> ErasureProgress {
        let outcome = try bench.apply(
            .eraseDatabase(EraseDatabase(database: database, zoneCount: zones)),
            as: Bench.system)
        guard case .erased(let progress) = outcome else { throw BenchError("\(outcome)") }
        return progress
    }

    @Test func `records, tombstones and zones go, in slices, and nothing of another database`()
        throws
    {
        var bench = Bench()
        for zone in ["A", "B", "C"] {
            try bench.zones(.create, zone)
            try bench.modify(in: zone, .create("a-\(zone)"), .create("b-\(zone)"))
        }
        try bench.modify(in: "B", RecordOperation(.forceDelete, recordName: "a-B"))
        try bench.modify(in: ZoneID.defaultName, .create("plain"))
        try bench.zones(.delete, "C")
        let other = DatabaseID(container: Bench.container, scope: .private, owner: "_other")
        let stranger = Principal(kind: .user, userRecordName: "_other")
        try bench.modify(in: ZoneID.defaultName, of: other, as: stranger, .create("theirs"))

        var slices: [ErasureProgress] = []
        repeat {
            slices.append(try self.erase(&bench, zones: 1))
        } while slices.last?.hasMore == true
        #expect(slices.count == 4)
        #expect(slices.map(\.zoneCount).reduce(0, +) == 2)
        #expect(slices.map(\.recordCount).reduce(0, +) == 4)
        #expect(
            try self.erase(&bench)
                == ErasureProgress(zoneCount: 0, recordCount: 0, hasMore: false))

        #expect(try bench.lookup("plain", in: ZoneID.defaultName) == nil)
        try bench.finishJobs(budget: 2)
        #expect(bench.rows.count(.record) == 1)
        #expect(bench.rows.count(.feed) <= 1)
        #expect(bench.rows.count(.zone) == 1)
        #expect(
            try bench.lookup("theirs", in: ZoneID.defaultName, database: other, as: stranger) != nil
        )
    }

    /// Without it nobody makes the file anew.
    @Test func `an erasure says so, with the zones that jobs have still to remove`() throws {
        var state = DataState()
        let rows = Rows()
        var index: UInt64 = 0
        func apply(_ command: Command) throws -> Bool {
            index += 1
            let position = EntryPosition(
                index: LogIndex(index), time: HybridTime(milliseconds: 1_000 + Int64(index)))
            _ = try state.apply(command, at: position, over: rows)
            return state.takeErased()
        }
        func command(_ body: RecordCommand, _ kind: Principal.Kind = .system) -> Command {
            body.enveloped(
                container: Bench.container, identity: RequestIdentity(high: 1, low: index),
                deadlineMilliseconds: 100_000, schemaVersion: 0,
                principal: Principal(kind: kind, userRecordName: kind == .user ? "_u" : ""))
        }
        let database = DatabaseID(container: Bench.container, scope: .private, owner: "_u")
        let erase = command(.eraseDatabase(EraseDatabase(database: database)))
        #expect(try !apply(erase), "there was nothing to erase")
        let zones = (1...3).map {
            ModifyZones.Operation(
                .create, zone: "Z\($0)", drawnIncarnation: ZoneIncarnation(UInt64($0)))
        }
        let made = RecordCommand.modifyZones(ModifyZones(database: database, operations: zones))
        #expect(try !apply(command(made, .user)))
        #expect(try state.removing(over: rows.view) == nil)
        #expect(try apply(erase))
        let left = try #require(try state.removing(over: rows.view))
        #expect(left.upperBound - left.lowerBound >= 2)
        #expect(try !apply(command(.continueJobs(ContinueJobs(budget: 1_000)))))
        #expect(try state.removing(over: rows.view) == nil)
        // What is known of the person elsewhere.
        for kind in [IdentityKey.Kind.account, .address, .listing, .user] {
            let key = IdentityKey(kind, of: Bytes("home".utf8), [1])
            let edits: [IdentityCommand.Change] = [
                .put(body: [1], expiresAtMilliseconds: 0), .remove,
            ]
            for edit in edits {
                let identity = IdentityCommand([IdentityCommand.Edit(key, edit)]).enveloped(
                    identity: RequestIdentity(high: 2, low: index), deadlineMilliseconds: 100_000)
                #expect(try apply(identity) == (edit == .remove), "\(kind)")
            }
        }
        let forget = command(.forgetOutcomes)
        #expect(state.forgetsOutcomes(forget) && !state.forgetsOutcomes(erase))
        #expect(!state.forgetsOutcomes(command(.forgetOutcomes, .user)))
    }

    @Test func `tags and positions from before an erasure fit nothing after it`() throws {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        let custom = try #require(try bench.modify(.create("a"), .create("b"))[1].saved)
        let plain = try #require(
            try bench.modify(in: ZoneID.defaultName, .create("a"), .create("b"))[1].saved)
        let feed = try bench.databaseChanges().position
        let zoneFeed = try bench.changes().position
        _ = try self.erase(&bench)

        #expect(
            try bench.ask(
                .databaseChanges(
                    DatabaseChangesAsk(database: Bench.privateDatabase, after: feed)))
                == .zoneRefused(.positionExpired))
        #expect(try bench.databaseChanges().changes.isEmpty)
        try bench.zones(.create, "Shelves")
        #expect(try bench.modify(.create("b"))[0].saved.map { $0.tag > custom.tag } == true)
        #expect(
            try bench.modify(in: ZoneID.defaultName, .create("b"))[0].saved
                .map { $0.tag > plain.tag } == true)
        #expect(
            try bench.ask(
                .zoneChanges(
                    ZoneChangesAsk(
                        database: Bench.privateDatabase, zone: "Shelves", after: zoneFeed)))
                == .zoneRefused(.positionExpired))
        #expect(try bench.databaseChanges().changes.map(\.name) == ["Shelves"])
        try bench.finishJobs(budget: 3)
        #expect(try bench.lookup("b") != nil)
        #expect(try bench.lookup("a") == nil)
    }

    @Test func `tokens of an empty database expire by an erasure, and later ones do not`() throws {
        var bench = Bench()
        let empty = try bench.databaseChanges().position
        try bench.zones(.create, "Shelves")
        _ = try self.erase(&bench)
        let ask = DatabaseChangesAsk(database: Bench.privateDatabase, after: empty)
        #expect(try bench.ask(.databaseChanges(ask)) == .zoneRefused(.positionExpired))
        let erased = try bench.databaseChanges().position
        #expect(try bench.databaseChanges(after: erased).position == erased)
        try bench.zones(.create, "Shelves")
        #expect(try bench.databaseChanges(after: erased).changes.map(\.name) == ["Shelves"])
    }

    @Test func `nobody but Stratus itself erases a database`() throws {
        var bench = Bench()
        try bench.modify(in: ZoneID.defaultName, .create("a"))
        #expect(
            try bench.apply(.eraseDatabase(EraseDatabase(database: Bench.privateDatabase)))
                == .refused(RequestRefusal(.accessDenied)))
        #expect(try bench.lookup("a", in: ZoneID.defaultName) != nil)
        // Where there never was one, there is nothing to do.
        let nowhere = DatabaseID(container: Bench.container, scope: .private, owner: "_nobody")
        #expect(try self.erase(&bench, nowhere).hasMore == false)
        #expect(bench.rows.count(.database) == 2)
    }
}
