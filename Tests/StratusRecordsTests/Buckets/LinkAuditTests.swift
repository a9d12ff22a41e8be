import StratusCoding
import StratusModel
import Testing

@testable import StratusRecords

/// M-19: the two ends of a link disagree after a partition went on without the end
/// of its log, and an audit settles it. Each test loses something else.
@Suite struct LinkAuditTests {
    private var world = BucketWorld(seed: 1, bucketCount: 2)
    /// In bucket 0.
    private let here = BucketWorld.names("h", in: 0, of: 2, 3)
    /// In bucket 1.
    private let there = BucketWorld.names("t", in: 1, of: 2, 3)
    private let referrers: GroupID
    private let targets: GroupID

    init() throws {
        self.referrers = self.world.group(of: self.world.database(of: self.here[0]))
        self.targets = self.world.group(of: self.world.database(of: self.there[0]))
        try #require(self.referrers != self.targets, "two buckets in one partition lose together")
        try self.world.save(self.there[0])
        // So that both buckets are there from the beginning.
        try self.world.save(self.here[2])
        try self.world.settle()
    }

    private func names(_ ends: Set<LinkEnds.End>) -> [String] {
        ends.map { "\($0.referrer) \($0.action) \($0.target)" }.sorted()
    }

    /// Both ends know the same links, and all of them are certain.
    private func expectAgreement(_ comment: Comment? = nil) throws {
        let links = try self.world.links(among: self.here + self.there)
        #expect(links.inbound == links.outbound, comment)
        #expect(links.unconfirmedCount == 0, comment)
    }

    /// - Parameter count: of the links that it mends.
    private mutating func audit(mending count: Int = 1) throws {
        let before = self.world.mendedCount
        try self.world.audit()
        try self.world.settle()
        try self.expectAgreement()
        #expect(self.world.mendedCount - before == count)
        // Nothing is left to mend.
        try self.world.audit()
        try self.world.settle()
        #expect(self.world.mendedCount - before == count)
    }

    @Test mutating func `a save that is lost protects its target no more`() throws {
        let kept = self.world.partitions[self.referrers]?.copied()
        try self.world.save(self.here[0], .refers("b", to: self.there[0], .validate))
        try self.world.settle()
        try self.world.recover(self.referrers, as: kept)
        try self.world.settle()
        #expect(try self.world.lookup(self.here[0]) == nil)
        // Nothing that goes on by itself would ever end this.
        #expect(try self.world.delete(self.there[0])?.refusal == .referenced)
        try self.audit()
        #expect(try self.world.delete(self.there[0])?.isDeleted == true)
    }

    @Test mutating func `a reference that comes back protects its target again`() throws {
        try self.world.save(self.here[0], .refers("b", to: self.there[0], .validate))
        try self.world.settle()
        let kept = self.world.partitions[self.referrers]?.copied()
        try self.world.delete(self.here[0])
        try self.world.settle()
        try self.world.recover(self.referrers, as: kept)
        try self.world.settle()
        #expect(try self.world.lookup(self.here[0]) != nil)
        #expect(try self.world.links(among: self.here + self.there).inbound.isEmpty)
        try self.audit()
        #expect(try self.world.delete(self.there[0])?.refusal == .referenced)
        try self.world.delete(self.here[0])
        try self.world.settle()
        #expect(try self.world.delete(self.there[0])?.isDeleted == true)
    }

    @Test(arguments: [Reference.Action.deleteSelf, .validate])
    mutating func `a target learns again who refers to it`(action: Reference.Action) throws {
        let kept = self.world.partitions[self.targets]?.copied()
        try self.world.save(self.here[0], .refers("b", to: self.there[0], action))
        try self.world.settle()
        try self.world.recover(self.targets, as: kept)
        try self.world.settle()
        #expect(try self.world.links(among: self.here + self.there).inbound.isEmpty)
        try self.audit()
        let deleted = try self.world.delete(self.there[0])
        if action == .validate {
            #expect(deleted?.refusal == .referenced)
        } else {
            #expect(deleted?.isDeleted == true)
            try self.world.settle()
            #expect(try self.world.lookup(self.here[0]) == nil)
        }
        try self.expectAgreement()
    }

    /// Mail says nothing twice: the referrer answers the question by *nothing else will come*.
    @Test(arguments: [false, true])
    mutating func `a confirmation that is lost is not taken for a save that never was`(
        isAudited: Bool
    ) throws {
        let save = try self.world.prepare(
            .create(self.here[0], [.refers("b", to: self.there[0], .validate)]))
        let kept = self.world.partitions[self.targets]?.copied()
        #expect(try self.world.finish(save)?.saved != nil)
        try self.world.rest()
        try self.world.recover(self.targets, as: kept)
        if isAudited { try self.world.audit() }
        try self.world.settle()
        let links = try self.world.links(among: self.here + self.there)
        #expect(self.names(links.outbound) == ["\(self.here[0]) validate \(self.there[0])"])
        #expect(links.inbound == (isAudited ? links.outbound : []))
        // Also where nobody came before the answer.
        try self.audit(mending: isAudited ? 0 : 1)
        #expect(try self.world.delete(self.there[0])?.refusal == .referenced)
    }

