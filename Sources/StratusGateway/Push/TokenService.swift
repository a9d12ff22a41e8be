import StratusCluster
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusPush
import StratusRecords
import StratusRows
import StratusSealing

/// Poll tokens, drawn and registered in further containers, and the devices of push providers.
struct TokenService: Sendable {
    let exchange: Exchange
    /// Nil where nobody has an account.
    let people: SignInService?
    /// Nil where nothing is sent to push providers.
    let push: PushRegistry?

    /// Documented below a database; clients send it below a device.
    static func operations(
        _ people: SignInService?, _ push: PushRegistry?
    ) -> [GatewayOperation] {
        let tokens: @Sendable (Exchange) -> TokenService = {
            TokenService(exchange: $0, people: people, push: push)
        }
        return [GatewayService.database, .device].flatMap { service in
            [
                GatewayOperation("tokens/create", of: service, in: .all, needs: .user) {
                    try await tokens($0).create($1)
                },
                GatewayOperation("tokens/register", of: service, in: .all, needs: .user) {
                    try await tokens($0).register($1)
                },
            ]
        }
    }

    /// `tokens/create`: a token of its own for each page of a browser.
    func create(_ input: Input) async throws -> Bytes {
        guard let environment = try self.environment(input) else {
            throw InputRefusal.missingKey("apnsEnvironment")
        }
        let world = self.exchange.kernel.world
        let token = PollToken(drawnBy: { world.random() }, self.exchange.kernel.tokens)
        return try await self.register(token, environment)
    }

    /// `tokens/register`: a token of ours tells of this container too. A device of APNs, or the
    /// endpoint of a browser, is told of it.
    func register(_ input: Input) async throws -> Bytes {
        let environment = try self.environment(input)
        let badge = try self.badge(input)
        if let endpoint = try input.string("endpoint") {
            return try await self.register(endpoint, input, environment, badge)
        }
        let text = try input.requiredString("apnsToken")
        if let token = PollToken(text: text, self.exchange.kernel.tokens) {
            return try await self.register(token, environment, badge)
        }
        return try await self.register(deviceToken: text, input, environment, badge)
    }

    /// What the badge of the device shows now: ours. An app that clears it says so.
    private func badge(_ input: Input) throws -> UInt64? {
        guard let value = input["badge"] else { return nil }
        guard let badge = value.wholeInt64, badge >= 0 else {
            throw InputRefusal.unexpectedInput(key: "badge")
        }
        return UInt64(badge)
    }

    private func environment(_ input: Input) throws -> Environment? {
        guard let name = try input.string("apnsEnvironment") else { return nil }
        guard let environment = Environment(name: name) else {
            throw InputRefusal.unexpectedInput(key: "apnsEnvironment")
        }
        return environment
    }

    private func register(
        _ token: PollToken, _ asked: Environment?, _ badge: UInt64? = nil
    ) async throws -> Bytes {
        let registration = self.registration()
        // Before it is listed: a poll then finds where to begin.
        try await self.follow(registration, token.name, as: .poll)
        let environment = try await self.list(
            registration, token.device, asked, badge: badge,
            life: PollToken.life + PollToken.margin)
        return try await self.answer(environment) {
            $0.member("apnsToken", token.text)
            $0.member("webcourierURL", self.base + token.path)
        }
    }

    /// A device of APNs. Only where the container can send to it.
    private func register(
        deviceToken text: String, _ input: Input, _ asked: Environment?, _ badge: UInt64?
    ) async throws -> Bytes {
        let keys = try await self.keys()?.apns ?? []
        guard let bytes = PushAddress.deviceToken(text), !keys.isEmpty else {
            throw ClientError(.badRequest, "the token is none of this service's")
        }
        let topic = try input.string("topic") ?? ""
        guard topic.isEmpty || keys.contains(where: { $0.topics.contains(topic) }) else {
            throw ClientError(.badRequest, "no APNs key of this container sends to the topic")
        }
        let environment = try await self.enrol(
            .apns(token: bytes), .apns, topic: topic, asked, badge: badge, life: PushAddress.life)
        return try await self.answer(environment) {
            $0.member("apnsToken", text)
            // Clients need one. It tells nothing.
            $0.member("webcourierURL", self.base + PollService.path)
        }
    }

