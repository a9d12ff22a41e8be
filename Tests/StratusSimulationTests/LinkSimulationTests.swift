import StratusModel
import StratusSimulation
import Testing

/// Clusters whose nodes talk by the real links over simulated streams of bytes. The long runs are
/// `stratus-sim --mix links` and `stratus-sim --links`.
@Suite struct LinkSimulationTests {
    static func options(_ seed: UInt64) -> SimulationOptions {
        var options = SimulationOptions(seed: seed, drawsMix: false)
        options.lead(by: .links, seed: seed)
        options.safetyTime = min(options.safetyTime, .seconds(8))
        return options
    }

    // Conditions that must always hold: see `LinkLedger`. Conditions that must hold once the faults
    // have ended: every link between members is open, and all that any other run must show.
    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `C-31 C-39 links break, stall and are left half open, and all of them come back`(
        seed: UInt64
    ) {
        let options = Self.options(seed)
        let report = Simulation(seed: seed, options: options).run()
        #expect(
            report.violation == nil,
            "stratus-sim --mix links --seed \(seed): \(report.violation?.description ?? "")")
        #expect(report.linkCounts["opened"] ?? 0 > 0, "seed \(seed)")
        #expect(report.acknowledgedCount > 0, "seed \(seed): nothing was answered")
    }

    @Test func `what seldom happens to a link happens here`() {
        let wanted = [
            "broken", "window full", "messages of many frames", "not taken: not open",
            "half-open, turned away", "backed off to the most", "side by side", "strangers",
            "turned a stranger away", "not connected in time", "another's certificate",
            "given up by the system", "left without a word",
        ]
        var counts: [String: Int] = [:]
        walkSeeds(from: 13, atLeast: 12) { seed in
            let report = Simulation(seed: seed, options: Self.options(seed)).run()
            counts.merge(report.linkCounts) { $0 + $1 }
            return wanted.allSatisfy { counts[$0] ?? 0 > 0 }
        }
        for path in wanted { #expect(counts[path] ?? 0 > 0, "\(path): \(counts)") }
    }

    @Test func `members who come and go are linked by the views they follow`() {
        var moveCount = 0
        for seed in 43...45 as ClosedRange<UInt64> {
            var options = MembershipSimulationTests.options(seed)
            options.usesLinks = true
            let report = Simulation(seed: seed, options: options).run()
            #expect(
                report.violation == nil,
                "--mix membership --links --seed \(seed): \(report.violation?.description ?? "")")
            moveCount += report.membershipCounts["moved"] ?? 0
        }
        #expect(moveCount > 0, "nothing moved")
    }

    @Test func `mail between buckets goes by links`() {
        var parcelCount = 0
        for seed in 1...6 as ClosedRange<UInt64> {
            var options = SimulationOptions(seed: seed, drawsMix: false, drawsLevels: false)
            options.lead(by: .records, seed: seed)
            guard options.bucketCount > 0 else { continue }
            options.usesLinks = true
            options.safetyTime = min(options.safetyTime, .seconds(6))
            let report = Simulation(seed: seed, options: options).run()
            #expect(
                report.violation == nil,
                "--mix records --links --seed \(seed): \(report.violation?.description ?? "")")
            parcelCount += report.recordCounts["parcels"] ?? 0
        }
        #expect(parcelCount > 0, "no mail was sent")
    }

    @Test func `a seed replays event for event`() {
        for seed in [2, 5] as [UInt64] {
            let first = Simulation(seed: seed, options: Self.options(seed)).run()
            let second = Simulation(seed: seed, options: Self.options(seed)).run()
            #expect(first.traceHash == second.traceHash, "seed \(seed)")
            #expect(first.eventCount == second.eventCount, "seed \(seed)")
        }
    }
}
