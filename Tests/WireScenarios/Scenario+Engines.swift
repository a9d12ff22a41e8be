import Testing

/// A zone, and what a sync engine does with it.
struct EngineShelf {
    let caller: Caller
    let zone: JSON = ["zoneName": "Shelves"]

    init(_ caller: Caller) async throws {
        self.caller = caller
        try await caller.makeZone("Shelves")
    }

    /// The entry of one operation on zones.
    static func zone(
        _ caller: Caller, _ kind: JSON, _ name: JSON = "Shelves", _ more: JSON = [:],
        of zone: JSON = [:]
    ) async throws -> JSON {
        var operation: JSON = [
            "operationType": kind, "zone": zone.setting("zoneID", ["zoneName": name]),
        ]
        for key in more.keys { operation = operation.setting(key, more[key]) }
        let answer = try await caller.ask("private/zones/modify", ["operations": [operation]])
        return answer["zones"][0] ?? .null
    }

    func modify(_ operations: JSON..., atomic: JSON = false) async throws -> [JSON] {
        try await self.caller.modify(operations, in: self.zone, atomic: atomic)
    }

    /// What the database's feeds tell of a zone behind two tokens.
    func told(
        _ name: String = "Shelves", after database: JSON?, _ meta: JSON?
    ) async throws -> (database: JSON, meta: JSON) {
        var answers: [JSON] = []
        for (operation, key, token) in [
            ("changes/database", "syncToken", database), ("zones/changes", "metaSyncToken", meta),
        ] {
            let answer = try await self.caller.ask(
                "private/\(operation)", JSON.object([]).setting(key, token))
            answers.append(
                answer["zones"].elements.first { $0["zoneID"]["zoneName"].text == name } ?? .null)
        }
        return (answers[0], answers[1])
    }

    func tokens() async throws -> (database: JSON?, meta: JSON?) {
        (
            try await self.caller.ask("private/changes/database", [:])["syncToken"],
            try await self.caller.ask("private/zones/changes", [:])["metaSyncToken"]
        )
    }
}

/// What sync engines need of every database: design of sharing, section 3.6.
extension Scenario {
    static let engines: [Scenario] = Self.finerAnswers + Self.zoneEnds + Self.trees

    private static let finerAnswers: [Scenario] = [
        Scenario("engines: a conflict brings the server's record") { caller in
            let shelf = try await EngineShelf(caller)
            let old = try await caller.create(
                "a", fields: ["title": ["value": "Sea Roads"]], in: shelf.zone)
            _ = try await shelf.modify(
                Operation.of("forceUpdate", "a", fields: ["title": ["value": "Low Tide"]]))
            let now = try await caller.lookUp(["a"], in: shelf.zone)[0]
            let items = try await shelf.modify(
                Operation.of("update", "a", tag: old["recordChangeTag"], fields: [:]),
                Operation.create("b"))
            expectItem(items[0], failed: "CONFLICT", recordName: "a")
            #expect(items[0]["serverRecord"] == now, "\(items)")
            #expect(items[1]["serverRecord"] == nil && items[1]["recordChangeTag"] != nil)
            // An atomic batch, and one of which the server itself finds something wrong.
            let broken = Operation.of("forceUpdate", "c", fields: ["pages": ["value": "x"]])
            for other in [Operation.of("update", "ghost", tag: "1"), broken] {
                let items = try await shelf.modify(Operation.create("a"), other, atomic: true)
                expectItem(items[0], failed: "CONFLICT")
                #expect(items[0]["serverRecord"] == now, "\(items)")
                #expect(items[1]["serverRecord"] == nil && items[1]["serverErrorCode"] != nil)
            }
        },
        Scenario("engines: the records beside conflicts are a mebibyte, and no more") { caller in
            let shelf = try await EngineShelf(caller)
            let text = JSON.string(String(repeating: "sea ", count: 75_000))
            var operations: [JSON] = []
            for name in ["a", "b", "c", "d", "e", "f"] {
                try await caller.create(name, fields: ["note": ["value": text]], in: shelf.zone)
                operations.append(Operation.create(name))
            }
            let items = try await caller.modify(operations, in: shelf.zone, atomic: false)
            let found = items.filter { $0["serverRecord"] != nil }
            #expect((1...4).contains(found.count), "\(found.count)")
            for item in items { expectItem(item, failed: "CONFLICT") }
            for item in found {
                #expect(item["serverRecord"]["fields"]["note"]["value"] == text)
            }
        },
        Scenario("engines: too many operations are told by a code and a limit") { caller in
            let shelf = try await EngineShelf(caller)
            let many = JSON.array((0..<201).map { Operation.create("r\($0)") })
            let answer = try await caller.post(
                "private/records/modify", ["operations": many, "zoneID": shelf.zone])
            expectFailure(answer, 400, "BAD_REQUEST")
            #expect(answer.json["stratus"] == ["code": "LIMIT_EXCEEDED", "limit": 200])
        },
    ]

