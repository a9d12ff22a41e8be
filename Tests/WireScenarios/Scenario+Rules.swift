import Testing

/// The 25 rules of the wire reference, part 1 §0.1, each under its number.
extension Scenario {
    static let rules: [Scenario] = [
        Scenario("rule 1: an item's failure travels in a 200, at its place") { caller in
            try await caller.create("there")
            let records = try await caller.modify([
                Operation.create("new"), Operation.create("there"), Operation.create("newer"),
            ])
            #expect(records[0]["recordName"] == "new" && records[0]["deleted"] == false)
            expectItem(records[1], failed: "CONFLICT", recordName: "there")
            #expect(records[2]["recordName"] == "newer" && records[2]["deleted"] == false)
        },
        Scenario("rule 2: answers stand in the order of the request, one for each item") { caller in
            try await caller.create("old")
            let records = try await caller.modify([
                ["operationType": "forceDelete", "record": ["recordName": "old"]],
                Operation.create("b"), Operation.create("a"),
                ["operationType": "delete", "record": ["recordName": "ghost"]],
            ])
            #expect(records.map { $0["recordName"].text } == ["old", "b", "a", "ghost"])
            let found = try await caller.lookUp(["a", "ghost", "b", "a"])
            #expect(found.map { $0["recordName"].text } == ["a", "ghost", "b", "a"])
        },
        Scenario("rule 3: whatever is asked, only the documented codes come back") { caller in
            let bodies: [JSON] = [
                [:], [], nil, "text", 7, ["zones": 5], ["records": ["a", 7]], ["operations": [[]]],
                ["query": ["recordType": "Book", "filterBy": [["comparator": "LIKE"]]]],
                ["query": ["recordType": "Nothing"]], ["zoneID": ["zoneName": "Nowhere"]],
                ["shortGUIDs": [["value": "0a1B"]]],
            ]
            for operation in [
                "records/query", "records/lookup", "records/modify", "records/changes",
                "records/resolve", "records/accept", "zones/list", "zones/lookup", "zones/modify",
                "zones/changes", "changes/database", "changes/zone", "records/destroy",
                "internal/records/query/batch",
            ] {
                for database in ["public", "private", "shared"] {
                    for body in bodies {
                        let answer = try await caller.post("\(database)/\(operation)", body)
                        for code in answer.json.codes {
                            #expect(documentedCodes.contains(code), "\(operation): \(answer)")
                        }
                        #expect(answer.status < 500, "\(operation) \(body): \(answer)")
                    }
                }
            }
        },
        Scenario("rule 4: a failed request has uuid, code and reason; a failed item its name too") {
            caller in
            expectFailure(
                try await caller.post("private/records/modify", [:]), 400, "BAD_REQUEST",
                reason: "BadRequestException: missing required field 'operations'")
            expectItem(
                try await caller.lookUp(["ghost"]).first, failed: "NOT_FOUND",
                reason: "Record not found", recordName: "ghost")
            let zones = try await caller.ask(
                "private/zones/lookup", ["zones": [["zoneName": "Nope"]]])
            expectItem(zones["zones"][0], failed: "ZONE_NOT_FOUND", reason: "Zone not found")
            expectZoneID(zones["zones"][0]["zoneID"], name: "Nope")
        },
        Scenario("rule 5: a success has no key that clients take for a failure") { caller in
            try await caller.makeZone("Shelves")
            let zone: JSON = ["zoneName": "Shelves"]
            try await caller.create("a", in: zone)
            // `ask` looks at the top-level keys of each.
            _ = try await caller.lookUp(["a"], in: zone)
            _ = try await caller.query(["recordType": "Book"], in: zone)
            _ = try await caller.ask("private/zones/list", [:])
            _ = try await caller.ask("private/zones/changes", [:])
            _ = try await caller.ask("private/changes/database", [:])
            _ = try await caller.changes("Shelves")
            _ = try await caller.ask("private/records/changes", ["zoneID": zone])
        },
        Scenario("rule 6: every field comes with its value and its type") { caller in
            let saved = try await caller.create(
                "all", fields: .object(Sample.all.map { .init(key: $0.field, value: $0.written) }))
            for sample in Sample.all {
                let field = saved["fields"][sample.field]
                #expect(field.keys == ["value", "type"], "\(sample.field): \(field ?? .null)")
            }
        },
        Scenario("rule 7: types are spelled as Apple's service spells them") { caller in
            let saved = try await caller.create(
                "all", fields: .object(Sample.all.map { .init(key: $0.field, value: $0.written) }))
            for sample in Sample.all {
                #expect(saved["fields"][sample.field]["type"].text == sample.tag)
            }
        },
        Scenario("rule 8: created and modified have timestamp, user and device") { caller in
            let saved = try await caller.create("a")
            for stamp in [saved["created"], saved["modified"]] {
                #expect(stamp["timestamp"].integer ?? 0 > 1_600_000_000_000)
                #expect(stamp["userRecordName"].text?.hasPrefix("_") == true)
                #expect(stamp["deviceID"].text?.isEmpty == false)
            }
        },
        Scenario("rule 9: a zoneID has name, owner and type") { caller in
            try await caller.makeZone("Shelves")
            expectZoneID(
                try await caller.create("a", in: ["zoneName": "Shelves"])["zoneID"],
                name: "Shelves")
            expectZoneID(try await caller.create("a")["zoneID"], name: "_defaultZone")
            let open = try await caller.create("a", database: "public")
            #expect(
                open["zoneID"]
                    == [
                        "zoneName": "_defaultZone", "ownerRecordName": "_defaultOwner",
                        "zoneType": "DEFAULT_ZONE",
                    ])
        },
        Scenario("rule 10: tokens and markers are canonical, padded base64") { caller in
            for token in try await caller.everyToken() {
                #expect(Base64Text.isCanonical(token), "\(token)")
            }
        },
        Scenario("rule 11: the last page has no continuationMarker, not even null") { caller in
            for name in ["a", "b"] { try await caller.create(name) }
            let query: JSON = ["recordType": "Book"]
            let first = try await caller.ask(
                "private/records/query", ["query": query, "resultsLimit": 1])
            let marker = try #require(first["continuationMarker"])
            let last = try await caller.ask(
                "private/records/query",
                ["query": query, "resultsLimit": 1, "continuationMarker": marker])
            #expect(last["records"].elements.count == 1)
            #expect(!last.keys.contains("continuationMarker"), "\(last)")
        },
        Scenario(
            "rule 12: changes/zone entries always have records, syncToken, moreComing and zoneID"
        ) { caller in
            try await caller.makeZone("Empty")
            let answer = try await caller.ask(
                "private/changes/zone",
                ["zones": [["zoneID": ["zoneName": "Empty"]], ["zoneID": ["zoneName": "Nope"]]]])
            let empty = answer["zones"][0]
            #expect(empty["records"] == [])
            #expect(empty["syncToken"].text?.isEmpty == false)
            #expect(empty["moreComing"] == false)
            expectZoneID(empty["zoneID"], name: "Empty")
            #expect(
                answer["zones"][1].keys.sorted() == ["reason", "serverErrorCode", "zoneID"],
                "\(answer)")
        },
        Scenario("rule 13: a deletion in a feed has no type and no fields") { caller in
            try await caller.makeZone("Shelves")
            try await caller.create("a", in: ["zoneName": "Shelves"])
            _ = try await caller.modify(
                [["operationType": "forceDelete", "record": ["recordName": "a"]]],
                in: ["zoneName": "Shelves"])
            let feed = try await caller.changes("Shelves")
            let tombstone = try #require(feed["records"][0])
            #expect(feed["records"].elements.count == 1)
            #expect(tombstone["recordName"] == "a" && tombstone["deleted"] == true)
            #expect(tombstone["recordType"] == .null && tombstone["fields"] == nil)
            #expect(tombstone["recordChangeTag"].text?.isEmpty == false)
            expectZoneID(tombstone["zoneID"], name: "Shelves")
        },
        Scenario("rule 14: a delete answers the name and deleted, and nothing else") { caller in
            try await caller.create("a")
            let records = try await caller.modify([
                ["operationType": "delete", "record": ["recordName": "a"]]
            ])
            #expect(records == [["recordName": "a", "deleted": true]])
        },
        Scenario("rule 15: creating what exists is a CONFLICT") { caller in
            try await caller.create("a", fields: ["title": ["value": "first"]])
            let records = try await caller.modify([
                Operation.create("a", ["title": ["value": "second"]])
            ])
            expectItem(
                records[0], failed: "CONFLICT", reason: "record to insert already exists",
                recordName: "a")
        },
        Scenario("rule 16: forceDelete of what is missing succeeds") { caller in
            let records = try await caller.modify([
                ["operationType": "forceDelete", "record": ["recordName": "ghost"]]
            ])
            #expect(records == [["recordName": "ghost", "deleted": true]])
        },
        Scenario("rule 17: a missing record and an unknown type are NOT_FOUND, each at its item") {
            caller in
            expectItem(
                try await caller.lookUp(["ghost"]).first, failed: "NOT_FOUND",
                recordName: "ghost")
            let records = try await caller.modify([
                Operation.create("a", type: "Nothing"), Operation.create("b"),
            ])
            expectItem(records[0], failed: "NOT_FOUND", recordName: "a")
            #expect(records[1]["deleted"] == false)
        },
        Scenario("rule 18: writing without a user is 421 with the page to sign in at") { caller in
            for database in ["public", "private"] {
                let answer = try await caller.acting(as: .anonymous).post(
                    "\(database)/records/modify", ["operations": [Operation.create("a")]])
                expectFailure(
                    answer, 421, "AUTHENTICATION_REQUIRED", reason: "request needs authorization")
                #expect(answer.json["redirectURL"].text?.hasPrefix("http") == true)
            }
        },
        Scenario("rule 19: a default zone has no atomic batches, and not saying is not asking") {
            caller in
            let body: JSON = ["operations": [Operation.create("a")]]
            for database in ["public", "private"] {
                expectFailure(
                    try await caller.post(
                        "\(database)/records/modify", body.setting("atomic", true)),
                    400, "BAD_REQUEST",
                    reason: "atomic operations not supported in default zone")
                for (name, atomic) in [("n", JSON.null), ("f", false), ("x", nil)] {
                    let records = try await caller.modify(
                        [Operation.create(name), Operation.create("a", type: "Nothing")],
                        database: database, atomic: atomic)
                    #expect(records[0]["deleted"] == false)
                    expectItem(records[1], failed: "NOT_FOUND")
                }
            }
        },
        Scenario("rule 20: the schema decides a type that is missing or an alias; nothing clears") {
            caller in
            let spellings: [(JSON, String, JSON)] = [
                (["value": 7], "pages", 7), (["value": 7, "type": "NUMBER_INT64"], "pages", 7),
                (["value": 7, "type": "INT"], "pages", 7), (["value": true], "pages", 1),
                (["value": "7"], "pages", 7), (["value": 7], "published", 7),
                (["value": 7, "type": "NUMBER_INT64"], "published", 7),
                (["value": 7, "type": "DATETIME"], "published", 7),
                (["value": 4.5, "type": "NUMBER_DOUBLE"], "rating", 4.5),
                (["value": "3q2+7w=="], "digest", "3q2+7w=="),
                (["value": "3q2+7w==", "type": "BYTE"], "digest", "3q2+7w=="),
                (["value": ["a"], "type": "LIST"], "tags", ["a"]),
                (["value": ["a"]], "tags", ["a"]),
            ]
            for (position, (written, field, expected)) in spellings.enumerated() {
                let name = "r\(position)"
                let saved = try await caller.create(
                    name, fields: .object([.init(key: field, value: written)]))
                #expect(saved["fields"][field]["value"] == expected, "\(field) from \(written)")
                for empty in [[:], ["value": nil], nil, ["value": nil, "type": "STRING"]] as [JSON]
                {
                    let cleared = try await caller.modify([
                        [
                            "operationType": "forceUpdate",
                            "record": [
                                "recordName": .string(name),
                                "fields": .object([.init(key: field, value: empty)]),
                            ],
                        ]
                    ])
                    #expect(cleared[0]["fields"] == [:], "\(field) cleared by \(empty)")
                }
            }
        },
        Scenario("rule 21: the share type of the archive is refused") { caller in
            try await caller.makeZone("Shelves")
            let records = try await caller.modify(
                [Operation.create("s", type: "cloudKit.share")], in: ["zoneName": "Shelves"])
            expectItem(
                records[0], failed: "BAD_REQUEST",
                reason: "Cannot share - no such record exists to share")
        },
        Scenario("rule 22: zones/changes speaks of metaSyncToken, the other feeds of syncToken") {
            caller in
            try await caller.makeZone("Shelves")
            let meta = try await caller.ask("private/zones/changes", [:])
            #expect(meta.keys.sorted() == ["metaSyncToken", "moreComing", "zones"])
            let database = try await caller.ask("private/changes/database", [:])
            #expect(database.keys.sorted() == ["moreComing", "syncToken", "zones"])
            #expect(
                try await caller.changes("Shelves").keys.sorted()
                    == ["moreComing", "records", "syncToken", "zoneID"])
        },
        Scenario("rule 23: the body is JSON whatever its Content-Type") { caller in
            for type in [
                "application/json", "application/json; charset=utf-8", "text/plain",
                "application/x-www-form-urlencoded", nil,
            ] as [String?] {
                let answer = try await caller.post(
                    "private/records/lookup", ["records": [["recordName": "a"]]],
                    contentType: type)
                #expect(answer.status == 200, "\(type ?? "none"): \(answer)")
            }
        },
        Scenario("rule 24: unknown parameters and keys are ignored everywhere") { caller in
            let answer = try await caller.post(
                "private/records/modify",
                [
                    "surprise": ["deep": [1, 2]], "zoneID": ["zoneName": "_defaultZone", "x": 1],
                    "operations": [
                        [
                            "operationType": "create", "hint": 3,
                            "record": [
                                "recordName": "a", "recordType": "Book", "mood": "good",
                                "pluginFields": ["x": 1], "created": nil, "deleted": false,
                                "modified": ["timestamp": 1], "recordChangeTag": nil,
                                "fields": ["title": ["value": "t", "colour": "red"]],
                            ],
                        ]
                    ],
                ], query: "clientId=1&dsid=2&ckjsVersion=2.6.4&remapEnums=true&odd=%zz&&=")
            #expect(answer.status == 200 && answer.json["records"][0]["deleted"] == false)
        },
        Scenario("rule 25: filters and sorts come as array, object, empty, null or not at all") {
            caller in
            for name in ["a", "b"] {
                try await caller.create(name, fields: ["title": ["value": .string(name)]])
            }
            let filter: JSON = [
                "fieldName": "title", "comparator": "EQUALS", "fieldValue": ["value": "b"],
            ]
            let sort: JSON = ["fieldName": "title", "ascending": false]
            for clause in [filter, .array([filter])] {
                let names = try await caller.query(["recordType": "Book", "filterBy": clause])
                #expect(names == ["b"])
            }
            for clause in [sort, .array([sort])] {
                let names = try await caller.query(["recordType": "Book", "sortBy": clause])
                #expect(names == ["b", "a"])
            }
            for nothing in [[], nil] as [JSON] {
                let names = try await caller.query([
                    "recordType": "Book", "filterBy": nothing, "sortBy": nothing,
                ])
                #expect(names.sorted() == ["a", "b"])
            }
        },
    ]
}
