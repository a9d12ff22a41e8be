import Foundation
import StratusCommandLine
import StratusConsensus
import StratusModel
import StratusSimulation

/// Plants every bug in turn and counts the seeds until the simulation finds it: if it misses a bug,
/// the simulation is too tame.
struct PlantedBugHunt {
    let seedCountMax: Int
    /// Those named, or all there are.
    let bugs: [PlantedBug]

    func run() {
        guard PlantedBugs.isPossible else {
            print("this build holds no planted bugs: build with STRATUS_PLANTED=1")
            return
        }
        var table = TextTable([
            .init("bug"), .init("seeds", alignsRight: true), .init("found as"),
        ])
        var missed = 0
        for bug in self.bugs {
            let found = PlantedBugSearch(bug).run(seeds: 1...UInt64(self.seedCountMax))
            if let found {
                table.append([bug.rawValue, "\(found.seedCount)", found.violation.rule])
                print("\(bug.rawValue): seed \(found.seedCount), \(found.violation)")
            } else {
                missed += 1
                table.append([bug.rawValue, "-", "not in \(self.seedCountMax)"])
                print("\(bug.rawValue): not found")
            }
            fflush(nil)
        }
        print(table.write())
        print("\(self.bugs.count) planted, \(missed) not found")
    }
}