    private static let zoneEnds: [Scenario] = [
        Scenario("engines: the feeds say why a zone is gone") { caller in
            let shelf = try await EngineShelf(caller)
            try await caller.makeZone("Loans")
            let before = try await shelf.tokens()
            try await caller.deleteZone("Shelves")
            let purged = try await EngineShelf.zone(
                caller, "delete", "Loans", ["deletionReason": "PURGED"])
            #expect(purged.keys.sorted() == ["deleted", "zoneID"], "\(purged)")
            for (name, reason) in [("Shelves", "DELETED"), ("Loans", "PURGED")] {
                let told = try await shelf.told(name, after: before.database, before.meta)
                for entry in [told.database, told.meta] {
                    #expect(entry["deleted"] == true, "\(entry)")
                    #expect(entry["deletionReason"].text == reason, "\(entry)")
                    #expect(entry["reason"] == nil && entry["deletedBefore"] == nil, "\(entry)")
                }
            }
            // A client cannot say that keys are lost, and no other word is guessed at.
            try await caller.makeZone("Loans")
            for word in ["ENCRYPTED_DATA_RESET", "PURGE"] {
                let refused = try await EngineShelf.zone(
                    caller, "delete", "Loans", ["deletionReason": .string(word)])
                #expect(refused["serverErrorCode"] == "BAD_REQUEST", "\(refused)")
            }
        },
        Scenario("engines: a zone made again between two fetches says that it was gone") {
            caller in
            let shelf = try await EngineShelf(caller)
            let before = try await shelf.tokens()
            _ = try await EngineShelf.zone(
                caller, "delete", "Shelves", ["deletionReason": "PURGED"])
            try await caller.makeZone("Shelves")
            let told = try await shelf.told(after: before.database, before.meta)
            for entry in [told.database, told.meta] {
                #expect(entry["deleted"] == false && entry["deletionReason"] == nil, "\(entry)")
                #expect(entry["deletedBefore"] == "PURGED", "\(entry)")
            }
            // Who has heard of it, and who begins, is not told.
            let after = try await shelf.tokens()
            try await caller.create("a", in: shelf.zone)
            let later = try await shelf.told(after: after.database, after.meta)
            #expect(later.database["syncToken"] != nil && later.database["deletedBefore"] == nil)
            let first = try await shelf.told(after: nil, nil)
            #expect(first.database["syncToken"] != nil && first.database["deletedBefore"] == nil)
            // What was purged once stays so, whatever came after it.
            try await caller.deleteZone("Shelves")
            let gone = try await shelf.told(after: before.database, before.meta)
            #expect(gone.database["deletionReason"] == "PURGED", "\(gone)")
            let since = try await shelf.told(after: after.database, after.meta)
            #expect(since.database["deletionReason"] == "DELETED", "\(since)")
        },
        Scenario("engines: the encryption scope of a zone is fixed when it is made") { caller in
            func make(_ name: JSON, _ scope: JSON?) async throws -> JSON {
                try await EngineShelf.zone(
                    caller, "create", name, of: JSON.object([]).setting("encryptionScope", scope))
            }
            let made = try await make("One", "PER_ZONE")
            #expect(made["encryptionScope"] == "PER_ZONE", "\(made)")
            #expect(made["isEligibleForZoneShare"] == true)
            #expect(made["isEligibleForHierarchicalShare"] == false)
            #expect(try await make("One", "PER_ZONE") == made)
            #expect(try await make("One", nil) == made)
            expectItem(try await make("One", "PER_RECORD"), failed: "BAD_REQUEST")
            for scope in [nil, "PER_RECORD"] as [JSON?] {
                let other = try await make("Two", scope)
                #expect(other["syncToken"] != nil && other["encryptionScope"] == nil, "\(other)")
            }
            expectItem(try await make("Two", "PER_ZONE"), failed: "BAD_REQUEST")
            expectItem(try await make("Three", "PER_PLANET"), failed: "BAD_REQUEST")
            let zones = try await caller.ask("private/zones/list", [:])["zones"].elements
            #expect(zones.count == 3, "\(zones)")
            #expect(zones.filter { $0["encryptionScope"] == "PER_ZONE" }.count == 1, "\(zones)")
            let found = try await caller.ask(
                "private/zones/lookup", ["zones": [["zoneName": "One"]]])["zones"][0]
            #expect(found["encryptionScope"] == "PER_ZONE")
            // Another life of the zone, another scope.
            try await caller.deleteZone("One")
            #expect(try await make("One", "PER_RECORD")["encryptionScope"] == nil)
        },
    ]
}
