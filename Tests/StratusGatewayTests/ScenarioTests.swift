import StratusGateway
import StratusHTTP
import StratusIdentity
import StratusModel
import Testing
import WireScenarios

/// Every conversation with the handler, without a socket. `WireTests` runs the same ones with a
/// real process.
@Suite struct ScenarioTests {
    @Test(arguments: Scenario.all) func `in process`(scenario: Scenario) async throws {
        try await scenario.run(over: InProcess())
    }

    /// The answers are the same, but for what `Docs/internals/zones.md` says.
    @Test(arguments: Scenario.all)
    func `in process, with custom zones in four buckets`(scenario: Scenario) async throws {
        try await scenario.run(
            over: InProcess(
                authenticator: LayoutAuthenticator(ContainerLayout(zoneBucketCount: 4))))
    }

    /// One wire for a container that grows just in time.
    private static func growing(_ layout: ContainerLayout) -> InProcess {
        var settings = GatewaySettings()
        settings.developmentSchema = .justInTime
        return InProcess(settings: settings, authenticator: LayoutAuthenticator(layout))
    }

    @Test(arguments: Scenario.growing, [1, 4])
    func `in process, where the schema grows, in so many buckets`(
        scenario: Scenario, count: Int
    ) async throws {
        try await scenario.run(
            over: Self.growing(
                ContainerLayout(publicBucketCount: count, zoneBucketCount: count)))
    }
}

/// The development users, in containers that are spread.
struct LayoutAuthenticator: Authenticator {
    private let development = DevelopmentAuthenticator()
    private let layout: ContainerLayout

    init(_ layout: ContainerLayout) { self.layout = layout }

    func needsBody(_ head: RequestHead) -> Bool { self.development.needsBody(head) }

    func authenticate(_ request: PresentedRequest) async throws(AuthenticationRefusal)
        -> Authentication
    {
        var authentication = try await self.development.authenticate(request)
        authentication.layout = self.layout
        return authentication
    }

    func refusalWithoutUser(_ request: PresentedRequest) async -> AuthenticationRefusal {
        await self.development.refusalWithoutUser(request)
    }

    func layout(of container: ContainerReference) async throws -> ContainerLayout { self.layout }
}
