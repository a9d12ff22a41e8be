import StratusCluster
import StratusContainers
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

/// Subscriptions, polls and devices where a database lies in parts: a public one in buckets of
/// records, or a private one in buckets of zones.
@Suite struct PartedPushTests {
    enum Layout: CaseIterable {
        case publicBuckets, zoneBuckets

        var scope: String { self == .publicBuckets ? "public" : "private" }
    }

    private static let count = 4

    /// A user of a container with a key for APNs, one device and one page that polls.
    private struct Stage {
        let town = Neighbourhood()
        let layout: Layout
        let api: String
        let user: String
        let owner: String
        let account: AccountID
        let keys: PushKeys
        var poll = ""

        var container: ContainerReference { Neighbourhood.container }
        var deadline: MonotonicTime { self.town.world.now + .seconds(5) }

        init(_ layout: Layout) async throws {
            self.layout = layout
            _ = try await self.town.authenticator.registry.create(
                Neighbourhood.container,
                buckets: layout == .publicBuckets ? PartedPushTests.count : 1,
                zoneBuckets: layout == .zoneBuckets ? PartedPushTests.count : 1)
            _ = try await self.town.makeContainer()
            self.keys = InProcess.pushKeys(self.town.router, self.town.world)
            _ = try await self.keys.add(
                team: "DEF123GHIJ", key: "ABC123DEFG", topics: ["org.a"], SigningKey.make(),
                to: Neighbourhood.container)
            self.api = try await self.town.apiToken()
            let ann = try await self.town.account("ann@example.org")
            self.user = try await self.town.signIn(ann)
            self.owner = self.town.recordName(ann)
            self.account = ann
            _ = try await self.post("tokens/register", ["apnsToken": .string(Self.device)])
            let made = try await self.post("tokens/create", ["apnsEnvironment": "production"])
            let url = try #require(made["webcourierURL"].text)
            self.poll = String(try #require(url.split(separator: "?").last))
            guard layout == .zoneBuckets else { return }
            _ = try await self.post(
                "zones/modify",
                [
                    "operations": .array(
                        (0..<12).map {
                            [
                                "operationType": "create",
                                "zone": ["zoneID": ["zoneName": .string("z\($0)")]],
                            ]
                        })
                ])
        }

        private static let device = String(repeating: "ab", count: 32)

        func post(_ operation: String, _ body: JSON) async throws -> JSON {
            let answer = try await self.town.post(
                "\(self.layout.scope)/\(operation)", body, api: self.api, user: self.user)
            try #require(answer.status == 200, "\(operation): \(answer)")
            return answer.json ?? .null
        }

        /// Changes record `r5`: in a private database that of zone `z5`. Records, or zones, of
        /// different numbers lie in different parts.
        func change(_ number: Int, _ kind: JSON = "forceReplace") async throws {
            var body: JSON = [
                "operations": [
                    [
                        "operationType": kind,
                        "record": [
                            "recordName": .string("r\(number)"), "recordType": "Book",
                        ],
                    ]
                ]
            ]
            if self.layout == .zoneBuckets {
                body = body.setting("zoneID", ["zoneName": .string("z\(number)")])
            }
            let answer = try await self.post("records/modify", body)
            #expect(answer["records"][0]["serverErrorCode"] == nil, "\(answer)")
        }

        func subscribe(
            _ id: String, _ kind: JSON = "create", once: Bool = false, on reasons: JSON = ["create"]
        ) async throws -> JSON {
            let answer = try await self.post(
                "subscriptions/modify",
                [
                    "operations": [
                        [
                            "operationType": kind,
                            "subscription": [
                                "subscriptionID": .string(id), "subscriptionType": "query",
                                "query": ["recordType": "Book"], "firesOn": reasons,
                                "firesOnce": .bool(once),
                            ],
                        ]
                    ]
                ])
            return try #require(answer["subscriptions"][0])
        }

        // MARK: Parts

        var parts: [DatabaseID] {
            switch self.layout {
            case .publicBuckets:
                PublicDatabase(of: self.container, bucketCount: PartedPushTests.count).parts
            case .zoneBuckets:
                PrivateDatabase(
                    of: self.owner, in: self.container, bucketCount: PartedPushTests.count
                ).parts
            }
        }

        /// The part that a change of this number is in.
        func part(_ number: Int) -> DatabaseID {
            switch self.layout {
            case .publicBuckets:
                PublicDatabase(of: self.container, bucketCount: PartedPushTests.count)
                    .part(of: "r\(number)")
            case .zoneBuckets:
                PrivateDatabase(
                    of: self.owner, in: self.container, bucketCount: PartedPushTests.count
                ).part(of: "z\(number)")
            }
        }

        /// Two numbers whose changes are in different parts.
        func pair() throws -> (Int, Int) {
            let first = self.part(0)
            return (0, try #require((1..<12).first { self.part($0) != first }))
        }

        func holders(_ id: String) async throws -> [DatabaseID] {
            var found: [DatabaseID] = []
            for part in self.parts {
                let query = SubscriptionsAsk(part) { $0.names = [id] }.enveloped(
                    as: Principal(kind: .user, userRecordName: self.owner))
                let answer = try await self.town.router.read(
                    query, at: .database(part), deadline: self.deadline)
                if try SubscriptionsAsk.answer(decoding: answer.body).found.first ?? nil != nil {
                    found.append(part)
                }
            }
            return found
        }

        // MARK: Being told

        /// What a poll is told. Nil: nothing soon.
        func told() async throws -> JSON? {
            let (handler, poll) = (self.town.handler, self.poll)
            let task = Task {
                let response = await handler.respond(
                    to: HTTPRequest(
                        head: RequestHead(method: "GET", path: "/aps", query: poll),
                        body: CollectedBody([]), peer: "test",
                        identity: RequestIdentity(high: 1, low: 2), patience: .held))
                guard case .stream(let stream, _) = response.body else { return nil as Bytes? }
                let whole = try await stream.next() ?? []
                _ = try await stream.next()
                return whole
            }
            let patience = Task {
                try? await Task.sleep(for: .milliseconds(300))
                task.cancel()
            }
            defer { patience.cancel() }
            return try await task.value.map { try JSON(parsing: $0) }
        }

        var desk: PushDesk {
            PushDesk(
                partitions: PartitionClient(self.town.router, in: self.town.world),
                tokenKey: Bytes(repeating: 9, count: 32), authenticator: self.town.authenticator,
                keys: self.keys,
                settings: PushDesk.Settings(
                    productionURL: "https://a.example.org",
                    developmentURL: "https://b.example.org", allowsPrivate: false))
        }

        /// The device's next push for the events of one part. Nil: nothing.
        func push(in part: DatabaseID) async throws -> PreparedPush? {
            let name = DeviceName(
                .apns(token: Bytes(repeating: 0xAB, count: 32)), self.town.handler.kernel.tokens)
            let target = PushTarget(
                group: GroupID(1), database: part, subscriber: self.owner, token: name.bytes)
            let look = try await self.desk.look(for: target, after: nil, until: self.deadline)
            guard case .push(let push) = look else { return nil }
            return push
        }
    }

    @Test(arguments: Layout.allCases)
    func `changes of every part are told, each under a name of its own`(_ layout: Layout)
        async throws
    {
        let stage = try await Stage(layout)
        try await stage.change(11)
        let saved = try await stage.subscribe("q", on: ["create", "update", "delete"])
        #expect(saved["subscriptionID"] == "q", "\(saved)")
        #expect(try await stage.holders("q") == stage.parts)
        let listed = try await stage.post("subscriptions/list", [:])["subscriptions"].elements
        #expect(listed.map { $0["subscriptionID"] } == ["q"])
        for number in 0..<12 { try await stage.change(number) }
        #expect(Set((0..<12).map { stage.part($0) }).count > 2)
        var (names, identities): ([String], Set<String>) = ([], [])
        for _ in 0..<12 {
            let told = try #require(try await stage.told())
            names.append(try #require(told["ck"]["qry"]["rid"].text))
            identities.insert(try #require(told["ck"]["nid"].text))
            #expect(told["ck"]["qry"]["dbs"] == (layout == .publicBuckets ? 0 : 1), "\(told)")
        }
        #expect(names.sorted() == (0..<12).map { "r\($0)" }.sorted())
        // Parts count their tags each for themselves.
        #expect(identities.count == 12)
        #expect(try await stage.told() == nil)
        // Devices are told by each part.
        for part in Set((0..<12).map { stage.part($0) }) {
            #expect(try await stage.push(in: part) != nil, "\(part)")
        }
        // Other content takes its place everywhere, and a deletion too.
        _ = try await stage.subscribe("q", "update", on: ["delete"])
        try await stage.change(3)
        #expect(try await stage.told() == nil)
        let gone = try await stage.subscribe("q", "delete")
        #expect(gone["deleted"] == true, "\(gone)")
        #expect(try await stage.holders("q") == [])
        let again = try await stage.subscribe("q", "update")
        #expect(again["serverErrorCode"] == "NOT_FOUND")
    }

    @Test(arguments: Layout.allCases)
    func `42: one that fires once for a poll leaves no copy in another part`(_ layout: Layout)
        async throws
    {
        let stage = try await Stage(layout)
        try await stage.change(11)
        _ = try await stage.subscribe("q", once: true, on: ["create", "update"])
        let (one, two) = try stage.pair()
        for number in [one, two] { try await stage.change(number) }
        #expect(try await stage.told() != nil)
        #expect(try await stage.holders("q") == [])
        #expect(try await stage.told() == nil)
    }

    @Test(arguments: Layout.allCases)
    func `42: one that fires once for a device leaves no copy in another part`(_ layout: Layout)
        async throws
    {
        let stage = try await Stage(layout)
        try await stage.change(11)
        _ = try await stage.subscribe("q", once: true, on: ["create", "update"])
        let (one, two) = try stage.pair()
        for number in [one, two] { try await stage.change(number) }
        let push = try #require(try await stage.push(in: stage.part(one)))
        // Nothing is deleted before the provider's verdict.
        #expect(try await stage.holders("q").count == stage.parts.count)
        try await stage.desk.settle(push, until: stage.deadline)
        #expect(try await stage.holders("q") == [])
        #expect(try await stage.push(in: stage.part(two)) == nil)
    }

    @Test func `a copy that was replaced since it fired stays`() async throws {
        let stage = try await Stage(.publicBuckets)
        try await stage.change(11)
        _ = try await stage.subscribe("q", once: true, on: ["create", "update"])
        let (one, two) = try stage.pair()
        try await stage.change(one)
        let push = try #require(try await stage.push(in: stage.part(one)))
        _ = try await stage.subscribe("q", on: ["create", "update"])
        try await stage.desk.settle(push, until: stage.deadline)
        #expect(try await stage.holders("q") == stage.parts)
        try await stage.change(two)
        #expect(try await stage.push(in: stage.part(two)) != nil)
    }

    @Test func `a person's archive and erasure go over every bucket of the public database`()
        async throws
    {
        let stage = try await Stage(.publicBuckets)
        try await stage.change(11)
        _ = try await stage.subscribe("q")
        let directory = stage.town.service.directory
        let archive = try #require(
            try await UserArchive(directory).export(stage.account, in: stage.container))
        var lines = 0
        while let piece = try await archive.next() {
            lines += String(decoding: piece, as: UTF8.self).split(separator: "\n")
                .count { $0.contains("\"subscriptionType\"") }
        }
        #expect(lines == 1, "each subscription is listed once")
        _ = try await UserArchive(directory).erase(stage.account, settling: .zero)
        #expect(try await stage.holders("q") == [])
    }
}
