import Testing

/// A zone of one caller that is shared, and somebody it may be shared with.
struct SharedShelves {
    let owner: Caller
    let friend: Caller
    /// Their record names in this container.
    let ownerName: String
    let friendName: String
    /// The zone as its owner names it, and as others do.
    let zone: JSON = ["zoneName": "Shelves"]
    var theirs: JSON { self.zone.setting("ownerRecordName", .string(self.ownerName)) }

    static let name = "cloudkit.zoneshare"

    /// A zone with two books, which is not shared yet.
    init(_ caller: Caller, friend name: String = "tom") async throws {
        self.owner = caller
        self.friend = caller.acting(as: .other(name))
        self.ownerName = try await Self.name(of: self.owner)
        self.friendName = try await Self.name(of: self.friend)
        try await caller.makeZone("Shelves")
        try await caller.create("a", fields: ["title": ["value": "Sea Roads"]], in: self.zone)
        try await caller.create("b", fields: ["title": ["value": "Low Tide"]], in: self.zone)
    }

    static func name(of caller: Caller) async throws -> String {
        try await caller.ask("public/users/caller", [:])["userRecordName"].text ?? ""
    }

    /// An operation on the share of the zone.
    static func operation(_ kind: JSON, _ more: JSON = [:], tag: JSON? = nil) -> JSON {
        var record: JSON = [
            "recordName": .string(Self.name), "recordType": "cloudkit.share",
        ]
        if let tag { record = record.setting("recordChangeTag", tag) }
        for key in more.keys { record = record.setting(key, more[key]) }
        return ["operationType": kind, "record": record]
    }

    static func invitation(_ name: String, _ permission: JSON = "READ_WRITE") -> JSON {
        [
            "type": "USER", "permission": permission, "acceptanceStatus": "INVITED",
            "userIdentity": ["userRecordName": .string(name)],
        ]
    }

    /// The entry that one operation on the share gets.
    func modify(_ operation: JSON) async throws -> JSON {
        try await self.owner.modify([operation], in: self.zone)[0]
    }

    /// Shares the zone with the friend.
    @discardableResult
    func share(
        _ permission: JSON = "READ_WRITE", at location: SourceLocation = #_sourceLocation
    ) async throws -> JSON {
        let share = try await self.modify(
            Self.operation(
                "create",
                [
                    "fields": ["cloudkit.title": ["value": "Our shelves", "type": "STRING"]],
                    "participants": [Self.invitation(self.friendName, permission)],
                ]))
        #expect(share["shortGUID"].text?.count == 45, "\(share)", sourceLocation: location)
        return share
    }

    func resolve(_ share: JSON, as caller: Caller, _ verb: String = "resolve") async throws
        -> WireAnswer
    {
        try await caller.post(
            "public/records/\(verb)",
            ["shortGUIDs": [["value": share["shortGUID"] ?? "none"]]])
    }

    /// The friend accepts.
    @discardableResult
    func accept(
        _ share: JSON, at location: SourceLocation = #_sourceLocation
    ) async throws -> JSON {
        let answer = try await self.resolve(share, as: self.friend, "accept")
        try #require(answer.status == 200, "\(answer)", sourceLocation: location)
        let result = answer.json["results"][0] ?? .null
        #expect(
            result["participantStatus"] == "ACCEPTED", "\(result)", sourceLocation: location)
        return result
    }

    /// The share as its owner sees it now.
    func current() async throws -> JSON {
        try await self.owner.lookUp([Self.name], in: self.zone)[0]
    }

    /// Names of zones that a caller's shared database lists.
    static func list(_ caller: Caller) async throws -> [JSON] {
        try await caller.ask("shared/zones/list", [:])["zones"].elements
    }

    /// The friend is out: every route says that there is no such zone.
    func expectClosed(
        to caller: Caller, at location: SourceLocation = #_sourceLocation
    ) async throws {
        let record: JSON = ["recordName": "a"]
        for (operation, body) in [
            ("lookup", ["zoneID": self.theirs, "records": [record]]),
            ("query", ["zoneID": self.theirs, "query": ["recordType": "Book"]]),
            ("changes", ["zoneID": self.theirs]),
            (
                "modify",
                [
                    "zoneID": self.theirs,
                    "operations": [["operationType": "forceDelete", "record": record]],
                ]
            ),
        ] as [(String, JSON)] {
            expectFailure(
                try await caller.post("shared/records/\(operation)", body), 404, "ZONE_NOT_FOUND",
                reason: "Zone not found", at: location)
        }
        for (operation, entry) in [
            ("zones/lookup", self.theirs), ("changes/zone", ["zoneID": self.theirs]),
        ] as [(String, JSON)] {
            let answer = try await caller.ask("shared/\(operation)", ["zones": [entry]])
            expectItem(
                answer["zones"][0], failed: "ZONE_NOT_FOUND", reason: "Zone not found",
                at: location)
        }
        let left = try await caller.ask(
            "shared/zones/modify",
            ["operations": [["operationType": "delete", "zone": ["zoneID": self.theirs]]]])
        expectItem(left["zones"][0], failed: "ZONE_NOT_FOUND", at: location)
        #expect(try await Self.list(caller) == [], sourceLocation: location)
    }
}

