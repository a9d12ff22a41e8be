import StratusCluster
import StratusDoubles
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusPush
import StratusRecords
import StratusRows
import StratusRuntime
import StratusSealing
import Testing

@testable import StratusGateway
@testable import WireScenarios

/// Devices of push providers: how they register, what they are told, and how they go.
@Suite struct PushDeskTests {
    private static let device = String(repeating: "ab", count: 32)
    private static let shelves: JSON = ["zoneName": "Shelves"]

    /// A user with a container that has keys, and the desk of the node that leads everything.
    private struct Stage {
        let wire: InProcess
        let caller: Caller
        let desk: PushDesk
        var container: ContainerReference {
            ContainerReference(container: self.caller.container, environment: .development)
        }

        init(hasKeys: Bool = true) async throws {
            self.wire = InProcess()
            self.caller = Caller(wire: self.wire, container: try await self.wire.makeContainer())
            try await self.caller.makeZone("Shelves")
            self.desk = PushDesk(
                partitions: PartitionClient(self.wire.router, in: self.wire.world),
                tokenKey: Bytes(repeating: 9, count: 32), authenticator: nil,
                keys: self.wire.pushKeys,
                settings: PushDesk.Settings(
                    productionURL: "https://production.example.org",
                    developmentURL: "https://development.example.org", allowsPrivate: false))
            guard hasKeys else { return }
            _ = try await self.wire.pushKeys.add(
                team: "DEF123GHIJ", key: "ABC123DEFG", topics: ["org.a", "org.b"],
                SigningKey.make(), to: self.container)
            _ = try await self.wire.pushKeys.makeVAPID(
                contact: "mailto:a@example.org", in: self.container)
        }

        var deadline: MonotonicTime { self.wire.world.now + .seconds(5) }

        func register(_ body: JSON) async throws -> WireAnswer {
            try await self.caller.post("private/tokens/register", body)
        }

        func subscribe(
            _ subscriptions: [JSON], in database: String = "private", by caller: Caller? = nil
        ) async throws {
            let answer = try await (caller ?? self.caller).ask(
                "\(database)/subscriptions/modify",
                [
                    "operations": .array(
                        subscriptions.map { ["operationType": "create", "subscription": $0] })
                ])
            for item in answer["subscriptions"].elements {
                #expect(item["serverErrorCode"] == nil, "\(item)")
            }
        }

        /// The devices that wait in a database, as its leader finds them.
        func waiting(_ scope: DatabaseScope = .private) async throws -> [PushTarget] {
            let user = try await self.caller.ask("public/users/caller", [:])["userRecordName"].text
            let database = DatabaseID(
                container: self.container, scope: scope,
                owner: scope == .private ? (user ?? "") : "")
            let query = WaitingDevicesAsk().enveloped(as: Principal(kind: .system))
            let answer = try await self.wire.router.read(
                query, at: .database(database), deadline: self.deadline)
            let found = try WaitingDevicesAsk.answer(decoding: answer.body)
            return found.followers.map {
                PushTarget(
                    group: GroupID(1), database: $0.database, subscriber: $0.subscriber,
                    token: $0.token)
            }
        }

        func look(_ target: PushTarget) async throws -> PushDesk.Look {
            try await self.desk.look(for: target, after: nil, until: self.deadline)
        }

        /// The push of the only device that waits.
        func push(_ scope: DatabaseScope = .private) async throws -> PreparedPush {
            let target = try #require(try await self.waiting(scope).first)
            let look = try await self.look(target)
            guard case .push(let push) = look else {
                throw TestFailure("no push but \(look)")
            }
            return push
        }
    }

    private struct TestFailure: Error {
        let text: String
        init(_ text: String) { self.text = text }
    }

    private static func query(_ id: String, _ info: JSON = [:], once: Bool = false) -> JSON {
        [
            "subscriptionID": .string(id), "subscriptionType": "query",
            "query": ["recordType": "Book"], "firesOn": ["create", "update", "delete"],
            "firesOnce": .bool(once), "notificationInfo": info,
        ]
    }

    private static func browser(_ endpoint: String) -> JSON {
        let point = StratusPush.Base64URL.encode(SigningKey.make().publicPoint)
        let secret = StratusPush.Base64URL.encode(Bytes(repeating: 3, count: 16))
        return [
            "endpoint": .string(endpoint),
            "keys": ["p256dh": .string(point), "auth": .string(secret)],
        ]
    }

    // MARK: Registration

