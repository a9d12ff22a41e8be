import StratusDoubles
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime
import Synchronization
import Testing

@testable import StratusGateway
@testable import WireScenarios

/// Live streams: what they tell, where they go on, and how they end.
@Suite struct LiveTests {
    private struct Stage {
        let wire: InProcess
        let caller: Caller

        init(settings: GatewaySettings = GatewaySettings()) async throws {
            self.wire = InProcess(settings: settings)
            self.caller = Caller(wire: self.wire, container: try await self.wire.makeContainer())
            try await self.caller.makeZone("Shelves")
        }

        func open(
            _ query: String, after id: String? = nil, in scope: String = "private",
            at handler: Gateway? = nil
        ) async -> LiveClient {
            await LiveClient(
                handler ?? self.wire.handler, self.caller.target("\(scope)/live", query: query),
                lastEventID: id)
        }

        func save(_ name: String, zone: String = "Shelves") async throws {
            try await self.caller.create(name, in: ["zoneName": .string(zone)])
        }

        func token() async throws -> String {
            let answer = try await self.caller.ask(
                "private/tokens/create", ["apnsEnvironment": "development"])
            return try #require(answer["apnsToken"].text)
        }

        func subscribe(_ id: String, once: Bool = false, in scope: String = "private")
            async throws
        {
            let answer = try await self.caller.ask(
                "\(scope)/subscriptions/modify",
                [
                    "operations": [
                        [
                            "operationType": "create",
                            "subscription": [
                                "subscriptionID": .string(id), "subscriptionType": "query",
                                "query": ["recordType": "Book"], "firesOn": ["create"],
                                "firesOnce": .bool(once),
                            ],
                        ]
                    ]
                ])
            #expect(answer["subscriptions"][0]["serverErrorCode"] == nil, "\(answer)")
        }

        func changes(after token: String?) async throws -> JSON {
            var zone: JSON = ["zoneID": ["zoneName": "Shelves"]]
            if let token { zone = zone.setting("syncToken", .string(token)) }
            let answer = try await self.caller.ask("private/changes/zone", ["zones": [zone]])
            return try #require(answer["zones"][0])
        }
    }

    private static func names(_ event: LiveClient.Event) -> [String] {
        event.data["records"].elements.compactMap { $0["recordName"].text }
    }

    private static func escaped(_ token: String) -> String {
        token.replacing("+", with: "%2B").replacing("/", with: "%2F").replacing("=", with: "%3D")
    }

    @Test func `a zone's events are the pages of changes/zone, and a save is one at once`()
        async throws
    {
        let stage = try await Stage()
        try await stage.save("first")
        let live = await stage.open("zone=Shelves")
        #expect(live.status == 200)
        #expect(live.response.headers["X-Accel-Buffering"] == "no")
        #expect(try await live.piece() == "retry: 1000\n\n")
        let all = try await live.required()
        #expect(all.name == "changes" && Self.names(all) == ["first"])
        #expect(all.data == (try await stage.changes(after: nil)))
        let token = try #require(all.data["syncToken"].text)
        #expect(all.id == token)
        let next = Task { try await live.required() }
        try await Task.sleep(for: .milliseconds(30))
        try await stage.save("second")
        let second = try await next.value
        #expect(Self.names(second) == ["second"])
        #expect(second.data == (try await stage.changes(after: token)))
        // A change of another zone is none of this stream.
        try await stage.caller.makeZone("Elsewhere")
        try await stage.save("third", zone: "Elsewhere")
        #expect(try await live.isQuiet())
    }

