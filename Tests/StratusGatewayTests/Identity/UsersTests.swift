import StratusCluster
import StratusDoubles
import StratusGateway
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime
import Synchronization
import Testing

@testable import WireScenarios

/// Part 2 of the wire reference, §18, lines 19 to 23, 48 and 50: users and roles.
@Suite struct UsersTests {
    private struct Street {
        var town: Neighbourhood
        var api: String
        var ann: (id: AccountID, token: String, name: String)
        var bob: (id: AccountID, token: String, name: String)
    }

    /// Ann may be found, Bob may not.
    private func street(receivesNames: Bool = true) async throws -> Street {
        let town = Neighbourhood()
        _ = try await town.makeContainer()
        let api = try await town.apiToken(receivesNames: receivesNames)
        let ann = try await town.account("ann@example.org", discoverable: true)
        let bob = try await town.account("bob@example.org")
        return Street(
            town: town, api: api,
            ann: (ann, try await town.signIn(ann), town.recordName(ann)),
            bob: (bob, try await town.signIn(bob), town.recordName(bob)))
    }

    @Test func `19: caller and current, under public and private, by GET and POST`() async throws {
        let street = try await self.street()
        for scope in ["public", "private"] {
            for operation in ["users/caller", "users/current"] {
                for method in ["GET", "POST"] {
                    let answer = try await street.town.send(
                        WireRequest(
                            method: method,
                            target: street.town.path("\(scope)/\(operation)")
                                + "?ckAPIToken=\(street.api)&ckWebAuthToken=\(street.ann.token)",
                            body: method == "GET" ? [] : Array("{}".utf8)))
                    #expect(answer.status == 200, "\(answer)")
                    #expect(answer.json["userRecordName"].text == street.ann.name)
                    #expect(answer.json["firstName"].text == "Given-a")
                    #expect(answer.json["nameComponents"]["givenName"].text == "Given-a")
                    #expect(
                        answer.json["lookupInfo"]["emailAddress"].text == "ann@example.org")
                }
            }
        }
    }

    @Test func `20: a name needs the person's consent and the app's wish`() async throws {
        for receivesNames in [true, false] {
            let street = try await self.street(receivesNames: receivesNames)
            let bob = try await street.town.post(
                "public/users/caller", api: street.api, user: street.bob.token)
            #expect(bob.json.keys == ["userRecordName"])
            let ann = try await street.town.post(
                "public/users/caller", api: street.api, user: street.ann.token)
            #expect(ann.json.keys.contains("firstName") == receivesNames)
            let found = try await street.town.post(
                "public/users/discover", ["lookupInfos": [["emailAddress": "ann@example.org"]]],
                api: street.api, user: street.bob.token)
            #expect(found.json["users"][0].keys.contains("nameComponents") == receivesNames)
        }
    }

    @Test func `21, X-13: discover keeps the order and tells nothing of who did not consent`()
        async throws
    {
        let street = try await self.street()
        let answer = try await street.town.post(
            "public/users/discover",
            [
                "lookupInfos": [
                    ["emailAddress": "bob@example.org"], ["emailAddress": "ANN@example.org"],
                    ["emailAddress": "nobody@example.org"],
                    ["userRecordName": .string(street.bob.name)],
                    ["userRecordName": .string(street.ann.name)],
                    ["userRecordName": "_00000000000000000000000000000000"],
                    ["phoneNumber": "+15550100"],
                ]
            ], api: street.api, user: street.bob.token)
        let users = answer.json["users"].elements
        #expect(users.count == 7, "\(answer)")
        #expect(users[0].keys == ["lookupInfo"] && users[2].keys == ["lookupInfo"])
        #expect(users[5].keys == ["lookupInfo"] && users[6].keys == ["lookupInfo"])
        #expect(users[1]["userRecordName"].text == street.ann.name)
        #expect(users[1]["lookupInfo"]["emailAddress"] == "ANN@example.org")
        #expect(users[4]["nameComponents"]["givenName"] == "Given-a")
        // One may know who one is.
        #expect(users[3]["userRecordName"].text == street.bob.name)

        // Somebody who never used this app is not in it, consent or not.
        _ = try await street.town.account("far@example.org", discoverable: true)
        let far = try await street.town.post(
            "public/users/lookup/email", ["users": [["emailAddress": "far@example.org"]]],
            api: street.api, user: street.bob.token)
        #expect(far.json["users"][0]["serverErrorCode"] == "NOT_FOUND")
    }

    @Test func `22: lookups by id and e-mail`() async throws {
        let street = try await self.street()
        let byID = try await street.town.post(
            "public/users/lookup/id",
            [
                "users": [
                    ["userRecordName": .string(street.bob.name)],
                    ["userRecordName": .string(street.ann.name)],
                ]
            ], api: street.api, user: street.ann.token)
        #expect(byID.json["users"][0]["serverErrorCode"] == "NOT_FOUND")
        #expect(byID.json["users"][0]["userRecordName"].text == street.bob.name)
        #expect(byID.json["users"][1]["firstName"] == "Given-a")
        let byMail = try await street.town.post(
            "public/users/lookup/email",
            ["users": [["emailAddress": "ann@example.org"], ["emailAddress": "no@example.org"]]],
            api: street.api, user: street.bob.token)
        #expect(byMail.json["users"][0]["userRecordName"].text == street.ann.name)
        #expect(byMail.json["users"][1]["serverErrorCode"] == "NOT_FOUND")
        for method in ["GET", "POST"] {
            let contacts = try await street.town.send(
                WireRequest(
                    method: method,
                    target: street.town.path("public/users/lookup/contacts")
                        + "?ckAPIToken=\(street.api)&ckWebAuthToken=\(street.ann.token)"))
            #expect(contacts.json["users"].elements.isEmpty && contacts.status == 200)
        }
    }

    @Test func `security audit 5: who does not consent and nobody at all take the same work`()
        async throws
    {
        let street = try await self.street()
        _ = try await street.town.account("far@example.org")
        let finder = PeopleFinder(street.town.accounts, street.town.access)
        func work(_ text: String) async throws -> PeopleFinder.LookUp {
            try await finder.lookUp(
                try #require(EmailAddress(text)), in: Neighbourhood.container)
        }
        let ann = try await work("ann@example.org")
        #expect(ann.person?.recordName == street.ann.name)
        for text in ["bob@example.org", "far@example.org", "nobody@example.org"] {
            let other = try await work(text)
            #expect(other.person == nil)
            #expect(other.readCount == ann.readCount && other.decodedCount == ann.decodedCount)
        }
        let named = try await finder.lookUp(
            recordName: street.bob.name, in: Neighbourhood.container)
        let unknown = try await finder.lookUp(
            recordName: "_00000000000000000000000000000000", in: Neighbourhood.container)
        #expect(named == unknown && named.person == nil)

        // As many partitions are asked, and the stand-in's home is not one for all.
        func homes(_ text: String) async throws -> [ShardKey] {
            street.town.router.readHomes.withLock { $0 = [] }
            _ = try await work(text)
            return street.town.router.readHomes.withLock { $0 }
        }
        let bob = try await homes("bob@example.org")
        let one = try await homes("nobody@example.org")
        let two = try await homes("nobody-else@example.org")
        #expect(bob.count == one.count && one.count == two.count)
        #expect(one[1] != two[1] && one[1] != AccountID(RequestIdentity(high: 0, low: 0)).key)
    }

    @Test func `security audit 5: an address that is named often is looked up once`() async throws {
        let street = try await self.street()
        func reads(_ addresses: [String]) async throws -> Int {
            // Credentials are in the cache after the first request.
            for _ in 0..<2 {
                street.town.router.readHomes.withLock { $0 = [] }
                let answer = try await street.town.post(
                    "public/users/lookup/email",
                    ["users": .array(addresses.map { ["emailAddress": .string($0)] })],
                    api: street.api, user: street.ann.token)
                #expect(answer.json["users"].elements.count == addresses.count)
            }
            return street.town.router.readHomes.withLock { $0.count }
        }
        let once = try await reads(["bob@example.org"])
        let often = try await reads(
            Array(repeating: "bob@example.org", count: 99) + ["BOB@example.org"])
        #expect(once > 0 && once == often)
        let discovered = try await street.town.post(
            "public/users/discover",
            [
                "lookupInfos": .array(
                    Array(repeating: ["emailAddress": "ann@example.org"], count: 3))
            ], api: street.api, user: street.bob.token)
        let users = discovered.json["users"].elements
        #expect(users.allSatisfy { $0["userRecordName"].text == street.ann.name })
    }

    @Test func `security audit 5: a look-up answers at a time that its work does not decide`()
        async throws
    {
        let street = try await self.street()
        for (name, count) in [("bob", 1), ("nobody", 1), ("many", 6)] {
            let addresses = (0..<count).map { number -> JSON in
                ["emailAddress": .string("\(name)\(number == 0 ? "" : "\(number)")@example.org")]
            }
            let clock = ContinuousClock()
            let begun = clock.now
            _ = try await street.town.post(
                "public/users/lookup/email", ["users": .array(addresses)],
                api: street.api, user: street.ann.token)
            let least = Duration.milliseconds(20 + 5 * count)
            #expect(clock.now - begun >= least, "\(name)")
        }
    }

    @Test func `security audit 5: look-ups count per caller`() async throws {
        let street = try await self.street()
        func ask(_ range: Range<Int>, as token: String) async throws -> WireAnswer {
            try await street.town.post(
                "public/users/lookup/email",
                ["users": .array(range.map { ["emailAddress": .string("p\($0)@example.org")] })],
                api: street.api, user: token)
        }
        #expect(try await ask(0..<200, as: street.ann.token).status == 200)
        let refused = try await ask(200..<300, as: street.ann.token)
        #expect(refused.status == 429)
        #expect(refused.json["serverErrorCode"] == "THROTTLED")
        // Others are not held up, one's own name is free, and a minute later there is room again.
        #expect(try await ask(0..<10, as: street.bob.token).status == 200)
        let own = try await street.town.post(
            "public/users/lookup/id", ["users": [["userRecordName": .string(street.ann.name)]]],
            api: street.api, user: street.ann.token)
        #expect(own.status == 200)
        street.town.world.advance(by: .seconds(61))
        #expect(try await ask(200..<300, as: street.ann.token).status == 200)
    }

    @Test func `semantics audit 3: roles given to a development user count`() async throws {
        let town = Neighbourhood(isOpen: true)
        try await town.install(
            """
            DEFINE SCHEMA
                CREATE ROLE editor;
                RECORD TYPE Page (title STRING,
                    GRANT CREATE TO "_icloud", GRANT READ, WRITE TO "_creator", GRANT READ TO editor);
            """)
        let api = String(repeating: "5c0f17e1", count: 8)
        let saved = try await town.post(
            "public/records/modify",
            [
                "operations": [
                    [
                        "operationType": "create",
                        "record": ["recordType": "Page", "recordName": "p", "fields": [:]],
                    ]
                ]
            ], api: api, user: "development")
        #expect(saved.json["records"][0]["recordName"] == "p", "\(saved)")
        func finds() async throws -> Bool {
            town.authenticator.forget()
            let answer = try await town.post(
                "public/records/lookup", ["records": [["recordName": "p"]]], api: api,
                user: "stratus-user-tom")
            return answer.json["records"][0]["recordType"] == "Page"
        }
        #expect(try await !finds())
        let tom = DevelopmentAuthenticator.userRecordName(
            for: "stratus-user-tom", in: Neighbourhood.container)
        try await town.access.changeUser(tom, account: nil, in: Neighbourhood.container) {
            $0.roles = ["editor"]
        }
        #expect(try await finds())
        try await town.access.changeUser(tom, account: nil, in: Neighbourhood.container) {
            $0.roles = []
        }
        #expect(try await !finds())
    }

    @Test func `promise: a development user has a record from the first request on`() async throws {
        let town = Neighbourhood(isOpen: true)
        let api = String(repeating: "5c0f17e1", count: 8)
        for token in ["development", "stratus-user-tom"] {
            let caller = try await town.post("public/users/caller", api: api, user: token)
            let name = try #require(caller.json["userRecordName"].text)
            let found = try await town.post(
                "public/records/lookup", ["records": [["recordName": .string(name)]]], api: api,
                user: token)
            let record = found.json["records"][0]
            #expect(record["recordType"] == "Users", "\(found)")
            #expect(record["created"]["userRecordName"].text == name, "\(found)")
        }
    }

    @Test func `real clients: with strict users only development users' tokens are good`()
        async throws
    {
        var settings = DevelopmentAuthenticator.Settings()
        settings.isStrict = true
        let town = Neighbourhood(
            isOpen: true, development: DevelopmentAuthenticator(settings: settings))
        let api = String(repeating: "5c0f17e1", count: 8)
        func answer(_ token: String) async throws -> WireAnswer {
            try await town.post("private/users/caller", api: api, user: token)
        }
        let first = try await answer(DevelopmentAuthenticator.userToken)
        let second = try await answer(DevelopmentAuthenticator.otherUserToken)
        #expect(first.status == 200 && second.status == 200)
        #expect(first.json["userRecordName"] != second.json["userRecordName"])
        for token in ["anything", "84__31__t%2Bk", "developmen", "Development"] {
            let refused = try await answer(token)
            #expect(refused.status == 421, "\(token)")
            #expect(refused.json["redirectURL"].text != nil)
        }
        // Who signs in on the pages is signed in, and signed out when the token has expired.
        let id = try await town.account("a@example.org", password: "correct horse")
        let real = try await town.signIn(id)
        #expect(try await answer(real).status == 200)
        town.world.advance(by: .seconds(27 * 3_600))
        #expect(try await answer(real).status == 421)
    }

    @Test func `real clients: after a sign-in the indexes of new types are ready at once`()
        async throws
    {
        let town = Neighbourhood()
        town.router.runsJobs.withLock { $0 = false }
        let api = try await town.apiToken()
        let id = try await town.account("a@example.org", password: "correct horse")
        let token = try await town.signIn(id)
        try await town.install(
            """
            DEFINE SCHEMA
                RECORD TYPE Page ("___recordID" REFERENCE QUERYABLE, title STRING QUERYABLE,
                    GRANT CREATE TO "_icloud", GRANT READ, WRITE TO "_creator");
            """, version: 2)
        let saved = try await town.post(
            "public/records/modify",
            [
                "operations": [
                    [
                        "operationType": "create",
                        "record": [
                            "recordType": "Page", "recordName": "p",
                            "fields": ["title": ["value": "t"]],
                        ],
                    ]
                ]
            ], api: api, user: token)
        #expect(saved.json["records"][0]["recordName"] == "p", "\(saved)")
        let found = try await town.post(
            "public/records/query",
            [
                "query": [
                    "recordType": "Page",
                    "filterBy": [
                        [
                            "fieldName": "title", "comparator": "EQUALS",
                            "fieldValue": ["value": "t"],
                        ]
                    ],
                ]
            ], api: api, user: token)
        #expect(found.status == 200, "\(found)")
        #expect(found.json["records"][0]["recordName"] == "p")
    }

    @Test func `23: one's own Users record, and nobody else's`() async throws {
        let street = try await self.street()
        func modify(_ kind: String, _ name: String, _ token: String, tag: String? = nil)
            async throws -> JSON?
        {
            var record: JSON = ["recordName": .string(name), "recordType": "Users", "fields": [:]]
            if let tag { record = record.setting("recordChangeTag", .string(tag)) }
            return try await street.town.post(
                "public/records/modify",
                ["operations": [["operationType": .string(kind), "record": record]]],
                api: street.api, user: token
            ).json["records"][0]
        }
        let own = try await modify("forceUpdate", street.ann.name, street.ann.token)
        #expect(own["recordChangeTag"] != nil, "\(own ?? .null)")
        let others = try await modify("forceUpdate", street.ann.name, street.bob.token)
        #expect(others["serverErrorCode"] != nil)
        let made = try await modify("create", "_11112222333344445555666677778888", street.ann.token)
        #expect(made["serverErrorCode"] != nil)
        for token in [street.bob.token, street.ann.token] {
            let gone = try await modify("forceDelete", street.ann.name, token)
            #expect(gone["serverErrorCode"] == "ACCESS_DENIED", "\(gone ?? .null)")
        }
        let read = try await street.town.post(
            "public/records/lookup", ["records": [["recordName": .string(street.ann.name)]]],
            api: street.api, user: street.bob.token)
        #expect(read.json["records"][0]["recordType"] == "Users")
    }

    @Test func `restricting closes the private database to its owner until it is lifted`()
        async throws
    {
        let street = try await self.street()
        func status(_ operation: String) async throws -> WireAnswer {
            try await street.town.post(operation, api: street.api, user: street.ann.token)
        }
        #expect(try await status("private/zones/list").status == 200)
        #expect(try await status("private/users/restrict").status == 200)
        expectFailure(
            try await status("private/zones/list"), 403, "ACCESS_DENIED",
            reason: "private db access disabled for this account")
        #expect(try await status("public/users/caller").status == 200)
        #expect(try await status("private/users/unrestrict").status == 200)
        #expect(try await status("private/zones/list").status == 200)
    }

    @Test func `one person's private data is another's nothing`() async throws {
        let street = try await self.street()
        let saved = try await street.town.post(
            "private/records/modify",
            [
                "operations": [
                    [
                        "operationType": "create",
                        "record": ["recordName": "diary", "recordType": "Book", "fields": [:]],
                    ]
                ]
            ], api: street.api, user: street.ann.token)
        #expect(saved.json["records"][0]["recordChangeTag"] != nil, "\(saved)")
        for owner in [nil, street.ann.name] as [String?] {
            var body: JSON = ["records": [["recordName": "diary"]]]
            if let owner {
                body = body.setting(
                    "zoneID",
                    ["zoneName": "_defaultZone", "ownerRecordName": .string(owner)])
            }
            let read = try await street.town.post(
                "private/records/lookup", body, api: street.api, user: street.bob.token)
            #expect(!read.text.contains("recordChangeTag"), "\(read)")
        }
    }

    // MARK: Roles

    static let schema = """
        DEFINE SCHEMA
            CREATE ROLE Editors;
            RECORD TYPE Page (
                title STRING QUERYABLE,
                GRANT READ, CREATE, WRITE TO Editors
            );
            RECORD TYPE Closed ( title STRING );
        """

    @Test func `48, 50: grants count for whoever has the role, and for nobody else`() async throws {
        let town = Neighbourhood()
        try await town.install(Self.schema)
        let api = try await town.apiToken()
        let ann = try await town.account("ann@example.org")
        let bob = try await town.account("bob@example.org")
        let (annToken, bobToken) = (try await town.signIn(ann), try await town.signIn(bob))
        func create(_ type: String, _ name: String, _ token: String) async throws -> JSON? {
            try await town.post(
                "public/records/modify",
                [
                    "operations": [
                        [
                            "operationType": "create",
                            "record": [
                                "recordName": .string(name), "recordType": .string(type),
                                "fields": [:],
                            ],
                        ]
                    ]
                ], api: api, user: token
            ).json["records"][0]
        }
        #expect(try await create("Page", "one", annToken)["serverErrorCode"] == "ACCESS_DENIED")
        try await town.access.changeUser(
            town.recordName(ann), account: ann, in: Neighbourhood.container
        ) { $0.roles = ["Editors"] }
        town.world.advance(by: .seconds(1))
        #expect(try await create("Page", "one", annToken)["recordChangeTag"] != nil)
        #expect(try await create("Page", "two", bobToken)["serverErrorCode"] == "ACCESS_DENIED")
        #expect(try await create("Closed", "c", annToken)["serverErrorCode"] == "ACCESS_DENIED")
        func read(_ token: String) async throws -> JSON? {
            try await town.post(
                "public/records/lookup", ["records": [["recordName": "one"]]], api: api,
                user: token
            ).json["records"][0]
        }
        #expect(try await read(annToken)["recordType"] == "Page")
        #expect(try await read(bobToken)["serverErrorCode"] == "NOT_FOUND")
        // Taken away, it is gone within a second (X-34).
        try await town.access.changeUser(
            town.recordName(ann), account: ann, in: Neighbourhood.container
        ) { $0.roles = [] }
        town.world.advance(by: .seconds(1))
        #expect(try await read(annToken)["serverErrorCode"] == "NOT_FOUND")
        #expect(try await create("Page", "three", annToken)["serverErrorCode"] == "ACCESS_DENIED")
    }

    @Test func `a page of accounts is read several at a time, and in the order of the page`()
        async throws
    {
        let town = Neighbourhood()
        var ids: [AccountID] = []
        for number in 0..<40 { ids.append(try await town.account("a\(number)@example.org")) }
        #expect(try await town.accounts.remove(ids[7]))
        let underWay = Mutex((now: 0, most: 0))
        town.router.afterRead.withLock { hook in
            hook = { _ in
                underWay.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
                for _ in 0..<100 { await Task.yield() }
                underWay.withLock { $0.now -= 1 }
            }
        }
        let found = try await town.accounts.accounts(ids)
        town.router.afterRead.withLock { $0 = nil }
        let wanted = (0..<40).map { $0 == 7 ? nil : "a\($0)@example.org" }
        #expect(found.map { $0?.email } == wanted)
        let most = underWay.withLock { $0.most }
        #expect(most > 1 && most <= 16, "\(most) at a time")
    }
}
