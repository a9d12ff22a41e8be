import StratusConsensus
import StratusModel
import StratusSimulation
import Testing

/// Clusters with subscriptions: the real rows, matching, dispatcher, lanes and attendance, against
/// simulated providers and polls. The long runs are `stratus-sim --mix push`.
@Suite struct PushSimulationTests {
    static func run(_ seed: UInt64) -> Simulation.Report {
        var options = SimulationOptions(seed: seed, drawsMix: false)
        options.lead(by: .push, seed: seed)
        return Simulation(seed: seed, options: options).run()
    }

    @Test func `what fired is told, nothing else is, and what seldom happens happens here`() {
        var counts: [String: Int] = [:]
        for seed in 1...7 as ClosedRange<UInt64> {
            let report = Self.run(seed)
            if seed == 1 { #expect(report.traceHash == Self.run(seed).traceHash) }
            #expect(
                report.violation == nil,
                "stratus-sim --mix push --seed \(seed): \(report.violation?.description ?? "")")
            counts.merge(report.recordCounts) { $0 + $1 }
        }
        for what in [
            "changes", "subscriptions", "registrations", "roles given", "roles taken",
            "providers down", "looks", "parked", "judged again", "told by polls",
            "told by providers", "told again", "told once", "polls cut", "devices removed",
            "renewed devices kept",
        ] { #expect(counts[what, default: 0] > 0, "\(what)") }
    }
}
