import Testing

/// The rows of §10.4, what fails whole and what fails alone, and of §5.2, the operation types.
extension Scenario {
    static let decisions: [Scenario] = [
        Scenario("whole 400: JSON that cannot be read, a missing key, a bad word, over the limit") {
            caller in
            for text in [
                "{", "[]", "\"x\"", "{\"operations\":[1,]}", "nul", "{} {}", "\u{FEFF}{}",
                "{\"operations\":" + String(repeating: "[", count: 100_000),
                "{\"a\":1e999}", "{\"a\":\"\u{1}\"}", "{\"a\":\"\\ud800\"}",
            ] {
                expectFailure(
                    try await caller.post("private/records/modify", text: text), 400,
                    "BAD_REQUEST")
            }
            for (operation, body) in [
                ("records/modify", [:]), ("records/modify", ["operations": [["record": [:]]]]),
                ("records/modify", ["operations": [["operationType": "create"]]]),
                ("records/modify", ["operations": [Operation.of("upsert", "a")]]),
                ("records/modify", ["operations": [["operationType": "delete", "record": [:]]]]),
                ("records/modify", ["operations": [Operation.create("a"), Operation.create("a")]]),
                ("records/lookup", [:]), ("records/lookup", ["records": [[:]]]),
                ("records/query", [:]), ("records/query", ["query": [:]]),
                (
                    "records/query",
                    [
                        "query": [
                            "recordType": "Book",
                            "filterBy": [
                                "fieldName": "title", "comparator": "equals",
                                "fieldValue": ["value": 1],
                            ],
                        ]
                    ]
                ),
                (
                    "records/query",
                    ["query": ["recordType": "Book"], "continuationMarker": "AAAA"]
                ),
                ("records/query", ["query": ["recordType": "Book"], "resultsLimit": -1]),
                ("zones/lookup", [:]), ("zones/modify", [:]), ("changes/zone", [:]),
                ("changes/zone", ["zones": [["zoneID": [:]]]]),
                ("zones/modify", ["operations": [["operationType": "update", "zone": [:]]]]),
            ] as [(String, JSON)] {
                let answer = try await caller.post("private/\(operation)", body)
                expectFailure(answer, 400, "BAD_REQUEST")
                #expect(
                    answer.json["reason"].text?.isEmpty == false, "\(operation) \(body): \(answer)")
            }
            let many = JSON.array((0..<201).map { Operation.create("r\($0)") })
            let tooMany = try await caller.post("private/records/modify", ["operations": many])
            expectFailure(tooMany, 400, "BAD_REQUEST")
            #expect(tooMany.json["limit"] == 200, "a client halves by a number: \(tooMany)")
            let names = JSON.array((0..<201).map { ["recordName": "r\($0)"] })
            expectFailure(
                try await caller.post("private/records/lookup", ["records": names]), 400,
                "BAD_REQUEST")
            let records = try await caller.modify((0..<200).map { Operation.create("r\($0)") })
            #expect(records.allSatisfy { $0["deleted"] == false })
        },
        Scenario("whole 421, 401: no credentials, wrong ones, none of a user") { caller in
            let body: JSON = ["records": [["recordName": "a"]]]
            expectFailure(
                try await caller.acting(as: .nobody).post("public/records/lookup", body), 401,
                "AUTHENTICATION_FAILED", reason: "no auth method found")
            expectFailure(
                try await caller.acting(as: .nobody).post(
                    "public/records/lookup", body, query: "ckAPIToken=short"), 401,
                "AUTHENTICATION_FAILED", reason: "Authentication failed")
            let anonymous = caller.acting(as: .anonymous)
            for operation in [
                "private/records/lookup", "shared/records/lookup", "public/zones/list",
                "private/zones/list", "public/zones/lookup", "private/changes/database",
                "public/records/resolve",
            ] {
                let answer = try await anonymous.post(operation, body)
                expectFailure(answer, 421, "AUTHENTICATION_REQUIRED")
                #expect(answer.json["redirectURL"] != nil, "\(operation)")
            }
            // What the world may read needs no user.
            try await caller.create("a", database: "public")
            #expect(
                try await anonymous.lookUp(["a"], database: "public")[0]["recordName"] == "a")
            #expect(
                try await anonymous.query(["recordType": "Book"], database: "public") == ["a"])
        },
        Scenario("whole 404: unknown endpoint, environment, database or operation") { caller in
            for target in [
                "/", "/database/1/x", "/database/2/iCloud.x/development/public/records/query",
                "/database/1/iCloud.x/staging/public/records/query",
                "/database/1/iCloud.x/development/secret/records/query",
                "/database/1/iCloud.x/development/public/records/destroy",
                "/database/1/iCloud.x/development/public/records",
            ] {
                let answer = try await caller.wire.send(
                    WireRequest(method: "POST", target: target, body: Array("{}".utf8)))
                expectFailure(answer, 404, "NOT_FOUND")
            }
            var query = WireRequest(method: "GET", target: caller.target("private/records/query"))
            expectFailure(try await caller.wire.send(query), 400, "BAD_REQUEST")
            query.method = "DELETE"
            expectFailure(try await caller.wire.send(query), 400, "BAD_REQUEST")
            for operation in ["public/changes/zone", "private/records/resolve"] {
                expectFailure(try await caller.post(operation, [:]), 400, "BAD_REQUEST")
            }
        },
        Scenario("whole 404: an unknown zone in records/*, a type nobody knows in a query") {
            caller in
            let zone: JSON = ["zoneName": "Nope"]
            for (operation, body) in [
                ("records/modify", ["operations": [Operation.create("a")]]),
                (
                    "records/modify",
                    ["operations": [Operation.create("a", ["pages": ["value": "x"]])]]
                ),
                ("records/lookup", ["records": [["recordName": "a"]]]),
                ("records/query", ["query": ["recordType": "Book"]]),
                ("records/changes", [:]),
            ] as [(String, JSON)] {
                for zone in [zone, zone.setting("ownerRecordName", "_somebody")] {
                    expectFailure(
                        try await caller.post(
                            "private/\(operation)", body.setting("zoneID", zone)),
                        404, "ZONE_NOT_FOUND", reason: "Zone not found")
                }
            }
            expectFailure(
                try await caller.post(
                    "private/records/query", ["query": ["recordType": "Nothing"]]),
                404, "NOT_FOUND", reason: "Did not find record type: Nothing")
        },
        Scenario("item in 200: missing, conflict, type, field, permission, reference") { caller in
            let created = try await caller.create("a", database: "public")
            let records = try await caller.acting(as: .other("tom")).modify(
                [
                    Operation.of("update", "ghost", tag: "1"), Operation.create("a"),
                    Operation.create("b", type: "Nothing"),
                    Operation.create("c", ["pages": ["value": [1]]]),
                    Operation.create("d", ["unheard": ["value": 1]]),
                    Operation.create(
                        "e",
                        [
                            "author": [
                                "value": ["recordName": "nobody", "action": "VALIDATE"]
                            ]
                        ]),
                    Operation.create("_f"),
                    Operation.create("g", ["title": ["value": 1, "type": "INT64"]]),
                    Operation.create("h", ["title": ["value": "x", "isEncrypted": true]]),
                    Operation.create("i"),
                ], database: "public")
            let expected: [String?] = [
                "NOT_FOUND", "CONFLICT", "NOT_FOUND", "BAD_REQUEST", "BAD_REQUEST",
                "VALIDATING_REFERENCE_ERROR", "BAD_REQUEST", "BAD_REQUEST", "BAD_REQUEST", nil,
            ]
            #expect(records.map { $0["serverErrorCode"].text } == expected)
            #expect(
                records[7]["reason"].text
                    == "invalid attempt to set value type INT64 for field 'title' for type "
                    + "'Book', defined to be: STRING")
            #expect(
                records[8]["reason"].text
                    == "encrypted fields are not supported in the public database")
            // Another user's record: readable by all, writable by its creator.
            let foreign = try await caller.acting(as: .other("tom")).modify(
                [Operation.of("update", "a", tag: created["recordChangeTag"])],
                database: "public")
            expectItem(
                foreign[0], failed: "ACCESS_DENIED", reason: "WRITE operation not permitted")
        },
        Scenario("roles: what one may not read does not exist; the world is asked to sign in") {
            caller in
            try await caller.create("mine", type: "Diary", database: "public")
            let tom = caller.acting(as: .other("tom"))
            for reader in [tom, caller.acting(as: .anonymous)] {
                expectItem(
                    try await reader.lookUp(["mine"], database: "public")[0], failed: "NOT_FOUND")
            }
            let query: JSON = ["recordType": "Diary"]
            #expect(try await caller.query(query, database: "public") == ["mine"])
            #expect(try await tom.query(query, database: "public") == [])
            expectFailure(
                try await caller.acting(as: .anonymous).post(
                    "public/records/query", ["query": query]), 421, "AUTHENTICATION_REQUIRED")
            let written = try await tom.modify(
                [Operation.of("forceUpdate", "mine", recordType: "Diary")], database: "public")
            expectItem(written[0], failed: "NOT_FOUND")
        },
        Scenario("real clients: a query in a zone that is not there says so before anything else") {
            caller in
            for type in ["NoSuchType", "Author"] {
                let query: JSON = ["recordType": .string(type)]
                expectFailure(
                    try await caller.post(
                        "private/records/query", ["query": query, "zoneID": ["zoneName": "Nope"]]),
                    404, "ZONE_NOT_FOUND")
            }
        },
        Scenario("item in 200: a zone that is missing or may not be, a bad token in changes/zone") {
            caller in
            let answer = try await caller.ask(
                "private/changes/zone",
                [
                    "zones": [
                        ["zoneID": ["zoneName": "Nope"]],
                        ["zoneID": ["zoneName": "_defaultZone"]],
                        ["zoneID": ["zoneName": "X", "ownerRecordName": "_somebody"]],
                    ]
                ])
            expectItem(answer["zones"][0], failed: "ZONE_NOT_FOUND")
            expectItem(answer["zones"][1], failed: "BAD_REQUEST")
            expectItem(answer["zones"][2], failed: "ZONE_NOT_FOUND")
            #expect(answer["zones"][2]["zoneID"]["ownerRecordName"] == "_somebody")
            let open = try await caller.ask(
                "public/zones/modify",
                [
                    "operations": [
                        ["operationType": "create", "zone": ["zoneID": ["zoneName": "Mine"]]]
                    ]
                ])
            expectItem(open["zones"][0], failed: "BAD_REQUEST")
        },
        Scenario("whole 400: a filter without its index") { caller in
            for (query, reason) in [
                (
                    [
                        "recordType": "Book",
                        "filterBy": [
                            "fieldName": "note", "comparator": "EQUALS",
                            "fieldValue": ["value": "x"],
                        ],
                    ], "Field 'note' is not marked queryable"
                ),
                (
                    ["recordType": "Book", "sortBy": [["fieldName": "note"]]],
                    "Field 'note' is not marked sortable"
                ),
                (["recordType": "Author"], "Field 'recordName' is not marked queryable"),
                (
                    [
                        "recordType": "Book",
                        "filterBy": [
                            "fieldName": "digest", "comparator": "EQUALS",
                            "fieldValue": ["value": "AA=="],
                        ],
                    ], "Field 'digest' is not marked queryable"
                ),
            ] as [(JSON, String)] {
                expectFailure(
                    try await caller.post("private/records/query", ["query": query]), 400,
                    "BAD_REQUEST", reason: reason)
            }
        },
        Scenario("whole 413: a request larger than 16 MiB") { caller in
            let answer = try await caller.post(
                "private/records/lookup",
                text: "{\"records\":[{\"recordName\":\"a\"}],\"padding\":\""
                    + String(repeating: "x", count: 17 << 20) + "\"}")
            expectFailure(answer, 413, "QUOTA_EXCEEDED")
        },
        Scenario("operation types: each over a record that exists and one that does not") {
            caller in
            // With the right tag, a wrong tag and none; then where nothing exists.
            let rows:
                [(type: String, right: String?, wrong: String?, none: String?, missing: String?)] =
                    [
                        ("create", "CONFLICT", "CONFLICT", "CONFLICT", nil),
                        ("update", nil, "CONFLICT", "BAD_REQUEST", "NOT_FOUND"),
                        ("forceUpdate", nil, nil, nil, nil),
                        ("replace", nil, "CONFLICT", "BAD_REQUEST", "NOT_FOUND"),
                        ("forceReplace", nil, nil, nil, nil),
                        ("delete", nil, "CONFLICT", nil, "NOT_FOUND"),
                        ("forceDelete", nil, nil, nil, nil),
                    ]
            for row in rows {
                for (name, tag, expected) in [
                    ("right", nil, row.right), ("wrong", "zzz", row.wrong),
                    ("none", .null, row.none),
                ] as [(String, JSON?, String?)] {
                    let record = "\(row.type)-\(name)"
                    let saved = try await caller.create(record)
                    let answer = try await caller.modify([
                        Operation.of(
                            row.type, record, tag: tag ?? saved["recordChangeTag"],
                            recordType: "Book")
                    ])
                    #expect(answer[0]["serverErrorCode"].text == expected, "\(record): \(answer)")
                }
                let answer = try await caller.modify([
                    Operation.of(row.type, "\(row.type)-missing", tag: "1", recordType: "Book")
                ])
                #expect(answer[0]["serverErrorCode"].text == row.missing, "\(row.type): \(answer)")
            }
        },
    ]
}