    @Test func `after the end of a process nothing is missed and nothing told twice`()
        async throws
    {
        let stage = try await Stage()
        try await stage.caller.makeZone("Other")
        let live = await stage.open("zone=Shelves&zone=Other&database=1")
        var first: [String] = []
        for _ in 0..<3 { first.append(try await live.required().name) }
        #expect(first == ["changes", "changes", "zones"])
        try await stage.save("a")
        #expect(Self.names(try await live.required()) == ["a"])
        let zones = try await live.required()
        #expect(zones.name == "zones" && zones.data["zones"].elements.count == 1)
        let id = try #require(live.lastID)
        // Nobody is connected now.
        try await stage.save("b", zone: "Other")
        try await stage.save("c")
        let again = InProcess(after: stage.wire)
        let resumed = await stage.open(
            "zone=Shelves&zone=Other&database=1", after: id, at: again.handler)
        #expect(Self.names(try await resumed.required()) == ["c"])
        #expect(Self.names(try await resumed.required()) == ["b"])
        #expect(try await resumed.required().data["zones"].elements.count == 2)
        #expect(try await resumed.isQuiet())
        // A page that was loaded anew has no header, but may say it itself.
        let last = try #require(resumed.lastID)
        let reloaded = await stage.open(
            "zone=Shelves&zone=Other&database=1&lastEventID=\(Self.escaped(last))")
        #expect(try await reloaded.isQuiet())
    }

    @Test func `an empty token is the end, and its place is told before any change`() async throws {
        let stage = try await Stage()
        try await stage.save("old")
        let live = await stage.open("zone=Shelves&syncToken=")
        let start = try await live.required()
        #expect(Self.names(start).isEmpty && start.data["moreComing"] == false)
        try await stage.save("new")
        let resumed = await stage.open("zone=Shelves&syncToken=", after: live.lastID)
        #expect(Self.names(try await resumed.required()) == ["new"])
    }

    @Test func `a large zone comes page by page`() async throws {
        let stage = try await Stage()
        for batch in 0..<3 {
            let records = (0..<100).map { number -> JSON in
                [
                    "operationType": "create",
                    "record": ["recordType": "Book", "recordName": .string("\(batch)-\(number)")],
                ]
            }
            _ = try await stage.caller.ask(
                "private/records/modify",
                ["zoneID": ["zoneName": "Shelves"], "operations": .array(records)])
        }
        let live = await stage.open("zone=Shelves")
        var names: Set<String> = []
        var isMore = true
        while isMore {
            let event = try await live.required()
            names.formUnion(Self.names(event))
            isMore = event.data["moreComing"] == true
        }
        #expect(names.count == 300)
    }

    @Test func `what cannot be followed is refused, and a browser stops asking`() async throws {
        let stage = try await Stage()
        let live = await stage.open("zone=Nowhere&zone=Shelves")
        let refused = try await live.required()
        #expect(refused.name == "refused" && refused.data["serverErrorCode"] == "ZONE_NOT_FOUND")
        #expect(refused.data["zoneID"]["zoneName"] == "Nowhere")
        #expect(try await live.required().name == "changes")
        _ = try await stage.caller.ask(
            "private/zones/modify",
            [
                "operations": [
                    ["operationType": "delete", "zone": ["zoneID": ["zoneName": "Shelves"]]]
                ]
            ])
        let gone = try await live.required()
        #expect(gone.name == "refused" && gone.data["zoneID"]["zoneName"] == "Shelves")
        #expect(try await live.event() == nil)
        #expect(live.lastID == "-,-")
        #expect(await stage.open("zone=Nowhere&zone=Shelves", after: "-,-").status == 204)
        // A token of somewhere else is an expired one.
        try await stage.caller.makeZone("Shelves")
        try await stage.caller.makeZone("Elsewhere")
        let other = try await stage.caller.ask(
            "private/changes/zone", ["zones": [["zoneID": ["zoneName": "Elsewhere"]]]])
        let token = try #require(other["zones"][0]["syncToken"].text)
        let expired = await stage.open("zone=Shelves&syncToken=\(Self.escaped(token))")
        let why = try await expired.required().data["reason"].text
        #expect(why == "Unknown sync continuation type", "\(why ?? "")")
    }

