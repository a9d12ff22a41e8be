import Testing
import WireScenarios

/// Every conversation with the handler, without a socket. `WireTests` runs the same ones with a
/// real process.
@Suite struct ScenarioTests {
    @Test(arguments: Scenario.all) func `in process`(scenario: Scenario) async throws {
        try await scenario.run(over: InProcess())
    }
}
