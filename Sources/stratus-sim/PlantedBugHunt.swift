import Foundation
import StratusCommandLine
import StratusConsensus
import StratusModel
import StratusSimulation

/// Plants every bug in turn and counts the seeds until the simulation finds it: a bug that is not found
/// says that the simulation is too tame.
struct PlantedBugHunt {
    let seedCountMax: Int

    func run() {
        guard PlantedBugs.isPossible else {
            print("this build holds no planted bugs: build with STRATUS_PLANTED=1")
            return
        }
        var table = TextTable([
            .init("bug"), .init("seeds", alignsRight: true), .init("found as"),
        ])
        var missed = 0
        for bug in PlantedBug.allCases {
            let found = self.hunt(bug)
            if let found {
                table.append([bug.rawValue, "\(found.count)", found.violation.rule])
                print("\(bug.rawValue): seed \(found.count), \(found.violation)")
            } else {
                missed += 1
                table.append([bug.rawValue, "-", "not in \(self.seedCountMax)"])
                print("\(bug.rawValue): not found")
            }
            fflush(nil)
        }
        print(table.write())
        print("\(PlantedBug.allCases.count) planted, \(missed) not found")
    }

    private func hunt(_ bug: PlantedBug) -> (count: Int, violation: Violation)? {
        for count in 1...self.seedCountMax {
            let seed = UInt64(count)
            var options = SimulationOptions(seed: seed)
            // Many small clusters meet more than few large ones.
            options.groupCount = min(options.groupCount, 2)
            options.bugs = [bug]
            if let violation = Simulation(seed: seed, options: options).run().violation {
                return (count, violation)
            }
        }
        return nil
    }
}
