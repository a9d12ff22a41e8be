import StratusCoding
import StratusDoubles
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// The end of any partition's log is lost at any moment of any life, and an audit reconciles all
/// links. It takes `STRATUS_SEEDS` as ``BucketPropertyTests`` does.
@Suite struct LinkAuditPropertyTests {
    private static let names = (0..<12).map { "r\($0)" }

    /// A life in which one or more partitions have lost up to `lossMax` steps. Pending saves are
    /// gone too, except those that a log held already.
    private static func recovered(_ seed: UInt64, lossMax: Int = 80) throws -> BucketWorld {
        var world = BucketWorld(
            seed: seed, bucketCount: 2 + Int(seed % 3), partitionCount: 4,
            outboxCountMax: seed % 3 == 0 ? 3 : 50)
        var prepared: [BucketWorld.Prepared] = []
        // A bucket that is not there takes nothing that is said to it.
        for name in Self.names { try world.save(name) }
        for _ in 0..<120 { try BucketPropertyTests.step(&world, Self.names, &prepared) }
        for _ in 0..<Int.random(in: 1...2, using: &world.random) {
            let victims = world.groups.filter { _ in Bool.random(using: &world.random) }
            let kept = victims.map { world.partitions[$0]?.copied() }
            for _ in 0..<Int.random(in: 1...lossMax, using: &world.random) {
                try BucketPropertyTests.step(&world, Self.names, &prepared)
            }
            for (group, partition) in zip(victims, kept) {
                try world.recover(group, as: partition)
            }
            for save in prepared where Bool.random(using: &world.random) {
                _ = try world.finish(save)
            }
            prepared = []
        }
        return world
    }

    /// Nil: the ends agree.
    private static func disagreement(in world: BucketWorld) throws -> String? {
        let links = try world.links(among: Self.names)
        if links.unconfirmedCount > 0 { return "\(links.unconfirmedCount) are reserved for ever" }
        let orphans = links.inbound.subtracting(links.outbound)
        if !orphans.isEmpty { return "nobody holds \(orphans)" }
        let unknown = links.outbound.subtracting(links.inbound).filter { $0.action == .validate }
        if !unknown.isEmpty { return "no target knows of \(unknown)" }
        return nil
    }

    private static func held(in world: BucketWorld) throws -> [String: Record] {
        var held: [String: Record] = [:]
        for name in Self.names { held[name] = try world.lookup(name) }
        return held
    }

    @Test func `both ends of every link agree after an audit, whatever was lost`() throws {
        var disagreeing = 0
        for seed in 0..<BucketPropertyTests.seedCount {
            var world = try Self.recovered(seed)
            var left = world.copied()
            try left.settle()
            if try Self.disagreement(in: left) != nil { disagreeing += 1 }

            try world.audit()
            try world.settle()
            let problem = try Self.disagreement(in: world)
            #expect(problem == nil, "seed \(seed): \(problem ?? "")")
            try BucketPropertyTests.expectCounts(in: world, Self.names, seed)
            // Every reference that leaves its bucket has its row, and no row lacks its reference.
            var expected: Set<[String]> = []
            let records = try Self.held(in: world)
            for (name, record) in records {
                for reference in record.fields.compactMap(\.acting)
                where world.leaves(reference.recordName, from: name) {
                    expected.insert([name, reference.recordName, "\(reference.action)"])
                }
            }
            let links = try world.links(among: Self.names)
            #expect(
                Set(links.outbound.map { [$0.referrer, $0.target, "\($0.action)"] }) == expected,
                "seed \(seed)")
            // The audit itself deletes nothing. Mail that it sends again may let a cascade arrive
            // that had begun.
            for (name, record) in try Self.held(in: left) where records[name] == nil {
                #expect(
                    record.fields.contains { $0.acting?.action == .deleteSelf },
                    "seed \(seed): \(name) is gone")
            }
        }
        #expect(
            disagreeing * 4 > Int(BucketPropertyTests.seedCount),
            "hardly anything was lost: \(disagreeing)")
    }

    @Test func `an audit that clients do not wait for settles what is lost all the same`()
        throws
    {
        for seed in 0..<BucketPropertyTests.seedCount {
            var world = try Self.recovered(seed, lossMax: 40)
            var prepared: [BucketWorld.Prepared] = []
            try world.audit()
            for _ in 0..<150 { try BucketPropertyTests.step(&world, Self.names, &prepared) }
            try world.settle()
            let problem = try Self.disagreement(in: world)
            #expect(problem == nil, "seed \(seed): \(problem ?? "")")
            try BucketPropertyTests.expectCounts(in: world, Self.names, seed)
        }
    }

    @Test func `an audit of what agrees changes nothing`() throws {
        for seed in 0..<BucketPropertyTests.seedCount {
            var world = try Self.recovered(seed)
            try world.audit()
            try world.settle()
            // If a target has forgotten a link whose referrer is protected, the first later audit
            // restores it.
            try world.audit()
            try world.settle()
            let before = world.groups.map { world.partitions[$0]?.rows.contents }
            try world.audit()
            try world.settle()
            for (group, rows) in zip(world.groups, before) {
                for table in [Table.record, .reference, .job, .zone] {
                    let now = world.partitions[group]?.rows.contents(of: table)
                    #expect(now == (rows?[table] ?? []), "seed \(seed), \(group)")
                }
            }
        }
    }
}