    @Test(arguments: ["syncToken", "databaseSyncToken"])
    func `a token that would break the line of an event's ID is refused`(key: String) throws {
        for wrong in ["x%0Adata:%201", "a,b", "a%20b"] {
            let query = try #require(URLQuery("zone=A&database=1&\(key)=\(wrong)"))
            #expect(throws: InputRefusal.unexpectedInput(key: key)) {
                try LiveRequest(query, lastEventID: nil)
            }
        }
        let query = try #require(URLQuery("zone=A&database=1&\(key)=aZ09%2B%2F-_%3D%3D"))
        _ = try LiveRequest(query, lastEventID: nil)
    }

    @Test func `a stream of nothing, of too much and of what is none's is refused at once`()
        async throws
    {
        let stage = try await Stage()
        let zones = (0..<17).map { "zone=z\($0)" }.joined(separator: "&")
        for query in [
            "", zones, "zone=", "zone=A&zone=A", "zone=A&zone=B&syncToken=x", "database=maybe",
            "zone=A&lastEventID=a%2Cb",
        ] {
            let answer = await stage.open(query)
            #expect(answer.status == 400, "\(query)")
        }
        let token = try await stage.token()
        let other = await LiveClient(
            stage.wire.handler,
            stage.caller.acting(as: .other("x")).target(
                "private/live", query: "token=\(Self.escaped(token))"))
        #expect(other.status == 404)
        // A forged one cannot be told from somebody else's.
        for forged in ["abc", String(repeating: "0", count: 64)] {
            let answer = await stage.open("token=\(forged)")
            #expect(answer.status == 404, "\(forged)")
            #expect(Self.reason(answer) == Self.reason(other), "\(forged)")
        }
        let position = await stage.open("token=\(Self.escaped(token))", after: "AbCd")
        #expect(position.status == 400)
    }

    /// Of a refusal.
    private static func reason(_ client: LiveClient) -> String? {
        guard case .bytes(let bytes) = client.response.body else { return nil }
        return try? JSONDocument(parsing: bytes).root["reason"]?.string
    }

    @Test func `only the private database has changes to follow`() async throws {
        let stage = try await Stage()
        let token = Self.escaped(try await stage.token())
        for query in ["zone=Shelves", "database=1", "zone=Shelves&token=\(token)"] {
            for scope in ["public", "shared"] {
                #expect(await stage.open(query, in: scope).status == 400, "\(scope) \(query)")
            }
        }
        #expect(await stage.open("token=\(token)", in: "public").status == 200)
    }

    // MARK: Notifications

    @Test func `what was taken is settled also when somebody else moves the token meanwhile`()
        async throws
    {
        let stage = try await Stage()
        let created = try await stage.caller.ask(
            "private/tokens/create", ["apnsEnvironment": "development"])
        let token = Self.escaped(try #require(created["apnsToken"].text))
        let poll = String(try #require(created["webcourierURL"].text?.split(separator: "?").last))
        try await stage.subscribe("all")
        try await stage.subscribe("once", once: true)
        let live = await stage.open("token=\(token)")
        try await stage.save("a")
        var told: [String] = []
        while let event = try await live.event() {
            told.append(event.data["ck"]["qry"]["sid"].text ?? "")
        }
        #expect(told == ["all", "once"])
        // Between the look and the settlement a poll takes the first of the two.
        let (handler, router) = (stage.wire.handler, stage.wire.router)
        let isFirst = Mutex(true)
        router.afterRead.withLock {
            $0 = { key in
                guard case .database = key else { return }
                let isNow = isFirst.withLock { isFirst in
                    defer { isFirst = false }
                    return isFirst
                }
                guard isNow else { return }
                let answer = await handler.respond(
                    to: HTTPRequest(
                        head: RequestHead(method: "GET", path: "/aps", query: poll),
                        body: CollectedBody([]), peer: "test",
                        identity: RequestIdentity(high: 1, low: 2), patience: .held))
                guard case .stream(let stream, _) = answer.body else { return }
                while (try? await stream.next()) != nil {}
            }
        }
        let resumed = await stage.open("token=\(token)", after: live.lastID)
        #expect(try await resumed.isQuiet())
        router.afterRead.withLock { $0 = nil }
        let left = try await stage.caller.ask("private/subscriptions/list", [:])
        #expect(left["subscriptions"].elements.count == 1, "\(left)")
        let anew = await stage.open("token=\(token)")
        #expect(try await anew.isQuiet())
    }

    @Test func `a notification is taken when its client connects again, and not before`()
        async throws
    {
        let stage = try await Stage()
        let token = Self.escaped(try await stage.token())
        try await stage.subscribe("books")
        let live = await stage.open("token=\(token)", in: "public")
        try await stage.save("a")
        try await stage.save("b")
        for name in ["a", "b"] {
            let event = try await live.required()
            #expect(event.name == "notification")
            #expect(event.data["ck"]["qry"]["rid"].text == name)
        }
        let id = try #require(live.lastID)
        try await stage.save("c")
        // Without the ID nobody knows what was taken: all of it is told again.
        let anew = await stage.open("token=\(token)")
        #expect(try await anew.required().data["ck"]["qry"]["rid"] == "a")
        let resumed = await stage.open("token=\(token)", after: id)
        #expect(try await resumed.required().data["ck"]["qry"]["rid"] == "c")
        #expect(try await resumed.isQuiet())
        // What was taken is settled: it is told nobody again.
        let last = await stage.open("token=\(token)")
        #expect(try await last.required().data["ck"]["qry"]["rid"] == "c")
    }

    @Test func `what fires once is told once, and deleted when its client has it`() async throws {
        let stage = try await Stage()
        let token = Self.escaped(try await stage.token())
        try await stage.subscribe("once", once: true)
        let live = await stage.open("token=\(token)")
        try await stage.save("a")
        try await stage.save("b")
        #expect(try await live.required().data["ck"]["qry"]["rid"] == "a")
        // The stream ends, so that the client confirms it.
        #expect(try await live.event() == nil)
        let before = try await stage.caller.ask("private/subscriptions/list", [:])
        #expect(before["subscriptions"].elements.count == 1)
        let resumed = await stage.open("token=\(token)", after: live.lastID)
        #expect(try await resumed.isQuiet())
        let after = try await stage.caller.ask("private/subscriptions/list", [:])
        #expect(after["subscriptions"].elements.isEmpty)
    }

    /// Which database a stream looks at first is drawn, so several rounds are needed.
    @Test func `what fired once is settled before another database is told of`() async throws {
        let stage = try await Stage()
        let token = Self.escaped(try await stage.token())
        try await stage.subscribe("all", in: "public")
        var id: String?
        for round in 0..<8 {
            try await stage.subscribe("once", once: true)
            let live = await stage.open("token=\(token)", after: id)
            try await stage.save("a\(round)")
            #expect(try await live.required().data["ck"]["qry"]["rid"].text == "a\(round)")
            #expect(try await live.event() == nil)
            _ = try await stage.caller.ask(
                "public/records/modify",
                [
                    "operations": [
                        [
                            "operationType": "create",
                            "record": ["recordName": .string("p\(round)"), "recordType": "Book"],
                        ]
                    ]
                ])
            let resumed = await stage.open("token=\(token)", after: live.lastID)
            #expect(try await resumed.required().data["ck"]["qry"]["rid"].text == "p\(round)")
            #expect(try await resumed.isQuiet())
            id = resumed.lastID
            let left = try await stage.caller.ask("private/subscriptions/list", [:])
            #expect(left["subscriptions"].elements.isEmpty, "\(left)")
        }
    }

    @Test func `a token that somebody else takes over tells its first owner no more`()
        async throws
    {
        let stage = try await Stage()
        let token = try await stage.token()
        try await stage.subscribe("books")
        let live = await stage.open("token=\(Self.escaped(token))")
        #expect(try await live.piece() == "retry: 1000\n\n")
        _ = try await stage.caller.acting(as: .other("x")).ask(
            "private/tokens/register", ["apnsToken": .string(token)])
        try await stage.save("a")
        let refused = try await live.required()
        #expect(refused.name == "refused" && refused.data["feed"] == "notifications")
        #expect(try await live.event() == nil)
    }

    // MARK: Ends

    @Test func `a user has so many streams, and those that end make room`() async throws {
        var settings = GatewaySettings()
        settings.userLiveStreamCountMax = 2
        settings.liveStreamCountMax = 3
        let stage = try await Stage(settings: settings)
        var streams: [LiveClient] = []
        for _ in 0..<2 { streams.append(await stage.open("zone=Shelves")) }
        #expect(streams.allSatisfy { $0.status == 200 })
        let third = await stage.open("zone=Shelves")
        #expect(third.status == 429 && third.response.headers["Retry-After"] == "30")
        func other(_ name: String) async -> LiveClient {
            await LiveClient(
                stage.wire.handler,
                stage.caller.acting(as: .other(name)).target("private/live", query: "database=1"))
        }
        streams.append(await other("x"))
        #expect(streams[2].status == 200)
        // A third user takes the place of the oldest stream of the one who has most.
        streams.append(await other("y"))
        #expect(streams[3].status == 200 && stage.wire.handler.kernel.held.streams.size == 3)
        #expect(try await streams[0].piece() == "retry: 1000\n\n")
        #expect(try await streams[0].piece() == "retry: 30000\n\n")
        #expect(try await streams[0].piece() == nil)
        // Each of three has one of three.
        #expect(await other("z").status == 503)
        streams = []
        #expect(
            stage.wire.handler.kernel.held.streams.size == 0
                && stage.wire.handler.kernel.seats.count == 0)
        #expect(await stage.open("zone=Shelves").status == 200)
    }

    @Test func `a quiet stream is heard every 20 seconds, and ends after an hour`() async throws {
        let stage = try await Stage()
        let live = await stage.open("zone=Shelves")
        _ = try await live.required()
        for _ in 0..<3 {
            stage.wire.world.advance(by: .seconds(20))
            #expect(try await live.piece() == ":\n\n")
        }
        stage.wire.world.advance(by: .seconds(3_600))
        #expect(try await live.piece() == nil)
        #expect(try await live.piece() == nil)
    }

    @Test func `feeds that are slow to read keep no comment back`() async throws {
        let stage = try await Stage()
        var query: [String] = []
        for number in 0..<16 {
            try await stage.caller.makeZone("Slow\(number)")
            query.append("zone=Slow\(number)")
        }
        let live = await stage.open(query.joined(separator: "&"))
        for _ in 0..<16 { #expect(try await live.required().name == "changes") }
        let world = stage.wire.world
        stage.wire.router.afterRead.withLock {
            $0 = { key in if case .database = key { world.advance(by: .seconds(5)) } }
        }
        for _ in 0..<4 {
            let before = world.now
            #expect(try await live.piece() == ":\n\n")
            #expect(world.now - before <= .seconds(30))
        }
        stage.wire.router.afterRead.withLock { $0 = nil }
    }

    @Test func `who was signed out is told that, and nothing that was saved since`() async throws {
        let town = Neighbourhood()
        _ = try await town.makeContainer()
        let api = try await town.apiToken()
        let id = try await town.account("a@example.org")
        let first = try await town.signIn(id)
        let second = try await town.signIn(id)
        func target(_ operation: String, _ session: String, _ more: String = "") -> String {
            let session = Self.escaped(session)
            return town.path(operation) + "?ckAPIToken=\(api)&ckWebAuthToken=\(session)\(more)"
        }
        let zone: JSON = ["zoneID": ["zoneName": "Shelves"]]
        _ = try await town.post(
            "private/zones/modify",
            ["operations": [["operationType": "create", "zone": zone]]], api: api, user: second)
        let live = await LiveClient(
            town.handler, target("private/live", first, "&zone=Shelves"))
        #expect(try await live.required().name == "changes")
        let session = try #require(
            town.authenticator.session(first, in: Neighbourhood.container))
        try await town.accounts.closeSession(session.session, of: id)
        town.world.advance(by: .seconds(2))
        let saved = try await town.post(
            "private/records/modify",
            [
                "zoneID": ["zoneName": "Shelves"],
                "operations": [
                    [
                        "operationType": "create",
                        "record": ["recordType": "Book", "recordName": "secret"],
                    ]
                ],
            ], api: api, user: second)
        #expect(saved.status == 200)
        let refused = try await live.required()
        #expect(refused.name == "refused" && refused.id == nil)
        #expect(refused.data["serverErrorCode"] == "AUTHENTICATION_REQUIRED", "\(refused.data)")
        #expect(try await live.event() == nil)
        // A quiet stream finds out too.
        let other = await LiveClient(
            town.handler, target("private/live", second, "&zone=Shelves&syncToken="))
        #expect(try await other.required().name == "changes")
        let ending = try #require(
            town.authenticator.session(second, in: Neighbourhood.container))
        try await town.accounts.closeSession(ending.session, of: id)
        town.world.advance(by: LiveService.judgement)
        #expect(try await other.required().name == "refused")
    }
}
