import StratusCoding
import StratusDoubles
import StratusModel
import StratusPlacement
import StratusRows
import Testing

@testable import StratusQuery
@testable import StratusRecords

/// A public database in buckets, the partitions that hold them, and slow mail between them.
///
/// It does the work of a gateway: it reserves what a save needs in other buckets, then saves.
struct BucketWorld {
    struct Partition {
        var rows = Rows()
        var state: DataState
        var time = HybridTime.zero
        var skew: Int64

        /// The same partition, which goes its own way from here on.
        func copied() -> Self {
            var copy = self
            copy.rows = self.rows.copied()
            return copy
        }
    }

    static let zone = ZoneID(name: ZoneID.defaultName, owner: "")

    let bucketCount: Int
    private(set) var partitions: [GroupID: Partition] = [:]
    /// In an order of their own: a dictionary's would differ from run to run.
    private(set) var groups: [GroupID] = []
    private let bounds: RecordState.Bounds
    var random: SeededGenerator
    private(set) var now: Int64 = 1_700_000_000_000
    private var identityCount: UInt64 = 0
    var patience: Int64 = 2_000
    /// DELETE_SELF referrers of one target.
    var referrerCountMax = RecordRules.standard.deleteSelfReferrerCountMax

    init(seed: UInt64, bucketCount: Int, partitionCount: Int = 4, outboxCountMax: UInt64 = 50) {
        self.random = SeededGenerator(seed: seed)
        self.bucketCount = bucketCount
        var bounds = RecordState.Bounds()
        bounds.partitionCount = partitionCount
        bounds.outbox.countMax = outboxCountMax
        self.bounds = bounds
        for number in 0..<partitionCount {
            let group = PartitionID(UInt16(number)).group
            self.groups.append(group)
            self.partitions[group] = Partition(
                state: DataState(bounds: bounds),
                skew: Int64.random(in: -400...400, using: &self.random))
        }
    }

    // MARK: Where

    func database(of name: String) -> DatabaseID {
        let bucket = Bucket(0, of: self.bucketCount).sibling(of: name)
        return self.database(bucket)
    }

    func database(_ bucket: Bucket) -> DatabaseID {
        DatabaseID(container: Bench.container, scope: .public, owner: "", bucket: bucket)
    }

    func group(of database: DatabaseID) -> GroupID {
        PlacementTable.partition(of: .database(database), among: self.bounds.partitionCount).group
    }

    func leaves(_ target: String, from name: String) -> Bool {
        self.database(of: target) != self.database(of: name)
    }

    /// Names of records in different buckets, then of records in one.
    static func names(_ prefix: String, in bucket: Int, of count: Int, _ number: Int) -> [String] {
        let wanted = Bucket(bucket, of: count)
        var names: [String] = []
        var next = 0
        while names.count < number {
            let name = "\(prefix)\(next)"
            if wanted.holds(name) { names.append(name) }
            next += 1
        }
        return names
    }

    // MARK: Commands

    mutating func setClock(of group: GroupID, ahead milliseconds: Int64) {
        self.partitions[group]?.skew = milliseconds
    }

    /// The number of links that audits repaired, counted by the submitter of their commands.
    private(set) var mendedCount = 0

    mutating func advance(by milliseconds: Int64) { self.now += milliseconds }

    private mutating func draw() -> RequestIdentity {
        self.identityCount += 1
        return RequestIdentity(high: 7, low: self.identityCount)
    }

    private mutating func apply(
        _ command: Command, to group: GroupID, after: HybridTime = .zero
    ) throws -> Outcome? {
        guard var partition = self.partitions[group] else { return nil }
        defer { self.partitions[group] = partition }
        partition.time = max(partition.time, after).successor(
            wallMilliseconds: self.now + partition.skew)
        // As every partition does: too late is too late.
        if command.kind != .mail,
            partition.time.milliseconds > command.deadlineMilliseconds
        {
            return nil
        }
        let position = EntryPosition(index: LogIndex(1), time: partition.time)
        let outcome = try partition.state.apply(command, at: position, over: partition.rows)
        if command.kind == .mail || command.principal.kind == .system {
            self.mendedCount += MendedLinks(detail: outcome.detail).count
        }
        return outcome
    }

    private mutating func apply(
        _ command: RecordCommand, _ identity: RequestIdentity, deadline: Int64 = .max,
        to group: GroupID, as principal: Principal = Bench.user
    ) throws -> RecordOutcome? {
        let envelope = command.enveloped(
            container: Bench.container, identity: identity, deadlineMilliseconds: deadline,
            schemaVersion: 0, principal: principal)
        // As bytes, as it comes from a log.
        let read = try Command(decoding: envelope.encoded())
        guard let outcome = try self.apply(read, to: group) else { return nil }
        return try RecordOutcome(decoding: outcome.body, detail: outcome.detail)
    }