/// Shares of whole zones, between people who know each other's record names.
extension Scenario {
    static let shares: [Scenario] = Self.sharing + Self.linking + Self.sharedZones

    private static let sharing: [Scenario] = [
        Scenario("share: of a zone, as its owner sees it") { caller in
            let shelves = try await SharedShelves(caller)
            let share = try await shelves.share("READ_ONLY")
            #expect(share["recordName"].text == SharedShelves.name)
            #expect(share["recordType"] == "cloudkit.share" && share["deleted"] == false)
            #expect(share["recordChangeTag"].text != nil && share["publicPermission"] == "NONE")
            #expect(share["fields"]["cloudkit.title"]["value"] == "Our shelves")
            #expect(share["share"] == nil && share["parent"] == nil)
            let owner = share["owner"]
            #expect(owner["type"] == "OWNER" && owner["acceptanceStatus"] == "ACCEPTED")
            #expect(owner["permission"] == "READ_WRITE", "\(share)")
            #expect(owner["userIdentity"]["userRecordName"].text == shelves.ownerName)
            #expect(owner["userIdentity"]["lookupInfo"] == nil)
            #expect(share["currentUserParticipant"]["type"] == "OWNER")
            let people = share["participants"].elements
            #expect(people.map { $0["type"] } == ["OWNER", "USER"], "\(share)")
            let friend = people.last
            #expect(friend["acceptanceStatus"] == "INVITED" && friend["permission"] == "READ_ONLY")
            #expect(friend["userIdentity"]["userRecordName"].text == shelves.friendName)
            #expect(friend["dateAddedToShare"].integer != nil, "\(share)")
            for person in people {
                let id = person["participantId"].text ?? ""
                #expect(id.count == 36 && id == id.uppercased(), "\(person)")
            }
            // Wherever the record is answered, it is the same.
            #expect(try await shelves.current() == share)
            let fed = try await caller.changes("Shelves")["records"].elements.last
            #expect(fed == share)
            // Nothing else of the zone changes.
            let books = try await caller.query(["recordType": "Book"], in: shelves.zone)
            #expect(books.sorted() == ["a", "b"])
            expectFailure(
                try await caller.post(
                    "private/records/query",
                    ["zoneID": shelves.zone, "query": ["recordType": "cloudkit.share"]]),
                400, "BAD_REQUEST", reason: "record type 'cloudkit.share' cannot be queried")
        },
        Scenario("share: what cannot be shared is refused, and nothing is stored") { caller in
            let shelves = try await SharedShelves(caller)
            let nothing = "Cannot share - no such record exists to share"
            let tag = try await caller.lookUp(["a"], in: shelves.zone)[0]["recordChangeTag"]
            let root: JSON = ["recordName": "a", "recordChangeTag": tag ?? .null]
            func create(_ more: JSON, type: JSON = "cloudkit.share") -> JSON {
                var record: JSON = ["recordType": type]
                for key in more.keys { record = record.setting(key, more[key]) }
                return ["operationType": "create", "record": record]
            }
            for (operation, reason) in [
                (create([:]), nothing), (create(["recordName": "s"]), nothing),
                (create(["recordName": "cloudkit.zoneshare"], type: "Book"), nothing),
                (create(["recordName": "s"], type: "cloudKit.share"), nothing),
                (create(["recordName": "cloudkit.zoneshare", "forRecord": root]), nothing),
                (create(["forRecord": root]), nil),
                (create(["recordName": "s", "forRecord": root]), nil),
            ] as [(JSON, String?)] {
                let items = try await caller.modify([operation], in: shelves.zone)
                expectItem(items[0], failed: "BAD_REQUEST", reason: reason)
                // In an atomic batch nothing of it happens.
                let batch = try await caller.modify(
                    [Operation.create("x"), operation], in: shelves.zone)
                expectItem(batch[0], failed: "ATOMIC_ERROR")
                expectItem(batch[1], failed: "BAD_REQUEST")
            }
            let share = create(["recordName": "cloudkit.zoneshare"])
            expectItem(
                try await caller.modify([share])[0], failed: "BAD_REQUEST", reason: nothing)
            expectItem(
                try await caller.modify([share], database: "public")[0], failed: "BAD_REQUEST",
                reason: nothing)
            for bad in Self.badSettings(shelves) {
                let item = try await shelves.modify(SharedShelves.operation("create", bad))
                expectItem(item, failed: "BAD_REQUEST")
            }
            let names = try await caller.changes("Shelves")["records"].elements.map {
                $0["recordName"].text ?? ""
            }
            #expect(names == ["a", "b"])
        },
        Scenario("share: one of a zone, and no second") { caller in
            let shelves = try await SharedShelves(caller)
            let share = try await shelves.share()
            expectItem(
                try await shelves.modify(SharedShelves.operation("create")), failed: "CONFLICT",
                reason: "record to insert already exists")
            #expect(try await shelves.current() == share)
        },
        Scenario("share: an update compares the tag, and keeps what it does not mention") {
            caller in
            let shelves = try await SharedShelves(caller)
            let share = try await shelves.share()
            for kind in ["update", "replace", "forceUpdate", "forceReplace"] as [JSON] {
                expectItem(
                    try await shelves.modify(SharedShelves.operation(kind)), failed: "BAD_REQUEST")
                expectItem(
                    try await shelves.modify(SharedShelves.operation(kind, tag: "old")),
                    failed: "CONFLICT", reason: "client oplock error updating record")
            }
            #expect(try await shelves.current() == share)
            var tag = share["recordChangeTag"]
            for kind in ["update", "forceUpdate"] as [JSON] {
                let saved = try await shelves.modify(
                    SharedShelves.operation(
                        kind, ["fields": ["cloudkit.type": ["value": "books"]]], tag: tag))
                #expect(saved["recordChangeTag"].text != tag.text, "\(saved)")
                #expect(saved["fields"].keys.sorted() == ["cloudkit.title", "cloudkit.type"])
                for key in ["participants", "publicPermission", "shortGUID", "owner"] {
                    #expect(saved[key] == share[key], "\(key)")
                }
                tag = saved["recordChangeTag"]
            }
            let replaced = try await shelves.modify(SharedShelves.operation("replace", tag: tag))
            #expect(replaced["fields"] == [:] && replaced["participants"] == share["participants"])
        },
        Scenario("share: people are invited, changed and removed by the list") { caller in
            let shelves = try await SharedShelves(caller)
            let ann = try await SharedShelves.name(of: caller.acting(as: .other("ann")))
            let share = try await shelves.share()
            let people = share["participants"].elements
            var tag = share["recordChangeTag"]
            func set(_ list: [JSON]) async throws -> [JSON] {
                let saved = try await shelves.modify(
                    SharedShelves.operation("update", ["participants": .array(list)], tag: tag))
                #expect(saved["recordChangeTag"] != nil, "\(saved)")
                tag = saved["recordChangeTag"] ?? tag
                return saved["participants"].elements
            }
            // As clients do: they send the list back, with one more.
            let both = try await set(people + [SharedShelves.invitation(ann, "READ_ONLY")])
            try #require(both.count == 3 && Array(both.prefix(2)) == people, "\(both)")
            // Who is named by record name keeps the ID; `PENDING` is one client's `INVITED`.
            let changed = try await set([
                SharedShelves.invitation(shelves.friendName, "READ_ONLY").setting(
                    "acceptanceStatus", "PENDING"), both[2],
            ])
            try #require(changed.count == 3, "the owner stays: \(changed)")
            #expect(changed[1]["participantId"] == both[1]["participantId"])
            #expect(changed[1]["permission"] == "READ_ONLY")
            #expect(changed[1]["acceptanceStatus"] == "INVITED", "\(changed)")
            let removed = try await set([
                changed[1], changed[2].setting("acceptanceStatus", "REMOVED"),
            ])
            #expect(removed == Array(changed.prefix(2)))
            #expect(try await set([]).map { $0["type"] } == ["OWNER"])
        },
        Scenario("share: nobody is invited twice") { caller in
            let shelves = try await SharedShelves(caller)
            let share = try await shelves.share()
            let twice: JSON = [
                "participants": [
                    SharedShelves.invitation(shelves.friendName),
                    SharedShelves.invitation(shelves.friendName, "READ_ONLY"),
                ]
            ]
            let item = try await shelves.modify(
                SharedShelves.operation("update", twice, tag: share["recordChangeTag"]))
            expectItem(item, failed: "BAD_REQUEST")
            #expect(item["stratus"]["code"] == "PARTICIPANT_ALREADY_INVITED", "\(item)")
            #expect(try await shelves.current() == share)
        },
        Scenario("share: a hundred people, and no more") { caller in
            let shelves = try await SharedShelves(caller)
            func people(_ count: Int) -> JSON {
                let names = (0..<count).map { number in
                    let digits = String(number, radix: 16)
                    return "_" + String(repeating: "0", count: 32 - digits.count) + digits
                }
                return ["participants": .array(names.map { SharedShelves.invitation($0) })]
            }
            let item = try await shelves.modify(SharedShelves.operation("create", people(100)))
            expectItem(item, failed: "BAD_REQUEST")
            #expect(item["stratus"] == ["code": "LIMIT_EXCEEDED", "limit": 100], "\(item)")
            let most = try await shelves.modify(SharedShelves.operation("create", people(99)))
            #expect(most["participants"].elements.count == 100, "with the owner")
        },
        Scenario("share: who has the link joins a public one, until it is private again") {
            caller in
            let shelves = try await SharedShelves(caller)
            let ann = caller.acting(as: .other("ann"))
            let share = try await shelves.share()
            expectFailure(try await shelves.resolve(share, as: ann), 404, "NOT_FOUND")
            // Who has not accepted is dropped.
            let opened = try await shelves.modify(
                SharedShelves.operation(
                    "update", ["publicPermission": "READ_ONLY"], tag: share["recordChangeTag"]))
            #expect(opened["publicPermission"] == "READ_ONLY", "\(opened)")
            #expect(opened["participants"].elements.map { $0["type"] } == ["OWNER"])
            #expect(opened["shortGUID"] == share["shortGUID"])
            expectItem(
                try await shelves.modify(
                    SharedShelves.operation(
                        "update", ["participants": [SharedShelves.invitation(shelves.friendName)]],
                        tag: opened["recordChangeTag"])), failed: "BAD_REQUEST")
            let joined = try await shelves.resolve(share, as: ann, "accept")
            #expect(joined.json["results"][0]["participantType"] == "PUBLIC_USER", "\(joined)")
            #expect(joined.json["results"][0]["participantPermission"] == "READ_ONLY")
            let found = try await ann.lookUp(["a"], in: shelves.theirs, database: "shared")
            #expect(found[0]["recordName"] == "a", "\(found)")
            let current = try await shelves.current()
            #expect(
                current["participants"].elements.map { $0["type"] } == ["OWNER", "PUBLIC_USER"],
                "\(current)")
            #expect(current["publicParticipantCount"] == 1, "\(current)")
            let closed = try await shelves.modify(
                SharedShelves.operation(
                    "update", ["publicPermission": "NONE"], tag: current["recordChangeTag"]))
            #expect(closed["participants"].elements.map { $0["type"] } == ["OWNER"], "\(closed)")
            try await shelves.expectClosed(to: ann)
            expectFailure(try await shelves.resolve(share, as: ann), 404, "NOT_FOUND")
        },
    ]

    /// Settings of a share that nothing stores.
    private static func badSettings(_ shelves: SharedShelves) -> [JSON] {
        func person(_ key: String, _ value: JSON?) -> JSON {
            [
                "participants": [
                    SharedShelves.invitation(shelves.friendName).setting(key, value)
                ]
            ]
        }
        return [
            ["publicPermission": "ALL"], ["publicPermission": 1], ["participants": "everybody"],
            ["participants": ["tom"]], person("permission", "ALL"), person("permission", "NONE"),
            person("userIdentity", nil), person("userIdentity", [:]),
            person("userIdentity", ["userRecordName": "tom"]),
            person("userIdentity", ["lookupInfo": ["emailAddress": "tom@example.org"]]),
            person("type", "ADMINISTRATOR"), person("type", "FRIEND"),
            person("acceptanceStatus", "MAYBE"),
            ["denyAccessRequests": false], ["publicAnonymousAccess": true],
            ["blocked": [["userIdentity": ["userRecordName": .string(shelves.friendName)]]]],
            ["fields": ["cloudkit.other": ["value": "x"]]], ["fields": ["own": ["value": "x"]]],
            ["fields": ["cloudkit.title": ["value": 1]]],
        ]
    }

    private static let linking: [Scenario] = [
        Scenario("share: a link is resolved, accepted, and accepted again") { caller in
            let shelves = try await SharedShelves(caller)
            let share = try await shelves.share("READ_ONLY")
            let resolved = try await shelves.resolve(share, as: shelves.friend)
            let result = resolved.json["results"][0]
            #expect(resolved.status == 200 && result != nil, "\(resolved)")
            #expect(
                result["shortGUID"]
                    == ["value": share["shortGUID"] ?? .null, "shouldFetchRootRecord": true])
            #expect(result["containerIdentifier"].text == caller.container)
            #expect(result["environment"].text == caller.environment)
            #expect(result["databaseScope"] == "SHARED" && result["potentialMatchList"] == [])
            expectZoneID(result["zoneID"], name: "Shelves")
            #expect(result["zoneID"]["ownerRecordName"].text == shelves.ownerName)
            #expect(result["rootRecordName"] == nil && result["rootRecord"] == nil)
            #expect(result["ownerIdentity"]["userRecordName"].text == shelves.ownerName)
            #expect(result["participantType"] == "USER", "\(resolved)")
            #expect(result["participantStatus"] == "INVITED")
            #expect(result["participantPermission"] == "READ_ONLY")
            // An invited one sees the owner and themself, and no dates.
            let seen = result["share"]
            #expect(seen["recordName"].text == SharedShelves.name)
            #expect(seen["fields"] == share["fields"] && seen["shortGUID"] == share["shortGUID"])
            #expect(seen["participants"].elements.map { $0["type"] } == ["OWNER", "USER"])
            #expect(
                seen["currentUserParticipant"]["participantId"]
                    == share["participants"][1]["participantId"], "\(resolved)")
            for person in seen["participants"].elements {
                #expect(person["dateAddedToShare"] == nil, "\(person)")
            }
            // Resolving changed nothing.
            #expect(try await SharedShelves.list(shelves.friend) == [])
            #expect(try await shelves.current() == share)

            let accepted = try await shelves.accept(share)
            #expect(accepted["share"]["currentUserParticipant"]["acceptanceStatus"] == "ACCEPTED")
            // The very next list has it.
            let listed = try await SharedShelves.list(shelves.friend)
            #expect(listed.count == 1)
            expectZoneID(listed.first["zoneID"], name: "Shelves")
            #expect(listed.first["zoneID"]["ownerRecordName"].text == shelves.ownerName)
            #expect(listed.first["atomic"] == true && listed.first["syncToken"].text != nil)
            #expect(listed.first["isEligibleForZoneShare"] == false, "\(listed)")
            #expect(listed.first["isEligibleForHierarchicalShare"] == false)
            for _ in 0..<2 { try await shelves.accept(share) }
            #expect(try await SharedShelves.list(shelves.friend).count == 1)
            let current = try await shelves.current()
            #expect(
                current["participants"].elements.map { $0["acceptanceStatus"] }
                    == ["ACCEPTED", "ACCEPTED"], "\(current)")
        },
        Scenario("share: the owner's own link") { caller in
            let shelves = try await SharedShelves(caller)
            let share = try await shelves.share()
            for verb in ["resolve", "accept"] {
                let answer = try await shelves.resolve(share, as: caller, verb)
                let result = answer.json["results"][0]
                #expect(result["databaseScope"] == "PRIVATE", "\(answer)")
                #expect(result["participantType"] == "OWNER")
                #expect(result["participantStatus"] == "ACCEPTED")
                #expect(result["participantPermission"] == "READ_WRITE")
                #expect(result["share"] == share)
            }
            #expect(try await SharedShelves.list(caller) == [])
        },
        Scenario("share: links that are unknown, withdrawn or another's have one answer") {
            caller in
            let shelves = try await SharedShelves(caller)
            let eve = caller.acting(as: .other("eve"))
            let share = try await shelves.share()
            let elsewhere = Caller(
                wire: caller.wire, container: try await caller.wire.makeContainer())
            let old = share["shortGUID"] ?? .null
            let renewed = try await shelves.modify(
                SharedShelves.operation(
                    "update", ["newShortGUID": true], tag: share["recordChangeTag"]))
            let new = renewed["shortGUID"].text ?? ""
            #expect(new.count == 45 && .string(new) != old, "\(renewed)")
            let altered = String(new.dropLast()) + (new.hasSuffix("A") ? "B" : "A")
            let unknown: [(Caller, JSON)] = [
                (shelves.friend, old), (shelves.friend, .string(altered)),
                (shelves.friend, "0a1B2c3D"), (shelves.friend, ""),
                (shelves.friend, .string(String(repeating: "0", count: 45))),
                (shelves.friend, .string(new + "0")), (eve, .string(new)),
                (elsewhere, .string(new)),
            ]
            for (person, guid) in unknown {
                for verb in ["resolve", "accept"] {
                    expectFailure(
                        try await person.post(
                            "public/records/\(verb)", ["shortGUIDs": [["value": guid]]]),
                        404, "NOT_FOUND", reason: "no share has this short GUID")
                    // Among others each has an entry, in their order; a bare string is understood.
                    let several = try await person.ask(
                        "public/records/\(verb)", ["shortGUIDs": [guid, ["value": guid]]])
                    for item in several["results"].elements {
                        #expect(
                            item.keys.sorted() == ["reason", "serverErrorCode", "shortGUID"],
                            "\(item)")
                        #expect(item["serverErrorCode"] == "NOT_FOUND")
                        #expect(item["shortGUID"]["value"] == guid)
                    }
                }
            }
            let mixed = try await shelves.friend.ask(
                "public/records/resolve",
                ["shortGUIDs": [["value": "no"], ["value": .string(new)]]])
            #expect(mixed["results"][0]["serverErrorCode"] == "NOT_FOUND")
            #expect(mixed["results"][1]["participantStatus"] == "INVITED", "\(mixed)")
            #expect(
                try await shelves.friend.ask("public/records/accept", ["shortGUIDs": []])
                    == ["results": []])
            expectFailure(
                try await shelves.friend.post(
                    "public/records/resolve",
                    ["shortGUIDs": .array(Array(repeating: "x", count: 201))]), 400, "BAD_REQUEST")
        },
        Scenario("share: a short GUID that a record has before a share") { caller in
            let shelves = try await SharedShelves(caller)
            let record: JSON = ["recordName": "c", "recordType": "Book", "createShortGUID": true]
            let saved = try await caller.modify(
                [["operationType": "create", "record": record]], in: shelves.zone)
            let guid = saved[0]["shortGUID"] ?? .null
            #expect(guid.text?.count == 45, "\(saved)")
            expectFailure(
                try await caller.post("public/records/resolve", ["shortGUIDs": [["value": guid]]]),
                404, "NOT_FOUND")
            let again = try await caller.modify(
                [Operation.of("forceUpdate", "c", recordType: "Book")], in: shelves.zone)
            #expect(again[0]["shortGUID"] == guid, "\(again)")
        },
    ]

    private static let sharedZones: [Scenario] = [
        Scenario("share: without an owner, one's own, and not shared: there is no such zone") {
            caller in
            let shelves = try await SharedShelves(caller)
            try await shelves.expectClosed(to: shelves.friend)
            let share = try await shelves.share()
            // Who is only invited has nothing yet, and a stranger never has.
            try await shelves.expectClosed(to: shelves.friend)
            try await shelves.accept(share)
            try await shelves.expectClosed(to: caller.acting(as: .other("eve")))
            try await caller.makeZone("Other")
            for zone in [
                ["zoneName": "Shelves"], ["zoneName": "_defaultZone"],
                ["zoneName": "Shelves", "ownerRecordName": .string(shelves.friendName)],
                ["zoneName": "Other", "ownerRecordName": .string(shelves.ownerName)],
                ["zoneName": "_defaultZone", "ownerRecordName": .string(shelves.ownerName)],
                ["zoneName": "_kv", "ownerRecordName": .string(shelves.ownerName)],
                ["zoneName": "Shelves", "ownerRecordName": "tom"],
            ] as [JSON] {
                expectFailure(
                    try await shelves.friend.post(
                        "shared/records/lookup", ["zoneID": zone, "records": ["a"]]),
                    404, "ZONE_NOT_FOUND", reason: "Zone not found")
                expectItem(
                    try await shelves.friend.ask("shared/zones/lookup", ["zones": [zone]])["zones"][
                        0], failed: "ZONE_NOT_FOUND")
            }
            // The owner's private database is the owner's alone.
            expectFailure(
                try await shelves.friend.post(
                    "private/records/lookup", ["zoneID": shelves.theirs, "records": ["a"]]),
                404, "ZONE_NOT_FOUND")
        },
        Scenario("share: somebody reads and writes in another's zone") { caller in
            let shelves = try await SharedShelves(caller)
            try await shelves.accept(try await shelves.share())
            let (friend, theirs) = (shelves.friend, shelves.theirs)
            let found = try await friend.lookUp(
                ["a", "none"], in: theirs, database: "shared")
            #expect(found[0]["fields"]["title"]["value"] == "Sea Roads", "\(found)")
            #expect(found[0]["zoneID"]["ownerRecordName"].text == shelves.ownerName)
            expectItem(found[1], failed: "NOT_FOUND")
            let saved = try await friend.modify(
                [
                    Operation.create("c", ["title": ["value": "High Tide"]]),
                    [
                        "operationType": "update",
                        "record": [
                            "recordName": "a", "recordType": "Book",
                            "recordChangeTag": found[0]["recordChangeTag"] ?? .null,
                            "fields": ["pages": ["value": 7]],
                        ],
                    ], Operation.of("delete", "b"),
                ], in: theirs, database: "shared")
            #expect(saved[0]["recordName"] == "c" && saved[2]["deleted"] == true, "\(saved)")
            // Stamps name who wrote.
            #expect(saved[0]["created"]["userRecordName"].text == shelves.friendName)
            #expect(saved[1]["created"]["userRecordName"].text == shelves.ownerName)
            #expect(saved[1]["modified"]["userRecordName"].text == shelves.friendName, "\(saved)")
            let own = try await caller.lookUp(["a", "b", "c"], in: shelves.zone)
            #expect(own[0]["fields"]["pages"]["value"] == 7, "\(own)")
            expectItem(own[1], failed: "NOT_FOUND")
            #expect(own[2]["created"]["userRecordName"].text == shelves.friendName)
            expectItem(
                try await friend.modify(
                    [Operation.create("c")], in: theirs, database: "shared")[0],
                failed: "CONFLICT", reason: "record to insert already exists")
            let names = try await friend.query(
                ["recordType": "Book", "sortBy": [["fieldName": "title"]]], in: theirs,
                database: "shared")
            #expect(names == ["c", "a"])
        },
        Scenario("share: who may only read, writes nothing") { caller in
            let shelves = try await SharedShelves(caller)
            let share = try await shelves.share("READ_ONLY")
            try await shelves.accept(share)
            let before = try await caller.changes("Shelves")
            for operation in [
                Operation.create("c"), Operation.of("forceUpdate", "a", recordType: "Book"),
                Operation.of("forceDelete", "a"),
            ] {
                expectItem(
                    try await shelves.friend.modify(
                        [operation], in: shelves.theirs, database: "shared")[0],
                    failed: "ACCESS_DENIED", reason: "WRITE operation not permitted")
            }
            // Nobody but the owner changes the share, with whatever permission.
            expectItem(
                try await shelves.friend.modify(
                    [
                        SharedShelves.operation(
                            "update", ["publicPermission": "READ_WRITE"],
                            tag: share["recordChangeTag"])
                    ], in: shelves.theirs, database: "shared")[0], failed: "ACCESS_DENIED")
            #expect(try await caller.changes("Shelves") == before)
            let found = try await shelves.friend.lookUp(
                ["a"], in: shelves.theirs, database: "shared")
            #expect(found[0]["recordName"] == "a")
        },
        Scenario("share: feeds of a shared zone, and of the shared database") { caller in
            let shelves = try await SharedShelves(caller)
            let friend = shelves.friend
            let nothing = try await friend.ask("shared/changes/database", [:])
            #expect(nothing["zones"] == [])
            let share = try await shelves.share()
            try await shelves.accept(share)
            let news = try await friend.ask(
                "shared/changes/database", ["syncToken": nothing["syncToken"] ?? .null])
            #expect(news["zones"].elements.count == 1 && news["moreComing"] == false, "\(news)")
            #expect(news["zones"][0]["zoneID"]["ownerRecordName"].text == shelves.ownerName)
            #expect(news["zones"][0]["deleted"] == false)
            func changes(_ token: JSON?) async throws -> JSON {
                var entry: JSON = ["zoneID": shelves.theirs]
                if let token { entry = entry.setting("syncToken", token) }
                return try await friend.ask("shared/changes/zone", ["zones": [entry]])["zones"][0]
                    ?? .null
            }
            let first = try await changes(news["zones"][0]["syncToken"])
            let names = first["records"].elements.map { $0["recordName"].text ?? "" }
            #expect(names.sorted() == ["a", "b", "cloudkit.zoneshare"], "\(first)")
            // The share comes as the friend sees it.
            let fed = first["records"].elements.last
            #expect(
                fed["currentUserParticipant"]["userIdentity"]["userRecordName"].text
                    == shelves.friendName, "\(first)")
            #expect(fed["owner"]["userIdentity"]["userRecordName"].text == shelves.ownerName)
            try await caller.create("c", in: shelves.zone)
            _ = try await caller.modify([Operation.of("forceDelete", "a")], in: shelves.zone)
            let more = try await changes(first["syncToken"])
            #expect(
                more["records"].elements.map { $0["recordName"].text } == ["c", "a"], "\(more)")
            #expect(more["records"][1]["deleted"] == true)
            let same = try await friend.ask(
                "shared/records/changes",
                ["zoneID": shelves.theirs, "syncToken": first["syncToken"] ?? .null])
            #expect(same["records"] == more["records"])
            // A token is good for whom it was given to, in the database it is of.
            let own = try await caller.changes("Shelves")["syncToken"]
            expectItem(
                try await changes(own), failed: "BAD_REQUEST",
                reason: "Unknown sync continuation type")
            // Left: the database says that it is gone.
            _ = try await friend.ask(
                "shared/zones/modify",
                ["operations": [["operationType": "delete", "zone": ["zoneID": shelves.theirs]]]])
            for (operation, key) in [
                ("changes/database", "syncToken"), ("zones/changes", "metaSyncToken"),
            ] {
                let all = try await friend.ask("shared/\(operation)", [:])
                #expect(all["zones"] == [], "\(operation): \(all)")
                #expect(all[key].text != nil)
            }
            let gone = try await friend.ask(
                "shared/changes/database", ["syncToken": news["syncToken"] ?? .null])
            #expect(gone["zones"].elements.count == 1 && gone["zones"][0]["deleted"] == true)
            #expect(gone["zones"][0]["deletionReason"] == "DELETED", "\(gone)")
        },
        Scenario("engines: who is removed from a share is told so by the feed") { caller in
            let shelves = try await SharedShelves(caller)
            try await shelves.accept(try await shelves.share())
            let news = try await shelves.friend.ask("shared/changes/database", [:])
            let current = try await shelves.current()
            _ = try await shelves.modify(
                SharedShelves.operation(
                    "update", ["participants": []], tag: current["recordChangeTag"]))
            let gone = try await shelves.friend.ask(
                "shared/changes/database", ["syncToken": news["syncToken"] ?? .null])
            #expect(gone["zones"].elements.count == 1 && gone["zones"][0]["deleted"] == true)
            #expect(gone["zones"][0]["deletionReason"] == "REMOVED", "\(gone)")
        },
        Scenario("share: who is removed has nothing, from the next request on") { caller in
            let shelves = try await SharedShelves(caller)
            let share = try await shelves.share()
            for round in 0..<2 {
                try await shelves.accept(share)
                let current = try await shelves.current()
                let removed = try await shelves.modify(
                    SharedShelves.operation(
                        "update", ["participants": []], tag: current["recordChangeTag"]))
                #expect(removed["participants"].elements.count == 1, "\(removed)")
                try await shelves.expectClosed(to: shelves.friend)
                expectFailure(
                    try await shelves.resolve(share, as: shelves.friend), 404, "NOT_FOUND")
                if round == 1 { break }
                // Invited again, the friend may come again.
                _ = try await shelves.modify(
                    SharedShelves.operation(
                        "update", ["participants": [SharedShelves.invitation(shelves.friendName)]],
                        tag: removed["recordChangeTag"]))
            }
        },
        Scenario("share: who leaves is out, and nobody else") { caller in
            let shelves = try await SharedShelves(caller)
            let ann = caller.acting(as: .other("ann"))
            let friend = shelves.friend
            let share = try await shelves.modify(
                SharedShelves.operation(
                    "create",
                    [
                        "participants": [
                            SharedShelves.invitation(shelves.friendName),
                            SharedShelves.invitation(try await SharedShelves.name(of: ann)),
                        ]
                    ]))
            for person in [friend, ann] {
                _ = try await shelves.resolve(share, as: person, "accept")
            }
            // By deleting the zone, and by deleting the share's record.
            let left = try await friend.ask(
                "shared/zones/modify",
                ["operations": [["operationType": "delete", "zone": ["zoneID": shelves.theirs]]]])
            #expect(left["zones"][0]["deleted"] == true, "\(left)")
            try await shelves.expectClosed(to: friend)
            #expect(
                try await ann.lookUp(["a"], in: shelves.theirs, database: "shared")[0][
                    "recordName"] == "a")
            let deleted = try await ann.modify(
                [Operation.of("delete", SharedShelves.name)], in: shelves.theirs,
                database: "shared")
            #expect(deleted[0]["deleted"] == true, "\(deleted)")
            try await shelves.expectClosed(to: ann)
            // The zone, its records and the share are what they were.
            let current = try await shelves.current()
            #expect(current["shortGUID"] == share["shortGUID"])
            let kept = try await caller.lookUp(["a", "b"], in: shelves.zone)
            #expect(kept.map { $0["recordName"] } == ["a", "b"])
        },
        Scenario("share: it ends with its record, and with the zone") { caller in
            let shelves = try await SharedShelves(caller)
            let share = try await shelves.share()
            try await shelves.accept(share)
            let ended = try await caller.modify(
                [Operation.of("delete", SharedShelves.name)], in: shelves.zone)
            #expect(ended[0]["deleted"] == true, "\(ended)")
            try await shelves.expectClosed(to: shelves.friend)
            expectFailure(try await shelves.resolve(share, as: shelves.friend), 404, "NOT_FOUND")
            let kept = try await caller.lookUp(["a"], in: shelves.zone)
            #expect(kept[0]["recordName"] == "a")
            // Shared again the zone has the link that it had.
            let again = try await shelves.share()
            #expect(again["shortGUID"] == share["shortGUID"], "\(again)")
            try await shelves.accept(again)
            try await caller.deleteZone("Shelves")
            try await shelves.expectClosed(to: shelves.friend)
            expectFailure(try await shelves.resolve(share, as: shelves.friend), 404, "NOT_FOUND")
            // A zone made again is another one.
            try await caller.makeZone("Shelves")
            try await shelves.expectClosed(to: shelves.friend)
        },
        Scenario("share: what the shared database does not do") { caller in
            let shelves = try await SharedShelves(caller)
            try await shelves.accept(try await shelves.share())
            let friend = shelves.friend
            let made = try await friend.ask(
                "shared/zones/modify",
                ["operations": [["operationType": "create", "zone": ["zoneID": shelves.theirs]]]])
            expectItem(made["zones"][0], failed: "BAD_REQUEST")
            expectFailure(
                try await friend.post(
                    "shared/assets/upload",
                    [
                        "zoneID": shelves.theirs,
                        "tokens": [["recordType": "Book", "fieldName": "cover"]],
                    ]), 400, "BAD_REQUEST",
                reason: "assets/upload is not supported in the shared database")
            for (kind, reason) in [
                ("zone", "zone subscriptions are not supported in the shared database"),
                ("database", "database subscriptions are not supported in the shared database"),
            ] {
                let answer = try await friend.ask(
                    "shared/subscriptions/modify",
                    [
                        "operations": [
                            [
                                "operationType": "create",
                                "subscription": [
                                    "subscriptionID": "s", "zoneID": shelves.theirs,
                                    "subscriptionType": .string(kind),
                                ],
                            ]
                        ]
                    ])
                let item = answer["subscriptions"][0]
                #expect(item["serverErrorCode"] == "BAD_REQUEST", "\(answer)")
                #expect(item["reason"].text == reason)
            }
            expectFailure(
                try await friend.post("public/records/requestAccess", ["shortGUIDs": ["x"]]),
                404, "NOT_FOUND")
        },
    ]
}
