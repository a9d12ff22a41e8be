import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// The content of a database is counted exactly at every moment, and a quota admits what fits and
/// nothing more.
@Suite struct UsageTests {
    private func use(
        _ bench: inout Bench, of database: DatabaseID = Bench.privateDatabase,
        as principal: Principal = Bench.user
    ) throws -> RecordAnswer {
        let query = RecordQuery(principal: principal, .use(database)).enveloped()
        return try RecordAnswer(
            decoding: bench.state.answer(query, over: bench.rows.view).body)
    }

    /// Over the whole partition, in pages.
    private func held(_ bench: inout Bench, limit: Int) throws -> StorageUse {
        var use = StorageUse.none
        var after: Bytes?
        for _ in 0..<1_000 {
            let query = RecordQuery(
                principal: Bench.system, .heldRecords(HeldRecordsAsk(after: after, limit: limit))
            ).enveloped()
            guard
                case .heldRecords(let page) = try RecordAnswer(
                    decoding: bench.state.answer(query, over: bench.rows.view).body)
            else { throw BenchError("no held records") }
            use = use + page.use
            guard let next = page.next else { return use }
            #expect(after.map { Bytes.isOrdered($0, before: next) } ?? true)
            after = next
        }
        throw BenchError("pages without end")
    }

    @Test func `nobody but the system counts the records of a partition`() throws {
        var bench = Bench()
        try bench.modify(in: ZoneID.defaultName, .create("one"))
        for principal in [Bench.user, Principal(kind: .administrator)] {
            let query = RecordQuery(principal: principal, .heldRecords(HeldRecordsAsk()))
                .enveloped()
            let answer = try RecordAnswer(
                decoding: bench.state.answer(query, over: bench.rows.view).body)
            #expect(answer == .refused(RequestRefusal(.accessDenied)))
        }
        #expect(try self.held(&bench, limit: 1).recordCount == 1)
    }

    /// Counted from the rows themselves.
    private func counted(_ bench: Bench) throws -> RecordAnswer {
        var use = StorageUse.none
        var zones: UInt64 = 0
        for (name, zone) in try bench.state.records.liveZones(
            of: Bench.privateDatabase, over: bench.rows.view)
        {
            if name != ZoneID.defaultName { zones += 1 }
            let start = Keys.zoneStart(zone.number)
            for (_, row) in try bench.rows.view.rows(
                .record, from: start, to: Keys.end(of: start), limit: .max)
            where try RecordRow.isLive(row) {
                use.recordCount += 1
                use.size += UInt64(row.count)
            }
        }
        return .use(use, zoneCount: zones)
    }

    @Test(arguments: 1...6)
    func `what is held is what the rows say, whatever is done`(seed: UInt64) throws {
        var bench = Bench()
        var random = SeededGenerator(seed: seed)
        func draw(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
        let zones = ["A", "B", "C", ZoneID.defaultName]
        for step in 0..<300 {
            let zone = zones[draw(4)]
            let name = "r\(draw(8))"
            switch draw(20) {
            case 0 where zone != ZoneID.defaultName: try bench.zones(.delete, zone)
            case 1: try bench.finishJobs(budget: 3)
            case 2:
                _ = try bench.apply(
                    .eraseDatabase(
                        EraseDatabase(database: Bench.privateDatabase, zoneCount: 1 + draw(2))),
                    as: Bench.system)
            case 3...6:
                if zone != ZoneID.defaultName { try bench.zones(.create, zone) }
            default:
                // A zone that is not there refuses all of it, which is one more thing to count.
                let text = String(repeating: "x", count: draw(400))
                _ = try bench.apply(
                    .modifyRecords(
                        ModifyRecords(
                            database: Bench.privateDatabase, zone: zone, isAtomic: false,
                            drawnIncarnation: ZoneIncarnation(UInt64(step + 1)),
                            rules: .standard,
                            operations: [
                                RecordOperation(
                                    .forceReplace, recordName: name, recordType: "Book",
                                    fields: [
                                        Field(name: "t", value: .scalar(.string(text)))
                                    ]
                                        + (draw(3) == 0
                                            ? [reference("up", to: "r0", .deleteSelf, zone: zone)]
                                            : [])),
                                RecordOperation(.forceDelete, recordName: "r\(8 + draw(2))"),
                                RecordOperation(
                                    draw(4) == 0 ? .forceDelete : .forceUpdate,
                                    recordName: draw(6) == 0 ? "r0" : "s\(draw(4))",
                                    recordType: "Book"),
                            ])))
            }
            let told = try self.use(&bench)
            let rows = try self.counted(bench)
            if case .use(let use, _, _) = rows {
                let held = try self.held(&bench, limit: 1 + draw(4))
                #expect(held == use, "seed \(seed), step \(step)")
            }
            #expect(told == rows, "seed \(seed), step \(step)")
            if told != rows { return }
        }
        guard case .use(let use, _, _) = try self.use(&bench) else { throw BenchError("no use") }
        #expect(use.recordCount > 0)
    }

    private func rules(_ size: UInt64) -> RecordRules {
        var rules = RecordRules()
        rules.databaseSizeMax = size
        return rules
    }

    private func size(_ bench: inout Bench) throws -> UInt64 {
        guard case .use(let use, _, _) = try self.use(&bench) else { throw BenchError("no use") }
        return use.size
    }

    @Test func `a quota counts every zone, lets in what fits, and always lets a database shrink`()
        throws
    {
        var bench = Bench()
        try bench.zones(.create, "A")
        try bench.zones(.create, "B")
        let long = text("t", String(repeating: "x", count: 1_000))
        try bench.modify(in: "A", .create("one", [long]))
        try bench.modify(in: ZoneID.defaultName, .create("two", [long]))
        let two = try self.size(&bench)

        // One byte too little, then exactly enough.
        let third = try bench.modify(in: "B", rules: self.rules(two + 100), .create("3", [long]))
        #expect(third[0].refusal == .databaseFull)
        #expect(try self.size(&bench) == two)
        var probe = bench.copied()
        try probe.modify(in: "B", .create("3", [long]))
        let three = try self.size(&probe)
        #expect(
            try bench.modify(in: "B", rules: self.rules(three - 1), .create("3", [long]))[0].refusal
                == .databaseFull)
        #expect(
            try bench.modify(in: "B", rules: self.rules(three), .create("3", [long]))[0].saved
                != nil)

