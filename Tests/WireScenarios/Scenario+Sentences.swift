import Testing

/// Sentences of the wire reference, part 1, that no rule and no line of its checklist repeats, each
/// under its section.
extension Scenario {
    static let sentences: [Scenario] = [
        Scenario("§6.3: every comparator over every scalar type it takes, and over no other") {
            caller in
            try await Matrix.scalars(caller)
        },
        Scenario("§6.3: every comparator over every list it takes, and over no other") { caller in
            try await Matrix.lists(caller)
        },
        Scenario("§6.4: system fields under each of their names") { caller in
            try await Matrix.systemFields(caller)
        },
        Scenario("§1.5: desiredKeys narrow every answer with records, and none means no fields") {
            caller in
            try await caller.makeZone("Shelves")
            let zone: JSON = ["zoneName": "Shelves"]
            let fields: JSON = ["title": ["value": "t"], "pages": ["value": 1]]
            for (keys, expected) in [
                (["title", "title", "unheard"], ["title"]), ([], []), (nil, ["pages", "title"]),
            ] as [(JSON, [String])] {
                let modified = try await caller.ask(
                    "private/records/modify",
                    [
                        "zoneID": zone, "desiredKeys": keys,
                        "operations": [
                            Operation.of("forceReplace", "a", recordType: "Book", fields: fields),
                            Operation.of("forceReplace", "b", recordType: "Book", fields: fields)
                                .setting("desiredKeys", ["pages"]),
                        ],
                    ])
                #expect(modified["records"][0]["fields"].keys.sorted() == expected)
                #expect(modified["records"][1]["fields"].keys == ["pages"], "the item's own count")
                let looked = try await caller.ask(
                    "private/records/lookup",
                    ["zoneID": zone, "desiredKeys": keys, "records": [["recordName": "a"]]])
                let queried = try await caller.ask(
                    "private/records/query",
                    ["zoneID": zone, "desiredKeys": keys, "query": ["recordType": "Book"]])
                let changed = try await caller.ask(
                    "private/changes/zone", ["desiredKeys": keys, "zones": [["zoneID": zone]]])
                let older = try await caller.ask(
                    "private/records/changes", ["zoneID": zone, "desiredKeys": keys])
                for record in [
                    looked["records"][0], queried["records"][0],
                    changed["zones"][0]["records"][0], older["records"][0],
                ] {
                    #expect(record["fields"].keys.sorted() == expected, "\(record ?? .null)")
                    // Whatever is wanted, a record is a record.
                    for key in [
                        "recordName", "recordType", "recordChangeTag", "created", "modified",
                        "deleted", "zoneID", "pluginFields",
                    ] {
                        #expect(record[key] != nil, "\(key)")
                    }
                }
            }
        },
        Scenario("§8.6: what changes/zone says for all zones holds where a zone says nothing") {
            caller in
            for name in ["One", "Two"] {
                try await caller.makeZone(name)
                for number in 0..<3 {
                    try await caller.create(
                        "r\(number)", fields: ["pages": ["value": .number("\(number)")]],
                        in: ["zoneName": .string(name)])
                }
                try await caller.create("x", type: "Author", in: ["zoneName": .string(name)])
            }
            let answer = try await caller.ask(
                "private/changes/zone",
                [
                    "resultsLimit": 2, "reverse": true, "desiredKeys": [],
                    "numberAsStrings": true, "desiredRecordTypes": ["Book"],
                    "zones": [
                        ["zoneID": ["zoneName": "One"]],
                        [
                            "zoneID": ["zoneName": "Two"], "resultsLimit": 3, "reverse": false,
                            "desiredKeys": ["pages"], "numberAsStrings": false,
                            "desiredRecordTypes": ["Author", "Book"],
                        ],
                    ],
                ])
            let one = answer["zones"][0]
            #expect(one["records"].elements.allSatisfy { $0["recordType"] == "Book" })
            #expect(one["records"].elements.last.map { $0["fields"] } == .some([:]))
            #expect(one["records"].elements.map { $0["recordName"].text ?? "" }.first != "r0")
            let two = answer["zones"][1]
            #expect(two["records"].elements.map { $0["recordName"].text } == ["r0", "r1", "r2"])
            #expect(two["records"][2]["fields"]["pages"]["value"] == 2)
            #expect(two["moreComing"] == true)
        },
        Scenario("§8.5: in reverse a feed pages from the newest to the oldest, each change once") {
            caller in
            try await caller.makeZone("Shelves")
            for number in 0..<7 {
                try await caller.create("r\(number)", in: ["zoneName": "Shelves"])
            }
            var names: [String] = []
            var token: String?
            for _ in 0..<10 {
                let page = try await caller.changes(
                    "Shelves", after: token, ["reverse": true, "resultsLimit": 3])
                names += page["records"].elements.map { $0["recordName"].text ?? "?" }
                token = page["syncToken"].text
                if page["moreComing"] == false { break }
            }
            #expect(names == (0..<7).reversed().map { "r\($0)" })
        },
        Scenario("§5.2: an update names another type than the record's") { caller in
            try await caller.create("a")
            for type in ["forceUpdate", "forceReplace", "forceDelete"] {
                let answer = try await caller.modify([
                    Operation.of(type, "a", recordType: "Author")
                ])
                expectItem(
                    answer[0], failed: "BAD_REQUEST", reason: "the record's type is 'Book'")
            }
        },
        Scenario("§4.4: references into another zone are refused, dangling ones are not") {
            caller in
            try await caller.makeZone("Shelves")
            func pointing(_ zone: String) -> JSON {
                [
                    "author": [
                        "value": [
                            "recordName": "nobody", "action": "NONE",
                            "zoneID": ["zoneName": .string(zone)],
                        ]
                    ]
                ]
            }
            let answer = try await caller.modify(
                [
                    Operation.create("a", pointing("Shelves")),
                    Operation.create("b", pointing("Other")),
                ], in: ["zoneName": "Shelves"], atomic: false)
            #expect(answer[0]["fields"]["author"]["value"]["recordName"] == "nobody")
            expectItem(answer[1], failed: "BAD_REQUEST")
        },
        Scenario("§11: seven hundred and fifty DELETE_SELF referrers, and no more") { caller in
            try await caller.makeZone("Shelves")
            let zone: JSON = ["zoneName": "Shelves"]
            try await caller.create("target", type: "Author", in: zone)
            let fields: JSON = [
                "author": ["value": ["recordName": "target", "action": "DELETE_SELF"]]
            ]
            for start in stride(from: 0, to: 750, by: 150) {
                let answer = try await caller.modify(
                    (start..<(start + 150)).map { Operation.create("r\($0)", fields) }, in: zone)
                #expect(answer.allSatisfy { $0["serverErrorCode"] == nil })
            }
            let answer = try await caller.modify([Operation.create("over", fields)], in: zone)
            expectItem(answer[0], failed: "BAD_REQUEST", recordName: "over")
        },
        Scenario("§11: a record of nearly a megabyte is kept, one beyond is refused alone") {
            caller in
            let large = String(repeating: "x", count: (1 << 20) - 1_000)
            let answer = try await caller.modify([
                Operation.create("large", ["note": ["value": .string(large)]]),
                Operation.create("over", ["note": ["value": .string(large + large)]]),
                Operation.create("small"),
            ])
            #expect(answer[0]["fields"]["note"]["value"].text == large)
            expectItem(answer[1], failed: "BAD_REQUEST", reason: "record too large")
            #expect(answer[2]["deleted"] == false)
            #expect(try await caller.lookUp(["large"])[0] == answer[0])
        },
        Scenario("§11: a request of sixteen megabytes is carried out whole") { caller in
            let text = String(repeating: "y", count: 1_000_000)
            let answer = try await caller.modify(
                (0..<16).map { Operation.create("r\($0)", ["note": ["value": .string(text)]]) })
            #expect(answer.count == 16)
            #expect(answer.allSatisfy { $0["fields"]["note"]["value"].text == text })
            let found = try await caller.lookUp((0..<16).map { "r\($0)" })
            #expect(found.allSatisfy { $0["fields"]["note"]["value"].text == text })
        },
        Scenario("§4.2, §4.6: encrypted fields: what contradicts the schema, and filters by them") {
            caller in
            let answer = try await caller.modify([
                Operation.create("a", ["title": ["value": "x", "isEncrypted": true]]),
                Operation.create(
                    "b", ["secret": ["value": "AA==", "type": "ENCRYPTED_BYTES"]]),
                Operation.create("c", ["secret": ["value": "x", "type": "STRING"]]),
                Operation.create("d"),
            ])
            expectItem(
                answer[0], failed: "BAD_REQUEST",
                reason: "Attempt to save encrypted data in non encrypted field type")
            expectItem(
                answer[1], failed: "BAD_REQUEST",
                reason: "invalid attempt to set value type ENCRYPTED_BYTES for field 'secret' for "
                    + "type 'Book', defined to be: ENCRYPTED_STRING")
            expectItem(
                answer[2], failed: "BAD_REQUEST",
                reason: "invalid attempt to set value type STRING for field 'secret' for type "
                    + "'Book', defined to be: ENCRYPTED_STRING")
            #expect(answer[3]["deleted"] == false)
            expectFailure(
                try await caller.post(
                    "private/records/query",
                    [
                        "query": [
                            "recordType": "Book",
                            "filterBy": [
                                "fieldName": "secret", "comparator": "EQUALS",
                                "fieldValue": ["value": "x", "type": "STRING"],
                            ],
                        ]
                    ]), 400, "BAD_REQUEST",
                reason: "Field 'secret' has a value type of ENCRYPTED_STRING and cannot be queried "
                    + "using filter type EQUALS")
        },
        Scenario("§4.6: encrypted fields come back in plain text, wherever records are read") {
            caller in
            let zone: JSON = ["zoneName": "Vault"]
            try await caller.makeZone("Vault")
            let secret: JSON = ["value": "hush", "type": "STRING", "isEncrypted": true]
            let fields: JSON = ["secret": secret, "title": ["value": "Low Tide"]]
            let saved = try await caller.create("a", fields: fields, in: zone)
            #expect(saved["fields"]["secret"] == secret)
            #expect(try await caller.lookUp(["a"], in: zone)[0]["fields"]["secret"] == secret)
            let page = try await caller.ask(
                "private/records/query", ["query": ["recordType": "Book"], "zoneID": zone])
            #expect(page["records"][0]["fields"]["secret"] == secret)
            let feed = try await caller.changes("Vault")
            #expect(feed["records"][0]["fields"]["secret"] == secret)
            // A save that does not speak of it leaves it; one that clears it takes it away.
            let kept = try await caller.modify(
                [
                    Operation.of(
                        "update", "a", tag: saved["recordChangeTag"],
                        fields: ["title": ["value": "High Tide"]])
                ], in: zone)
            #expect(kept[0]["fields"]["secret"] == secret, "\(kept)")
            // Without a word the schema decides.
            let bare = try await caller.modify(
                [
                    Operation.of(
                        "forceUpdate", "a", recordType: "Book",
                        fields: ["secret": ["value": "loud"]])
                ], in: zone)
            #expect(bare[0]["fields"]["secret"]["value"] == "loud", "\(bare)")
            let cleared = try await caller.modify(
                [
                    Operation.of(
                        "forceUpdate", "a", recordType: "Book",
                        fields: ["secret": ["value": nil]])
                ], in: zone)
            #expect(cleared[0]["fields"]["secret"] == nil, "\(cleared)")
        },
        Scenario("§5.1: what stands beside a record in an operation is tolerated") { caller in
            let answer = try await caller.modify([
                [
                    "operationType": "create", "recordType": "Book",
                    "record": ["recordName": "a", "fields": nil],
                ]
            ])
            #expect(answer[0]["recordType"] == "Book" && answer[0]["fields"] == [:])
        },
        Scenario("§6.1: Users cannot be queried; a limit beyond the bound is the bound") { caller in
            let users = try await caller.post(
                "public/records/query", ["query": ["recordType": "Users"]])
            #expect(users.status == 400 || users.status == 403, "\(users)")
            for limit in [0, 100_000] as [JSON] {
                try await caller.create(nil)
                let page = try await caller.ask(
                    "private/records/query",
                    ["query": ["recordType": "Book"], "resultsLimit": limit])
                #expect(page["records"].elements.count >= 1)
            }
        },
    ]
}
