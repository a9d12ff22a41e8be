import Foundation
import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// References between buckets under any order of saves, deletions, mail, jobs and deadlines.
/// `STRATUS_SEEDS` sets the number of seeds.
@Suite struct BucketPropertyTests {
    static let seedCount =
        ProcessInfo.processInfo.environment["STRATUS_SEEDS"].flatMap { UInt64($0) } ?? 60

    /// A world with a life behind it, nothing of it settled.
    private static func live(_ seed: UInt64, steps: Int) throws -> (BucketWorld, [String]) {
        var world = BucketWorld(
            seed: seed, bucketCount: 2 + Int(seed % 3), partitionCount: seed % 4 == 0 ? 1 : 4,
            outboxCountMax: seed % 3 == 0 ? 3 : 50)
        let names = (0..<12).map { "r\($0)" }
        var prepared: [BucketWorld.Prepared] = []
        for _ in 0..<steps { try Self.step(&world, names, &prepared) }
        return (world, names)
    }

    /// Whatever a client, a gateway, mail, jobs or time may do next.
    static func step(
        _ world: inout BucketWorld, _ names: [String], _ prepared: inout [BucketWorld.Prepared]
    ) throws {
        let name = names.randomElement(using: &world.random)!
        switch Int.random(in: 0..<12, using: &world.random) {
        case 0...2:
            var fields: [Field] = []
            for field in ["a", "b"] where Bool.random(using: &world.random) {
                // VALIDATE points to earlier names only, DELETE_SELF to any. So circles of both
                // kinds exist, but none of records that protect each other for ever.
                let isValidate = Int.random(in: 0..<3, using: &world.random) == 0
                let target = names.randomElement(using: &world.random)!
                if isValidate, target >= name { continue }
                fields.append(
                    .refers(field, to: target, isValidate ? .validate : .deleteSelf))
            }
            prepared.append(
                try world.prepare(
                    RecordOperation(
                        .forceReplace, recordName: name, recordType: "Book", fields: fields)))
        case 3, 4, 5:
            guard !prepared.isEmpty else { return }
            let next = prepared.remove(
                at: Int.random(in: 0..<prepared.count, using: &world.random))
            // A gateway may die before it comes to that.
            if Int.random(in: 0..<6, using: &world.random) > 0 {
                _ = try world.finish(next)
            }
        case 6: try world.delete(name)
        case 7, 8: try world.carry(from: world.groups.randomElement(using: &world.random)!)
        case 9: try world.work(in: world.groups.randomElement(using: &world.random)!)
        default: world.advance(by: Int64.random(in: 0...600, using: &world.random))
        }
    }

