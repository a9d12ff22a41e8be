package import StratusRuntime

/// What single folders of the gateway need beside the kernel. Each is given to its folder, and
/// nobody else sees it.
package struct GatewayNeeds: Sendable {
    /// Who signs people in. Nil where nobody has an account.
    package var people: SignInService?
    /// Nil where nothing keeps assets.
    package var assets: AssetKit?
    /// Nil where nothing is sent to push providers.
    package var push: PushRegistry?
    package var keyValueCounters: KeyValueCounters
    package var davCounters: DAVCounters

    /// - Parameter metrics: where the folders count.
    package init(
        people: SignInService? = nil, assets: AssetKit? = nil, push: PushRegistry? = nil,
        metrics: Metrics = Metrics()
    ) {
        self.people = people
        self.assets = assets
        self.push = push
        self.keyValueCounters = KeyValueCounters(metrics)
        self.davCounters = DAVCounters(metrics)
    }
}
