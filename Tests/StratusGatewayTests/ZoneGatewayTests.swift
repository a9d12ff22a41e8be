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

/// A gateway's operations on a private database whose custom zones lie in four buckets.
@Suite struct ZoneGatewayTests {
    private static let count = 4
    private static let api = String(repeating: "ab", count: 32)
    private static let user = "stratus-user-ann"

    private func town(
        _ limits: Limits = Limits(), zoneBuckets: Int = Self.count
    ) async throws -> Neighbourhood {
        let town = Neighbourhood(isOpen: true, requests: limits)
        _ = try await town.authenticator.registry.create(
            Neighbourhood.container, zoneBuckets: zoneBuckets)
        _ = try await town.makeContainer()
        return town
    }

    private func ask(
        _ town: Neighbourhood, _ operation: String, _ body: JSON = [:]
    ) async throws -> JSON {
        let answer = try await town.post(
            "private/" + operation, body, api: Self.api, user: Self.user)
        try #require(answer.status == 200, "\(operation): \(answer)")
        return try #require(answer.json)
    }

    private func database(_ town: Neighbourhood) async throws -> PrivateDatabase {
        let caller = try await town.post(
            "public/users/caller", api: Self.api, user: Self.user)
        return PrivateDatabase(
            of: try #require(caller.json["userRecordName"].text), in: Neighbourhood.container,
            bucketCount: Self.count)
    }

    private func zones(
        _ town: Neighbourhood, _ kind: JSON, _ names: [String]
    ) async throws -> [JSON] {
        try await self.ask(
            town, "zones/modify",
            [
                "operations": .array(
                    names.map {
                        [
                            "operationType": kind,
                            "zone": ["zoneID": ["zoneName": .string($0)]],
                        ]
                    })
            ])["zones"].elements
    }

    private func save(
        _ town: Neighbourhood, _ names: [String], in zone: String, _ fields: JSON = [:]
    ) async throws -> [JSON] {
        try await self.ask(
            town, "records/modify",
            [
                "zoneID": ["zoneName": .string(zone)], "atomic": false,
                "operations": .array(
                    names.map {
                        [
                            "operationType": "forceUpdate",
                            "record": [
                                "recordName": .string($0), "recordType": "Book",
                                "fields": fields,
                            ],
                        ]
                    }),
            ])["records"].elements
    }

    private func names(_ zones: JSON?) -> [String] {
        zones.elements.map { $0["zoneID"]["zoneName"].text ?? "?" }
    }

    private func isWell(_ items: [JSON]) -> Bool {
        items.allSatisfy { $0["serverErrorCode"] == nil }
    }

    private static let twelve = (0..<12).map { "Zone\($0)" }