    @Test func `both ends of every link agree, no protected record goes, and nothing is left over`()
        throws
    {
        var linkCount = 0
        for seed in 0..<Self.seedCount {
            var (world, names) = try Self.live(seed, steps: 250)
            try world.settle()
            let links = try world.links(among: names)
            linkCount += links.outbound.count
            #expect(links.unconfirmedCount == 0, "seed \(seed)")
            #expect(
                links.inbound.isSubset(of: links.outbound),
                "seed \(seed): \(links.inbound.subtracting(links.outbound))")
            var expected: Set<[String]> = []
            for name in names {
                guard let record = try world.lookup(name) else { continue }
                for reference in record.fields.compactMap(\.acting) {
                    let target = reference.recordName
                    let isThere = try world.lookup(target) != nil
                    if reference.action == .validate {
                        #expect(isThere || target == name, "seed \(seed): \(name) → \(target)")
                    }
                    if world.leaves(target, from: name) {
                        expected.insert([name, target, "\(reference.action)"])
                    }
                }
            }
            #expect(
                Set(links.outbound.map { [$0.referrer, $0.target, "\($0.action)"] }) == expected,
                "seed \(seed)")
            // What a target has forgotten is what it took with it, or tried to.
            for link in links.outbound.subtracting(links.inbound) {
                #expect(link.action == .deleteSelf, "seed \(seed): \(link)")
            }
            try Self.expectCounts(in: world, names, seed)
        }
        #expect(linkCount > 20, "hardly any link was left: \(linkCount)")
    }

    /// A target's count is that of its rows.
    static func expectCounts(in world: BucketWorld, _ names: [String], _ seed: UInt64)
        throws
    {
        for name in names {
            let database = world.database(of: name)
            guard let rows = world.partitions[world.group(of: database)]?.rows,
                let row = try StoredRows.database(database, over: rows.view),
                let zone = try StoredRows.zone(ZoneID.defaultName, in: row.number, over: rows.view)
            else { continue }
            let links = LinkRows(zone: zone.number)
            let counts = try links.counts(of: name, over: rows.view)
            for (action, count) in [
                (Reference.Action.deleteSelf, counts.deleteSelf), (.validate, counts.validate),
            ] {
                let prefix = Keys.references(zone.number, target: name, ReferenceKind(action))
                let local = try rows.view.keys(
                    .reference, from: prefix, to: Keys.end(of: prefix), limit: .max
                ).count
                let inbound = try links.inbound(to: name, action, limit: .max, over: rows.view)
                    .count
                #expect(count == UInt64(local + inbound), "seed \(seed): \(name) \(action)")
            }
        }
    }

    /// With DELETE_SELF alone nothing is protected: a record goes with its target, if the target
    /// existed when the reference was reserved.
    @Test func `nobody outlives a target that was there when the reference was made`() throws {
        for seed in 0..<Self.seedCount {
            var world = BucketWorld(seed: seed, bucketCount: 3)
            let names = (0..<10).map { "r\($0)" }
            /// How often a name was deleted when a record's references were made.
            var madeAt: [String: [String: Int]] = [:]
            var deletions: [String: Int] = [:]
            var doomed: Set<String> = []
            for _ in 0..<120 {
                let name = names.randomElement(using: &world.random)!
                switch Int.random(in: 0..<8, using: &world.random) {
                case 0...2:
                    let target = names.randomElement(using: &world.random)!
                    guard target != name, try world.lookup(target) != nil else {
                        if try world.save(name)?.saved != nil { madeAt[name] = [:] }
                        continue
                    }
                    let save = try world.save(name, .refers("a", to: target, .deleteSelf))
                    if save?.saved != nil { madeAt[name] = [target: deletions[target] ?? 0] }
                case 3:
                    if try world.lookup(name) != nil, try world.delete(name)?.isDeleted == true {
                        deletions[name, default: 0] += 1
                    }
                case 4, 5: try world.carry(from: world.groups.randomElement(using: &world.random)!)
                case 6: try world.work(in: world.groups.randomElement(using: &world.random)!)
                default: world.advance(by: Int64.random(in: 0...200, using: &world.random))
                }
            }
            try world.settle()
            for name in names where try world.lookup(name) != nil {
                for (target, count) in madeAt[name] ?? [:] where (deletions[target] ?? 0) > count {
                    // Saved again with the same reference, it keeps its link: that of the last time
                    // it was made.
                    doomed.insert("\(name) → \(target)")
                }
            }
            #expect(doomed.isEmpty, "seed \(seed): \(doomed.sorted())")
        }
    }

    /// All rows that links leave, so that no key or row changes its form unseen.
    @Test func `the rows of links are laid out as ever`() throws {
        var world = BucketWorld(seed: 1, bucketCount: 2, partitionCount: 1)
        let here = BucketWorld.names("h", in: 0, of: 2, 3)
        let there = BucketWorld.names("t", in: 1, of: 2, 2)
        try world.save(there[0])
        try world.save(here[0], .refers("b", to: there[0], .validate))
        try world.save(here[1], .refers("b", to: there[0], .deleteSelf))
        _ = try world.prepare(.create(here[2], [.refers("b", to: there[1], .deleteSelf)]))
        let group = try #require(world.groups.first)
        let rows = try #require(world.partitions[group]).rows
        var writer = ByteWriter()
        for table in [Table.database, .zone, .reference, .job, .mail] {
            for (key, row) in try rows.view.rows(table, from: [], to: [], limit: .max) {
                writer.write(table.rawValue)
                writer.write(prefixed: key)
                writer.write(prefixed: row)
            }
        }
        let bytes = GoldenTests.hexadecimal(writer.bytes)
        let golden = try GoldenTests.golden("rows-buckets-1", now: writer.bytes)
        #expect(bytes == golden, "now \(bytes)")
    }

    @Test func `mail between buckets and the jobs it leaves come back as they were`() throws {
        let link = Link(
            target: "t", action: .validate, referrer: "r",
            identity: RequestIdentity(high: 1, low: 2))
        let own = DatabaseID(
            container: Bench.container, scope: .public, owner: "", bucket: Bucket(1, of: 7))
        for kind in [
            BucketMail.Kind.confirmed, .removed, .settled, .cascade, .question, .stated, .inquiry,
        ] {
            let mail = try #require(BucketMail(kind, link, from: own))
            #expect(try BucketMail(decoding: mail.encoded()) == mail)
            let job = Job.letter(Job.LetterName(sender: GroupID(258), sequence: 1 << 40), mail)
            #expect(try Job(key: job.key, row: job.encoded()) == job)
        }
        let place = JobPlace(database: own, zone: ZoneID.defaultName)
        let jobs: [Job] = [
            .recall(ZoneNumber(9), place, link),
            .dispatch(ZoneNumber(9), place, target: "t", before: ChangeTag(300), cursor: [4, 0]),
            .audit(ZoneNumber(9), place, cursor: [0, 0, 0, 9, 4, 0]),
        ]
        for job in jobs {
            #expect(try Job(key: job.key, row: job.encoded()) == job)
            #expect(job.posts)
        }
        var random = SeededGenerator(seed: 3)
        for _ in 0..<2_000 {
            let job = jobs.randomElement(using: &random)!
            var row = job.encoded()
            row[Int.random(in: 0..<row.count, using: &random)] = .random(
                in: 0...255, using: &random)
            _ = try? Job(key: job.key, row: row)
            _ = try? BucketMail(decoding: row)
        }
    }
}