    /// A save that has what it needs in other buckets, or the refusal that it got there.
    struct Prepared {
        var operation: RecordOperation
        var deadline: Int64
        var refusal: RecordRefusal?
    }

    /// The gateway's work before a save: one reservation in each bucket that the record refers to.
    mutating func prepare(_ operation: RecordOperation) throws -> Prepared {
        let identity = self.draw()
        let deadline = self.now + self.patience
        var prepared = Prepared(operation: operation, deadline: deadline, refusal: nil)
        let name = operation.recordName
        for reference in operation.fields.compactMap(\.acting)
        where self.leaves(reference.recordName, from: name) {
            let database = self.database(of: reference.recordName)
            let reserve = ReserveReferences(
                database: database, drawnIncarnation: ZoneIncarnation(self.random.next()),
                referrerCountMax: self.referrerCountMax,
                wishes: [
                    ReserveReferences.Wish(
                        target: reference.recordName, action: reference.action, referrer: name)
                ])
            let outcome = try self.apply(
                .reserveReferences(reserve), identity, deadline: deadline,
                to: self.group(of: database))
            guard case .reserved(let refusals)? = outcome else {
                throw BenchError("not reserved: \(String(describing: outcome))")
            }
            if let refusal = refusals[0] {
                prepared.refusal = refusal
                return prepared
            }
            prepared.operation.reservations.append(
                ReferenceReservation(
                    target: reference.recordName, action: reference.action, identity: identity,
                    deadlineMilliseconds: deadline))
        }
        return prepared
    }

    /// Nil: it came too late.
    mutating func finish(_ prepared: Prepared) throws -> ModifiedRecords.Result? {
        if let refusal = prepared.refusal { return .refused(refusal) }
        return try self.modify(prepared.operation, deadline: prepared.deadline)
    }

    mutating func modify(_ operation: RecordOperation, deadline: Int64 = .max) throws
        -> ModifiedRecords.Result?
    {
        let database = self.database(of: operation.recordName)
        let outcome = try self.apply(
            .modifyRecords(
                ModifyRecords(
                    database: database, drawnIncarnation: ZoneIncarnation(self.random.next()),
                    operations: [operation])), self.draw(), deadline: deadline,
            to: self.group(of: database))
        guard let outcome else { return nil }
        guard case .records(let modified) = outcome else {
            throw BenchError("refused: \(outcome)")
        }
        return modified.results[0]
    }

    /// Saves, with everything that takes.
    @discardableResult
    mutating func save(_ name: String, _ references: Field...) throws -> ModifiedRecords.Result? {
        try self.finish(
            try self.prepare(
                RecordOperation(
                    .forceReplace, recordName: name, recordType: "Book", fields: references)))
    }

    @discardableResult
    mutating func delete(_ name: String) throws -> ModifiedRecords.Result? {
        try self.modify(.delete(name))
    }

    // MARK: What follows by itself

    /// One slice of jobs in one partition.
    mutating func work(in group: GroupID, budget: Int = 3) throws {
        _ = try self.apply(
            .continueJobs(ContinueJobs(budget: budget)), self.draw(), to: group,
            as: Bench.system)
    }

    /// Carries some mail of one route.
    mutating func carry(from group: GroupID) throws {
        guard let sender = self.partitions[group] else { return }
        let outbox = try sender.state.records.office.outbox(OutboxAsk(), over: sender.rows.view)
        guard let pile = outbox.piles.randomElement(using: &self.random) else { return }
        let mails = Array(
            pile.mails.prefix(Int.random(in: 1...pile.mails.count, using: &self.random)))
        let route = MailRoute(from: group, to: pile.receiver)
        let deliver = MailCommand.deliver(MailBag(route, mails))
        for _ in 0..<(Int.random(in: 0..<5, using: &self.random) == 0 ? 2 : 1) {
            let outcome = try self.apply(deliver, to: pile.receiver)
            guard case .received(let through, let time)? = outcome else {
                throw BenchError("not received: \(String(describing: outcome))")
            }
            // A sender that was recovered may send again what was received and released.
            #expect(through >= mails.last?.sequence ?? 0)
            let release = MailCommand.release(
                MailReceipt(route, through: through, at: time))
            #expect(try self.apply(release, to: group) == .released)
        }
    }

