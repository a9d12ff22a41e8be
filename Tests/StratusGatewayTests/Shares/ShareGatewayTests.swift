import StratusCluster
import StratusDoubles
import StratusGateway
import StratusIdentity
import StratusModel
import StratusRuntime
import Synchronization
import Testing

@testable import WireScenarios

/// What conversations cannot show of shares: partitions that are away, owners whose account is not
/// active, rates, and what becomes of tokens.
@Suite struct ShareGatewayTests {
    private static func shelves(_ wire: InProcess) async throws -> SharedShelves {
        try await SharedShelves(
            Caller(wire: wire, container: try await wire.makeContainer()))
    }

    private static func home(_ name: String, _ shelves: SharedShelves) -> ShardKey {
        .database(
            DatabaseID(
                container: ContainerReference(
                    container: shelves.owner.container, environment: .development),
                scope: .private, owner: name))
    }

    // MARK: Away

    @Test func `an accept whose list cannot be written says so, and is repeated`() async throws {
        let wire = InProcess()
        let shelves = try await Self.shelves(wire)
        let share = try await shelves.share()
        let home = Self.home(shelves.friendName, shelves)
        wire.router.away.withLock { _ = $0.insert(home) }
        let answer = try await shelves.resolve(share, as: shelves.friend, "accept")
        let item = answer.json["results"][0]
        #expect(answer.status == 200 && item["serverErrorCode"] == "TRY_AGAIN_LATER", "\(answer)")
        #expect(item["shortGUID"]["value"] == share["shortGUID"], "\(answer)")
        wire.router.away.withLock { _ = $0.remove(home) }
        try await shelves.accept(share)
        #expect(try await SharedShelves.list(shelves.friend).count == 1)
    }

