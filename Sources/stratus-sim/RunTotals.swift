import StratusConsensus
import StratusSimulation

/// The totals of many runs.
struct RunTotals {
    private(set) var runCount = 0
    private(set) var failureCount = 0
    private var events = 0
    private var messages = 0
    private var operations = 0
    private var acknowledged = 0
    private var unknown = 0
    private var entries = 0
    private var crashes = 0
    private var simulated: Int64 = 0
    private var faults: [SimulationOptions.Fault: Int] = [:]
    private var reached: [RarePath: Int] = [:]
    private var membership: [String: Int] = [:]
    private var records: [String: Int] = [:]
    private var links: [String: Int] = [:]
    private var levels: [String: Int] = [:]

    mutating func add(_ report: Simulation.Report) {
        self.runCount += 1
        if report.violation != nil { self.failureCount += 1 }
        self.events += report.eventCount
        self.messages += report.messageCount
        self.operations += report.operationCount
        self.acknowledged += report.acknowledgedCount
        self.unknown += report.unknownCount
        self.entries += report.entryCount
        self.crashes += report.crashCount
        self.simulated += report.simulatedNanoseconds
        self.faults.merge(report.faultCounts) { $0 + $1 }
        self.reached.merge(report.reached) { $0 + $1 }
        self.membership.merge(report.membershipCounts) { $0 + $1 }
        self.records.merge(report.recordCounts) { $0 + $1 }
        self.links.merge(report.linkCounts) { $0 + $1 }
        self.levels.merge(report.levelCounts) { $0 + $1 }
    }

    func print(took: Duration) {
        let seconds = Double(took.components.seconds) + Double(took.components.attoseconds) / 1e18
        let simulated = Double(self.simulated) / 1e9
        func line(_ text: String) { Swift.print(text) }
        line("runs        \(self.runCount), failed \(self.failureCount)")
        line(
            "operations  \(self.operations), answered \(self.acknowledged), unknown \(self.unknown)"
        )
        line(
            "entries     \(self.entries) applied, \(self.messages) messages, \(self.events) events")
        line("crashes     \(self.crashes)")
        line(
            "time        \(Int(simulated)) s simulated in \((seconds * 10).rounded() / 10) s, "
                + "\(Int(simulated / max(seconds, 0.001))) : 1")
        let mix = SimulationOptions.Fault.allCases.compactMap { fault in
            self.faults[fault].map { "\(fault.rawValue) \($0)" }
        }
        line("faults      " + (mix.isEmpty ? "none" : mix.joined(separator: ", ")))
        func line(_ name: String, _ counts: [String: Int]) {
            guard !counts.isEmpty else { return }
            line(
                name
                    + counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
                    .joined(separator: ", "))
        }
        line("membership  ", self.membership)
        line("records     ", self.records)
        line("links       ", self.links)
        line("levels      ", self.levels)
        let reached = RarePath.allCases.filter { self.reached[$0] != nil }
        line(
            "reached     "
                + reached.map { "\($0.rawValue) \(self.reached[$0] ?? 0)" }.joined(separator: ", "))
        let never = RarePath.allCases.filter { self.reached[$0] == nil }
        line(
            "never       "
                + (never.isEmpty ? "none" : never.map(\.rawValue).joined(separator: ", ")))
    }
}
