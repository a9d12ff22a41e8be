import StratusCluster
import StratusContainers
import StratusDoubles
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRows
import StratusRuntime
import Synchronization
import Testing

@testable import StratusGateway
@testable import WireScenarios

/// The web courier's long poll: what another session's save makes of it.
@Suite struct PollTests {
    /// A client that polls.
    private struct Page {
        let wire: InProcess
        let caller: Caller
        var token = ""
        var poll = ""

        init(_ wire: InProcess, _ caller: Caller) { (self.wire, self.caller) = (wire, caller) }

        mutating func create(_ path: String? = nil) async throws {
            let path = path ?? "private/tokens/create"
            let answer = try await self.caller.ask(path, ["apnsEnvironment": "development"])
            #expect(answer["apnsEnvironment"].text == "development")
            self.token = try #require(answer["apnsToken"].text)
            let url = try #require(answer["webcourierURL"].text)
            #expect(url.hasPrefix("http://") && url.hasSuffix("&ttl=43200"), "\(url)")
            self.poll = String(try #require(url.split(separator: "?").last))
        }

        /// The answer of a poll. `isTaken`: whether the client stays until the end of it.
        func ask(isTaken: Bool = true) async throws -> (status: Int, text: String) {
            let response = await self.wire.handler.respond(
                to: HTTPRequest(
                    head: RequestHead(method: "GET", path: "/aps", query: self.poll),
                    body: CollectedBody([]), peer: "test",
                    identity: RequestIdentity(high: 1, low: 2), patience: .held))
            #expect(response.headers["Access-Control-Allow-Origin"] == "*")
            switch response.body {
            case .empty: return (response.status, "")
            case .bytes(let bytes):
                return (response.status, String(decoding: bytes, as: UTF8.self))
            case .stream(let stream, let length):
                let whole = try #require(try await stream.next())
                #expect(whole.count == length)
                if isTaken { #expect(try await stream.next() == nil) }
                return (response.status, String(decoding: whole, as: UTF8.self))
            }
        }

        /// The most questions that a poll of it asks with one look, as soon as it is `count`.
        func watched(_ count: Int = 1) async throws -> Int {
            let poll = Task { try await self.ask() }
            var most = 0
            for _ in 0..<150 where most < count {
                try await Task.sleep(for: .milliseconds(20))
                most = max(most, self.wire.handler.kernel.seats.watchCount)
            }
            poll.cancel()
            _ = try await poll.value
            return most
        }

        func told() async throws -> JSON {
            let (status, text) = try await self.ask()
            #expect(status == 200)
            return try JSON(parsing: Array(text.utf8))
        }

        /// A poll that is held, and ended by its client.
        func isQuiet() async throws -> Bool {
            let poll = Task { try await self.ask() }
            // It has looked by then, also beside tests that keep all threads busy.
            try await Task.sleep(for: .milliseconds(300))
            poll.cancel()
            return try await poll.value.text == "null\n"
        }
    }

    private static func page() async throws -> Page {
        let wire = InProcess()
        let caller = Caller(wire: wire, container: try await wire.makeContainer())
        try await caller.makeZone("Shelves")
        var page = Page(wire, caller)
        try await page.create()
        return page
    }

    private static func subscribe(
        _ caller: Caller, _ subscriptions: [JSON], in database: String = "private"
    ) async throws {
        let answer = try await caller.ask(
            "\(database)/subscriptions/modify",
            [
                "operations": .array(
                    subscriptions.map { ["operationType": "create", "subscription": $0] })
            ])
        for item in answer["subscriptions"].elements {
            #expect(item["serverErrorCode"] == nil, "\(item)")
        }
    }

    private static let shelves: JSON = ["zoneName": "Shelves"]

    private static func query(_ id: String, _ info: JSON = [:], once: Bool = false) -> JSON {
        [
            "subscriptionID": .string(id), "subscriptionType": "query",
            "query": ["recordType": "Book"], "firesOn": ["create", "update", "delete"],
            "firesOnce": .bool(once), "notificationInfo": info,
        ]
    }

    @Test func `IDs that are canonically equal are two subscriptions, and both fire`() async throws
    {
        let page = try await Self.page()
        try await page.caller.create("first", in: Self.shelves)
        try await Self.subscribe(
            page.caller, ["caf\u{E9}", "cafe\u{301}"].map { Self.query($0) })
        try await page.caller.create("a", in: Self.shelves)
        var told: Set<[UInt8]> = []
        for _ in 0..<2 {
            let sid = try #require(try await page.told()["ck"]["qry"]["sid"].text)
            told.insert(Array(sid.utf8))
        }
        #expect(told.count == 2)
        #expect(try await page.isQuiet())
    }

    @Test func `a place that could not be read is read by the next look`() async throws {
        let layout = UnsteadyLayout(LayoutAuthenticator(ContainerLayout(zoneBucketCount: 4)))
        let wire = InProcess(authenticator: layout)
        let caller = Caller(wire: wire, container: try await wire.makeContainer())
        var page = Page(wire, caller)
        try await page.create()
        let whole = try await page.watched()
        #expect(whole > 4)
        layout.failures.withLock { $0 = 1 }
        #expect(try await page.watched(whole) == whole)
        #expect(layout.failures.withLock { $0 } == 0)
    }

    @Test func `a poll asks every bucket of a public database`() async throws {
        let wire = InProcess(
            authenticator: LayoutAuthenticator(ContainerLayout(publicBucketCount: 16)))
        var page = Page(
            wire, Caller(wire: wire, container: try await wire.makeContainer()))
        try await page.create()
        #expect(try await page.watched(17) == 17, "the private database and the buckets")
    }

    @Test func `a token that others put out is told again after its next poll`() async throws {
        let page = try await Self.page()
        try await Self.subscribe(
            page.caller, [["subscriptionID": "all", "subscriptionType": "database"]])
        for _ in 0..<101 {
            var other = Page(page.wire, page.caller)
            try await other.create()
        }
        #expect(try await page.isQuiet())
        try await page.caller.create("a", in: Self.shelves)
        #expect(try await page.told()["ck"]["cid"].text != nil)
    }

    @Test func `a busy database keeps no other one's news from the page`() async throws {
        let page = try await Self.page()
        try await Self.subscribe(
            page.caller, [["subscriptionID": "all", "subscriptionType": "database"]])
        try await page.caller.create("first", type: "Book", in: Self.shelves)
        try await Self.subscribe(page.caller, [Self.query("books")], in: "public")
        _ = try await page.caller.ask(
            "public/records/modify",
            [
                "operations": [
                    [
                        "operationType": "create",
                        "record": ["recordType": "Book", "recordName": "told"],
                    ]
                ]
            ])
        var isTold = false
        for number in 0..<60 where !isTold {
            try await page.caller.create("busy-\(number)", in: Self.shelves)
            isTold = try await page.ask().text.contains("books")
        }
        #expect(isTold, "in sixty polls the public database never had its turn")
    }

    @Test func `36, 37: a save in one session answers the held poll of another`() async throws {
        let page = try await Self.page()
        try await Self.subscribe(
            page.caller, [["subscriptionID": "all", "subscriptionType": "database"]])
        let poll = Task { try await page.told() }
        try await Task.sleep(for: .milliseconds(50))
        #expect(page.wire.handler.kernel.seats.count == 1)
        try await page.caller.create("a", in: Self.shelves)
        let told = try await poll.value
        #expect(told["aps"]["content-available"].integer == 1)
        let ck = told["ck"]
        #expect(ck["ce"].integer == 2 && ck["cid"].text == page.caller.container)
        #expect(ck["nid"].text?.utf8.count == 36 && ck["aux"] != nil)
        #expect(ck["ckuserid"].text?.hasPrefix("_") == true)
        #expect(ck["met"]["sid"].text == "all" && ck["met"]["dbs"].integer == 1)
        #expect(ck["met"]["zid"].text == "Shelves" && ck["p"] == nil)
        #expect(try await page.isQuiet())
        #expect(page.wire.handler.kernel.seats.count == 0)
    }

    @Test func `37, 40: two subscriptions are two notifications of one identity`() async throws {
        let page = try await Self.page()
        let info: JSON = [
            "alertLocalizationKey": "NEW_BOOK", "alertLocalizationArgs": ["title"],
            "additionalFields": ["title", "pages"], "soundName": "default", "category": "BOOK",
            "shouldBadge": true,
        ]
        try await Self.subscribe(page.caller, [Self.query("one", info), Self.query("two")])
        try await page.caller.create(
            "a", fields: ["title": ["value": "Sea Roads"], "pages": ["value": 312]],
            in: Self.shelves)
        let first = try await page.told()
        let second = try await page.told()
        #expect(first["ck"]["qry"]["sid"].text == "one")
        #expect(second["ck"]["qry"]["sid"].text == "two")
        #expect(first["ck"]["nid"] == second["ck"]["nid"])
        let query = first["ck"]["qry"]
        #expect(query["fo"].integer == 1 && query["rid"].text == "a")
        #expect(query["zid"].text == "Shelves" && query["dbs"].integer == 1)
        #expect(query["af"] == ["title": "Sea Roads", "pages": 312])
        let alert = first["aps"]["alert"]
        #expect(alert["loc-key"].text == "NEW_BOOK")
        #expect(alert["loc-args"].elements.map(\.text) == ["Sea Roads"])
        #expect(first["aps"]["sound"].text == "default" && first["aps"]["badge"].integer == 1)
        #expect(first["aps"]["category"].text == "BOOK")
        #expect(first["aps"]["content-available"] == nil)
        #expect(try await page.isQuiet())
    }

    @Test func `a badge counts up for a user and a device, and an app sets it back`() async throws {
        var page = try await Self.page()
        try await Self.subscribe(
            page.caller, [Self.query("one", ["shouldBadge": true]), Self.query("two")])
        for name in ["a", "b", "c"] { try await page.caller.create(name, in: Self.shelves) }
        var badges: [Int64?] = []
        for _ in 0..<6 { badges.append(try await page.told()["aps"]["badge"].integer) }
        #expect(badges == [1, nil, 2, nil, 3, nil], "\(badges)")
        // What was not taken counts once.
        try await page.caller.create("d", in: Self.shelves)
        _ = try await page.ask(isTaken: false)
        #expect(try await page.told()["aps"]["badge"].integer == 4)
        _ = try await page.told()
        let answer = try await page.caller.ask(
            "private/tokens/register",
            [
                "apnsEnvironment": "development", "apnsToken": .string(page.token), "badge": 0,
            ])
        #expect(answer["apnsToken"].text == page.token)
        try await page.caller.create("e", in: Self.shelves)
        #expect(try await page.told()["aps"]["badge"].integer == 1)
        // Another device has its own.
        try await page.create()
        try await page.caller.create("f", in: Self.shelves)
        #expect(try await page.told()["aps"]["badge"].integer == 1)
    }

    @Test func `a sound alone is not silent`() async throws {
        let page = try await Self.page()
        try await Self.subscribe(page.caller, [Self.query("q", ["soundName": "default"])])
        try await page.caller.create("a", in: Self.shelves)
        let told = try await page.told()
        #expect(told["aps"]["sound"].text == "default")
        #expect(told["aps"]["content-available"] == nil, "\(told)")
    }

    @Test func `39, P-15: what nobody polled for waits, and each is told once`() async throws {
        let page = try await Self.page()
        // The session that saves is the page's own: nothing in a request says so.
        try await Self.subscribe(page.caller, [Self.query("q")])
        for name in ["a", "b", "c"] { try await page.caller.create(name, in: Self.shelves) }
        var told: [String?] = []
        for _ in 0..<3 { told.append(try await page.told()["ck"]["qry"]["rid"].text) }
        #expect(told == ["a", "b", "c"])
        #expect(try await page.isQuiet())
    }

    @Test func `what a client did not take is told again, under the same identity`() async throws {
        let page = try await Self.page()
        try await Self.subscribe(page.caller, [Self.query("q")])
        try await page.caller.create("a", in: Self.shelves)
        let lost = try await page.ask(isTaken: false)
        let again = try await page.ask()
        #expect(lost.text == again.text)
        #expect(try await page.isQuiet())
    }

    @Test func `42: one that fires once does so once`() async throws {
        let page = try await Self.page()
        try await Self.subscribe(page.caller, [Self.query("q", once: true)])
        for name in ["a", "b"] { try await page.caller.create(name, in: Self.shelves) }
        #expect(try await page.told()["ck"]["qry"]["rid"].text == "a")
        #expect(try await page.isQuiet())
        let left = try await page.caller.ask("private/subscriptions/list", [:])
        #expect(left["subscriptions"].elements == [])
    }

    @Test func `36: tokens are made at both addresses, and registered in further containers`()
        async throws
    {
        var page = try await Self.page()
        try await page.create("public/tokens/create")
        let wire = page.wire
        let device = page.caller.target("tokens/create")
            .replacing("/database/1/", with: "/device/1/")
        let made = try await wire.send(
            WireRequest(
                method: "POST", target: device, headers: [],
                body: Array(#"{"apnsEnvironment":"production","clientId":"x"}"#.utf8)))
        #expect(made.status == 200 && made.json["apnsEnvironment"].text == "production")

        let other = Caller(wire: wire, container: try await wire.makeContainer())
        let answer = try await other.ask(
            "private/tokens/register", ["apnsToken": .string(page.token)])
        #expect(answer["apnsToken"].text == page.token)
        #expect(answer["webcourierURL"].text?.hasSuffix(page.poll) == true)
        try await other.makeZone("Shelves")
        for caller in [page.caller, other] {
            try await Self.subscribe(caller, [Self.query("q")])
            try await caller.create("a", in: Self.shelves)
        }
        let told = [try await page.told(), try await page.told()]
        #expect(
            Set(told.map { $0["ck"]["cid"].text }) == [page.caller.container, other.container])
        for bad in ["AAAA", String(repeating: "A", count: 43) + "=", page.token + "A"] {
            let refused = try await other.post(
                "private/tokens/register", ["apnsToken": .string(bad)])
            #expect(refused.status == 400, "\(refused)")
        }
    }

    @Test func `a token that another user registers is that user's`() async throws {
        let page = try await Self.page()
        try await Self.subscribe(page.caller, [Self.query("q")], in: "public")
        let other = page.caller.acting(as: .other("two"))
        _ = try await other.ask("private/tokens/register", ["apnsToken": .string(page.token)])
        try await Self.subscribe(other, [Self.query("theirs")], in: "public")
        try await page.caller.create("a", database: "public")
        #expect(try await page.told()["ck"]["qry"]["sid"].text == "theirs")
        #expect(try await page.isQuiet())
    }

    @Test func `a held poll tells nothing of a user whose token somebody else has taken over`()
        async throws
    {
        let page = try await Self.page()
        try await Self.subscribe(page.caller, [Self.query("q")], in: "public")
        let poll = Task { try await page.ask() }
        try await Task.sleep(for: .milliseconds(50))
        let other = page.caller.acting(as: .other("two"))
        _ = try await other.ask("private/tokens/register", ["apnsToken": .string(page.token)])
        try await page.caller.create("a", database: "public")
        try await Task.sleep(for: .milliseconds(200))
        poll.cancel()
        #expect(try await poll.value.text == "null\n")
    }

    @Test func `41: who may not read a record is not told of it`() async throws {
        let page = try await Self.page()
        var diary = Self.query("q")
        diary = diary.setting("query", ["recordType": "Diary"])
        try await Self.subscribe(page.caller, [diary], in: "public")
        let other = page.caller.acting(as: .other("two"))
        try await other.create("theirs", type: "Diary", database: "public")
        try await page.caller.create("mine", type: "Diary", database: "public")
        let told = try await page.told()
        #expect(told["ck"]["qry"]["rid"].text == "mine" && told["ck"]["qry"]["dbs"].integer == 0)
        #expect(try await page.isQuiet())
    }

    @Test func `of two polls of a token the older ends, and nothing is told twice`() async throws {
        let page = try await Self.page()
        try await Self.subscribe(page.caller, [Self.query("q")])
        let older = Task { try await page.ask() }
        try await Task.sleep(for: .milliseconds(50))
        let newer = Task { try await page.ask() }
        #expect(try await older.value.text == "null\n")
        try await page.caller.create("a", in: Self.shelves)
        #expect(try await newer.value.text.contains(#""rid":"a""#))
        #expect(try await page.isQuiet())
    }

    @Test func `a second handler over the same partitions tells what waits`() async throws {
        let page = try await Self.page()
        try await Self.subscribe(page.caller, [Self.query("q")])
        try await page.caller.create("a", in: Self.shelves)
        // A process that was killed leaves nothing but rows.
        var after = Page(InProcess(after: page.wire), page.caller)
        after.poll = page.poll
        #expect(try await after.told()["ck"]["qry"]["rid"].text == "a")
        #expect(try await after.isQuiet())
    }

    /// What ends a person's right to be told.
    enum Ending: CaseIterable {
        case signedOut, accountDisabled, restricted, containerDeleted, erased
    }

    @Test(arguments: Ending.allCases)
    func `P-14: nobody is told after a session, an account or a container has ended`(
        _ ending: Ending
    ) async throws {
        let town = Neighbourhood()
        _ = try await town.authenticator.registry.create(Neighbourhood.container, buckets: 1)
        _ = try await town.makeContainer()
        let api = try await town.apiToken()
        let ann = try await town.account("ann@example.org")
        let user = try await town.signIn(ann)
        func post(_ operation: String, _ body: JSON) async throws -> JSON {
            let answer = try await town.post(operation, body, api: api, user: user)
            try #require(answer.status == 200, "\(operation): \(answer)")
            return answer.json ?? .null
        }
        func save(_ name: String) async throws {
            _ = try await post(
                "private/records/modify",
                [
                    "operations": [
                        [
                            "operationType": "create",
                            "record": ["recordName": .string(name), "recordType": "Book"],
                        ]
                    ]
                ])
        }
        let made = try await post("private/tokens/create", ["apnsEnvironment": "production"])
        let url = try #require(made["webcourierURL"].text)
        let poll = String(try #require(url.split(separator: "?").last))
        _ = try await post(
            "private/subscriptions/modify",
            [
                "operations": [["operationType": "create", "subscription": Self.query("q")]]
            ])
        /// Nil: held, or refused.
        func told() async throws -> String? {
            let task = Task {
                let response = await town.handler.respond(
                    to: HTTPRequest(
                        head: RequestHead(method: "GET", path: "/aps", query: poll),
                        body: CollectedBody([]), peer: "test",
                        identity: RequestIdentity(high: 1, low: 2), patience: .held))
                guard case .stream(let stream, _) = response.body else { return nil as String? }
                let whole = try await stream.next() ?? []
                _ = try await stream.next()
                return String(decoding: whole, as: UTF8.self)
            }
            let patience = Task {
                try? await Task.sleep(for: .milliseconds(300))
                task.cancel()
            }
            defer { patience.cancel() }
            return try await task.value
        }
        try await save("a")
        #expect(try await told()?.contains(#""rid":"a""#) == true)
        try await save("b")
        switch ending {
        case .signedOut:
            let session = try #require(
                town.authenticator.session(user, in: Neighbourhood.container))
            try await town.accounts.closeSession(session.session, of: ann)
        case .accountDisabled: _ = try await town.accounts.disable(ann)
        case .restricted:
            try await town.access.changeUser(
                town.recordName(ann), account: ann, in: Neighbourhood.container
            ) { $0.isRestricted = true }
        case .containerDeleted:
            _ = try await town.authenticator.registry.beginErasure(of: Neighbourhood.container)
        case .erased:
            _ = try await UserArchive(town.service.directory).erase(ann, settling: .zero)
        }
        town.world.advance(by: .seconds(2))
        #expect(try await told() == nil)
    }

    @Test func `X-33: an archive lists subscriptions, and an erasure leaves none`() async throws {
        let town = Neighbourhood()
        _ = try await town.makeContainer()
        let api = try await town.apiToken()
        let ann = try await town.account("ann@example.org")
        let user = try await town.signIn(ann)
        for database in ["private", "public"] {
            let answer = try await town.post(
                "\(database)/subscriptions/modify",
                [
                    "operations": [
                        ["operationType": "create", "subscription": Self.query(database)]
                    ]
                ], api: api, user: user)
            #expect(answer.status == 200 && !answer.text.contains("serverErrorCode"), "\(answer)")
        }
        let archive = UserArchive(town.service.directory)
        let body = try #require(try await archive.export(ann, in: Neighbourhood.container))
        var text = Bytes()
        while let piece = try await body.next() { text += piece }
        for database in ["private", "public"] {
            let line =
                #"{"database":"\#(database)","subscription":{"subscriptionID":"\#(database)","#
            #expect(String(decoding: text, as: UTF8.self).contains(line))
        }
        _ = try await archive.erase(ann, settling: .zero)
        let left = try await town.router.read(
            SubscriptionsAsk(
                DatabaseID(container: Neighbourhood.container, scope: .public, owner: "")
            ) { _ in }.enveloped(
                as: Principal(kind: .user, userRecordName: town.recordName(ann))),
            at: .database(
                DatabaseID(container: Neighbourhood.container, scope: .public, owner: "")),
            deadline: town.world.now)
        #expect(try SubscriptionsAsk.answer(decoding: left.body).found == [])
    }

    @Test func `an unknown token is not answered at once, and a broken one neither`() async throws {
        var page = try await Self.page()
        for poll in ["tok=" + String(repeating: "0", count: 64), "tok=x", ""] {
            page.poll = poll
            let asked = page
            let task = Task { try await asked.ask() }
            try await Task.sleep(for: .milliseconds(20))
            task.cancel()
            #expect(try await task.value.status == 410)
        }
    }

    @Test func `P-19, 40: a payload that is too large is pruned on character borders`() throws {
        let long = String(repeating: "ä", count: 500)
        let content = """
            {"subscriptionType":"query","notificationInfo":{"alertBody":"\(long)",\
            "alertLaunchImage":"\(long)","title":"\(long)","subtitle":"\(long)",\
            "additionalFields":["title"]}}
            """
        let zone = ZoneID(name: "Shelves", owner: "_me")
        let stamp = ChangeStamp(milliseconds: 1, userRecordName: "_me", deviceID: "2")
        let record = Record(
            name: "a", type: "Book", zone: zone, tag: ChangeTag(3), created: stamp,
            modified: stamp, fields: [Field(name: "title", value: .scalar(.string(long)))])
        let container = ContainerReference(container: "iCloud.x", environment: .development)
        func payload(_ content: String) throws -> JSON {
            let bytes = PushPayload(
                container: container,
                database: DatabaseID(container: container, scope: .private, owner: "_me"),
                subscriber: "_me", nid: "n",
                hit: News.Hit(
                    subscription: Subscription(
                        "s", .query, predicate: RecordPredicate(recordType: "Book"),
                        reasons: .all, fields: ["title"], content: Bytes(content.utf8)),
                    isShared: false, event: .record(.updated, record, omitted: []))
            ).bytes()
            #expect(bytes.count <= 4_096)
            return try JSON(parsing: bytes)
        }
        let pruned = try payload(content)
        #expect(pruned["ck"]["p"].integer == 1)
        #expect(pruned["aps"]["alert"]["launch-image"] == nil)
        #expect(pruned["aps"]["alert"]["body"].text == long)
        #expect(pruned["ck"]["qry"]["af"]["title"].text == String(repeating: "ä", count: 64))
        let small = try payload(content.replacing(long, with: "x"))
        #expect(small["ck"]["p"] == nil && small["aps"]["alert"]["launch-image"].text == "x")
    }
}

/// Cannot say the layout of a container now and then.
private final class UnsteadyLayout: Authenticator {
    private let steady: LayoutAuthenticator
    /// How often it fails from now on.
    let failures = Mutex(0)

    init(_ steady: LayoutAuthenticator) { self.steady = steady }

    func needsBody(_ head: RequestHead) -> Bool { self.steady.needsBody(head) }

    func authenticate(_ request: PresentedRequest) async throws(AuthenticationRefusal)
        -> Authentication
    { try await self.steady.authenticate(request) }

    func refusalWithoutUser(_ request: PresentedRequest) async -> AuthenticationRefusal {
        await self.steady.refusalWithoutUser(request)
    }

    func layout(of container: ContainerReference) async throws -> ContainerLayout {
        let fails = self.failures.withLock { failures in
            defer { failures = max(0, failures - 1) }
            return failures > 0
        }
        if fails { throw RouteError.notExecuted(retryAfter: .seconds(1)) }
        return try await self.steady.layout(of: container)
    }
}