    @Test func `a device is taken only where the container has a key`() async throws {
        let stage = try await Stage(hasKeys: false)
        #expect(try await stage.register(["apnsToken": .string(Self.device)]).status == 400)
        let browser = try await stage.register(Self.browser("https://push.example.org/a"))
        #expect(browser.status == 400)
        let token = try await stage.caller.ask(
            "private/tokens/create", ["apnsEnvironment": "development"])
        #expect(token["vapidPublicKey"] == nil)
    }

    @Test func `36: native tokens come in digits or in base64, and are one device`() async throws {
        let stage = try await Stage()
        try await stage.subscribe([Self.query("q")])
        let base64 = Base64.encode(Bytes(repeating: 0xAB, count: 32))
        for text in [Self.device, Self.device.uppercased(), base64] {
            let answer = try await stage.register([
                "apnsEnvironment": "production", "apnsToken": .string(text), "clientId": "c",
            ])
            #expect(answer.status == 200, "\(answer)")
            #expect(answer.json["apnsToken"].text == text)
            #expect(answer.json["apnsEnvironment"].text == "production")
            #expect(answer.json["webcourierURL"].text?.isEmpty == false)
            #expect(answer.json["vapidPublicKey"].text?.utf8.count == 87)
        }
        try await stage.caller.create("a", in: Self.shelves)
        #expect(try await stage.waiting().count == 1)
        for bad in ["", "zz", "abcd", String(repeating: "ab", count: 101)] {
            let answer = try await stage.register(["apnsToken": .string(bad)])
            #expect(answer.status == 400, "\(bad)")
        }
        let topic = try await stage.register([
            "apnsToken": .string(Self.device), "topic": "org.unknown",
        ])
        #expect(topic.status == 400)
    }

