import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess

/// The options by which a command names a container and its environment.
///
/// The environment has no default. A container that is in both would get changes, or be asked, in
/// the one that nobody meant. A container that is in one environment leaves no doubt.
enum PlaceOptions {
    static let container = OptionDefinition.value(
        "container", .text("ID"), variable: "STRATUSCTL_CONTAINER", required: true,
        "The container")
    static let environment = OptionDefinition.value(
        "environment", .choice(Self.environments), variable: "STRATUSCTL_ENVIRONMENT",
        "The environment; needed where the container is in both")

    /// Of commands that concern development alone. They refuse production, or the node does.
    static let development = OptionDefinition.value(
        "environment", .choice(Self.environments), default: "development",
        "The environment; production is refused")

    static let all = [Self.container, Self.environment]

    /// For what must not follow from the state of things, such as the removal of everything.
    static let exact: [OptionDefinition] = [
        Self.container,
        .value(
            "environment", .choice(Self.environments), variable: "STRATUSCTL_ENVIRONMENT",
            required: true, "The environment"),
    ]

    private static let environments = ["development", "production"]

    /// The command with its environment, which the node says where the command does not.
    static func resolve(_ invocation: Invocation, _ client: AdminClient)
        async throws(AdminClient.Failure) -> Invocation
    {
        guard invocation.declares("container"), let container = invocation["container"] else {
            return invocation
        }
        try Self.require(container)
        guard invocation.declares("environment"), invocation["environment"] == nil else {
            return invocation
        }
        let answer = try client.require(
            try await client.send("GET", "/v1/containers/" + PercentCoding.encode(container)))
        let found: Listing<ContainerAnswer> = try answer.read()
        return invocation.setting(
            "environment", to: try Self.choose(among: found.rows, of: container))
    }

    /// A container that nobody has made begins in development, with the commands that make one. The
    /// node refuses the others.
    static func choose(among rows: [ContainerAnswer], of container: String)
        throws(AdminClient.Failure) -> String
    {
        let live = rows.filter { $0.state != "erased" }
        guard live.count < 2 else {
            throw AdminClient.Failure(
                .usage,
                "'\(container)' is in development and in production: say which with "
                    + "'--environment', or in STRATUSCTL_ENVIRONMENT")
        }
        return live.first?.environment ?? "development"
    }

    /// Refuses a word that cannot name a container, before a node is asked.
    static func require(_ container: String) throws(AdminClient.Failure) {
        guard ContainerReference.isName(container) else {
            throw AdminClient.Failure(.usage, ContainerReference.refusal(of: container))
        }
    }
}

extension AnswerPlace {
    /// Nil: the command is about no container.
    init?(_ invocation: Invocation) {
        guard invocation.declares("container"), let container = invocation["container"],
            let environment = Self.environment(of: invocation)
        else { return nil }
        self.init(container: container, environment: environment)
    }

    /// The one that the command is about, or adds to.
    private static func environment(of invocation: Invocation) -> String? {
        if invocation.declares("environment") { return invocation["environment"] }
        if invocation.path == ["container", "copy"] { return invocation["to"] }
        return invocation.path == ["schema", "promote"] ? "production" : nil
    }
}
