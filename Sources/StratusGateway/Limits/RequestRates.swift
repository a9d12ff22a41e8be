import StratusHTTP
import StratusIdentity
import StratusModel

/// The rates this node takes requests at: from one address, of one container, with one API token,
/// of one caller.
///
/// The address counts before anything else is looked at; the others only once the credentials were
/// found good, so that a stranger uses up nobody's share.
final class RequestRates: Sendable {
    /// Told with every answer: `RateLimit-Policy` as the IETF's draft on rate limit fields has it,
    /// the burst being what a window of two seconds allows.
    /// Nil: nothing is limited.
    let policy: String?
    private let address: RequestThrottle?
    private let container: RequestThrottle?
    private let token: RequestThrottle?
    private let caller: RequestThrottle?

    init(_ settings: GatewaySettings) {
        let rates = [
            ("caller", settings.requestRateMax), ("token", settings.tokenRequestRateMax),
            ("container", settings.containerRequestRateMax),
            ("address", settings.addressRequestRateMax),
        ]
        let policies = rates.compactMap { name, rate in
            rate.map { "\"\(name)\";q=\(2 * $0);w=2" }
        }
        self.policy = policies.isEmpty ? nil : policies.joined(separator: ", ")
        func throttle(_ rate: Int?) -> RequestThrottle? {
            rate.map { RequestThrottle(ratePerSecond: $0) }
        }
        self.address = throttle(settings.addressRequestRateMax)
        self.container = throttle(settings.containerRequestRateMax)
        self.token = throttle(settings.tokenRequestRateMax)
        self.caller = throttle(settings.requestRateMax)
    }

    func check(address peer: String, at now: MonotonicTime) throws(ClientError) {
        try Self.check(
            self.address, SignInService.place(of: peer),
            "too many requests from this address, retry later", now)
    }

    /// Counts a request by its user's name, or by its address if it has no name.
    func check(
        _ principal: Principal, _ head: RequestHead, from peer: String,
        _ container: ContainerReference, at now: MonotonicTime
    ) throws(ClientError) {
        let home = container.container + " " + container.environment.name
        try Self.check(
            self.container, home, "too many requests of this container, retry later", now)
        if self.token != nil, let token = TokenCredentials(query: head.query).apiToken {
            // Enough of it to tell tokens apart.
            try Self.check(
                self.token, String(token.prefix(32)),
                "too many requests with this API token, retry later", now)
        }
        let name =
            principal.userRecordName.isEmpty
            ? SignInService.place(of: peer) : principal.userRecordName + home
        try Self.check(self.caller, name, "too many requests, retry later", now)
    }

    private static func check(
        _ throttle: RequestThrottle?, _ key: String, _ reason: String, _ now: MonotonicTime
    ) throws(ClientError) {
        guard let wait = throttle?.wait(of: key, at: now) else { return }
        throw ClientError(.throttled, reason, retryAfter: ClientError.seconds(wait))
    }
}