    @Test mutating func `a question that is lost is asked again`() throws {
        _ = try self.world.prepare(
            .create(self.here[0], [.refers("b", to: self.there[0], .validate)]))
        let kept = self.world.partitions[self.referrers]?.copied()
        self.world.advance(by: self.world.patience + 2_000)
        try self.world.work(in: self.targets)
        try self.world.carry(from: self.targets)
        try self.world.recover(self.referrers, as: kept)
        try self.world.settle()
        #expect(try self.world.delete(self.there[0])?.refusal == .referencePending)
        #expect(try self.world.links(among: self.here + self.there).unconfirmedCount == 1)
        try self.audit()
        #expect(try self.world.delete(self.there[0])?.isDeleted == true)
    }

    @Test mutating func `a reference that was dropped is not remembered again`() throws {
        try self.world.save(self.here[0], .refers("b", to: self.there[0], .deleteSelf))
        try self.world.save(self.here[1], .refers("b", to: self.there[0], .validate))
        try self.world.settle()
        let kept = self.world.partitions[self.targets]?.copied()
        try self.world.delete(self.here[0])
        // The same reference under another reservation.
        try self.world.save(self.here[1], .refers("b", to: self.there[0], .validate))
        try self.world.settle()
        try self.world.recover(self.targets, as: kept)
        try self.world.settle()
        var links = try self.world.links(among: self.here + self.there)
        #expect(links.inbound.count == 2 && links.inbound.isDisjoint(with: links.outbound))
        try self.audit(mending: 3)
        links = try self.world.links(among: self.here + self.there)
        #expect(self.names(links.inbound) == ["\(self.here[1]) validate \(self.there[0])"])
    }

    @Test mutating func `a record whose cascade is lost stays until the next deletion`()
        throws
    {
        try self.world.save(self.here[0], .refers("b", to: self.there[0], .deleteSelf))
        try self.world.settle()
        let kept = self.world.partitions[self.referrers]?.copied()
        try self.world.delete(self.there[0])
        try self.world.settle()
        #expect(try self.world.lookup(self.here[0]) == nil)
        try self.world.recover(self.referrers, as: kept)
        try self.audit()
        // Nobody can tell whether its target existed when the reference was made, so an audit
        // deletes nothing.
        #expect(try self.world.lookup(self.here[0]) != nil)
        try self.world.save(self.there[0])
        try self.world.delete(self.there[0])
        try self.world.settle()
        #expect(try self.world.lookup(self.here[0]) == nil)
        try self.expectAgreement()
    }

    /// A gateway in doubt sends its save again, under the reservation that it has.
    @Test mutating func `a save that is lost and comes again finds its link`() throws {
        self.world.patience = 20_000
        let save = try self.world.prepare(
            .create(self.here[0], [.refers("b", to: self.there[0], .validate)]))
        let kept = self.world.partitions[self.referrers]?.copied()
        #expect(try self.world.finish(save)?.saved != nil)
        try self.world.rest()
        try self.world.recover(self.referrers, as: kept)
        try self.world.audit()
        try self.world.rest()
        #expect(try self.world.lookup(self.here[0]) == nil)
        #expect(try self.world.finish(save)?.saved != nil)
        try self.world.settle()
        try self.expectAgreement()
        #expect(try self.world.delete(self.there[0])?.refusal == .referenced)
    }

    @Test mutating func `a reference that is dropped while an audit runs is not stated`() throws {
        try self.world.save(self.here[0], .refers("b", to: self.there[0], .validate))
        try self.world.settle()
        try self.world.audit()
        // The inquiry has come, its answer has not left.
        try self.world.work(in: self.targets)
        try self.world.carry(from: self.targets)
        try self.world.delete(self.here[0])
        try self.world.settle()
        try self.expectAgreement()
        #expect(try self.world.delete(self.there[0])?.isDeleted == true)
    }

    @Test mutating func `only Stratus and administrators begin an audit, of a bucket`() throws {
        var bench = Bench()
        let bucket = self.world.database(of: self.here[0])
        try bench.modify(in: ZoneID.defaultName, of: bucket, .create(self.here[0]))
        func outcome(_ database: DatabaseID, _ principal: Principal) throws -> RecordOutcome {
            try bench.apply(.auditLinks(AuditLinks(database: database)), as: principal)
        }
        let user = try outcome(bucket, Bench.user)
        #expect(user == .refused(RequestRefusal(.accessDenied)))
        let whole = try outcome(Bench.publicDatabase, Bench.system)
        #expect(whole == .refused(RequestRefusal(.otherBucket)))
        let empty = try outcome(self.world.database(of: self.there[0]), Bench.system)
        #expect(empty == .jobs(JobProgress(rowCount: 0, hasMore: false)))
        let begun = try outcome(bucket, Bench.system)
        #expect(begun == .jobs(JobProgress(rowCount: 0, hasMore: true)))
    }
}
