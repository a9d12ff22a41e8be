import StratusCluster
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords

/// Poll tokens: drawn, and registered in further containers.
struct TokenService: Sendable {
    let exchange: Exchange

    /// Documented below a database; clients send it below a device.
    static let operations = [GatewayService.database, .device].flatMap { service in
        [
            GatewayOperation("tokens/create", of: service, in: .all, needs: .user) {
                try await TokenService(exchange: $0).create($1)
            },
            GatewayOperation("tokens/register", of: service, in: .all, needs: .user) {
                try await TokenService(exchange: $0).register($1)
            },
        ]
    }

    /// `tokens/create`: a token of its own for each page of a browser.
    func create(_ input: Input) async throws -> Bytes {
        guard let environment = try self.environment(input) else {
            throw InputRefusal.missingKey("apnsEnvironment")
        }
        let world = self.exchange.handler.world
        let token = PollToken(drawnBy: { world.random() }, self.exchange.handler.tokens)
        return try await self.register(token, environment)
    }

    /// `tokens/register`: the container joins those that the token's polls tell of.
    func register(_ input: Input) async throws -> Bytes {
        let text = try input.requiredString("apnsToken")
        guard let token = PollToken(text: text, self.exchange.handler.tokens) else {
            throw ClientError(.badRequest, "the token is none of this service's")
        }
        return try await self.register(token, try self.environment(input))
    }

    private func environment(_ input: Input) throws -> Environment? {
        guard let name = try input.string("apnsEnvironment") else { return nil }
        guard let environment = Environment(name: name) else {
            throw InputRefusal.unexpectedInput(key: "apnsEnvironment")
        }
        return environment
    }

    private func register(_ token: PollToken, _ asked: Environment?) async throws -> Bytes {
        let handler = self.exchange.handler
        guard handler.router.level.allows(.two) else { throw RouteError.upgrading }
        let registration = Device.Registration(
            container: self.exchange.route.container, userRecordName: self.exchange.caller,
            isServerKey: self.exchange.principal.kind == .serverKey, session: self.session)
        // Before it is listed: a poll then finds where to begin.
        for database in registration.databases(self.exchange.authentication.layout) {
            let outcome = try await self.exchange.submit(
                .followNews(
                    FollowNews(
                        database: database, subscriber: registration.userRecordName,
                        token: token.name, .begin)),
                to: .database(database), schema: Schema(), as: Principal(kind: .system),
                identity: handler.world.drawIdentity())
            if case .refused(let refusal) = outcome { throw ClientError(refusal) }
        }
        let devices = DeviceStore(handler: handler)
        var environment = asked ?? self.exchange.route.container.environment
        try await devices.change(token, until: self.exchange.deadline) { device in
            if asked == nil, let known = device?.environment { environment = known }
            var device = device ?? Device(environment: environment)
            device.environment = environment
            guard device.register(registration) else {
                throw ClientError(
                    .quotaExceeded,
                    "a token is good for \(Device.registrationCountMax) containers")
            }
            return device
        }
        return self.answer(token, environment)
    }

    /// The session of the caller; nil for development users and server keys.
    private var session: Device.Registration.Session? {
        guard self.exchange.authentication.account != nil,
            let text = self.exchange.authentication.webAuthToken,
            let token = self.exchange.handler.people?.authenticator.session(
                text, in: self.exchange.route.container)
        else { return nil }
        return Device.Registration.Session(account: token.account, session: token.session)
    }

    private func answer(_ token: PollToken, _ environment: Environment) -> Bytes {
        var writer = JSONWriter()
        writer.object {
            $0.member("apnsEnvironment", environment.name)
            $0.member("apnsToken", token.text)
            $0.member("webcourierURL", self.base + token.path)
        }
        return writer.finish()
    }

    /// Where browsers reach the cluster: the sign-in page's place, else where this request came.
    private var base: String {
        if let base = self.exchange.handler.people?.authenticator.signInBase { return base }
        return (self.exchange.isSecure ? "https://" : "http://")
            + (self.exchange.head.headers["Host"] ?? "127.0.0.1:8080")
    }
}

extension Device.Registration {
    /// The databases whose subscriptions can fire for it: of a spread private one every part, since
    /// a zone may come to be in any. A server key has no private one. The buckets of a public
    /// database take no subscriptions yet.
    func databases(_ layout: ContainerLayout) -> [DatabaseID] {
        var databases: [DatabaseID] = []
        if !self.isServerKey {
            databases +=
                layout.privateDatabase(of: self.userRecordName, in: self.container).parts
        }
        if layout.publicBucketCount == 1 {
            databases.append(DatabaseID(container: self.container, scope: .public, owner: ""))
        }
        return databases
    }
}

/// The rows of poll tokens, each at a home of its own.
struct DeviceStore: Sendable {
    let handler: CloudKitHandler

    struct Stored {
        var device: Device
        var revision: UInt64
        var expiresAtMilliseconds: Int64
    }

    /// Nil: not known, or unused for too long.
    func device(of token: PollToken, until deadline: MonotonicTime) async throws -> Stored? {
        let answer = try await self.handler.router.read(
            IdentityQuery.rows([token.key]).enveloped(), at: token.home, deadline: deadline)
        guard case .rows(let rows) = try IdentityAnswer(decoding: answer.body), rows.count == 1
        else { throw RouteError.refused("an answer of another kind") }
        guard let row = rows[0], row.isLive(at: self.handler.world.wallMilliseconds) else {
            return nil
        }
        return Stored(
            device: try Device(decoding: row.body), revision: row.revision,
            expiresAtMilliseconds: row.expiresAtMilliseconds)
    }

    /// Writes what `change` makes of the row, and so prolongs it. Decides again where somebody was
    /// faster.
    func change(
        _ token: PollToken, until deadline: MonotonicTime,
        _ change: (Device?) throws -> Device
    ) async throws {
        for _ in 0..<8 {
            let known = try await self.device(of: token, until: deadline)
            let device = try change(known?.device)
            let now = self.handler.world.wallMilliseconds
            let life = (PollToken.life + PollToken.margin).clampedNanoseconds / 1_000_000
            let edit = IdentityCommand.Edit(
                token.key, if: known.map { .revision($0.revision) } ?? .any,
                .put(body: device.encoded(), expiresAtMilliseconds: now + life))
            let outcome = try await self.handler.router.submit(
                IdentityCommand([edit]).enveloped(
                    identity: self.handler.world.drawIdentity(),
                    deadlineMilliseconds: now + 10_000 + self.handler.router.leadMilliseconds),
                to: token.home, deadline: deadline)
            guard outcome.verdict == .decided else {
                throw RouteError.notExecuted(retryAfter: .seconds(1))
            }
            switch try IdentityOutcome(decoding: outcome.body) {
            case .done: return
            case .conflict: continue
            case .limited, .refused: throw RouteError.refused("a change that is no change")
            }
        }
        throw RouteError.notExecuted(retryAfter: .seconds(1))
    }
}