        // It is over its quota since the quota was lowered: it may not grow, but may shrink or keep
        // its size.
        let low = self.rules(1)
        let same = RecordOperation(.forceUpdate, recordName: "one", fields: [text("t", "y")])
        #expect(try bench.modify(in: "A", rules: low, same)[0].saved != nil)
        #expect(
            try bench.modify(
                in: "A", rules: low,
                RecordOperation(.forceUpdate, recordName: "one", fields: [long])
            )[0].refusal == .databaseFull)
        #expect(try bench.modify(in: "B", rules: low, .delete("3"))[0].isDeleted)
    }

    @Test func `in one batch what goes makes room for what comes after it, and atomic means all`()
        throws
    {
        var bench = Bench()
        try bench.zones(.create, "A")
        let long = text("t", String(repeating: "x", count: 1_000))
        try bench.modify(in: "A", .create("one", [long]))
        let full = self.rules(try self.size(&bench))
        #expect(
            try bench.modify(
                in: "A", atomic: true, rules: full, .delete("one"), .create("two", [long])
            ).map(\.refusal) == [nil, nil])
        #expect(
            try bench.modify(
                in: "A", atomic: true, rules: full, .create("six", [text("t", "")]),
                .update("two", nil)
            ).map(\.refusal) == [.databaseFull, .tagMissing])
        // Somebody else's database has a quota of its own.
        let other = DatabaseID(container: Bench.container, scope: .private, owner: "_other")
        let stranger = Principal(kind: .user, userRecordName: "_other")
        #expect(
            try bench.modify(
                in: ZoneID.defaultName, of: other, as: stranger, rules: full,
                .create("one", [text("t", "")]))[0].saved != nil)
    }

    @Test func `only the owner of a private database and administrators learn what it holds`()
        throws
    {
        var bench = Bench()
        try bench.zones(.create, "A")
        try bench.modify(in: "A", .create("one"))
        let refused = RecordAnswer.refused(RequestRefusal(.accessDenied))
        let stranger = Principal(kind: .user, userRecordName: "_other")
        #expect(try self.use(&bench, as: stranger) == refused)
        for kind in [Principal.Kind.user, .serverKey, .anonymous] {
            let principal = Principal(
                kind: kind, userRecordName: kind == .anonymous ? "" : Bench.owner)
            #expect(try self.use(&bench, of: Bench.publicDatabase, as: principal) == refused)
        }
        #expect(
            try self.use(&bench, of: Bench.publicDatabase, as: Bench.system)
                == .use(.none, zoneCount: 0))
        #expect(try self.use(&bench, as: Bench.system) == self.use(&bench))
    }

    @Test func `rules with a quota are read back, and rules without are written as ever`() throws {
        var modify = ModifyRecords(
            database: Bench.privateDatabase, zone: "A", isAtomic: true,
            drawnIncarnation: ZoneIncarnation(1), rules: self.rules(1 << 40),
            operations: [.create("one")])
        let command = RecordCommand.modifyRecords(modify)
        #expect(
            try RecordCommand(decoding: command.encoded(), container: Bench.container) == command)
        modify.rules = .standard
        let plain = RecordCommand.modifyRecords(modify).encoded()
        #expect(command.encoded().count > plain.count)
        #expect(
            try RecordCommand(decoding: plain, container: Bench.container)
                == .modifyRecords(modify))
    }

    @Test func `a use never falls below nothing`() {
        #expect(StorageUse(size: 5) - StorageUse(size: 9) == .none)
    }
}