    private mutating func apply(_ mail: MailCommand, to group: GroupID) throws -> MailOutcome? {
        let command = mail.enveloped(identity: self.draw(), deadlineMilliseconds: 0)
        guard let outcome = try self.apply(command, to: group, after: mail.after) else {
            return nil
        }
        return try MailOutcome(decoding: outcome.body)
    }

    /// Everything that can be done now is done and carried; no deadline comes.
    mutating func rest() throws {
        for _ in 0..<40 {
            for group in self.groups {
                try self.work(in: group, budget: 100)
                try self.carry(from: group)
            }
        }
    }

    /// The same world, which goes its own way from here on.
    func copied() -> Self {
        var copy = self
        copy.partitions = self.partitions.mapValues { $0.copied() }
        return copy
    }

    /// A partition goes on from what it was once: its majority is lost for good.
    mutating func recover(_ group: GroupID, as kept: Partition?) throws {
        self.partitions[group] = kept?.copied()
        let command = RecordCommand.recover.enveloped(
            container: Bench.container, identity: self.draw(), deadlineMilliseconds: .max,
            schemaVersion: 0, principal: Bench.system)
        #expect(try self.apply(command, to: group)?.verdict == .decided)
    }

    /// Tells every bucket to compare its links with their other ends.
    mutating func audit() throws {
        for number in 0..<self.bucketCount {
            let database = self.database(Bucket(number, of: self.bucketCount))
            let outcome = try self.apply(
                .auditLinks(AuditLinks(database: database)), self.draw(),
                to: self.group(of: database), as: Bench.system)
            guard case .jobs? = outcome else {
                throw BenchError("no audit: \(String(describing: outcome))")
            }
        }
    }

    /// Delivers all mail and finishes all jobs, deadlines included.
    mutating func settle() throws {
        self.advance(by: self.patience + 2_000)
        for _ in 0..<5_000 {
            for group in self.groups {
                try self.work(in: group, budget: 100)
                try self.carry(from: group)
            }
            // All at once: what one of them did may have woken another.
            var isQuiet = true
            for group in self.groups {
                guard let partition = self.partitions[group] else { continue }
                let waiting = try partition.state.records.office.waitingCount(
                    over: partition.rows.view)
                if waiting > 0 || partition.rows.count(.job) > 0 { isQuiet = false }
            }
            if isQuiet, try self.reservationCount() == 0 { return }
            self.advance(by: 5)
        }
        throw BenchError("it never comes to rest")
    }

    // MARK: What is there

    func lookup(_ name: String) throws -> Record? {
        let database = self.database(of: name)
        guard var partition = self.partitions[self.group(of: database)] else { return nil }
        let query = RecordQuery(
            principal: Bench.system, .lookup(RecordLookup(database: database, names: [name])))
        let answer = try RecordAnswer(
            decoding: partition.state.answer(query.enveloped(), over: partition.rows.view).body)
        guard case .lookup(let found) = answer, case .found(let record) = found.items[0] else {
            return nil
        }
        return record
    }

    private func reservationCount() throws -> Int {
        try self.groups.reduce(0) { count, group in
            guard let partition = self.partitions[group] else { return count }
            return try count
                + partition.rows.view.keys(
                    .mail, from: LinkKeys.deadlines, to: Keys.end(of: LinkKeys.deadlines),
                    limit: .max
                ).count
        }
    }

    /// Links as one end of them has them: at the targets, or at the referrers.
    struct Links {
        var inbound: Set<LinkEnds.End> = []
        var outbound: Set<LinkEnds.End> = []
        var unconfirmedCount = 0
    }

    func links(among names: [String]) throws -> Links {
        var links = Links()
        let ask = LinkEnds.Ask(Bench.container, bucketCount: self.bucketCount, names: names)
        // As a question goes to a partition.
        let read = try LinkEnds.Ask(decoding: ask.encoded())
        #expect(read == ask)
        for group in self.groups {
            guard let rows = self.partitions[group]?.rows else { continue }
            let ends = try LinkEnds(read, over: rows.view)
            #expect(try LinkEnds(decoding: ends.encoded()) == ends)
            links.inbound.formUnion(ends.inbound)
            links.outbound.formUnion(ends.outbound)
            links.unconfirmedCount += ends.unconfirmedCount
        }
        return links
    }
}

extension Field {
    /// The reference in here, if a state acts on it.
    var acting: Reference? {
        if case .scalar(.reference(let reference)) = self.value, reference.action != .none {
            reference
        } else {
            nil
        }
    }

    static func refers(_ name: String, to target: String, _ action: Reference.Action) -> Field {
        reference(name, to: target, action, zone: ZoneID.defaultName, owner: "")
    }
}
