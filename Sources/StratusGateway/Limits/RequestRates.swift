import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime

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

    /// One request's part of each rate: whom it counts against.
    struct Counted: Sendable {
        fileprivate var address: One?
        fileprivate var container: One?
        fileprivate var token: One?
        fileprivate var caller: One?

        fileprivate struct One: Sendable {
            let throttle: RequestThrottle
            let key: String
            let reason: String
            /// Kept for those who are asked for again and again.
            var counter: RequestThrottle.Counter?
        }
    }

    func check(address peer: String, at now: MonotonicTime) throws(ClientError) {
        try Self.check(self.byAddress(peer), now)
    }

    /// Counts a request by its user's name, or by its address if it has no name.
    func check(
        _ principal: Principal, _ head: RequestHead, from peer: String,
        _ container: ContainerReference, at now: MonotonicTime
    ) throws(ClientError) {
        let counted = self.counted(principal, head, from: peer, container)
        try self.check(counted, at: now)
    }

    /// Whom requests like this one count against, with the counters.
    func kept(
        _ principal: Principal, _ head: RequestHead, from peer: String,
        _ container: ContainerReference, at now: MonotonicTime
    ) -> Counted {
        var counted = self.counted(principal, head, from: peer, container)
        counted.address = self.byAddress(peer)
        for part in [\Counted.address, \.container, \.token, \.caller] {
            guard let one = counted[keyPath: part] else { continue }
            counted[keyPath: part]?.counter = one.throttle.counter(of: one.key, at: now)
        }
        return counted
    }

    func checkAddress(_ counted: Counted, at now: MonotonicTime) throws(ClientError) {
        try Self.check(counted.address, now)
    }

    /// All but the address.
    func check(_ counted: Counted, at now: MonotonicTime) throws(ClientError) {
        try Self.check(counted.container, now)
        try Self.check(counted.token, now)
        try Self.check(counted.caller, now)
    }

    private func byAddress(_ peer: String) -> Counted.One? {
        self.address.map {
            Counted.One(
                throttle: $0, key: SocketAddress.site(of: peer),
                reason: "too many requests from this address, retry later")
        }
    }

    private func counted(
        _ principal: Principal, _ head: RequestHead, from peer: String,
        _ container: ContainerReference
    ) -> Counted {
        var counted = Counted()
        let home = container.container + " " + container.environment.name
        counted.container = self.container.map {
            Counted.One(
                throttle: $0, key: home,
                reason: "too many requests of this container, retry later")
        }
        if let throttle = self.token, let token = TokenCredentials(query: head.query).apiToken {
            counted.token = Counted.One(
                throttle: throttle,
                // Enough of it to tell tokens apart.
                key: String(token.prefix(32)),
                reason: "too many requests with this API token, retry later")
        }
        counted.caller = self.caller.map {
            Counted.One(
                throttle: $0,
                key: principal.userRecordName.isEmpty
                    ? SocketAddress.site(of: peer) : principal.userRecordName + home,
                reason: "too many requests, retry later")
        }
        return counted
    }

    private static func check(_ one: Counted.One?, _ now: MonotonicTime) throws(ClientError) {
        guard let one,
            let wait = one.throttle.wait(of: one.key, at: now, by: one.counter)
        else { return }
        throw ClientError(.throttled, one.reason, retryAfter: ClientError.seconds(wait))
    }
}
