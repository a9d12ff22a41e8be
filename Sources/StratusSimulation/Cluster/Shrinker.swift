/// Makes a failing run smaller: drops faults, nodes, groups, clients and time while it still fails.
package struct Shrinker {
    private let seed: UInt64

    package init(seed: UInt64) { self.seed = seed }

    package func shrink(_ options: SimulationOptions, tell: (String) -> Void) -> SimulationOptions {
        var best = options
        var hasChanged = true
        while hasChanged {
            hasChanged = false
            for candidate in self.candidates(best) {
                guard
                    let violation = Simulation(seed: self.seed, options: candidate).run().violation
                else { continue }
                tell("still fails  \(candidate.summary)  \(violation.rule)")
                best = candidate
                hasChanged = true
                break
            }
        }
        return best
    }

    private func candidates(_ options: SimulationOptions) -> [SimulationOptions] {
        var all: [SimulationOptions] = []
        func add(_ change: (inout SimulationOptions) -> Void) {
            var candidate = options
            change(&candidate)
            if candidate != options { all.append(candidate) }
        }
        for fault in SimulationOptions.Fault.allCases where options.faults.contains(fault) {
            add { $0.faults.remove(fault) }
        }
        add { $0.groupCount = 1 }
        add {
            $0.nodeCount = max(1, $0.nodeCount - 1);
            $0.voterCount = min($0.voterCount, $0.nodeCount)
        }
        add { $0.clientCount = max(min(1, $0.clientCount), $0.clientCount / 2) }
        add { $0.registerCount = 1 }
        add { $0.safetyTime = .milliseconds($0.safetyTime.components.seconds * 500) }
        return all.filter { $0.safetyTime >= .milliseconds(500) }
    }
}
