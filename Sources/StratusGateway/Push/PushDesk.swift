package import StratusCluster
import StratusHTTP
package import StratusIdentity
package import StratusModel
package import StratusPush
import StratusRecords
import StratusRows
import StratusRuntime
import StratusSealing

/// What the gateway needs of pushes: who may register, and where.
package struct PushRegistry: Sendable {
    package var keys: PushKeys
    /// Endpoints on private addresses are taken. For stand-ins.
    package var allowsPrivate: Bool

    package init(keys: PushKeys, allowsPrivate: Bool) {
        self.keys = keys
        self.allowsPrivate = allowsPrivate
    }
}

/// One push, ready to leave.
package struct PreparedPush: Sendable {
    package enum Way: Sendable {
        /// - url: of APNs' host.
        case apns(APNsRequest, key: PushKeys.APNsKey, url: String)
        /// - topic: base64url, at most 32 characters.
        case webPush(
            AddressGuard.Endpoint, publicKey: Bytes, secret: Bytes, key: PushKeys.VAPIDKey,
            topic: String)
    }

    package var target: PushTarget
    package var way: Way
    package var lane: LaneName
    package var payload: Bytes
    package var isAlert: Bool
    /// The device as it was read.
    package var registeredAtMilliseconds: Int64
    package var hostIsGuessed: Bool
    /// When the permission was judged.
    package var preparedAt: MonotonicTime
    fileprivate var from: NewsPosition
    fileprivate var to: NewsPosition
    fileprivate var spent: String?
    /// Of a zone's change.
    fileprivate var told: ChangeTag?
    /// The badge that it tells; nil: none.
    fileprivate var badge: UInt64?
    /// Whose it is.
    fileprivate var registration: Device.Registration?
    /// What it tells of.
    package fileprivate(set) var change = PushTrail.Change(event: 0, subscription: "", zone: "")

    /// Whether it says the same to the same place.
    package func isSame(as other: PreparedPush) -> Bool {
        self.from == other.from && self.to == other.to && self.payload == other.payload
            && self.lane == other.lane
            && self.registeredAtMilliseconds == other.registeredAtMilliseconds
    }
}