    @Test func `a user registers two hundred new devices a day, and known ones again`()
        async throws
    {
        let stage = try await Stage()
        func register(_ number: Int) async throws -> Int {
            let text = String(number + 0x10000, radix: 16) + String(repeating: "ab", count: 30)
            return try await stage.register(["apnsToken": .string("abc" + text)]).status
        }
        let most = Int(TokenService.newDeviceCountMax)
        for number in 0..<most { #expect(try await register(number) == 200) }
        #expect(try await register(most) == 429)
        #expect(try await register(0) == 200)
        stage.wire.world.advance(by: .seconds(86_401))
        #expect(try await register(most) == 200)
    }

    @Test func `P-10: an endpoint must be a push service on the internet`() async throws {
        let stage = try await Stage()
        for good in ["https://push.example.org/a", "https://push.example.org:443/b?c=d"] {
            #expect(try await stage.register(Self.browser(good)).status == 200, "\(good)")
        }
        for bad in [
            "http://push.example.org/a", "https://localhost/a", "https://127.0.0.1/a",
            "https://[::1]/a", "https://push.example.org:8443/a", "https://2130706433/a",
            "https://a@push.example.org/a", "https://metadata.internal/a", "nothing",
        ] {
            #expect(try await stage.register(Self.browser(bad)).status == 400, "\(bad)")
        }
        for (key, value) in [("p256dh", "AAAA"), ("auth", "AAAA")] {
            var keys = try #require(Self.browser("")["keys"])
            keys = keys.setting(key, .string(value))
            let body: JSON = ["endpoint": "https://push.example.org/a", "keys": keys]
            #expect(try await stage.register(body).status == 400, "\(key)")
        }
        let other = try await stage.register(
            Self.browser("https://push.example.org/a").setting(
                "applicationServerKey",
                .string(StratusPush.Base64URL.encode(SigningKey.make().publicPoint))))
        #expect(other.status == 400)
        for end in [Int64.min, -1, 0] as [Int64] {
            let over = try await stage.register(
                Self.browser("https://push.example.org/a").setting(
                    "expirationTime", .number("\(end)")))
            #expect(over.status == 400, "\(end)")
        }
    }

    @Test func `I-9: rows hold no token and no endpoint in the clear`() async throws {
        let stage = try await Stage()
        _ = try await stage.register(["apnsToken": .string(Self.device)])
        let address = PushAddress.apns(token: Bytes(repeating: 0xAB, count: 32))
        let name = DeviceName(address, stage.wire.handler.kernel.tokens)
        let devices = DeviceStore(
            partitions: PartitionClient(stage.wire.router, in: stage.wire.world))
        let device = try #require(try await devices.device(name, until: stage.deadline)).device
        let sealed = try #require(device.provider?.address)
        #expect(!sealed.contains(0xAB) || sealed.filter { $0 == 0xAB }.count < 8)
        #expect(PushAddress(opening: sealed, of: name, stage.wire.handler.kernel.tokens) == address)
        let other = DeviceName(Bytes(repeating: 1, count: 16))
        #expect(PushAddress(opening: sealed, of: other, stage.wire.handler.kernel.tokens) == nil)
    }

    // MARK: Pushes

    @Test func `37, P-02: a push has APNs' fields, and its repeat the same identity`() async throws
    {
        let stage = try await Stage()
        let info: JSON = ["alertBody": "A book", "additionalFields": ["title"]]
        try await stage.subscribe([Self.query("q", info)])
        _ = try await stage.register([
            "apnsEnvironment": "production", "apnsToken": .string(Self.device), "topic": "org.b",
        ])
        try await stage.caller.create("a", fields: ["title": ["value": "Sea"]], in: Self.shelves)
        let push = try await stage.push()
        guard case .apns(let request, let key, let url) = push.way else {
            throw TestFailure("another way")
        }
        #expect(url == "https://production.example.org" && key.key == "ABC123DEFG")
        #expect(request.topic == "org.b" && request.kind == .alert && push.isAlert)
        #expect(request.target == "/3/device/\(Self.device)")
        #expect(request.identifier.utf8.count == 36)
        #expect(request.identifier == request.identifier.lowercased())
        #expect(request.expiration == stage.wire.world.wallMilliseconds / 1_000 + 86_400)
        let payload = try JSON(parsing: request.payload)
        #expect(payload["aps"]["alert"]["body"].text == "A book")
        #expect(payload["ck"]["qry"]["rid"].text == "a")
        #expect(payload["ck"]["qry"]["af"] == ["title": "Sea"])
        // Another leader, who knows nothing of the first one's push.
        let again = try await stage.push()
        #expect(again.isSame(as: push))
        guard case .apns(let repeated, _, _) = again.way else { throw TestFailure("") }
        #expect(repeated.identifier == request.identifier)
        #expect(repeated.collapseIdentifier == request.collapseIdentifier)
        try await stage.desk.settle(push, until: stage.deadline)
        try await stage.desk.settle(again, until: stage.deadline)
        let target = push.target
        guard case .nothing = try await stage.look(target) else {
            throw TestFailure("told twice")
        }
        try await stage.caller.create("b", in: Self.shelves)
        guard case .apns(let next, _, _) = try await stage.push().way else {
            throw TestFailure("")
        }
        #expect(next.identifier != request.identifier)
        #expect(next.collapseIdentifier != request.collapseIdentifier)
    }

    @Test func `changes of a zone replace each other, and are silent`() async throws {
        let stage = try await Stage()
        try await stage.subscribe([
            ["subscriptionID": "z", "subscriptionType": "zone", "zoneID": Self.shelves]
        ])
        _ = try await stage.register(["apnsToken": .string(Self.device)])
        var requests: [APNsRequest] = []
        for name in ["a", "b"] {
            try await stage.caller.create(name, in: Self.shelves)
            let push = try await stage.push()
            guard case .apns(let request, _, _) = push.way else { throw TestFailure("") }
            requests.append(request)
            try await stage.desk.settle(push, until: stage.deadline)
        }
        #expect(requests.allSatisfy { $0.kind == .background && $0.topic == "org.a" })
        #expect(requests[0].identifier != requests[1].identifier)
        #expect(requests[0].collapseIdentifier == requests[1].collapseIdentifier)
    }

    @Test func `P-04: a collapse key that no field can carry stops nothing`() async throws {
        let stage = try await Stage()
        try await stage.subscribe([
            Self.query("a", ["collapseIDKey": "bücher", "alertBody": "x"]),
            Self.query("b", ["collapseIDKey": "books", "alertBody": "x"]),
        ])
        _ = try await stage.register(["apnsToken": .string(Self.device)])
        try await stage.caller.create("a", in: Self.shelves)
        var found: [String?] = []
        for _ in 0..<2 {
            let push = try await stage.push()
            guard case .apns(let request, _, _) = push.way else { throw TestFailure("") }
            found.append(request.collapseIdentifier)
            try await stage.desk.settle(push, until: stage.deadline)
        }
        #expect(found[0]?.utf8.count == 22 && found[1] == "books")
    }

    @Test func `a browser is sent to with the key that it subscribed with`() async throws {
        let stage = try await Stage()
        try await stage.subscribe([Self.query("q")])
        _ = try await stage.register(Self.browser("https://push.example.org/a?b=c"))
        let newer = try await stage.wire.pushKeys.makeVAPID(
            contact: "mailto:b@example.org", in: stage.container)
        try await stage.caller.create("a", in: Self.shelves)
        let push = try await stage.push()
        guard case .webPush(let place, _, let secret, let key, let topic) = push.way else {
            throw TestFailure("another way")
        }
        #expect(place.target == "/a?b=c" && push.lane.place == "https://push.example.org")
        #expect(secret == Bytes(repeating: 3, count: 16))
        #expect(newer.number == 2 && key.number == 1 && key.contact == "mailto:a@example.org")
        #expect(topic.utf8.count <= 32)
        // Once that key is not kept any more, nothing is sent: the browser would not take it.
        for _ in 0..<4 {
            _ = try await stage.wire.pushKeys.makeVAPID(
                contact: "mailto:b@example.org", in: stage.container)
        }
        guard case .held = try await stage.look(push.target) else {
            throw TestFailure("sent without a key")
        }
    }

    @Test func `41, P-14: nothing of a record leaves that its owner may not read`() async throws {
        let stage = try await Stage()
        let diary = Self.query("q").setting("query", ["recordType": "Diary"])
        try await stage.subscribe([diary], in: "public")
        _ = try await stage.register(["apnsToken": .string(Self.device)])
        let other = stage.caller.acting(as: .other("two"))
        try await other.create("theirs", type: "Diary", database: "public")
        let target = try #require(try await stage.waiting(.public).first)
        guard case .nothing = try await stage.look(target) else {
            throw TestFailure("told of somebody else's diary")
        }
        try await stage.caller.create("mine", type: "Diary", database: "public")
        let payload = try JSON(parsing: try await stage.push(.public).payload)
        #expect(payload["ck"]["qry"]["rid"].text == "mine")
    }

    enum Ending: CaseIterable {
        case signedOut, accountDisabled, restricted, containerDeleted
    }

    @Test(arguments: Ending.allCases)
    func `P-14: nothing leaves after a session, an account or a container has ended`(
        _ ending: Ending
    ) async throws {
        let town = Neighbourhood()
        let container = Neighbourhood.container
        _ = try await town.authenticator.registry.create(container, buckets: 1)
        _ = try await town.makeContainer()
        let keys = InProcess.pushKeys(town.router, town.world)
        _ = try await keys.add(
            team: "DEF123GHIJ", key: "ABC123DEFG", topics: ["org.a"], SigningKey.make(),
            to: container)
        let api = try await town.apiToken()
        let ann = try await town.account("ann@example.org")
        let user = try await town.signIn(ann)
        func post(_ operation: String, _ body: JSON) async throws {
            let answer = try await town.post(operation, body, api: api, user: user)
            try #require(answer.status == 200, "\(operation): \(answer)")
        }
        try await post("private/tokens/register", ["apnsToken": .string(Self.device)])
        try await post(
            "private/subscriptions/modify",
            ["operations": [["operationType": "create", "subscription": Self.query("q")]]])
        try await post(
            "private/records/modify",
            [
                "operations": [
                    [
                        "operationType": "create",
                        "record": ["recordName": "a", "recordType": "Book"],
                    ]
                ]
            ])
        let desk = PushDesk(
            partitions: PartitionClient(town.router, in: town.world),
            tokenKey: Bytes(repeating: 9, count: 32),
            authenticator: town.authenticator, keys: keys,
            settings: PushDesk.Settings(
                productionURL: "https://a.example.org", developmentURL: "https://b.example.org",
                allowsPrivate: false))
        let name = DeviceName(
            .apns(token: Bytes(repeating: 0xAB, count: 32)), town.handler.kernel.tokens)
        let owner = town.recordName(ann)
        let target = PushTarget(
            group: GroupID(1),
            database: DatabaseID(container: container, scope: .private, owner: owner),
            subscriber: owner, token: name.bytes)
        func look() async throws -> PushDesk.Look {
            try await desk.look(for: target, after: nil, until: town.world.now + .seconds(5))
        }
        guard case .push = try await look() else { throw TestFailure("not told at first") }
        switch ending {
        case .signedOut:
            let session = try #require(town.authenticator.session(user, in: container))
            try await town.accounts.closeSession(session.session, of: ann)
        case .accountDisabled: _ = try await town.accounts.disable(ann)
        case .restricted:
            try await town.access.changeUser(owner, account: ann, in: container) {
                $0.isRestricted = true
            }
        case .containerDeleted:
            _ = try await town.authenticator.registry.beginErasure(of: container)
        }
        town.world.advance(by: .seconds(2))
        switch (try await look(), ending) {
        case (.gone, .signedOut), (.gone, .accountDisabled), (.gone, .containerDeleted): break
        // It may be lifted again.
        case (.held, .restricted): break
        case (let look, _): throw TestFailure("\(ending): \(look)")
        }
    }

    @Test func `42: one that fires once does so once`() async throws {
        let stage = try await Stage()
        try await stage.subscribe([Self.query("q", once: true)])
        _ = try await stage.register(["apnsToken": .string(Self.device)])
        for name in ["a", "b"] { try await stage.caller.create(name, in: Self.shelves) }
        let push = try await stage.push()
        try await stage.desk.settle(push, until: stage.deadline)
        guard case .nothing = try await stage.look(push.target) else {
            throw TestFailure("fired twice")
        }
    }

    // MARK: Going

    @Test func `P-03: a device goes if it was not registered since`() async throws {
        let stage = try await Stage()
        try await stage.subscribe([Self.query("q")])
        _ = try await stage.register(["apnsToken": .string(Self.device)])
        try await stage.caller.create("a", in: Self.shelves)
        let old = try await stage.push()
        let before = old.registeredAtMilliseconds - 1
        #expect(try await !stage.desk.remove(old, goneAt: before, until: stage.deadline))
        stage.wire.world.advance(by: .seconds(1))
        let moment = stage.wire.world.wallMilliseconds
        stage.wire.world.advance(by: .seconds(1))
        _ = try await stage.register(["apnsToken": .string(Self.device)])
        // The verdict is about the registration before this one.
        #expect(try await !stage.desk.remove(old, goneAt: moment, until: stage.deadline))
        #expect(try await !stage.desk.remove(old, goneAt: .max, until: stage.deadline))
        let push = try await stage.push()
        #expect(!push.isSame(as: old))
        #expect(try await stage.desk.remove(push, goneAt: .max, until: stage.deadline))
        #expect(try await stage.waiting().isEmpty)
        // It registers again, and is told from then on.
        _ = try await stage.register(["apnsToken": .string(Self.device)])
        try await stage.caller.create("b", in: Self.shelves)
        let payload = try JSON(parsing: try await stage.push().payload)
        #expect(payload["ck"]["qry"]["rid"].text == "b")
    }

    @Test func `the other host is tried once, where nobody said which`() async throws {
        let stage = try await Stage()
        try await stage.subscribe([Self.query("q")])
        _ = try await stage.register(["apnsToken": .string(Self.device)])
        try await stage.caller.create("a", in: Self.shelves)
        let push = try await stage.push()
        #expect(push.hostIsGuessed)
        for _ in 0..<2 {
            try await stage.desk.exchangeHost(of: push, until: stage.deadline)
            let again = try await stage.push()
            #expect(!again.hostIsGuessed)
            guard case .apns(_, _, let url) = again.way else { throw TestFailure("") }
            #expect(url == "https://production.example.org")
        }
        // Registering again without saying it does not guess again.
        _ = try await stage.register(["apnsToken": .string(Self.device)])
        #expect(try await !stage.push().hostIsGuessed)
    }

    @Test func `a device that another user registers is that user's`() async throws {
        let stage = try await Stage()
        try await stage.subscribe([Self.query("q")], in: "public")
        _ = try await stage.register(["apnsToken": .string(Self.device)])
        let other = stage.caller.acting(as: .other("two"))
        _ = try await other.ask(
            "private/tokens/register", ["apnsToken": .string(Self.device)])
        try await stage.subscribe([Self.query("theirs")], in: "public", by: other)
        try await stage.caller.create("a", database: "public")
        var told: [String?] = []
        for target in try await stage.waiting(.public) {
            guard case .push(let push) = try await stage.look(target) else { continue }
            told.append(try JSON(parsing: push.payload)["ck"]["qry"]["sid"].text)
        }
        #expect(told == ["theirs"])
        #expect(try await stage.waiting(.public).count == 1)
    }

    @Test func `P-18: pauses and keys count within a second`() async throws {
        let stage = try await Stage()
        try await stage.subscribe([Self.query("q")])
        _ = try await stage.register(["apnsToken": .string(Self.device)])
        try await stage.caller.create("a", in: Self.shelves)
        let target = try await stage.push().target
        // Another node's keys: it finds out by itself.
        let elsewhere = InProcess.pushKeys(stage.wire.router, stage.wire.world)
        func isHeld() async throws -> Bool {
            stage.wire.world.advance(by: .milliseconds(1_100))
            if case .held = try await stage.look(target) { return true }
            return false
        }
        try await elsewhere.pause(true, stage.container)
        #expect(try await isHeld())
        try await elsewhere.pause(false, stage.container)
        #expect(try await !isHeld())
        #expect(
            try await elsewhere.remove(
                team: "DEF123GHIJ", key: "ABC123DEFG", from: stage.container))
        #expect(try await isHeld())
        #expect(
            try await !elsewhere.remove(
                team: "DEF123GHIJ", key: "ABC123DEFG", from: stage.container))
    }
}