    /// A browser's Push API.
    private func register(
        _ endpoint: String, _ input: Input, _ asked: Environment?, _ badge: UInt64?
    ) async throws -> Bytes {
        let keys = try await self.keys()?.vapid ?? []
        guard let newest = keys.last else {
            throw ClientError(.badRequest, "the container has no key for Web Push")
        }
        do throws(AddressGuard.Refusal) {
            _ = try AddressGuard.endpoint(
                endpoint, allowsPrivate: self.push?.allowsPrivate ?? false)
        } catch {
            throw ClientError(.badRequest, "endpoint: no push service on the internet (\(error))")
        }
        let secrets = try Input(input["keys"], at: "keys")
        let point = StratusPush.Base64URL.decode(try secrets.requiredString("p256dh"))
        guard let point, SigningKey.make().agree(with: point) != nil else {
            throw InputRefusal.unexpectedInput(key: "p256dh")
        }
        guard
            let secret = StratusPush.Base64URL.decode(try secrets.requiredString("auth")),
            secret.count == 16
        else { throw InputRefusal.unexpectedInput(key: "auth") }
        var key = newest
        if let shown = try input.string("applicationServerKey") {
            let point = StratusPush.Base64URL.decode(shown)
            guard let known = keys.first(where: { $0.signing.publicPoint == point }) else {
                throw ClientError(.badRequest, "applicationServerKey is none of this container's")
            }
            key = known
        }
        var life = PushAddress.life
        if let end = input["expirationTime"]?.wholeInt64 {
            let (left, isOverflow) = end.subtractingReportingOverflow(
                self.exchange.kernel.world.wallMilliseconds)
            guard !isOverflow, left > 0 else {
                throw InputRefusal.unexpectedInput(key: "expirationTime")
            }
            life = min(life, .milliseconds(left))
        }
        let environment = try await self.enrol(
            .webPush(endpoint: endpoint, publicKey: point, secret: secret), .webPush,
            topic: String(key.number), asked, badge: badge, life: life)
        return try await self.answer(environment) { $0.member("endpoint", endpoint) }
    }

    // MARK: Rows

    private func registration() -> Device.Registration {
        return Device.Registration(
            container: self.exchange.route.container, userRecordName: self.exchange.sender.name,
            isServerKey: self.exchange.sender.principal.kind == .serverKey, session: self.session)
    }

    /// The row first: a follower without one is removed.
    private func enrol(
        _ address: PushAddress, _ kind: Device.Provider.Kind, topic: String,
        _ asked: Environment?, badge: UInt64?, life: Duration
    ) async throws -> Environment {
        let registration = self.registration()
        let kernel = self.exchange.kernel
        let name = DeviceName(address, kernel.tokens)
        try await self.admit(name, of: registration)
        let provider = Device.Provider(
            kind, topic: topic, isGuessed: asked == nil,
            registeredAtMilliseconds: kernel.world.wallMilliseconds,
            address: address.sealed(for: name, kernel.tokens))
        let environment = try await self.list(
            registration, name, asked, provider: provider, badge: badge, life: life)
        try await self.follow(registration, name.bytes, as: .device)
        return environment
    }

    /// New devices that one user may register in a day. Their rows stay for a year.
    static let newDeviceCountMax: UInt64 = 200
    private static let day: Int64 = 86_400_000