    @Test func `a zone whose partition is away stays in lists, and is no deleted one`() async throws
    {
        let wire = InProcess()
        let shelves = try await Self.shelves(wire)
        try await shelves.accept(try await shelves.share())
        let friend = shelves.friend
        let token = try await friend.ask("shared/changes/database", [:])["syncToken"] ?? .null
        try await shelves.owner.create("c", in: shelves.zone)
        let home = Self.home(shelves.ownerName, shelves)
        wire.router.away.withLock { _ = $0.insert(home) }
        #expect(try await SharedShelves.list(friend).count == 1)
        let missed = try await friend.ask("shared/changes/database", ["syncToken": token])
        #expect(missed["zones"] == [], "\(missed)")
        expectFailure(
            try await friend.post(
                "shared/records/lookup", ["zoneID": shelves.theirs, "records": ["a"]]),
            503, "TRY_AGAIN_LATER")
        wire.router.away.withLock { _ = $0.remove(home) }
        // What was passed over is told once the partition is there again.
        let told = try await friend.ask(
            "shared/changes/database", ["syncToken": missed["syncToken"] ?? .null])
        #expect(told["zones"].elements.count == 1 && told["zones"][0]["deleted"] == false)
        let page = try await friend.ask(
            "shared/changes/zone",
            [
                "zones": [
                    [
                        "zoneID": shelves.theirs,
                        "syncToken": told["zones"][0]["syncToken"] ?? .null,
                    ]
                ]
            ])
        #expect(
            page["zones"][0]["records"].elements.map { $0["recordName"].text } == ["c"],
            "nothing but what is new: \(page)")
    }

    @Test func `a share that ends while it is read is not there`() async throws {
        let wire = InProcess()
        let shelves = try await Self.shelves(wire)
        let home = Self.home(shelves.ownerName, shelves)
        /// The share ends once its record was read, before its people are.
        func endAfterTheNextRead() {
            wire.router.afterRead.withLock {
                $0 = { key in
                    guard key == home else { return }
                    wire.router.afterRead.withLock { $0 = nil }
                    let deletion = [Operation.of("delete", SharedShelves.name)]
                    _ = try? await shelves.owner.modify(deletion, in: shelves.zone)
                }
            }
        }
        try await shelves.share()
        endAfterTheNextRead()
        let found = try await shelves.owner.lookUp([SharedShelves.name, "a"], in: shelves.zone)
        expectItem(found[0], failed: "NOT_FOUND", reason: "Record not found")
        #expect(found[1]["recordName"] == "a")
        try await shelves.share()
        endAfterTheNextRead()
        let page = try await shelves.owner.changes("Shelves")
        #expect(page["records"].elements.map { $0["recordName"].text } == ["a", "b"], "\(page)")
        let rest = try await shelves.owner.changes("Shelves", after: page["syncToken"].text)
        #expect(rest["records"][0]["deleted"] == true, "\(rest)")
    }

    // MARK: The feed of the database

    @Test func `the database's feed tells of each change once, in pages`() async throws {
        let wire = InProcess()
        let shelves = try await Self.shelves(wire)
        try await shelves.accept(try await shelves.share())
        let (owner, friend) = (shelves.owner, shelves.friend)
        for number in 0..<4 {
            try await owner.makeZone("Z\(number)")
            let share = try await owner.modify(
                [
                    SharedShelves.operation(
                        "create",
                        ["participants": [SharedShelves.invitation(shelves.friendName)]])
                ], in: ["zoneName": .string("Z\(number)")])
            try await shelves.accept(share[0])
        }
        func pages(_ token: JSON?) async throws -> (names: [String], token: JSON) {
            var (names, token, more) = ([String](), token, true)
            while more {
                var body: JSON = ["resultsLimit": 2]
                if let token { body = body.setting("syncToken", token) }
                let page = try await friend.ask("shared/changes/database", body)
                let zones = page["zones"].elements
                #expect(zones.count <= 2, "\(page)")
                names += zones.map {
                    ($0["deleted"] == true ? "-" : "") + ($0["zoneID"]["zoneName"].text ?? "")
                }
                token = page["syncToken"]
                more = page["moreComing"] == true
            }
            return (names, token ?? .null)
        }
        var (names, token) = try await pages(nil)
        #expect(names == ["Shelves", "Z0", "Z1", "Z2", "Z3"])
        let same = try await pages(token)
        #expect(same.names == [] && same.token == token, "at rest the token stays")
        try await owner.create("x", in: ["zoneName": "Z1"])
        _ = try await owner.modify(
            [Operation.of("delete", SharedShelves.name)], in: ["zoneName": "Z2"])
        try await owner.deleteZone("Z0")
        (names, token) = try await pages(token)
        #expect(names == ["-Z0", "Z1", "-Z2"])
        #expect(try await pages(token).names == [])
        let end = try await friend.ask("shared/changes/database", ["syncToken": ""])
        #expect(end["zones"] == [] && end["syncToken"] == token, "\(end)")
        // Tokens of one reader are nothing to another, nor to another feed.
        for (operation, key, who) in [
            ("shared/changes/database", "syncToken", owner),
            ("private/changes/database", "syncToken", friend),
            ("shared/zones/changes", "metaSyncToken", friend),
        ] {
            expectFailure(
                try await who.post(operation, JSON.object([.init(key: key, value: token)])), 400,
                "BAD_REQUEST")
        }
    }

    // MARK: People

    @Test func `the zones of an owner who is restricted or disabled are denied, and do not go`()
        async throws
    {
        let town = Neighbourhood()
        try await town.install(Library.schema)
        let api = try await town.apiToken()
        let account = try await town.account("ann@example.org")
        let owner = try await town.signIn(account)
        let friend = try await town.signIn(try await town.account("bob@example.org"))
        let eve = try await town.signIn(try await town.account("eve@example.org"))
        func ask(_ operation: String, _ body: JSON, _ user: String) async throws -> WireAnswer {
            try await town.post(operation, body, api: api, user: user)
        }
        let (ann, bob) = (
            try await ask("public/users/caller", [:], owner).json["userRecordName"] ?? .null,
            try await ask("public/users/caller", [:], friend).json["userRecordName"].text ?? ""
        )
        let zone: JSON = ["zoneName": "Shelves"]
        let theirs = zone.setting("ownerRecordName", ann)
        _ = try await ask(
            "private/zones/modify",
            ["operations": [["operationType": "create", "zone": ["zoneID": zone]]]], owner)
        let saved = try await ask(
            "private/records/modify",
            [
                "zoneID": zone,
                "operations": [
                    Operation.create("a"),
                    SharedShelves.operation(
                        "create", ["participants": [SharedShelves.invitation(bob)]]),
                ],
            ], owner)
        let link: JSON = [
            "shortGUIDs": [["value": saved.json["records"][1]["shortGUID"] ?? .null]]
        ]
        #expect(try await ask("public/records/accept", link, friend).status == 200, "\(saved)")
        let reading: JSON = ["zoneID": theirs, "records": ["a"]]
        func expectDenied() async throws {
            town.authenticator.forget()
            let found = try await ask("shared/records/lookup", reading, friend)
            expectItem(found.json["records"][0], failed: "ACCESS_DENIED", recordName: "a")
            let written = try await ask(
                "shared/records/modify",
                ["zoneID": theirs, "operations": [Operation.create("b")]], friend)
            expectItem(written.json["records"][0], failed: "ACCESS_DENIED", recordName: "b")
            for (operation, body) in [
                ("records/query", ["zoneID": theirs, "query": ["recordType": "Book"]]),
                ("records/changes", ["zoneID": theirs]),
            ] as [(String, JSON)] {
                expectFailure(
                    try await ask("shared/" + operation, body, friend), 403, "ACCESS_DENIED")
            }
            for (operation, body) in [
                ("changes/zone", ["zones": [["zoneID": theirs]]]),
                ("zones/lookup", ["zones": [theirs]]),
            ] as [(String, JSON)] {
                let answer = try await ask("shared/" + operation, body, friend)
                expectItem(answer.json["zones"][0], failed: "ACCESS_DENIED")
            }
            // It is still in the list, and a stranger learns nothing.
            let listed = try await ask("shared/zones/list", [:], friend)
            #expect(listed.json["zones"].elements.count == 1, "\(listed)")
            expectFailure(
                try await ask("shared/records/lookup", reading, eve), 404, "ZONE_NOT_FOUND")
            for verb in ["resolve", "accept"] {
                expectFailure(
                    try await ask("public/records/" + verb, link, friend), 404, "NOT_FOUND")
            }
        }
        func expectServed() async throws {
            town.authenticator.forget()
            let found = try await ask("shared/records/lookup", reading, friend)
            #expect(found.json["records"][0]["recordType"] == "Book", "\(found)")
        }
        try await expectServed()
        #expect(try await ask("private/users/restrict", [:], owner).status == 200)
        try await expectDenied()
        #expect(try await ask("private/users/unrestrict", [:], owner).status == 200)
        try await expectServed()
        #expect(try await town.accounts.disable(account))
        try await expectDenied()
        _ = try await town.accounts.change(account) { $0.status = .active }
        try await expectServed()
    }

    @Test func `links are asked for at a rate, by each caller`() async throws {
        var settings = GatewaySettings()
        settings.userLookUpRateMax = 2
        let wire = InProcess(settings: settings)
        let shelves = try await Self.shelves(wire)
        let share = try await shelves.share()
        for number in 0..<4 {
            let verb = number % 2 == 0 ? "resolve" : "accept"
            #expect(try await shelves.resolve(share, as: shelves.friend, verb).status == 200)
        }
        expectFailure(try await shelves.resolve(share, as: shelves.friend), 429, "THROTTLED")
        #expect(try await shelves.resolve(share, as: shelves.owner).status == 200)
        // So many links of one request count as many requests, and nothing of it happens.
        let many: JSON = ["shortGUIDs": ["a", "b", "c", "d"]]
        let eve = shelves.owner.acting(as: .other("eve"))
        #expect(try await eve.post("public/records/resolve", many).status == 200)
        expectFailure(try await eve.post("public/records/resolve", many), 429, "THROTTLED")
        wire.world.advance(by: .seconds(60))
        #expect(try await shelves.resolve(share, as: shelves.friend).status == 200)
    }

    // MARK: Fields

    @Test(arguments: [1, 4])
    func `encrypted fields are read and written by everybody in the zone`(
        buckets: Int
    ) async throws {
        let wire = InProcess(
            authenticator: LayoutAuthenticator(ContainerLayout(zoneBucketCount: buckets)))
        let shelves = try await Self.shelves(wire)
        try await shelves.accept(try await shelves.share())
        func secret(_ text: JSON) -> JSON { ["secret": ["value": text, "isEncrypted": true]] }
        try await shelves.owner.create("mine", fields: secret("of the owner"), in: shelves.zone)
        let saved = try await shelves.friend.modify(
            [Operation.create("yours", secret("of the friend"))], in: shelves.theirs,
            database: "shared")
        #expect(saved[0]["fields"]["secret"]["value"] == "of the friend", "\(saved)")
        let all: [(Caller, JSON, String)] = [
            (shelves.owner, shelves.zone, "private"), (shelves.friend, shelves.theirs, "shared"),
        ]
        for (who, zone, database) in all {
            let found = try await who.lookUp(["mine", "yours"], in: zone, database: database)
            #expect(
                found.map { $0["fields"]["secret"]["value"].text } == [
                    "of the owner", "of the friend",
                ], "\(found)")
        }
        let home = Self.home(shelves.ownerName, shelves)
        if case .database(let database, _, _) = home {
            let rows = wire.router.rowBytes(of: database)
            #expect(rows.firstRange(of: Bytes("of the friend".utf8)) == nil)
        }
    }

    @Test func `a participant saves no files, and a repeated request is carried out once`()
        async throws
    {
        let wire = InProcess()
        let shelves = try await Self.shelves(wire)
        try await shelves.accept(try await shelves.share())
        let cover: JSON = [
            "cover": [
                "value": ["fileChecksum": "x", "size": 1, "receipt": "y"], "type": "ASSETID",
            ]
        ]
        expectItem(
            try await shelves.friend.modify(
                [Operation.create("c", cover)], in: shelves.theirs, database: "shared")[0],
            failed: "BAD_REQUEST")
        let body: JSON = [
            "zoneID": shelves.theirs,
            "operations": [
                ["operationType": "create", "record": ["recordType": "Book", "fields": [:]]]
            ],
        ]
        var names: Set<String> = []
        for _ in 0..<2 {
            let answer = try await wire.send(
                WireRequest(
                    method: "POST", target: shelves.friend.target("shared/records/modify"),
                    headers: [("X-Stratus-Request-ID", "once")],
                    body: Array(body.description.utf8)))
            names.insert(answer.json["records"][0]["recordName"].text ?? "\(answer)")
        }
        #expect(names.count == 1, "\(names)")
        #expect(try await shelves.owner.query(["recordType": "Book"], in: shelves.zone).count == 3)
    }
}
