import StratusModel
import StratusSimulation
import Testing

/// Clusters whose nodes are exchanged for another build while they work, and which are raised in
/// the middle.
@Suite struct LevelSimulationTests {
    private static func options(_ seed: UInt64) -> SimulationOptions {
        var options = SimulationOptions(seed: seed, drawsMix: false, drawsRecords: false)
        options.groupCount = min(options.groupCount, 2)
        options.safetyTime = min(options.safetyTime, .seconds(6))
        var random = SeededGenerator(seed: seed)
        options.levels = LevelPlan(from: &random)
        return options
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `O-05 M-22 nodes of two builds do not diverge, and none meets what it cannot read`(
        seed: UInt64
    ) {
        let options = Self.options(seed)
        let report = Simulation(seed: seed, options: options).run()
        #expect(
            report.violation == nil,
            "seed \(seed): \(options.summary): \(report.violation?.description ?? "")")
        #expect(report.levelCounts["exchanged", default: 0] >= options.nodeCount)
        #expect(report.levelCounts["raised"] == 1)
    }

    @Test(.enabled(if: PlantedBugs.isPossible))
    func `without the gates a replica of level 1 meets what it cannot read`() {
        let finding = PlantedBugSearch(.newKindUngated).run(seeds: 1...10)
        #expect(finding?.violation.rule == "M-22 levels")
    }

    /// It was of the older build, so it could not read what the raised cluster wrote.
    @Test func `a node that joins during an upgrade is of the newer build`() {
        var joinedCount = 0
        walkSeeds(atLeast: 3) { seed in
            var options = MembershipSimulationTests.options(seed)
            options.levels = Self.options(seed).levels
            let report = Simulation(seed: seed, options: options).run()
            #expect(report.violation == nil, "\(seed): \(report.violation?.description ?? "")")
            joinedCount += report.membershipCounts["joined", default: 0]
            return joinedCount > 0
        }
        #expect(joinedCount > 0)
    }

    @Test func `two seeds in five have nodes of two builds`() {
        let count = (1...1_000 as ClosedRange<UInt64>).count {
            SimulationOptions(seed: $0).levels != nil
        }
        #expect((350...450).contains(count))
    }

    @Test func `a seed with two builds replays event for event`() {
        let first = Simulation(seed: 3, options: Self.options(3)).run()
        let second = Simulation(seed: 3, options: Self.options(3)).run()
        #expect(first.traceHash == second.traceHash)
    }
}
