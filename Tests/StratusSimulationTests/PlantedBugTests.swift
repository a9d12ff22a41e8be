import StratusModel
import StratusSimulation
import Testing

/// The switchboard: planted bugs are found, each from the seed of ``PlantedBugTable``. A few seeds
/// more are tried, so that a change of the world that moves the moment is not at once a failure.
@Suite(.enabled(if: PlantedBugs.isPossible))
struct PlantedBugTests {
    @Test func `every planted bug stands in one table`() {
        for bug in PlantedBug.allCases {
            let places = [
                PlantedBugTable.seeds[bug] != nil, PlantedBugTable.rare.contains(bug),
                PlantedBugTable.suites[bug] != nil, PlantedBugTable.long[bug] != nil,
            ]
            #expect(places.count { $0 } == 1, "\(bug)")
        }
    }

    @Test(arguments: PlantedBug.allCases.filter { PlantedBugTable.seeds[$0] != nil })
    func `a planted bug is found`(bug: PlantedBug) throws {
        let seed = try #require(PlantedBugTable.seeds[bug])
        let finding = PlantedBugSearch(bug).run(seeds: seed...(seed + 9))
        #expect(
            finding != nil, "\(bug) is not found from seed \(seed) on: the simulation is too tame")
    }
}
