import StratusAdminModel
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusPush
import StratusRuntime
import StratusSealing

/// The keys by which a container sends to push providers, and what this node sends.
enum PushPages {
    static let place = "/v1/containers/{container}/environments/{environment}/push"

    static let routes: [AdminRoute] =
        [
            AdminRoute(
                "GET", "/v1/push",
                answer: "what this node sends: devices, and the ways to providers"
            ) { try await Self.status($0) },
            AdminRoute(
                "GET", Self.place,
                answer: "the keys of the container, never their secrets; whether it is paused"
            ) { try await Self.list($0, in: $0.container()) },
            PushTracePage.route,
            AdminRoute(
                "POST", Self.place + "/apns", body: "team, key, topics, privateKey (PEM)",
                answer: "nothing"
            ) { try await Self.add($0, $0.body(), in: $0.openContainer()) },
            AdminRoute(
                "DELETE", Self.place + "/apns/{team}/{key}", answer: "nothing"
            ) { try await Self.remove($0, in: $0.container()) },
            AdminRoute(
                "POST", Self.place + "/apns/check",
                body: "topic and apnsEnvironment, both may be absent",
                answer: "what APNs says to each key"
            ) { try await Self.check($0, $0.body(), in: $0.container()) },
            AdminRoute(
                "POST", Self.place + "/vapid", body: "contact",
                answer: "the number and the public key"
            ) { try await Self.makeVAPID($0, $0.body(), in: $0.openContainer()) },
            AdminRoute(
                "POST", Self.place + "/pause", body: "paused, true or false", answer: "nothing"
            ) { try await Self.pause($0, $0.body(), in: $0.container()) },
        ] + PushAudiencePages.routes

    private static func status(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let standing = await (try exchange.push).standing()
        return AdminAnswer.json(
            PushStatusAnswer {
                $0.active = Int64(standing.activeCount)
                $0.parked = Int64(standing.restingCount)
                $0.lanes = standing.lanes.map { lane in
                    PushStatusAnswer.Lane {
                        $0.lane = lane.name
                        $0.state = lane.state
                        $0.waiting = Int64(lane.waiting)
                        $0.underWay = Int64(lane.underWay)
                        $0.answers = Int64(lane.answers)
                        $0.trouble = lane.trouble
                    }
                }
            })
    }

    private static func list(
        _ exchange: AdminExchange, in container: ContainerReference
    ) async throws -> HTTPResponse {
        let known = try await exchange.push.keys.known(of: container, fresh: true)
        return AdminAnswer.json(
            PushKeysAnswer {
                $0.isPaused = known.isPaused
                $0.apns = known.apns.map { key in
                    APNsKeyRow {
                        $0.team = key.team
                        $0.key = key.key
                        $0.topics = key.topics
                        $0.created = WallTime.text(key.createdMilliseconds)
                    }
                }
                $0.vapid = known.vapid.map { VAPIDKeyRow($0) }
            })
    }

    // MARK: APNs

    private static func add(
        _ exchange: AdminExchange, _ body: APNsKeyBody, in container: ContainerReference
    ) async throws -> HTTPResponse {
        let team = try Self.identifier(body.team, "team")
        let key = try Self.identifier(body.key, "key")
        guard let pem = body.privateKey.map({ Bytes($0.utf8) }), let signing = SigningKey(pem: pem)
        else {
            throw AdminRefusal.bad(
                "'privateKey' must be an EC P-256 key in PEM form, as Apple's .p8 files hold, "
                    + "without a password")
        }
        let topics = body.topics
        guard (1...PushKeys.topicCountMax).contains(topics.count),
            topics.allSatisfy({ topic in
                (1...255).contains(topic.utf8.count)
                    && topic.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
            })
        else {
            throw AdminRefusal.bad(
                "'topics' must name 1 to \(PushKeys.topicCountMax) bundle identifiers")
        }
        switch try await exchange.push.keys.add(
            team: team, key: key, topics: topics, signing, to: container)
        {
        case .tooMany:
            throw AdminRefusal(
                409, .tooManyKeys,
                "the container already has \(PushKeys.apnsCountMax) keys: remove one first")
        case .done: return await exchange.done("push apns add", "\(team) \(key)", container)
        }
    }

    /// Ten letters and digits, as Apple gives them.
    private static func identifier(_ text: String?, _ key: String) throws -> String {
        guard let text, text.utf8.count == 10,
            text.utf8.allSatisfy({
                ($0 >= 0x30 && $0 <= 0x39) || ($0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7A)
            })
        else { throw AdminRefusal.bad("'\(key)' must have ten letters and digits") }
        return text
    }

    private static func remove(
        _ exchange: AdminExchange, in container: ContainerReference
    ) async throws -> HTTPResponse {
        let (team, key) = (exchange.parameter("team"), exchange.parameter("key"))
        guard try await exchange.push.keys.remove(team: team, key: key, from: container) else {
            throw AdminRefusal.missing("key")
        }
        return await exchange.done("push apns remove", "\(team) \(key)", container)
    }

    private static func check(
        _ exchange: AdminExchange, _ body: APNsCheckBody, in container: ContainerReference
    ) async throws -> HTTPResponse {
        let push = try exchange.push
        var environment = container.environment
        if let name = body.apnsEnvironment {
            guard let named = Environment(name: name) else {
                throw AdminRefusal.bad("'apnsEnvironment' must be 'development' or 'production'")
            }
            environment = named
        }
        let topic = body.topic
        let keys = try await push.keys.known(of: container, fresh: true).apns.filter { key in
            topic.map { key.topics.contains($0) } ?? true
        }
        guard !keys.isEmpty else { throw AdminRefusal.missing("APNs key") }
        var checks: [(PushKeys.APNsKey, PushCheck)] = []
        for key in keys {
            let topic = topic ?? key.topics.first ?? ""
            checks.append(
                (key, await push.check(key, topic: topic, of: container, in: environment)))
        }
        return AdminAnswer.json(
            Listing(
                checks.map { key, check in
                    APNsCheckRow {
                        $0.team = key.team
                        $0.key = key.key
                        $0.isGood = check.isGood
                        $0.answer = check.answer
                    }
                }))
    }

    // MARK: Web Push

    private static func makeVAPID(
        _ exchange: AdminExchange, _ body: VAPIDBody, in container: ContainerReference
    ) async throws -> HTTPResponse {
        guard let contact = body.contact, contact.utf8.count <= 255,
            contact.hasPrefix("mailto:") || contact.hasPrefix("https://"),
            contact.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else {
            throw AdminRefusal.bad("'contact' must begin with 'mailto:' or 'https://'")
        }
        let key = try await exchange.push.keys.makeVAPID(contact: contact, in: container)
        await exchange.noteAfterwards("push vapid create", "\(key.number)", container)
        return AdminAnswer.json(VAPIDKeyRow(key), status: 201)
    }

    private static func pause(
        _ exchange: AdminExchange, _ body: PauseBody, in container: ContainerReference
    ) async throws -> HTTPResponse {
        guard let isPaused = body.isPaused else {
            throw AdminRefusal.bad("the body must be {\"paused\": true} or {\"paused\": false}")
        }
        try await exchange.push.keys.pause(isPaused, container)
        return await exchange.done(isPaused ? "push pause" : "push resume", "", container)
    }
}

extension VAPIDKeyRow {
    init(_ key: PushKeys.VAPIDKey) {
        self.init()
        self.number = Int64(clamping: key.number)
        self.publicKey = StratusPush.Base64URL.encode(key.signing.publicPoint)
        self.contact = key.contact
        self.created = WallTime.text(key.createdMilliseconds)
    }
}