    /// Refuses a device that is not known yet if its user registers too many.
    private func admit(_ name: DeviceName, of registration: Device.Registration) async throws {
        let kernel = self.exchange.kernel
        let devices = DeviceStore(partitions: kernel.partitions)
        guard try await devices.device(name, until: self.exchange.deadline) == nil,
            let store = self.push?.keys.store
        else { return }
        let counter = IdentityKey(
            .counter, of: IdentityKey.home(registration.container),
            Bytes("devices ".utf8) + Bytes(registration.userRecordName.utf8))
        let outcome = try await store.submit(
            [.init(counter, .count(limit: Self.newDeviceCountMax, milliseconds: Self.day))],
            to: .account("devices of \(registration.userRecordName)"))
        if case .limited(let milliseconds) = outcome {
            throw ClientError(
                .throttled, "\(Self.newDeviceCountMax) new devices a day are the most of one user",
                retryAfter: Int(milliseconds / 1_000) + 1)
        }
    }

    private func follow(
        _ registration: Device.Registration, _ token: Bytes, as follower: NewsFollower
    ) async throws {
        for database in registration.databases(self.exchange.holder.layout) {
            let follow = FollowNews(database) {
                $0.subscriber = registration.userRecordName
                $0.token = token
                $0.follower = follower
            }
            _ = try await self.exchange.kernel.partitions.plain.submit(
                follow, at: .database(database), as: .system(until: self.exchange.deadline))
        }
    }

    private func list(
        _ registration: Device.Registration, _ name: DeviceName, _ asked: Environment?,
        provider: Device.Provider? = nil, badge: UInt64?, life: Duration
    ) async throws -> Environment {
        let kernel = self.exchange.kernel
        let devices = DeviceStore(partitions: kernel.partitions)
        var environment = asked ?? registration.container.environment
        try await devices.change(name, until: self.exchange.deadline) { device in
            if asked == nil, let known = device?.environment { environment = known }
            var device = device ?? Device(environment: environment)
            var provider = provider
            // What was said once, or found out, is not guessed again.
            if asked == nil, device.provider?.isGuessed == false { provider?.isGuessed = false }
            device.provider = provider
            device.environment = environment
            guard device.register(registration) else {
                throw ClientError(
                    .quotaExceeded,
                    "a token is good for \(Device.registrationCountMax) containers")
            }
            if let badge { device.setBadge(badge, of: registration) }
            return .put(device, life: life)
        }
        return environment
    }

    /// The session of the caller; nil for development users and server keys.
    private var session: Device.Registration.Session? {
        guard self.exchange.sender.account != nil,
            let text = self.exchange.sender.webAuthToken,
            let token = self.people?.authenticator.session(
                text, in: self.exchange.route.container)
        else { return nil }
        return Device.Registration.Session(account: token.account, session: token.session)
    }

    private func keys() async throws -> PushKeys.Known? {
        try await self.push?.keys.known(of: self.exchange.route.container)
    }

    private func answer(
        _ environment: Environment, _ more: (inout JSONWriter) -> Void
    ) async throws -> Bytes {
        let key = try await self.keys()?.vapid.last
        var writer = JSONWriter()
        writer.object {
            $0.member("apnsEnvironment", environment.name)
            more(&$0)
            if let key {
                $0.member(
                    "vapidPublicKey", StratusPush.Base64URL.encode(key.signing.publicPoint))
            }
        }
        return writer.finish()
    }

    /// Where browsers reach the cluster: the sign-in page's place, else where this request came.
    private var base: String {
        if let base = self.people?.authenticator.signInBase { return base }
        return (self.exchange.isSecure ? "https://" : "http://")
            + (self.exchange.head.headers["Host"] ?? "127.0.0.1:8080")
    }
}

extension Device.Registration {
    /// The databases whose subscriptions can fire for it: of a spread private one every part, since
    /// a zone may come to be in any, and of a public one every bucket. A server key has no private
    /// one.
    func databases(_ layout: ContainerLayout) -> [DatabaseID] {
        var databases: [DatabaseID] = []
        if !self.isServerKey {
            databases +=
                layout.privateDatabase(of: self.userRecordName, in: self.container).parts
        }
        return databases
            + PublicDatabase(of: self.container, bucketCount: layout.publicBucketCount).parts
    }
}
