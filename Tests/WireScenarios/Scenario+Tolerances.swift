import Testing

/// The requests of the clients of §15, transport of part 2 §1, and effects that must not pass
/// between callers.
extension Scenario {
    static let tolerances: [Scenario] = [
        Scenario("the zone list takes GET, GET with a body, and POST") { caller in
            let target = caller.target("private/zones/list")
            for (method, body) in [("GET", ""), ("GET", "{}"), ("POST", "{}"), ("POST", "")] {
                let answer = try await caller.wire.send(
                    WireRequest(method: method, target: target, body: Array(body.utf8)))
                #expect(answer.status == 200, "\(method) '\(body)': \(answer)")
                #expect(answer.json["zones"].elements.count == 1)
            }
        },
        Scenario("every answer names its request; scripts may read it and the token") { caller in
            let bodies: [(String, JSON)] = [
                ("private/zones/list", [:]), ("private/records/query", [:]), ("x", [:]),
            ]
            var names: Set<String> = []
            for (operation, body) in bodies {
                let answer = try await caller.post(operation, body)
                let name = try #require(answer.header("X-Apple-Request-UUID"))
                #expect(name.count == 36 && names.insert(name).inserted)
                if answer.status != 200 { #expect(answer.json["uuid"].text == name) }
                #expect(
                    answer.header("Content-Type") == "application/json; charset=UTF-8")
                #expect(
                    answer.header("Access-Control-Expose-Headers")?
                        .contains("X-Apple-CloudKit-Web-Auth-Token") == true)
            }
            let signedIn = try await caller.post("private/zones/list", [:])
            #expect(signedIn.header("X-Apple-CloudKit-Web-Auth-Token") == "84__31__t+k")
            #expect(signedIn.header("X-Apple-CloudKit-Session") == "84__31__t+k")
        },
        Scenario("a preflight passes on every path, for the headers of signed requests too") {
            caller in
            for target in [caller.target("public/records/query"), "/anything"] {
                let answer = try await caller.wire.send(
                    WireRequest(
                        method: "OPTIONS", target: target,
                        headers: [
                            ("Origin", "https://app.example.org"),
                            ("Access-Control-Request-Method", "POST"),
                        ]))
                #expect(answer.status == 204, "\(answer)")
                #expect(
                    answer.header("Access-Control-Allow-Origin") == "https://app.example.org")
                #expect(
                    answer.header("Access-Control-Allow-Methods")?.contains("POST") == true)
                #expect(
                    answer.header("Access-Control-Allow-Headers")?
                        .contains("x-apple-cloudkit-request-signaturev1") == true)
            }
        },
        Scenario("owners: the caller under every name, and nobody else's zones") { caller in
            let made = try await caller.makeZone("Mine")
            let me = made["zoneID"]["ownerRecordName"] ?? .null
            for owner in [me, "_defaultOwner", "__defaultOwner__", "", nil] as [JSON] {
                let zone: JSON = ["zoneName": "Mine", "ownerRecordName": owner, "zoneType": "X"]
                let answer = try await caller.ask(
                    "private/records/lookup", ["zoneID": zone, "records": [["recordName": "a"]]])
                expectItem(answer["records"][0], failed: "NOT_FOUND")
            }
            for zone in ["Mine", ["zoneName": "Mine", "ownerName": me]] as [JSON] {
                let answer = try await caller.ask(
                    "private/zones/lookup", ["zones": [zone, ["zoneID": zone]]])
                #expect(answer["zones"].elements.allSatisfy { $0["atomic"] == true }, "\(answer)")
            }
            // Another user has a database of his own.
            let tom = caller.acting(as: .other("tom"))
            #expect(try await tom.ask("private/zones/list", [:])["zones"].elements.count == 1)
            expectFailure(
                try await tom.post(
                    "private/records/lookup",
                    ["zoneID": made["zoneID"] ?? .null, "records": [["recordName": "a"]]]),
                404, "ZONE_NOT_FOUND")
            let token = try await caller.changes("Mine")["syncToken"].text
            try await tom.makeZone("Mine")
            expectItem(
                try await tom.changes("Mine", after: token), failed: "BAD_REQUEST",
                reason: "Unknown sync continuation type")
        },
        Scenario("OpenCloudKit: deletes first, atomic false, a zone in every record") { caller in
            let zone: JSON = [
                "zoneName": "_defaultZone", "ownerRecordName": "_defaultOwner",
                "zoneType": "DEFAULT_ZONE",
            ]
            let answer = try await caller.ask(
                "private/records/modify",
                [
                    "zoneID": zone, "atomic": false,
                    "operations": [
                        [
                            "operationType": "forceDelete",
                            "record": ["recordName": "x", "zoneID": zone],
                        ],
                        [
                            "operationType": "create",
                            "record": [
                                "recordName": "y", "recordType": "Book", "zoneID": zone,
                                "createShortGUID": 1,
                                "fields": [
                                    "author": [
                                        "value": [
                                            "recordName": "a", "action": "NONE", "zoneID": zone,
                                        ]
                                    ], "note": [:],
                                ],
                            ],
                        ],
                    ],
                ])
            #expect(answer["records"][0] == ["recordName": "x", "deleted": true])
            #expect(
                answer["records"][1]["recordName"] == "y"
                    && answer["records"][1]["shortGUID"] == nil)
            #expect(answer["records"][1]["fields"].keys == ["author"])
        },
        Scenario("the zone of the records counts where the request names none, and only one") {
            caller in
            try await caller.makeZone("Shelves")
            var record = Operation.create("a")["record"] ?? .null
            record = record.setting("zoneID", ["zoneName": "Shelves"])
            let answer = try await caller.modify([
                ["operationType": "create", "record": record]
            ])
            expectZoneID(answer[0]["zoneID"], name: "Shelves")
            expectFailure(
                try await caller.post(
                    "private/records/modify",
                    [
                        "zoneID": ["zoneName": "_defaultZone"],
                        "operations": [["operationType": "create", "record": record]],
                    ]), 400, "BAD_REQUEST")
        },
        Scenario(
            "CloudKitClient: whole records, explicit defaults, atomic null, zoneWide beside a zone"
        ) { caller in
            try await caller.makeZone("Shelves")
            let zone: JSON = ["zoneName": "Shelves", "zoneType": "REGULAR_CUSTOM_ZONE"]
            let saved = try await caller.create(
                "a", fields: ["pages": ["value": 1, "type": "INT"]], in: zone)
            // It sends back what it got, with one field changed, as a replacement.
            let record = saved.setting(
                "fields", ["pages": ["value": 2, "type": "INT"]])
            let replaced = try await caller.modify(
                [["operationType": "replace", "record": record, "desiredKeys": nil]], in: zone,
                atomic: .null)
            #expect(replaced[0]["fields"]["pages"]["value"] == 2)
            let found = try await caller.ask(
                "private/records/query",
                [
                    "zoneID": zone, "zoneWide": true, "resultsLimit": nil, "desiredKeys": nil,
                    "continuationMarker": nil, "numbersAsStrings": false,
                    "query": ["recordType": "Book", "filterBy": [], "sortBy": []],
                ])
            #expect(found["records"].elements.count == 1)
        },
        Scenario("zoneWide asks every zone of the database") { caller in
            try await caller.makeZone("Shelves")
            try await caller.create("a")
            try await caller.create("b", in: ["zoneName": "Shelves"])
            let wide = try await caller.ask(
                "private/records/query", ["query": ["recordType": "Book"], "zoneWide": true])
            #expect(
                wide["records"].elements.map { $0["recordName"].text ?? "" }.sorted() == ["a", "b"])
            #expect(try await caller.query(["recordType": "Book"]) == ["a"])
        },
        Scenario("Photos: queries in a batch, each with its answer or error") { caller in
            try await caller.create("a")
            let answer = try await caller.ask(
                "private/internal/records/query/batch",
                [
                    "batch": [
                        ["query": ["recordType": "Book"]], ["query": ["recordType": "Nothing"]],
                    ]
                ])
            #expect(answer["batch"][0]["records"][0]["recordName"] == "a")
            #expect(answer["batch"][1]["serverErrorCode"] == "NOT_FOUND")
        },
        Scenario("a marker is good for its own query only, and cannot be forged") { caller in
            for name in ["a", "b", "c"] { try await caller.create(name) }
            let query: JSON = ["recordType": "Book"]
            let page = try await caller.ask(
                "private/records/query", ["query": query, "resultsLimit": 1])
            let marker = try #require(page["continuationMarker"].text)
            let other: JSON = ["recordType": "Book", "sortBy": ["fieldName": "pages"]]
            for (query, marker) in [
                (other, marker), (query, String(marker.dropLast(4))), (query, "garbage"),
                (query, ""),
            ] {
                expectFailure(
                    try await caller.post(
                        "private/records/query",
                        ["query": query, "continuationMarker": .string(marker)]),
                    400, "BAD_REQUEST", reason: "Invalid continuation marker")
            }
            expectFailure(
                try await caller.acting(as: .other("tom")).post(
                    "private/records/query",
                    ["query": query, "continuationMarker": .string(marker)]),
                400, "BAD_REQUEST", reason: "Invalid continuation marker")
            // It survives writes in between.
            try await caller.create("d")
            let rest = try await caller.ask(
                "private/records/query", ["query": query, "continuationMarker": .string(marker)])
            #expect(rest["records"].elements.count >= 2)
        },
        Scenario("a request that names itself is carried out once, however often it is sent") {
            caller in
            let body: JSON = [
                "operations": [
                    ["operationType": "create", "record": ["recordType": "Book"]],
                    Operation.create("named"),
                ]
            ]
            var answers: [JSON] = []
            for _ in 0..<3 {
                let answer = try await caller.wire.send(
                    WireRequest(
                        method: "POST", target: caller.target("private/records/modify"),
                        headers: [("X-Stratus-Request-ID", "save 17")],
                        body: Array(body.description.utf8)))
                #expect(answer.status == 200, "\(answer)")
                answers.append(answer.json ?? .null)
            }
            #expect(answers[1] == answers[0] && answers[2] == answers[0], "\(answers)")
            #expect(answers[0]["records"][1]["deleted"] == false)
            #expect(try await caller.query(["recordType": "Book"]).count == 2)
            // The same name for something else is something else.
            let other = try await caller.wire.send(
                WireRequest(
                    method: "POST", target: caller.target("private/records/modify"),
                    headers: [("X-Stratus-Request-ID", "save 17")],
                    body: Array(
                        (["operations": [Operation.create("other")]] as JSON).description.utf8)))
            #expect(other.json["records"][0]["recordName"] == "other", "\(other)")
        },
        Scenario("hostile fields: each has its own documented error, and the others are saved") {
            caller in
            let values: [JSON] = [
                ["value": ["value": 1]], ["value": [[1]]], ["value": [1, nil]], [1], "bare", 7,
                true,
                ["type": "STRING", "value": 1], ["type": 7, "value": "x"],
                ["type": "NONSENSE", "value": "x"], ["value": "x", "type": "STRING_LIST"],
                ["valeu": "x"],
            ]
            for (position, value) in values.enumerated() {
                let records = try await caller.modify([
                    Operation.create("bad\(position)", ["title": value]),
                    Operation.create("good\(position)", ["title": ["value": "x"]]),
                ])
                expectItem(records[0], failed: "BAD_REQUEST", recordName: "bad\(position)")
                #expect(records[1]["deleted"] == false, "\(value)")
            }
            for (field, value) in [
                ("place", ["latitude": 91.0, "longitude": 0.0]), ("place", ["latitude": 1.0]),
                ("place", ["latitude": 1.0, "longitude": 1.0, "timestamp": 0.5]),
                ("author", ["recordName": ""]),
                ("author", ["recordName": "a", "action": "EXPLODE"]),
                ("author", "a"), ("digest", "not base64"), ("digest", "AB=="), ("pages", 1.5),
                ("pages", 9.3e18), ("pages", "twelve"), ("rating", "nan"), ("rating", "inf"),
                ("tags", "maps"), ("tags", [1]), ("cover", ["fileChecksum": "x", "size": 1]),
            ] as [(String, JSON)] {
                let records = try await caller.modify([
                    Operation.create("bad", .object([.init(key: field, value: ["value": value])]))
                ])
                expectItem(records[0], failed: "BAD_REQUEST", recordName: "bad")
            }
            let large = try await caller.modify([
                Operation.create(
                    "large", ["title": ["value": .string(String(repeating: "x", count: 1 << 20))]])
            ])
            expectItem(large[0], failed: "BAD_REQUEST", reason: "record too large")
        },
    ]
}
