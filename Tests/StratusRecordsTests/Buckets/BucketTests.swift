import StratusCoding
import StratusDoubles
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// References from one bucket to another, by hand.
@Suite struct BucketTests {
    private var world = BucketWorld(seed: 1, bucketCount: 2)
    /// In bucket 0.
    private let here = BucketWorld.names("h", in: 0, of: 2, 4)
    /// In bucket 1.
    private let there = BucketWorld.names("t", in: 1, of: 2, 4)

    @Test func `a record's bucket is the same for ever`() {
        let names = ["", "a", "book-0007", "_9c1f0e7a", "Ærlig talt", "x".repeated(255)]
        func numbers(_ count: Int) -> [UInt8] {
            names.map { Bucket(0, of: count).sibling(of: $0).number }
        }
        #expect(numbers(2) == [0, 1, 0, 0, 0, 1], "now \(numbers(2))")
        #expect(numbers(4) == [2, 1, 2, 0, 2, 3], "now \(numbers(4))")
        #expect(numbers(64) == [18, 13, 34, 8, 22, 27], "now \(numbers(64))")
    }

    @Test func `buckets are even`() {
        for count in [2, 3, 7, 64] {
            var held = Array(repeating: 0, count: count)
            for number in 0..<20_000 {
                held[Int(Bucket(0, of: count).sibling(of: "book-\(number)").number)] += 1
            }
            let share = 20_000 / count
            for one in held { #expect(abs(one - share) < share / 3, "\(count): \(held)") }
        }
    }

    @Test mutating func `a bucket takes its own records and no others`() throws {
        #expect(try self.world.save(self.here[0])?.saved != nil)
        #expect(try self.world.lookup(self.here[0]) != nil)
        var bench = Bench()
        let wrong = try bench.refusal(
            in: ZoneID.defaultName, of: self.world.database(of: self.there[0]),
            [.create(self.here[0])])
        #expect(wrong == .otherBucket)
        // Two buckets in one partition know nothing of each other.
        let first = self.world.database(of: self.here[0])
        let second = self.world.database(of: self.there[0])
        try bench.modify(in: ZoneID.defaultName, of: first, .create(self.here[0]))
        try bench.modify(in: ZoneID.defaultName, of: second, .create(self.there[0]))
        let whole = Bench.publicDatabase
        try bench.modify(in: ZoneID.defaultName, of: whole, .create("w"))
        for (name, home) in [(self.here[0], first), (self.there[0], second), ("w", whole)] {
            for database in [first, second, whole] {
                let found =
                    try bench.lookup(
                        name, in: ZoneID.defaultName, database: database) != nil
                #expect(found == (database == home))
            }
        }
        let use = try bench.ask(.use(first), as: Bench.system)
        guard case .use(let held, _, _) = use else { throw BenchError("\(use)") }
        #expect(held.recordCount == 1)
    }

    @Test mutating func `a DELETE_SELF reference takes its record with its target, by mail`()
        throws
    {
        try self.world.save(self.there[0])
        try self.world.save(self.here[0], .refers("b", to: self.there[0], .deleteSelf))
        // And whoever refers to that one, in either bucket.
        try self.world.save(self.here[1], .refers("b", to: self.here[0], .deleteSelf))
        try self.world.save(self.there[1], .refers("b", to: self.here[0], .deleteSelf))
        #expect(try self.world.delete(self.there[0])?.isDeleted == true)
        #expect(try self.world.lookup(self.here[0]) != nil, "the mail is on its way")
        try self.world.settle()
        for name in self.here + self.there { #expect(try self.world.lookup(name) == nil) }
        let links = try self.world.links(among: self.here + self.there)
        #expect(links.inbound.isEmpty && links.outbound.isEmpty)
    }

    @Test mutating func `a cascade that is still on its way when its referrer is saved arrives`()
        throws
    {
        try self.world.save(self.there[0])
        let save = try self.world.prepare(
            .create(self.here[0], [.refers("b", to: self.there[0], .deleteSelf)]))
        // Between reservation and save the target goes, and its jobs run.
        try self.world.delete(self.there[0])
        for group in self.world.groups { try self.world.work(in: group) }
        #expect(try self.world.finish(save)?.saved != nil)
        #expect(try self.world.lookup(self.here[0]) != nil)
        try self.world.settle()
        #expect(try self.world.lookup(self.here[0]) == nil)
    }

    @Test mutating func `who refers to a record made again under the name is spared`() throws {
        try self.world.save(self.there[0])
        try self.world.save(self.here[0], .refers("b", to: self.there[0], .deleteSelf))
        try self.world.delete(self.there[0])
        // Before the first deletion is heard of.
        try self.world.save(self.there[0])
        try self.world.save(self.here[1], .refers("b", to: self.there[0], .deleteSelf))
        try self.world.settle()
        #expect(try self.world.lookup(self.here[0]) == nil)
        #expect(try self.world.lookup(self.here[1]) != nil)
        try self.world.delete(self.there[0])
        try self.world.settle()
        #expect(try self.world.lookup(self.here[1]) == nil)
    }

    @Test
    mutating func `a reference that was dropped, or made anew, is not the one that is recalled`()
        throws
    {
        try self.world.save(self.there[0])
        try self.world.save(self.here[0], .refers("b", to: self.there[0], .deleteSelf))
        try self.world.save(self.here[1], .refers("b", to: self.there[0], .deleteSelf))
        try self.world.delete(self.there[0])
        try self.world.save(self.here[0])
        try self.world.save(self.here[1])
        try self.world.save(self.here[1], .refers("b", to: self.there[0], .deleteSelf))
        try self.world.settle()
        #expect(try self.world.lookup(self.here[0]) != nil)
        #expect(try self.world.lookup(self.here[1]) != nil)
    }

    @Test mutating func `who states a reference again is spared by what goes with the old target`()
        throws
    {
        for name in [self.there[0]] + self.here { try self.world.save(name) }
        for name in self.here {
            try self.world.save(name, .refers("b", to: self.there[0], .deleteSelf))
        }
        try self.world.settle()
        try self.world.delete(self.there[0])
        try self.world.save(self.there[0])
        // One before anybody hears of the deletion, one after the mail has left, one after it has
        // arrived.
        try self.world.save(self.here[0], .refers("b", to: self.there[0], .deleteSelf))
        let target = self.world.group(of: self.world.database(of: self.there[0]))
        let referrers = self.world.group(of: self.world.database(of: self.here[0]))
        try self.world.work(in: target, budget: 100)
        try self.world.save(self.here[1], .refers("b", to: self.there[0], .deleteSelf))
        try self.world.carry(from: target)
        try self.world.save(self.here[2], .refers("b", to: self.there[0], .deleteSelf))
        // This one says nothing of its reference.
        let silent = RecordOperation(
            .forceUpdate, recordName: self.here[3], fields: [number("n", 1)])
        #expect(try self.world.modify(silent)?.saved != nil)
        try self.world.work(in: referrers, budget: 100)
        try self.world.settle()
        for name in self.here.prefix(3) { #expect(try self.world.lookup(name) != nil, "\(name)") }
        #expect(try self.world.lookup(self.here[3]) == nil)
        let links = try self.world.links(among: self.here + self.there)
        #expect(links.inbound == links.outbound && links.inbound.count == 3)
        try self.world.delete(self.there[0])
        try self.world.settle()
        for name in self.here { #expect(try self.world.lookup(name) == nil) }
    }

    @Test mutating func `a save that states a VALIDATE reference again leaves nothing reserved`()
        throws
    {
        try self.world.save(self.there[0])
        for _ in 0..<3 {
            try self.world.save(self.here[0], .refers("b", to: self.there[0], .validate))
        }
        // As soon as the mail is there, and not only after the reservations' deadline.
        for _ in 0..<20 {
            for group in self.world.groups { try self.world.carry(from: group) }
        }
        let links = try self.world.links(among: self.here + self.there)
        #expect(links.inbound == links.outbound && links.inbound.count == 1)
        #expect(links.unconfirmedCount == 0)
        #expect(try self.world.delete(self.there[0])?.refusal == .referenced)
    }

    @Test mutating func `a VALIDATE reference needs its target, and keeps it`() throws {
        let missing = try self.world.save(
            self.here[0], .refers("b", to: self.there[0], .validate))
        #expect(missing?.refusal == .referenceTargetMissing)
        try self.world.save(self.there[0])
        let save = try self.world.prepare(
            .create(self.here[0], [.refers("b", to: self.there[0], .validate)]))
        #expect(save.refusal == nil)
        #expect(try self.world.delete(self.there[0])?.refusal == .referencePending)
        #expect(try self.world.finish(save)?.saved != nil)
        #expect(try self.world.delete(self.there[0])?.refusal == .referencePending)
        try self.world.settle()
        #expect(try self.world.delete(self.there[0])?.refusal == .referenced)
        #expect(try self.world.lookup(self.there[0]) != nil)
        try self.world.delete(self.here[0])
        try self.world.settle()
        #expect(try self.world.delete(self.there[0])?.isDeleted == true)
    }

    @Test
    mutating func `a reservation that nobody confirms ends, and a save after it does nothing`()
        throws
    {
        try self.world.save(self.there[0])
        let save = try self.world.prepare(
            .create(self.here[0], [.refers("b", to: self.there[0], .validate)]))
        #expect(try self.world.links(among: self.there).unconfirmedCount == 1)
        try self.world.settle()
        #expect(try self.world.links(among: self.there).inbound.isEmpty)
        #expect(try self.world.finish(save) == nil, "too late")
        #expect(try self.world.delete(self.there[0])?.isDeleted == true)
    }

    /// The question is received after the deadline, whatever the receiver's clock says, so its
    /// answer holds.
    @Test
    mutating func `a clock that is behind lets no save through after its reservation was given up`()
        throws
    {
        let referrer = self.world.group(of: self.world.database(of: self.here[0]))
        let target = self.world.group(of: self.world.database(of: self.there[0]))
        try #require(referrer != target)
        self.world.setClock(of: referrer, ahead: -400)
        self.world.setClock(of: target, ahead: 400)
        try self.world.save(self.there[0])
        let save = try self.world.prepare(
            .create(self.here[0], [.refers("b", to: self.there[0], .validate)]))
        self.world.advance(by: self.world.patience - 100)
        for _ in 0..<4 {
            for group in [target, referrer] {
                try self.world.work(in: group)
                try self.world.carry(from: group)
            }
        }
        #expect(try self.world.links(among: self.there).inbound.isEmpty)
        #expect(try self.world.finish(save) == nil)
        #expect(try self.world.lookup(self.here[0]) == nil)
    }

    @Test
    mutating func `a save without its reservation, or with one that ends too soon, is refused`()
        throws
    {
        try self.world.save(self.there[0])
        let field = Field.refers("b", to: self.there[0], .validate)
        #expect(
            try self.world.modify(.create(self.here[0], [field]))?.refusal == .notReserved)
        var save = try self.world.prepare(.create(self.here[0], [field]))
        save.deadline += 1
        #expect(try self.world.finish(save)?.refusal == .notReserved)
    }

    @Test mutating func `one target has so many DELETE_SELF referrers, wherever they are`() throws {
        let database = self.world.database(of: self.there[0])
        var bench = Bench()
        let wishes = self.here.map {
            ReserveReferences.Wish(
                target: self.there[0], action: .deleteSelf, referrer: $0)
        }
        let outcome = try bench.apply(
            .reserveReferences(
                ReserveReferences(
                    database: database, drawnIncarnation: ZoneIncarnation(1), referrerCountMax: 3,
                    wishes: wishes)))
        #expect(
            outcome
                == .reserved([
                    nil, nil, nil, RecordRefusal(.tooManyReferrers, self.there[0]),
                ]))
        // Both must be where they are said to be.
        for wish in [
            ReserveReferences.Wish(
                target: self.here[0], action: .deleteSelf, referrer: self.there[0]),
            ReserveReferences.Wish(
                target: self.there[0], action: .deleteSelf, referrer: self.there[1]),
        ] {
            let refused = try bench.apply(
                .reserveReferences(
                    ReserveReferences(
                        database: database, drawnIncarnation: ZoneIncarnation(1),
                        wishes: [wish])))
            guard case .refused(let refusal) = refused else { throw BenchError("\(refused)") }
            #expect(refusal.reason == .otherBucket)
        }
    }

    @Test mutating func `who is among a target's referrers already takes nobody's place`() throws {
        self.world.referrerCountMax = 2
        try self.world.save(self.there[0])
        for name in self.here.prefix(2) {
            try self.world.save(name, .refers("b", to: self.there[0], .deleteSelf))
        }
        try self.world.settle()
        for _ in 0..<2 {
            let one = try self.world.save(
                self.here[2], .refers("b", to: self.there[0], .deleteSelf))
            #expect(one?.refusal == .tooManyReferrers)
            let again = try self.world.save(
                self.here[0], .refers("b", to: self.there[0], .deleteSelf))
            #expect(again?.saved != nil)
        }
        try self.world.settle()
        let links = try self.world.links(among: self.here + self.there)
        #expect(links.inbound == links.outbound && links.inbound.count == 2)
    }

    @Test mutating func `while the outbox is full clients are told to come again, and jobs wait`()
        throws
    {
        self.world = BucketWorld(seed: 1, bucketCount: 2, outboxCountMax: 2)
        try self.world.save(self.there[0])
        // Each save posts a confirmation; nobody carries it.
        for name in self.here.prefix(2) {
            #expect(
                try self.world.save(name, .refers("b", to: self.there[0], .deleteSelf))?.saved
                    != nil)
        }
        let third = try self.world.save(
            self.here[2], .refers("b", to: self.there[0], .deleteSelf))
        #expect(third?.refusal == .outboxFull)
        #expect(try self.world.delete(self.here[0])?.refusal == .outboxFull)
        // What tells nobody anything goes on.
        #expect(try self.world.save(self.here[3])?.saved != nil)
        try self.world.settle()
        #expect(
            try self.world.save(self.here[2], .refers("b", to: self.there[0], .deleteSelf))?.saved
                != nil)
    }

    @Test mutating func `only Stratus itself delivers mail`() throws {
        var bench = Bench()
        let route = MailRoute(from: GroupID(2), to: GroupID(1))
        let receipt = MailReceipt(route, through: 9, at: .zero)
        let mail = MailCommand.release(receipt).enveloped(
            identity: RequestIdentity(high: 1, low: 1), deadlineMilliseconds: .max)
        var forged = mail
        forged.principal = Bench.user
        let position = EntryPosition(index: LogIndex(1), time: bench.time)
        let refused = try bench.state.apply(forged, at: position, over: bench.rows)
        #expect(try MailOutcome(decoding: refused.body) == .refused)
        #expect(bench.rows.count(.mail) == 0)
        let taken = try bench.state.apply(mail, at: position, over: bench.rows)
        #expect(try MailOutcome(decoding: taken.body) == .released)
    }
}

extension String {
    fileprivate func repeated(_ count: Int) -> String { String(repeating: self, count: count) }
}
