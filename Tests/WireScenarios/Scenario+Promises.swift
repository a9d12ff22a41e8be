import Testing

/// What CloudKit promises and clients were found to rely on.
extension Scenario {
    static let promises: [Scenario] = [
        Scenario("promise: everybody writes their own user record, and nobody another's") {
            caller in
            let name = try await caller.ask("public/users/caller", [:])["userRecordName"].text ?? ""
            let tom = caller.acting(as: .other("tom"))
            func write(
                _ record: String, _ fields: JSON, as someone: Caller, type: JSON? = "Users"
            ) async throws -> JSON {
                try await someone.modify(
                    [Operation.of("forceUpdate", record, recordType: type, fields: fields)],
                    database: "public")[0]
            }
            // `Users` is in a schema that does not name it, with its one field.
            let saved = try await write(name, ["roles": ["value": [1, 2]]], as: caller)
            #expect(saved["recordType"] == "Users" && saved["recordChangeTag"] != nil, "\(saved)")
            let again = try await write(name, ["roles": ["value": [3]]], as: caller, type: nil)
            #expect(again["fields"]["roles"]["value"] == [3], "\(again)")
            let seen = try await tom.lookUp([name], database: "public")[0]
            #expect(seen["fields"]["roles"]["value"] == [3], "the world reads it: \(seen)")
            expectItem(
                try await write(name, ["nick": ["value": "Ada"]], as: caller), failed: "BAD_REQUEST"
            )
            let nobody = "_" + String(repeating: "0", count: 32)
            for other in [name, nobody] {
                expectItem(
                    try await write(other, ["roles": ["value": [9]]], as: tom),
                    failed: "ACCESS_DENIED", reason: "WRITE operation not permitted")
            }
            let deleted = try await caller.modify(
                [Operation.of("forceDelete", name)], database: "public")
            #expect(deleted[0]["serverErrorCode"] != nil, "\(deleted)")
            expectItem(
                try await caller.modify(
                    [Operation.create(name, type: "Users")], database: "public")[0],
                failed: "CONFLICT")
            // Names of another form are nobody's.
            expectItem(
                try await write("_tom", [:], as: caller), failed: "BAD_REQUEST",
                reason: "invalid record name '_tom'")
        },
        Scenario("promise: apps get different names of one user") { caller in
            let other = Caller(wire: caller.wire, container: try await caller.wire.makeContainer())
            var names: Set<String> = []
            for someone in [caller, other, caller.acting(as: .other("tom"))] {
                names.insert(
                    try await someone.ask("private/users/caller", [:])["userRecordName"].text ?? "")
            }
            #expect(names.count == 3 && !names.contains(""), "\(names)")
        },
        Scenario("promise: an empty list is answered with an empty list") { caller in
            try await caller.makeZone("Shelves")
            let zone: JSON = ["zoneName": "Shelves"]
            for (operation, key, answer) in [
                ("records/modify", "operations", "records"),
                ("records/lookup", "records", "records"),
                ("zones/modify", "operations", "zones"), ("zones/lookup", "zones", "zones"),
                ("changes/zone", "zones", "zones"),
                ("subscriptions/modify", "operations", "subscriptions"),
            ] {
                let body: JSON = [:]
                let found = try await caller.ask(
                    "private/\(operation)", body.setting(key, []).setting("zoneID", zone))
                #expect(found[answer] == [], "\(operation): \(found)")
                expectFailure(
                    try await caller.post("private/\(operation)", [:]), 400, "BAD_REQUEST")
            }
            expectFailure(
                try await caller.post(
                    "private/records/modify", ["operations": [], "zoneID": ["zoneName": "Nope"]]),
                404, "ZONE_NOT_FOUND")
        },
        Scenario("promise: no record is above its parent") { caller in
            try await caller.makeZone("Shelves")
            func operation(_ kind: String, _ name: JSON, under parent: JSON?) -> JSON {
                var record: JSON = ["recordName": name, "recordType": "Book"]
                if let parent { record = record.setting("parent", ["recordName": parent]) }
                return ["operationType": .string(kind), "record": record]
            }
            let zone: JSON = ["zoneName": "Shelves"]
            let made = try await caller.modify(
                [
                    operation("create", "c", under: "b"), operation("create", "a", under: nil),
                    operation("create", "b", under: "a"),
                ], in: zone)
            #expect(made.allSatisfy { $0["recordChangeTag"] != nil }, "\(made)")
            for (name, parent) in [("a", "b"), ("a", "c"), ("b", "c")] {
                let items = try await caller.modify(
                    [operation("forceUpdate", .string(name), under: .string(parent))], in: zone)
                expectItem(items[0], failed: "BAD_REQUEST")
            }
            // Two that would be above each other only together.
            let pair = try await caller.modify(
                [operation("create", "x", under: "y"), operation("create", "y", under: "x")],
                in: zone, atomic: false)
            #expect(pair.contains { $0["serverErrorCode"] != nil }, "\(pair)")
            let moved = try await caller.modify(
                [operation("forceUpdate", "c", under: "a")], in: zone)
            #expect(moved[0]["parent"]["recordName"] == "a", "\(moved)")
        },
        Scenario("promise: in a default zone the children of a deleted parent stay") { caller in
            func child(_ kind: String, _ name: JSON) -> JSON {
                [
                    "operationType": .string(kind),
                    "record": [
                        "recordName": name, "recordType": "Book", "parent": ["recordName": "p"],
                        "fields": ["title": ["value": "Low Tide"]],
                    ],
                ]
            }
            _ = try await caller.modify(
                [Operation.create("p", type: "Book"), child("create", "c")])
            let gone = try await caller.modify([Operation.of("forceDelete", "p")])
            #expect(gone[0]["deleted"] == true, "\(gone)")
            let left = try await caller.lookUp(["c"])[0]
            #expect(left["parent"]["recordName"] == "p", "\(left)")
            let changed = try await caller.modify([child("forceUpdate", "c")])
            #expect(changed[0]["parent"]["recordName"] == "p", "\(changed)")
            // No new child comes to it.
            expectItem(
                try await caller.modify([child("create", "d")])[0], failed: "BAD_REQUEST")
        },
        Scenario("promise: the wrong key of an owner says nothing") { caller in
            try await caller.makeZone("Shelves")
            let zone: JSON = ["zoneName": "Shelves", "ownerName": "_somebody"]
            #expect(try await caller.create("a", in: zone)["recordName"] == "a")
        },
    ]
}