    @Test func `zones lie where their names say, and the home knows of each bucket first`()
        async throws
    {
        let town = try await self.town()
        let database = try await self.database(town)
        let made = try await self.zones(town, "create", Self.twelve)
        #expect(self.isWell(made) && made.count == 12)
        #expect(made.map { $0["zoneID"]["zoneName"].text } == Self.twelve)
        var mask = BucketMask()
        for name in Self.twelve {
            let number = try #require(database.number(of: name))
            mask = mask.union(BucketMask(of: [number]))
            for part in database.parts {
                let answer = try await town.router.read(
                    RecordQuery(
                        principal: Principal(kind: .system), .zones(part, names: [name])
                    ).enveloped(), at: .database(part), deadline: town.world.now)
                let isThere =
                    try RecordAnswer(decoding: answer.body) != .zones([.refused(.notFound)])
                #expect(isThere == (part == database.part(number)), "\(name) in \(part)")
            }
        }
        let ask = BucketsAsk(database: database.home, count: Self.count)
        let answer = try await town.router.read(
            RecordQuery(principal: Principal(kind: .system), .buckets(ask)).enveloped(),
            at: .database(database.home), deadline: town.world.now)
        #expect(
            try RecordAnswer(decoding: answer.body)
                == .buckets(BucketsAnswer(mask: mask, zone: nil)))
        #expect(
            self.names(try await self.ask(town, "zones/list")["zones"])
                == ["_defaultZone"] + Self.twelve.sorted())
    }

    @Test func `the bit comes before the zone, and no zone is made without it`() async throws {
        let town = try await self.town()
        let database = try await self.database(town)
        town.router.away.withLock { _ = $0.insert(.database(database.home)) }
        let refused = try await self.zones(town, "create", ["Zone1"])
        #expect(refused[0]["serverErrorCode"] == "TRY_AGAIN_LATER", "\(refused)")
        town.router.away.withLock { $0 = [] }
        #expect(self.names(try await self.ask(town, "zones/list")["zones"]) == ["_defaultZone"])
        #expect(self.isWell(try await self.zones(town, "create", ["Zone1"])))
        // A bucket that is known to be in use needs no home.
        town.router.away.withLock { _ = $0.insert(.database(database.home)) }
        let other = try #require(
            (2...).lazy.map { "Zone\($0)" }.first {
                database.number(of: $0) == database.number(of: "Zone1")
            })
        #expect(self.isWell(try await self.zones(town, "create", [other])))
    }

    @Test func `a part that cannot be reached fails its own entries and no others`() async throws {
        let town = try await self.town()
        let database = try await self.database(town)
        #expect(self.isWell(try await self.zones(town, "create", Self.twelve)))
        let away = database.part(of: Self.twelve[0])
        town.router.away.withLock { _ = $0.insert(.database(away)) }
        func isAway(_ name: String) -> Bool { database.part(of: name) == away }
        let asked: JSON = [
            "zones": .array(Self.twelve.map { ["zoneName": .string($0)] })
        ]
        let found = try await self.ask(town, "zones/lookup", asked)["zones"].elements
        let deleted = try await self.zones(town, "delete", Self.twelve)
        for (position, name) in Self.twelve.enumerated() {
            let error: JSON? = isAway(name) ? "TRY_AGAIN_LATER" : nil
            #expect(found[position]["serverErrorCode"] == error, "\(name)")
            #expect(deleted[position]["serverErrorCode"] == error, "\(name)")
        }
        // The whole needs every part.
        for operation in ["zones/list", "changes/database"] {
            let answer = try await town.post(
                "private/" + operation, api: Self.api, user: Self.user)
            #expect(answer.status == 503, "\(operation): \(answer)")
        }
        town.router.away.withLock { $0 = [] }
        #expect(
            self.names(try await self.ask(town, "zones/list")["zones"])
                == ["_defaultZone"] + Self.twelve.filter(isAway).sorted())
    }

    @Test(arguments: [1, 2, 5, 200])
    func `whoever saves anywhere and then syncs sees it, page by page`(limit: Int) async throws {
        let town = try await self.town()
        #expect(self.isWell(try await self.zones(town, "create", Self.twelve)))
        // Another gateway, which knows of nothing.
        let other = Gateway(
            InProcess.kernel(town.router, town.world, authenticator: town.authenticator),
            GatewayNeeds(people: town.service))
        func sync(_ token: JSON?) async throws -> (names: [String], deleted: [String], JSON) {
            var (found, deleted, token) = ([String](), [String](), token)
            for _ in 0..<50 {
                var body: JSON = ["resultsLimit": .number("\(limit)")]
                if let token { body = body.setting("syncToken", token) }
                let head = RequestHead(
                    method: "POST", path: town.path("private/changes/database"),
                    query: "ckAPIToken=\(Self.api)&ckWebAuthToken=\(Self.user)",
                    headers: HeaderFields([]))
                let response = await other.respond(
                    to: HTTPRequest(
                        head: head, body: CollectedBody(Array(body.description.utf8)),
                        peer: "192.0.2.7", identity: town.world.drawIdentity()))
                guard case .bytes(let bytes) = response.body else { throw Problem(text: "none") }
                let page: JSON? = try JSON(parsing: bytes)
                try #require(response.status == 200, "\(page ?? .null)")
                let zones = page["zones"].elements
                #expect(zones.count <= limit)
                for zone in zones {
                    let name = zone["zoneID"]["zoneName"].text ?? "?"
                    if zone["deleted"] == true { deleted.append(name) } else { found.append(name) }
                }
                token = page["syncToken"]
                if page["moreComing"] == false {
                    return (found.sorted(), deleted.sorted(), try #require(page["syncToken"]))
                }
            }
            throw Problem(text: "the walk does not end")
        }
        let first = try await sync(nil)
        #expect(first.names == Self.twelve.sorted() && first.deleted == [])
        // At rest a token stands still.
        let rest = try await sync(first.2)
        #expect(rest.names == [] && rest.2 == first.2)
        for name in ["Zone3", "Zone7"] {
            #expect(self.isWell(try await self.save(town, ["a"], in: name)))
        }
        #expect(self.isWell(try await self.zones(town, "delete", ["Zone5"])))
        #expect(self.isWell(try await self.zones(town, "create", ["Another"])))
        let second = try await sync(first.2)
        #expect(second.names == ["Another", "Zone3", "Zone7"] && second.deleted == ["Zone5"])
        let end = try await sync("")
        #expect(end.names == [] && end.2 == second.2)
    }

    @Test func `a token of another layout is answered like an expired one`() async throws {
        let town = try await self.town()
        #expect(self.isWell(try await self.zones(town, "create", Self.twelve)))
        let token = try #require(try await self.ask(town, "changes/database")["syncToken"].text)
        let whole = try await self.town(zoneBuckets: 1)
        let wide = try await self.town(zoneBuckets: 8)
        #expect(self.isWell(try await self.zones(whole, "create", ["A"])))
        let old = try #require(try await self.ask(whole, "changes/database")["syncToken"].text)
        for (place, text) in [(whole, token), (wide, token), (town, old)] {
            let answer = try await place.post(
                "private/changes/database", ["syncToken": .string(text)], api: Self.api,
                user: Self.user)
            #expect(answer.status == 400, "\(answer)")
            #expect(answer.json["serverErrorCode"] == "BAD_REQUEST")
        }
    }

    @Test(arguments: [1, 3, 200])
    func `a query over all zones finds each record once, in its order`(limit: Int) async throws {
        let town = try await self.town()
        #expect(self.isWell(try await self.zones(town, "create", Self.twelve)))
        // The same names in every zone, and few values: ties after keys and after names.
        var expected: [String] = []
        for (position, zone) in (Self.twelve + ["_defaultZone"]).enumerated() {
            for name in ["a", "b", "c"] {
                let pages = (position + (name == "a" ? 0 : 1)) % 3
                #expect(
                    self.isWell(
                        try await self.save(
                            town, [name], in: zone, ["pages": ["value": .number("\(pages)")]])))
                expected.append("\(pages) \(name) \(zone)")
            }
        }
        for ascending in [true, false] {
            for isSorted in [true, false] {
                var query: JSON = ["recordType": "Book"]
                if isSorted {
                    query = query.setting(
                        "sortBy", [["fieldName": "pages", "ascending": .bool(ascending)]])
                }
                var (found, marker): ([String], JSON?) = ([], nil)
                for _ in 0..<100 {
                    var body: JSON = [
                        "query": query, "zoneWide": true, "resultsLimit": .number("\(limit)"),
                    ]
                    if let marker { body = body.setting("continuationMarker", marker) }
                    let page = try await self.ask(town, "records/query", body)
                    for record in page["records"].elements {
                        let pages = record["fields"]["pages"]["value"] ?? .null
                        let zone = record["zoneID"]["zoneName"].text ?? "_defaultZone"
                        found.append("\(pages) \(record["recordName"].text ?? "") \(zone)")
                    }
                    marker = page["continuationMarker"]
                    if marker == nil || page["continuationMarker"].text == nil { break }
                }
                #expect(found.sorted() == expected.sorted(), "\(isSorted) \(ascending)")
                if isSorted {
                    let keys = found.map { $0.prefix(3) }
                    let sorted = expected.map { $0.prefix(3) }.sorted {
                        ascending ? $0 < $1 : $0 > $1
                    }
                    #expect(keys.map(\.first) == sorted.map(\.first))
                }
            }
        }
    }

    @Test func `usage is the sum of the parts, and one quota holds for all`() async throws {
        var limits = Limits()
        limits.privateDatabaseSizeMax = .kibibytes(40)
        let town = try await self.town(limits)
        #expect(self.isWell(try await self.zones(town, "create", Self.twelve)))
        let text = String(repeating: "x", count: 4_000)
        var savedCount = 0
        for zone in Self.twelve {
            town.world.advance(by: .seconds(2))
            let saved = try await self.save(
                town, ["a"], in: zone, ["title": ["value": .string(text)]])
            if self.isWell(saved) {
                savedCount += 1
            } else {
                #expect(saved[0]["serverErrorCode"] == "QUOTA_EXCEEDED", "\(saved)")
                #expect(saved[0]["reason"].text?.contains("40960") == true, "\(saved)")
            }
        }
        #expect(savedCount == 9 || savedCount == 10, "\(savedCount)")
        let usage = try await self.ask(town, "usage")
        #expect(usage["zones"] == 12 && usage["records"] == .number("\(savedCount)"))
    }

    // MARK: Subscriptions

    private func subscribe(
        _ town: Neighbourhood, _ kind: JSON, _ subscription: JSON
    ) async throws -> JSON {
        let answer = try await self.ask(
            town, "subscriptions/modify",
            ["operations": [["operationType": kind, "subscription": subscription]]])
        return try #require(answer["subscriptions"][0])
    }

    private func holders(
        _ id: String, _ town: Neighbourhood, _ database: PrivateDatabase
    ) async throws -> [Int?] {
        var found: [Int?] = []
        for part in database.parts {
            let owner = Principal(kind: .user, userRecordName: database.home.owner)
            let answer = try await town.router.read(
                SubscriptionsAsk(part) { $0.names = [id] }.enveloped(as: owner),
                at: .database(part), deadline: town.world.now)
            if try SubscriptionsAsk.answer(decoding: answer.body).found.first ?? nil != nil {
                found.append(part.bucket.map { Int($0.number) })
            }
        }
        return found
    }

    @Test func `a subscription is where the changes are that it is told of`() async throws {
        let town = try await self.town()
        let database = try await self.database(town)
        #expect(self.isWell(try await self.zones(town, "create", Self.twelve)))
        func zone(_ name: JSON) -> JSON {
            ["subscriptionID": "s", "subscriptionType": "zone", "zoneID": ["zoneName": name]]
        }
        let made = try await self.subscribe(town, "create", zone("Zone1"))
        #expect(made["subscriptionID"] == "s", "\(made)")
        #expect(try await self.holders("s", town, database) == [database.number(of: "Zone1")])
        // Another zone, or all of them.
        let second = try #require(
            Self.twelve.first { database.number(of: $0) != database.number(of: "Zone1") })
        _ = try await self.subscribe(town, "update", zone(.string(second)))
        #expect(try await self.holders("s", town, database) == [database.number(of: second)])
        let all: JSON = ["subscriptionID": "s", "subscriptionType": "database"]
        _ = try await self.subscribe(town, "create", all)
        #expect(try await self.holders("s", town, database) == [nil, 0, 1, 2, 3])
        let listed = try await self.ask(town, "subscriptions/list")["subscriptions"].elements
        #expect(listed.map { $0["subscriptionType"] } == ["database"])
        let missing = try await self.subscribe(town, "create", zone("Nowhere"))
        #expect(missing["serverErrorCode"] == "ZONE_NOT_FOUND", "\(missing)")
        #expect(try await self.holders("s", town, database).count == 5)
        let gone = try await self.subscribe(town, "delete", ["subscriptionID": "s"])
        #expect(gone["deleted"] == true, "\(gone)")
        #expect(try await self.holders("s", town, database) == [])
        let again = try await self.subscribe(town, "delete", ["subscriptionID": "s"])
        #expect(again["serverErrorCode"] == "NOT_FOUND")
    }

    // MARK: The whole

    @Test func `a person's archive and erasure go over every part`() async throws {
        let town = try await self.town()
        let ann = try await town.account("ann@example.org")
        let token = try await town.signIn(ann)
        let name = town.recordName(ann)
        let answer = try await town.post(
            "private/zones/modify",
            [
                "operations": .array(
                    Self.twelve.map {
                        [
                            "operationType": "create",
                            "zone": ["zoneID": ["zoneName": .string($0)]],
                        ]
                    })
            ], api: try await town.apiToken(), user: token)
        #expect(self.isWell(answer.json["zones"].elements), "\(answer)")
        let archive = try #require(
            try await UserArchive(town.service.directory).export(ann, in: Neighbourhood.container))
        while try await archive.next() != nil {}
        #expect(
            try await ContainerUsage(town.service.directory).page(
                of: Neighbourhood.container, after: nil
            ).databases.first { $0.owner == name }?.zoneCount == 12)
        let receipt = try #require(
            try await UserArchive(town.service.directory).erase(ann, settling: .zero))
        #expect(receipt.zoneCount == 12)
        let own = PrivateDatabase(of: name, in: Neighbourhood.container, bucketCount: Self.count)
        for part in own.parts {
            let use = try await town.router.read(
                RecordQuery(principal: Principal(kind: .system), .use(part)).enveloped(),
                at: .database(part), deadline: town.world.now)
            #expect(
                try RecordAnswer(decoding: use.body)
                    == .use(.none, zoneCount: 0, assets: .none), "\(part)")
        }
    }

    /// How a container loses what it holds.
    enum Removal: CaseIterable { case reset, deletion }

    @Test(arguments: Removal.allCases)
    func `nothing is left in any part, also where one cannot be reached at first`(
        removal: Removal
    ) async throws {
        let town = try await self.town()
        let container = Neighbourhood.container
        let registry = town.authenticator.registry
        let ann = try await town.account("ann@example.org")
        let name = town.recordName(ann)
        func make(_ names: [String], savesRecords: Bool) async throws -> JSON? {
            let (api, token) = (try await town.apiToken(), try await town.signIn(ann))
            let answer = try await town.post(
                "private/zones/modify",
                [
                    "operations": .array(
                        names.map {
                            [
                                "operationType": "create",
                                "zone": ["zoneID": ["zoneName": .string($0)]],
                            ]
                        })
                ], api: api, user: token)
            try #require(self.isWell(answer.json["zones"].elements), "\(answer)")
            for zone in names where savesRecords {
                let saved = try await town.post(
                    "private/records/modify",
                    [
                        "zoneID": ["zoneName": .string(zone)],
                        "operations": [Operation.create("r", ["title": ["value": "x"]])],
                    ], api: api, user: token)
                try #require(self.isWell(saved.json["records"].elements), "\(saved)")
            }
            return try await town.post("private/zones/list", api: api, user: token).json
        }
        #expect(self.names(try await make(Self.twelve, savesRecords: true)["zones"]).count == 13)
        let own = PrivateDatabase(of: name, in: container, bucketCount: Self.count)
        func step() async throws -> RemovalProgress? {
            switch removal {
            case .reset:
                try await EnvironmentReset(town.service.directory, settling: .zero).step(container)
            case .deletion:
                try await ContainerErasure(town.service.directory, settling: .zero).step(container)
            }
        }
        switch removal {
        case .reset: _ = try await registry.beginReset(of: container)
        case .deletion: _ = try await registry.beginErasure(of: container)
        }
        let middle = own.parts[2]
        town.router.away.withLock { _ = $0.insert(.database(middle)) }
        await #expect(throws: (any Error).self) {
            for _ in 0..<100 { _ = try await step() }
        }
        town.router.away.withLock { $0 = [] }
        // The home says which buckets there are: it goes last.
        let home = try await town.router.read(
            RecordQuery(
                principal: Principal(kind: .system),
                .buckets(BucketsAsk(database: own.home, count: Self.count))
            ).enveloped(), at: .database(own.home), deadline: town.world.now)
        guard case .buckets(let buckets) = try RecordAnswer(decoding: home.body) else {
            Issue.record("\(home)")
            return
        }
        #expect(buckets.mask != BucketMask())
        var pieces = 0
        while try await step()?.isDone == false {
            pieces += 1
            try #require(pieces < 100)
        }
        for part in own.parts {
            let use = try await town.router.read(
                RecordQuery(principal: Principal(kind: .system), .use(part)).enveloped(),
                at: .database(part), deadline: town.world.now)
            #expect(
                try RecordAnswer(decoding: use.body)
                    == .use(.none, zoneCount: 0, assets: .none), "\(part)")
        }
        // It is used again: after a reset without its types, after a deletion with other buckets.
        town.authenticator.forget()
        town.world.advance(by: .seconds(2))
        if removal == .deletion {
            _ = try await registry.create(container, zoneBuckets: 8)
            _ = try await town.makeContainer()
        }
        let again = try await make(["Zone3"], savesRecords: removal == .deletion)
        #expect(self.names(again["zones"]) == ["_defaultZone", "Zone3"])
    }

    @Test func `places of a database and of a zone`() async throws {
        let town = try await self.town()
        let database = try await self.database(town)
        #expect(self.isWell(try await self.zones(town, "create", ["Zone1"])))
        let places = DatabasePlaces(town.service.directory)
        let owner = database.home.owner
        let all = try #require(
            try await places.places(of: owner, in: Neighbourhood.container, zone: nil))
        #expect(all.map(\.bucket) == [nil, 0, 1, 2, 3])
        #expect(all.filter(\.isInUse).map(\.bucket) == [nil, database.number(of: "Zone1")])
        let one = try #require(
            try await places.places(of: owner, in: Neighbourhood.container, zone: "Zone1"))
        #expect(one.map(\.bucket) == [database.number(of: "Zone1")])
        #expect(try await places.places(of: owner, in: Neighbourhood.production, zone: nil) == nil)
    }
}
