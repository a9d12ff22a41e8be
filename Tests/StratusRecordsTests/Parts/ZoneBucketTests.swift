import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// A private database whose custom zones lie in buckets, as its parts keep it.
@Suite struct ZoneBucketTests {
    private static let count = 4
    private static let database = PrivateDatabase(
        of: Bench.owner, in: Bench.container, bucketCount: Self.count)
    private var bench = Bench()

    private static func zone(in number: Int) -> String {
        (0...).lazy.map { "Zone\($0)" }.first { Self.database.number(of: $0) == number }!
    }

    private mutating func note(
        _ numbers: [Int], of count: Int = Self.count, above floor: UInt64 = 0
    ) throws -> RecordOutcome {
        try self.bench.apply(
            .noteBuckets(
                NoteBuckets(
                    database: Self.database.home,
                    buckets: ZoneBuckets(
                        count: count, mask: BucketMask(of: numbers), tagFloor: floor))))
    }

    private mutating func mask(count: Int = Self.count) throws -> BucketMask {
        let ask = BucketsAsk(database: Self.database.home, count: count)
        let query = RecordQuery(principal: Bench.user, .buckets(ask)).enveloped()
        let answer = try self.bench.state.answer(query, over: self.bench.rows.view)
        guard case .buckets(let found) = try RecordAnswer(decoding: answer.body) else {
            Issue.record("no buckets")
            return BucketMask()
        }
        return found.mask
    }

    private mutating func create(
        _ zone: String, in part: DatabaseID, above floor: UInt64 = 0
    ) throws -> RecordOutcome {
        var modify = ModifyZones(
            database: part,
            operations: [.init(.create, zone: zone, drawnIncarnation: ZoneIncarnation(9))])
        modify.tagFloor = floor
        return try self.bench.apply(.modifyZones(modify))
    }

    @Test mutating func `bits are set and never taken away`() throws {
        #expect(try self.mask() == BucketMask())
        #expect(try self.note([1]) == .bucketsNoted(BucketMask(of: [1])))
        #expect(try self.note([3]) == .bucketsNoted(BucketMask(of: [1, 3])))
        #expect(try self.note([1]) == .bucketsNoted(BucketMask(of: [1, 3])))
        #expect(try self.mask() == BucketMask(of: [1, 3]))
        // Erased, a database keeps them: nobody must find them out anew.
        _ = try self.bench.apply(
            .eraseDatabase(EraseDatabase(database: Self.database.home)), as: Bench.system)
        #expect(try self.mask() == BucketMask(of: [1, 3]))
    }

    @Test mutating func `another layout begins with a new mask, and an older one is refused`()
        throws
    {
        _ = try self.note([0, 2])
        guard case .refused(let refusal) = try self.note([1], of: 8) else {
            Issue.record("two counts in one layout")
            return
        }
        #expect(refusal.reason == .zoneElsewhere)
        #expect(try self.mask(count: 8) == BucketMask())
        #expect(try self.note([7], of: 8, above: 1 << 32) == .bucketsNoted(BucketMask(of: [7])))
        #expect(try self.mask(count: 8) == BucketMask(of: [7]))
        #expect(try self.mask() == BucketMask())
        guard case .refused = try self.note([1]) else {
            Issue.record("a note that came too late")
            return
        }
        #expect(try self.mask(count: 8) == BucketMask(of: [7]))
    }

