import StratusModel
import StratusSimulation
import Testing

/// The switchboard: every planted bug is found, and by the rule it breaks. `stratus-sim --planted` counts
/// the seeds from one on and prints this table; here each runs from the seed that found it, and a few
/// more, so that a change of the world that moves the moment is not at once a failure.
@Suite(.enabled(if: PlantedBugs.isPossible))
struct PlantedBugTests {
    static let seeds: [PlantedBug: UInt64] = [:]

    @Test func `every planted bug has its seed`() {
        for bug in PlantedBug.allCases { #expect(Self.seeds[bug] != nil, "\(bug)") }
    }

    @Test(arguments: PlantedBug.allCases)
    func `a planted bug is found`(bug: PlantedBug) throws {
        let seed = try #require(Self.seeds[bug])
        let finding = PlantedBugSearch(bug).run(seeds: seed...(seed + 9))
        #expect(
            finding != nil, "\(bug) is not found from seed \(seed) on: the simulation is too tame")
    }
}
