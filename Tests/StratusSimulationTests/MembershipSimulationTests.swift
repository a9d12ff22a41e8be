import StratusModel
import StratusSimulation
import Testing

/// Clusters whose groups are placed by the real table and moved by the real keeper, follower and
/// router, under the faults of the seed. The long runs are `stratus-sim --mix membership`.
@Suite struct MembershipSimulationTests {
    static func options(_ seed: UInt64) -> SimulationOptions {
        var options = SimulationOptions(seed: seed, drawsMix: false)
        options.lead(by: .membership, seed: seed)
        options.safetyTime = min(options.safetyTime, .seconds(6))
        options.partitionCount = min(options.partitionCount, 4)
        return options
    }

    // Conditions that must always hold: see `Invariants+Membership`. Conditions that must hold once
    // the faults have ended: `Simulation+Views`.
    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `M-02 M-05 M-08 M-10 M-12 M-13 M-16 M-25 nodes join, leave and die under faults`(
        seed: UInt64
    ) {
        let options = Self.options(seed)
        let report = Simulation(seed: seed, options: options).run()
        #expect(
            report.violation == nil,
            "stratus-sim --mix membership --seed \(seed): \(report.violation?.description ?? "")")
        #expect(report.entryCount > 0, "seed \(seed)")
    }

    @Test func `M-14 moves during partitions, by clocks that drift and jump`() {
        var moveCount = 0
        for seed in 20...23 as ClosedRange<UInt64> {
            var options = Self.options(seed)
            options.faults = [
                .membership, .partition, .oneWayCut, .clockDrift, .clockJump, .processCrash,
            ]
            let report = Simulation(seed: seed, options: options).run()
            #expect(
                report.violation == nil, "seed \(seed): \(report.violation?.description ?? "")")
            #expect(report.acknowledgedCount > 0, "seed \(seed): nothing was answered")
            moveCount += report.membershipCounts["moved"] ?? 0
        }
        #expect(moveCount > 0, "nothing moved")
    }

    /// A node that died beside another whose log had rotted took the only remaining copy of a
    /// majority's entries.
    @Test func `nobody dies for good beside a disk that has lost something`() {
        let report = Simulation(
            seed: 5388, options: SimulationOptions(seed: 5388, drawsLevels: false)
        ).run()
        #expect(report.violation == nil, "\(report.violation?.description ?? "")")
        #expect(report.entryCount > 0)
    }

    @Test func `M-11 a node that dies for good is replaced`() {
        var lostCount = 0
        for seed in 30...39 as ClosedRange<UInt64> where lostCount == 0 {
            var options = Self.options(seed)
            options.nodeCount = 4
            options.voterCount = 3
            options.faults = [.membership, .processCrash]
            options.faultInterval = .milliseconds(100)
            let report = Simulation(seed: seed, options: options).run()
            #expect(
                report.violation == nil, "seed \(seed): \(report.violation?.description ?? "")")
            lostCount += report.membershipCounts["lost"] ?? 0
        }
        #expect(lostCount > 0, "nobody died")
    }

    @Test func `a seed replays event for event`() {
        for seed in [3, 8] as [UInt64] {
            let first = Simulation(seed: seed, options: Self.options(seed)).run()
            let second = Simulation(seed: seed, options: Self.options(seed)).run()
            #expect(first.traceHash == second.traceHash, "seed \(seed)")
            #expect(first.eventCount == second.eventCount, "seed \(seed)")
        }
    }
}