    @Test mutating func `somebody else notes nothing`() throws {
        let note = NoteBuckets(
            database: Self.database.home,
            buckets: ZoneBuckets(count: 4, mask: BucketMask(of: [1])))
        let stranger = Principal(kind: .user, userRecordName: "_other")
        #expect(
            try self.bench.apply(.noteBuckets(note), as: stranger)
                == .refused(RequestRefusal(.accessDenied)))
    }

    @Test mutating func `a bucket refuses a zone that hashes elsewhere`() throws {
        let (own, other) = (Self.zone(in: 1), Self.zone(in: 2))
        let part = Self.database.part(1)
        let refused = RecordOutcome.refused(RequestRefusal(.zoneElsewhere, other))
        #expect(try self.create(other, in: part) == refused)
        guard case .zones(let made) = try self.create(own, in: part), made.count == 1 else {
            Issue.record("not made")
            return
        }
        #expect(
            try self.bench.refusal(in: other, of: part, [RecordOperation(.create, recordName: "a")])
                == .zoneElsewhere)
        #expect(
            try self.bench.refusal(
                in: ZoneID.defaultName, of: part, [RecordOperation(.create, recordName: "a")])
                == .zoneElsewhere)
        for ask in [
            RecordQuery.Ask.lookup(RecordLookup(database: part, zone: other, names: ["a"])),
            .zoneChanges(ZoneChangesAsk(database: part, zone: other)),
            .page(
                QueryPageAsk(
                    database: part, zone: other, predicate: RecordPredicate(recordType: "Book"))),
        ] {
            let answer = try self.bench.state.answer(
                RecordQuery(principal: Bench.user, ask).enveloped(), over: self.bench.rows.view)
            #expect(
                try RecordAnswer(decoding: answer.body)
                    == .refused(RequestRefusal(.zoneElsewhere, other)), "\(ask)")
        }
    }

    @Test mutating func `the home of a spread database has no custom zones`() throws {
        _ = try self.note([1])
        #expect(
            try self.create("Zone", in: Self.database.home)
                == .refused(RequestRefusal(.zoneElsewhere, "Zone")))
        // The container was made again, and whole.
        guard
            case .zones(let made) = try self.create(
                "Zone", in: Self.database.home, above: 1 << 32),
            case .created? = made.first
        else {
            Issue.record("not made")
            return
        }
    }

    @Test mutating func `zones of a later layout begin above the tags of the one before`() throws {
        let zone = Self.zone(in: 1)
        guard
            case .zones(let results) = try self.create(
                zone, in: Self.database.part(1), above: 5 << 32),
            case .created(let made)? = results.first
        else {
            Issue.record("not made")
            return
        }
        #expect(made.lastTag == ChangeTag(5 << 32))
        // A public bucket, whose default zone is made by its first save or reservation.
        let bucket = Bucket(0, of: 4)
        let names = (0..<100).map { "r\($0)" }
        let own = try #require(names.first(where: bucket.holds))
        let open = DatabaseID(
            container: Bench.container, scope: .public, owner: "", bucket: bucket)
        var save = ModifyRecords(
            database: open, drawnIncarnation: ZoneIncarnation(1),
            operations: [.create(own)])
        save.tagFloor = 1 << 32
        let outcome = try self.bench.apply(.modifyRecords(save))
        guard case .records(let modified) = outcome,
            case .saved(let saved)? = modified.results.first
        else {
            Issue.record("not saved: \(outcome)")
            return
        }
        #expect(saved.tag == ChangeTag((1 << 32) + 1))
        let second = Bucket(1, of: 4)
        let target = try #require(names.first(where: second.holds))
        var reserve = ReserveReferences(
            database: DatabaseID(
                container: Bench.container, scope: .public, owner: "", bucket: second),
            drawnIncarnation: ZoneIncarnation(2),
            wishes: [.init(target: target, action: .deleteSelf, referrer: own)])
        reserve.tagFloor = 1 << 32
        #expect(try self.bench.apply(.reserveReferences(reserve)) == .reserved([nil]))
        let ask = RecordQuery(
            principal: Bench.user, .zones(reserve.database, names: [ZoneID.defaultName]))
        let answer = try self.bench.state.answer(ask.enveloped(), over: self.bench.rows.view)
        guard case .zones(let zones) = try RecordAnswer(decoding: answer.body),
            case .zone(let found)? = zones.first
        else {
            Issue.record("no zone")
            return
        }
        #expect(found.lastTag == ChangeTag(1 << 32))
    }

    @Test mutating func `two parts of one database in one partition are two databases`() throws {
        for number in [0, 1, 2, 3] {
            try self.bench.zones(.create, Self.zone(in: number), in: Self.database.part(number))
        }
        for number in [0, 1, 2, 3] {
            let query = RecordQuery(
                principal: Bench.user, .zones(Self.database.part(number), names: nil))
            let answer = try self.bench.state.answer(query.enveloped(), over: self.bench.rows.view)
            guard case .zones(let found) = try RecordAnswer(decoding: answer.body) else { return }
            #expect(found.count == 2)
        }
        _ = try self.bench.apply(
            .eraseDatabase(EraseDatabase(database: Self.database.part(1))), as: Bench.system)
        let used = try [0, 1, 2, 3].map { number in
            let query = RecordQuery(principal: Bench.user, .use(Self.database.part(number)))
            let answer = try self.bench.state.answer(query.enveloped(), over: self.bench.rows.view)
            guard case .use(_, let zoneCount, _) = try RecordAnswer(decoding: answer.body) else {
                return UInt64.max
            }
            return zoneCount
        }
        #expect(used == [1, 0, 1, 1])
    }

    /// What a recovery has lost may be a note: then every bucket is asked.
    @Test mutating func `a partition that was recovered answers all bits`() throws {
        _ = try self.note([1])
        let part = Self.database.part(1)
        let zone = Self.zone(in: 1)
        try self.bench.zones(.create, zone, in: part)
        try self.bench.modify(in: zone, of: part, .create("a"), .create("b"))
        try self.bench.modify(in: zone, of: part, .delete("b"))
        _ = try self.bench.state.apply(
            RecordCommand.recover.enveloped(
                container: Bench.container, identity: RequestIdentity(high: 7, low: 7),
                deadlineMilliseconds: .max, schemaVersion: 0, principal: Bench.system),
            at: EntryPosition(index: LogIndex(999), time: self.bench.time), over: self.bench.rows)
        #expect(try self.mask() == BucketMask(of: 0..<4))
        // Of somebody whose row it has lost, too.
        let ask = BucketsAsk(
            database: DatabaseID(container: Bench.container, scope: .private, owner: "_lost"),
            count: 8)
        let query = RecordQuery(principal: Bench.system, .buckets(ask)).enveloped()
        let answer = try self.bench.state.answer(query, over: self.bench.rows.view)
        #expect(
            try RecordAnswer(decoding: answer.body)
                == .buckets(BucketsAnswer(mask: BucketMask(of: 0..<8), zone: nil)))
        // The bucket's own rows were lifted under its own name: its trim finds the zone.
        _ = try self.bench.apply(.continueJobs(ContinueJobs()), as: Bench.system)
        let stored = try StoredRows.database(part, over: self.bench.rows.view)
        let number = try #require(stored).number
        let found = try StoredRows.zone(zone, in: number, over: self.bench.rows.view)
        let row = try #require(found)
        #expect(row.tombstoneCount == 0 && row.lastTag > 1 << 39)
    }

    /// A planted bug is found by the tests above it: the answer is another one.
    @Test mutating func `planted bugs change the mask`() throws {
        _ = try self.note([1])
        self.bench.state = DataState(bugs: PlantedBugs([.oldCountsMask]))
        #expect(try self.mask(count: 8) == BucketMask(of: [1]))
        self.bench.state = DataState(bugs: PlantedBugs([.recoveredMaskKept]))
        _ = try self.bench.state.apply(
            RecordCommand.recover.enveloped(
                container: Bench.container, identity: RequestIdentity(high: 7, low: 7),
                deadlineMilliseconds: .max, schemaVersion: 0, principal: Bench.system),
            at: EntryPosition(index: LogIndex(999), time: self.bench.time), over: self.bench.rows)
        #expect(try self.mask() == BucketMask(of: [1]))
    }

    @Test func `keys of databases are read as they were written`() {
        for part in Self.database.parts {
            #expect(Keys.database(decoding: Keys.database(part)) == part)
        }
        #expect(
            Keys.database(decoding: Keys.database(Bench.publicDatabase)) == Bench.publicDatabase)
        let key = Keys.database(Self.database.part(1))
        for bad in [Bytes(key.dropLast()), key + [1], Bytes(key.dropLast(2)) + [4, 4]] {
            #expect(Keys.database(decoding: bad) == nil)
        }
    }
}
