import StratusCommandLine
import StratusModel
import StratusSimulation

/// Every planted bug, the mix that leads to it, and where it is known to be found.
struct PlantedBugList {
    func write() -> String {
        var table = TextTable([.init("bug"), .init("mix"), .init("found")])
        for bug in PlantedBug.allCases {
            table.append([
                bug.rawValue, PlantedBugSearch(bug).mix?.rawValue ?? "any", self.text(of: bug),
            ])
        }
        return table.write()
    }

    private func text(of bug: PlantedBug) -> String {
        switch PlantedBugTable.place(of: bug) {
        case .seed(let seed): "from seed \(seed)"
        case .longRuns(let seed): "from seed \(seed), in long runs"
        case .rare: "after hundreds of seeds"
        case .tests(let suite): "by \(suite)"
        case nil: "nowhere yet"
        }
    }
}
