import StratusModel
import StratusSimulation
import Testing

/// Clusters whose groups hold records by the real state, compared with a dictionary that knows the
/// rules: every outcome, every answer at the tag it names, every feed, and all records at the end.
/// The long runs are `stratus-sim --mix records`.
@Suite struct RecordSimulationTests {
    static func options(_ seed: UInt64, _ mix: SimulationOptions.Mix = .records)
        -> SimulationOptions
    {
        var options = SimulationOptions(seed: seed, drawsMix: false)
        options.lead(by: mix, seed: seed)
        options.holdsRecords = true
        options.safetyTime = min(options.safetyTime, .seconds(6))
        options.partitionCount = min(options.partitionCount, 2)
        return options
    }

    /// Everything in `kinds` happens within some seeds, and no promise is broken.
    static func expectAll(
        _ kinds: [String], over count: UInt64, flag: String,
        _ change: (inout SimulationOptions) -> Void = { _ in }
    ) {
        var counts: [String: Int] = [:]
        walkSeeds(atLeast: count) { seed in
            var options = Self.options(seed)
            change(&options)
            let report = Simulation(seed: seed, options: options).run()
            #expect(
                report.violation == nil,
                "stratus-sim \(flag) --seed \(seed): \(report.violation?.description ?? "")")
            counts.merge(report.recordCounts) { $0 + $1 }
            return kinds.allSatisfy { counts[$0] ?? 0 > 0 }
        }
        for kind in kinds { #expect(counts[kind] ?? 0 > 0, "\(kind): none in \(counts)") }
    }

    @Test func `records keep their promises under faults, and clients do all that can be done`() {
        Self.expectAll(
            [
                "saved", "deleted", "refused", "repeated", "looked up", "queries", "pages of feeds",
                "expired positions", "schemas", "slices of jobs", "zones made", "zones deleted",
                "pages of database feeds", "expired database positions", "databases erased",
            ], over: 10, flag: "--mix records")
    }

    @Test func `locks of documents keep out whom they should, and contents stay`() {
        Self.expectAll(
            [
                "documents made", "documents removed", "documents locked", "documents in conflict",
                "locks taken", "locks refreshed", "locks ended",
            ], over: 8, flag: "--documents"
        ) { $0.holdsDocuments = true }
    }

    @Test func `zones in buckets keep Z1 to Z7 while gateways die between any two steps`() {
        Self.expectAll(
            [
                "zones made in buckets", "pages of parted feeds", "walks of parted feeds",
                "lists of zones in parts", "queries over parts", "erasures of parts",
                "expired positions in parts",
            ], over: 8, flag: "--zones"
        ) {
            $0.zoneBucketCount = 4
            $0.groupCount = 3
        }
    }

    /// Z8, and read your writes under moves: partitions change their nodes, or lose all but one.
    @Test(arguments: [.membership, .lostMajority] as [SimulationOptions.Mix])
    func `zones in buckets keep their promises while partitions move`(
        mix: SimulationOptions.Mix
    ) {
        var walkCount = 0
        for seed in 1...4 as ClosedRange<UInt64> {
            var options = Self.options(seed, mix)
            options.zoneBucketCount = 4
            let report = Simulation(seed: seed, options: options).run()
            #expect(
                report.violation == nil,
                "\(mix), seed \(seed): \(report.violation?.description ?? "")")
            walkCount += report.recordCounts["walks of parted feeds"] ?? 0
        }
        #expect(walkCount > 0, "\(mix): nobody followed a feed to its end")
    }

    @Test func `half of the runs that hold records have zones in buckets`() {
        let options = (1...2_000 as ClosedRange<UInt64>).map { SimulationOptions(seed: $0) }
        let records = options.filter(\.holdsRecords)
        let spread = records.count { $0.zoneBucketCount > 0 }
        #expect(spread * 3 > records.count && spread * 3 < records.count * 2, "\(spread)")
        #expect(!options.contains { $0.zoneBucketCount > 0 && !$0.holdsRecords })
    }

    @Test(arguments: [.membership, .snapshots, .damage] as [SimulationOptions.Mix])
    func `records keep their promises in the worlds of other mixes`(mix: SimulationOptions.Mix) {
        var savedCount = 0
        for seed in 1...4 as ClosedRange<UInt64> {
            let report = Simulation(seed: seed, options: Self.options(seed, mix)).run()
            #expect(
                report.violation == nil,
                "\(mix), seed \(seed): \(report.violation?.description ?? "")")
            savedCount += report.recordCounts["saved"] ?? 0
        }
        #expect(savedCount > 0, "\(mix): nothing was saved")
    }

    @Test
    func `no page passes its bound, and pages that end early lose nothing (security audit 1)`() {
        var pageCount = 0
        for seed in 301...306 as ClosedRange<UInt64> {
            var options = Self.options(seed)
            options.readTouchCountMax = [1, 2, 3, 5, 9, 30][Int(seed % 6)]
            let report = Simulation(seed: seed, options: options).run()
            let violation = report.violation?.description ?? ""
            #expect(
                report.violation == nil,
                "seed \(seed), bound \(options.readTouchCountMax): \(violation)")
            pageCount += report.recordCounts["pages of feeds"] ?? 0
        }
        #expect(pageCount > 50, "\(pageCount)")
    }

    /// Rows lost at a failed start were taken for whole at the next, and the log was damaged too.
    /// That was more than one copy of what the node had promised.
    @Test func `a node whose start failed is struck by no other damage`() {
        var options = SimulationOptions(seed: 33, drawsMix: false, drawsLevels: false)
        options.lead(by: .damage, seed: 33)
        options.holdsRecords = true
        let report = Simulation(seed: 33, options: options).run()
        #expect(report.violation == nil, "\(report.violation?.description ?? "")")
    }

    /// It was given a token of an empty database, and fetched a zone by name that was then deleted
    /// and made again: it kept records of the zone that was gone.
    @Test func `a client that fetches a zone by name hears that it was made again`() {
        let options = SimulationOptions(seed: 7_614)
        let report = Simulation(seed: 7_614, options: options).run()
        #expect(report.recordCounts["databases erased"] ?? 0 > 0)
        #expect(report.violation == nil, "\(report.violation?.description ?? "")")
    }

    @Test func `a seed replays event for event`() {
        for seed in [2, 5] as [UInt64] {
            let first = Simulation(seed: seed, options: Self.options(seed)).run()
            let second = Simulation(seed: seed, options: Self.options(seed)).run()
            #expect(first.traceHash == second.traceHash, "seed \(seed)")
            #expect(first.recordCounts == second.recordCounts, "seed \(seed)")
        }
    }
}