/// Finds what a device is to be told, makes the push of it, and settles it. It decides by what
/// partitions and credentials say at that moment, and keeps nothing.
package struct PushDesk: Sendable {
    package struct Settings: Sendable {
        package var productionURL: String
        package var developmentURL: String
        package var allowsPrivate: Bool

        package init(productionURL: String, developmentURL: String, allowsPrivate: Bool) {
            self.productionURL = productionURL
            self.developmentURL = developmentURL
            self.allowsPrivate = allowsPrivate
        }
    }

    package enum Look: Sendable {
        case nothing(through: UInt64)
        case push(PreparedPush)
        case held(Duration)
        case gone
    }

    /// How long APNs and push services keep what a device cannot take now.
    package static let alertLife: Int64 = 86_400
    package static let silentLife: Int64 = 43_200
    /// A container that is paused, or has no key, is asked again after this.
    private static let heldPause = Duration.seconds(10)
    /// Events that a follower may have looked at in vain before it is moved.
    private static let idleEventCountMax: UInt64 = 1_000
    private static let lookCountMax = 64

    let partitions: PartitionClient
    var world: any World { self.partitions.world }
    private let tokens: TokenCipher
    /// Nil: everybody may be told of everything (tests of the rest).
    let authenticator: CredentialAuthenticator?
    package let keys: PushKeys
    private let settings: Settings
    let devices: DeviceStore

    /// - Parameter tokens: what devices' names and addresses are sealed with.
    package init(
        partitions: PartitionClient, tokenKey: Bytes,
        authenticator: CredentialAuthenticator?, keys: PushKeys, settings: Settings
    ) {
        self.partitions = partitions
        self.tokens = TokenCipher(key: tokenKey)
        self.authenticator = authenticator
        self.keys = keys
        self.settings = settings
        self.devices = DeviceStore(partitions: partitions)
    }

    /// The address of APNs' host.
    package func url(of environment: Environment) -> String {
        environment == .production ? self.settings.productionURL : self.settings.developmentURL
    }

    // MARK: Looking

    /// The next push of a device.
    /// - Parameter after: the event through which it was looked at in vain.
    @concurrent
    package func look(
        for target: PushTarget, after: UInt64?, until deadline: MonotonicTime
    ) async throws -> Look {
        let name = DeviceName(target.token)
        let container = target.database.container
        guard let device = try await self.devices.device(name, until: deadline)?.device,
            let provider = device.provider,
            let registration = device.registrations.first(where: {
                $0.container == container && $0.userRecordName == target.subscriber
            })
        else {
            try await self.leave(target, until: deadline)
            return .gone
        }
        let known = try await self.keys.known(of: container)
        if known.isPaused { return .held(Self.heldPause) }
        let judgedAt = self.world.now
        guard let principal = try await self.principal(registration, target.database) else {
            try await self.leave(target, until: deadline)
            return .gone
        }
        // Closed for a while.
        guard let principal else { return .held(Self.heldPause) }
        var position = after.map { NewsPosition(number: $0) }
        for _ in 0..<Self.lookCountMax {
            let news = try await self.news(target, principal, after: position, until: deadline)
            guard let follower = news.follower else { return .gone }
            position = news.position
            if let hit = news.hit {
                guard
                    var push = try self.prepare(
                        hit, for: target, device, provider, known,
                        badge: device.badge(of: registration) + 1)
                else { return .held(Self.heldPause) }
                push.from = follower
                push.to = news.position
                push.registration = registration
                push.change = PushTrail.Change(hit, at: news.position.number)
                push.preparedAt = judgedAt
                return .push(push)
            }
            guard !news.hasMore else { continue }
            if news.position.number >= follower.number + Self.idleEventCountMax {
                try await self.follow(
                    target, .advance(from: follower, to: news.position, spent: nil),
                    until: deadline)
            }
            return .nothing(through: news.position.number)
        }
        throw RouteError.notExecuted(retryAfter: .seconds(1))
    }

    /// Nil: nobody any more. Nil inside: nobody for now.
    private func principal(
        _ registration: Device.Registration, _ database: DatabaseID
    ) async throws -> Principal?? {
        guard let authenticator else {
            return Principal(
                kind: registration.isServerKey ? .serverKey : .user,
                userRecordName: registration.userRecordName)
        }
        guard let listener = try await authenticator.listener(registration) else { return nil }
        if listener.isRestricted, database.scope == .private { return .some(nil) }
        return listener.principal
    }

    private func news(
        _ target: PushTarget, _ principal: Principal, after: NewsPosition?,
        until deadline: MonotonicTime
    ) async throws -> News {
        let ask = NewsAsk(target.database) {
            $0.follower = .device
            $0.token = target.token
            $0.after = after
        }
        return try await self.partitions.plain.ask(
            ask, at: .database(target.database), as: Caller(principal, until: deadline))
    }

    // MARK: Making

    /// Nil: the container has no key that sends there.
    func prepare(
        _ hit: News.Hit, for target: PushTarget, _ device: Device, _ provider: Device.Provider,
        _ known: PushKeys.Known, badge: UInt64 = 1
    ) throws -> PreparedPush? {
        let name = DeviceName(target.token)
        guard let address = PushAddress(opening: provider.address, of: name, self.tokens) else {
            throw RouteError.refused("a device's address that does not open")
        }
        let nid = PushPayload.nid(of: hit.event, in: target.database, self.tokens)
        var payload = PushPayload(
            container: target.database.container, database: target.database,
            subscriber: target.subscriber, nid: nid, hit: hit, badge: badge)
        let isAlert = payload.isAlert
        func identity(_ words: [String]) -> RequestIdentity {
            let text = words.map { Bytes($0.utf8) + [0] }.reduce([], +)
            return self.tokens.identity(of: Bytes("stratus push 1".utf8) + text + target.token)
        }
        // A newer change of a zone takes the place of an older one; anything else only that of its
        // own repeats.
        var collapse = ["once", nid, hit.subscription.id]
        if case .zone(let zone, _) = hit.event { collapse = ["zone", hit.subscription.id, zone] }
        if let key = payload.collapseKey { collapse = ["key", hit.subscription.id, key] }
        let folded = Self.text(identity(collapse))
        var push: PreparedPush
        switch address {
        case .apns(let token):
            let key =
                provider.topic.isEmpty
                ? known.apns.first
                : known.apns.first { $0.topics.contains(provider.topic) }
            guard let key, let topic = provider.topic.isEmpty ? key.topics.first : provider.topic
            else { return nil }
            let url = self.url(of: device.environment)
            let life = isAlert ? Self.alertLife : Self.silentLife
            let bytes = payload.bytes()
            let request = try APNsRequest(
                deviceToken: token, topic: topic, kind: isAlert ? .alert : .background,
                identifier: identity(["push", nid, hit.subscription.id]).uuid,
                collapseIdentifier: payload.collapseKey.flatMap(Self.header) ?? folded,
                expiration: self.world.wallMilliseconds / 1_000 + life, payload: bytes)
            // Of each container a lane of its own: what APNs thinks of one's key is no other's
            // trouble, though they may have the same.
            let container = target.database.container
            let place =
                "\(url) \(key.team) \(key.key) \(container.container) "
                + container.environment.name
            push = PreparedPush(
                target: target, way: .apns(request, key: key, url: url),
                lane: LaneName(.apns, place), payload: bytes, isAlert: isAlert)
        case .webPush(let endpoint, let publicKey, let secret):
            guard let key = known.vapid.first(where: { String($0.number) == provider.topic })
            else { return nil }
            let place = try AddressGuard.endpoint(
                endpoint, allowsPrivate: self.settings.allowsPrivate)
            payload.sizeMax = WebPushMessage.plainSizeMax
            push = PreparedPush(
                target: target,
                way: .webPush(
                    place, publicKey: publicKey, secret: secret, key: key, topic: folded),
                lane: LaneName(.webPush, place.origin), payload: payload.bytes(),
                isAlert: isAlert)
        }
        push.registeredAtMilliseconds = provider.registeredAtMilliseconds
        push.hostIsGuessed = provider.isGuessed
        push.spent = hit.subscription.firesOnce ? hit.subscription.id : nil
        push.told = hit.told
        push.badge = payload.raisesBadge ? badge : nil
        return push
    }

    /// Nil: no value that a field of a request may have.
    private static func header(_ text: String) -> String? {
        let isFit =
            (1...APNsRequest.collapseSizeMax).contains(text.utf8.count)
            && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        return isFit ? text : nil
    }

    private static func text(_ identity: RequestIdentity) -> String {
        StratusPush.Base64URL.encode(
            [identity.high, identity.low].flatMap { word in
                withUnsafeBytes(of: word.bigEndian) { Bytes($0) }
            })
    }

    // MARK: Settling

    /// Moves the device past a push that its provider has taken, or that is given up.
    package func settle(_ push: PreparedPush, until deadline: MonotonicTime) async throws {
        if let spent = push.spent, let registration = push.registration {
            let layout =
                try await self.authenticator?.layout(of: registration.container)
                ?? ContainerLayout()
            try await SpentCopies(partitions: self.partitions).delete(
                spent, firedIn: push.target.database, of: registration, layout, until: deadline)
        }
        // First: the next push may be made as soon as the device moves.
        if let badge = push.badge, let registration = push.registration {
            try await self.devices.raiseBadge(
                DeviceName(push.target.token), of: registration, to: badge, until: deadline)
        }
        try await self.follow(
            push.target,
            .advance(from: push.from, to: push.to, spent: push.spent, told: push.told),
            until: deadline)
    }

    /// Removes a device that its provider says is gone, if it was not registered since.
    /// - Parameter moment: when it was gone, milliseconds.
    /// - Returns: false where it is registered since.
    package func remove(
        _ push: PreparedPush, goneAt moment: Int64, until deadline: MonotonicTime
    ) async throws -> Bool {
        var isNewer = false
        try await self.devices.change(DeviceName(push.target.token), until: deadline) { device in
            guard let provider = device?.provider else { return .nothing }
            isNewer = PushRules.isRenewed(
                registered: provider.registeredAtMilliseconds,
                sentFor: push.registeredAtMilliseconds, goneAt: moment)
            return isNewer ? .nothing : .remove
        }
        if isNewer { return false }
        try await self.leave(push.target, until: deadline)
        return true
    }

    /// The other of APNs' hosts may know a device whose host nobody said. It is tried once.
    package func exchangeHost(
        of push: PreparedPush, until deadline: MonotonicTime
    ) async throws {
        try await self.devices.change(DeviceName(push.target.token), until: deadline) { device in
            guard var device, device.provider?.isGuessed == true else { return .nothing }
            device.provider?.isGuessed = false
            device.environment = device.environment == .production ? .development : .production
            return .put(device, life: PushAddress.life)
        }
    }

    private func leave(_ target: PushTarget, until deadline: MonotonicTime) async throws {
        try await self.follow(target, .leave, until: deadline)
    }

    private func follow(
        _ target: PushTarget, _ step: FollowNews.Step, until deadline: MonotonicTime
    ) async throws {
        let follow = FollowNews(target.database) {
            $0.subscriber = target.subscriber
            $0.token = target.token
            $0.follower = .device
            $0.step = step
        }
        _ = try await self.partitions.plain.submit(
            follow, at: .database(target.database), as: .system(until: deadline))
    }
}

extension PushTrail.Change {
    fileprivate init(_ hit: News.Hit, at number: UInt64) {
        self.init(event: number, subscription: hit.subscription.id, zone: "")
        switch hit.event {
        case .zone(let zone, _): self.zone = zone
        case .record(let reasons, let record, _):
            self.zone = record.zone.name
            self.record = record.name
            if !reasons.contains(.deleted) { self.savedAt = record.modified.milliseconds }
        }
    }
}

extension PreparedPush {
    fileprivate init(
        target: PushTarget, way: Way, lane: LaneName, payload: Bytes, isAlert: Bool
    ) {
        self.init(
            target: target, way: way, lane: lane, payload: payload, isAlert: isAlert,
            registeredAtMilliseconds: 0, hostIsGuessed: false,
            preparedAt: MonotonicTime(nanoseconds: 0), from: NewsPosition(number: 0),
            to: NewsPosition(number: 0), spent: nil)
    }
}
