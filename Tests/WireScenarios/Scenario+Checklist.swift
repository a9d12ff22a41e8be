import Testing

/// The conformance checklist of the wire reference, part 1 §18, each line under its number.
extension Scenario {
    static let checklist: [Scenario] = [
        Scenario("check 1: create answers the full record; created is modified; names are made") {
            caller in
            let saved = try await caller.create(
                "book", fields: ["title": ["value": "Sea Roads"], "pages": ["value": 312]])
            #expect(saved["recordName"] == "book" && saved["recordType"] == "Book")
            #expect(
                saved["fields"]
                    == [
                        "pages": ["value": 312, "type": "INT64"],
                        "title": ["value": "Sea Roads", "type": "STRING"],
                    ])
            #expect(saved["pluginFields"] == [:] && saved["deleted"] == false)
            #expect(saved["recordChangeTag"].text?.isEmpty == false)
            #expect(saved["created"] != nil && saved["created"] == saved["modified"])
            let made = try await caller.create(nil)["recordName"].text ?? ""
            #expect(made.count == 36 && made == made.uppercased())
            #expect(try await caller.lookUp([made])[0]["deleted"] == false)
            #expect(try await caller.lookUp(["book"])[0] == saved)
        },
        Scenario("check 2: a second create is a CONFLICT and changes nothing") { caller in
            let first = try await caller.create("a", fields: ["title": ["value": "one"]])
            let second = try await caller.modify([
                Operation.create("a", ["title": ["value": "two"]])
            ])
            expectItem(second[0], failed: "CONFLICT")
            #expect(try await caller.lookUp(["a"])[0] == first)
        },
        Scenario("check 3: create of an unknown type is the item's NOT_FOUND") { caller in
            let records = try await caller.modify([Operation.create("a", type: "Nothing")])
            expectItem(records[0], failed: "NOT_FOUND")
            #expect(records[0]["reason"].text?.contains("Nothing") == true)
        },
        Scenario("check 4: update with the right tag merges, with a stale one conflicts") {
            caller in
            let first = try await caller.create(
                "a",
                fields: [
                    "title": ["value": "t"], "pages": ["value": 1], "note": ["value": "n"],
                ])
            let second = try await caller.modify([
                Operation.of(
                    "update", "a", tag: first["recordChangeTag"],
                    fields: ["pages": ["value": 2], "note": [:]])
            ])
            #expect(
                second[0]["fields"]
                    == [
                        "pages": ["value": 2, "type": "INT64"],
                        "title": ["value": "t", "type": "STRING"],
                    ])
            #expect(second[0]["recordChangeTag"] != first["recordChangeTag"])
            #expect(second[0]["created"] == first["created"])
            let stale = try await caller.modify([
                Operation.of(
                    "update", "a", tag: first["recordChangeTag"], recordType: "Book",
                    fields: ["pages": ["value": 3]])
            ])
            expectItem(
                stale[0], failed: "CONFLICT", reason: "client oplock error updating record")
            #expect(try await caller.lookUp(["a"])[0] == second[0])
        },
        Scenario("check 5: replace clears what it does not name; the forced ones create") {
            caller in
            let first = try await caller.create(
                "a", fields: ["title": ["value": "t"], "pages": ["value": 1]])
            let replaced = try await caller.modify([
                Operation.of(
                    "replace", "a", tag: first["recordChangeTag"],
                    fields: ["pages": ["value": 2]])
            ])
            #expect(replaced[0]["fields"] == ["pages": ["value": 2, "type": "INT64"]])
            #expect(replaced[0]["created"] == first["created"])
            let forced = try await caller.modify([
                Operation.of(
                    "forceReplace", "b", recordType: "Book", fields: ["title": ["value": "b"]]),
                Operation.of(
                    "forceUpdate", "c", recordType: "Book", fields: ["title": ["value": "c"]]),
                Operation.of("forceUpdate", "a", fields: ["title": ["value": "again"]]),
                Operation.of("forceReplace", "ghost", fields: ["title": ["value": "typeless"]]),
            ])
            #expect(forced[0]["fields"]["title"]["value"] == "b")
            #expect(forced[1]["fields"]["title"]["value"] == "c")
            #expect(forced[2]["fields"]["pages"]["value"] == 2)
            expectItem(forced[3], failed: "BAD_REQUEST")
        },
        Scenario("check 6: forceDelete of a missing record is a deletion") { caller in
            let records = try await caller.modify([Operation.of("forceDelete", "ghost")])
            #expect(records == [["recordName": "ghost", "deleted": true]])
        },
        Scenario("check 7: a mixed batch that is not atomic keeps order and results") { caller in
            try await caller.makeZone("Shelves")
            let zone: JSON = ["zoneName": "Shelves"]
            let old = try await caller.create("old", in: zone)
            try await caller.create("gone", in: zone)
            let records = try await caller.modify(
                [
                    Operation.of("forceDelete", "gone"),
                    Operation.of("update", "old", tag: "nonsense", fields: ["pages": ["value": 1]]),
                    Operation.create("new"),
                    Operation.create("bad", ["pages": ["value": "many"]]),
                    Operation.of("delete", "ghost"),
                    Operation.of("update", "ghost2", tag: "1"),
                ], in: zone, atomic: false)
            #expect(records[0] == ["recordName": "gone", "deleted": true])
            expectItem(records[1], failed: "CONFLICT", recordName: "old")
            #expect(records[2]["recordName"] == "new" && records[2]["deleted"] == false)
            expectItem(
                records[3], failed: "BAD_REQUEST", reason: "Invalid value, expected type INT64.",
                recordName: "bad")
            expectItem(records[4], failed: "NOT_FOUND", recordName: "ghost")
            expectItem(
                records[5], failed: "NOT_FOUND",
                reason: "recordChangeTag specified, but record not found", recordName: "ghost2")
            #expect(try await caller.lookUp(["old"], in: zone)[0] == old)
        },
        Scenario("check 8: one stale tag in an atomic batch stores nothing") { caller in
            try await caller.makeZone("Shelves")
            let zone: JSON = ["zoneName": "Shelves"]
            let old = try await caller.create("old", in: zone)
            for atomic in [true, nil, JSON.null] as [JSON?] {
                let records = try await caller.modify(
                    [
                        Operation.create("a"),
                        Operation.of(
                            "update", "old", tag: "nonsense", fields: ["pages": ["value": 1]]),
                        Operation.of("forceDelete", "old2"),
                    ], in: zone, atomic: atomic)
                expectItem(records[0], failed: "ATOMIC_ERROR", recordName: "a")
                expectItem(records[1], failed: "CONFLICT", recordName: "old")
                expectItem(records[2], failed: "ATOMIC_ERROR", recordName: "old2")
            }
            #expect(try await caller.lookUp(["old"], in: zone)[0] == old)
            expectItem(try await caller.lookUp(["a"], in: zone)[0], failed: "NOT_FOUND")
            // What the gateway refuses for its shape fails the batch as well.
            let records = try await caller.modify(
                [Operation.create("a"), Operation.create("b", ["pages": ["value": "many"]])],
                in: zone)
            expectItem(records[0], failed: "ATOMIC_ERROR")
            expectItem(records[1], failed: "BAD_REQUEST")
            expectItem(try await caller.lookUp(["a"], in: zone)[0], failed: "NOT_FOUND")
        },
        Scenario("check 9: atomic in the default zone is refused in so many words") { caller in
            expectFailure(
                try await caller.post(
                    "private/records/modify",
                    ["operations": [Operation.create("a")], "atomic": true]),
                400, "BAD_REQUEST", reason: "atomic operations not supported in default zone")
        },
        Scenario("check 10: every type round-trips with its tag") { caller in
            var samples = Sample.all
            for (field, tag) in [
                ("tags", "STRING_LIST"), ("counts", "INT64_LIST"), ("ratios", "DOUBLE_LIST"),
                ("dates", "TIMESTAMP_LIST"), ("digests", "BYTES_LIST"),
                ("places", "LOCATION_LIST"), ("authors", "REFERENCE_LIST"),
            ] {
                samples.append(Sample(field, tag, []))
            }
            samples += [
                Sample("pages", "INT64", 9_007_199_254_740_993), Sample("pages", "INT64", 0),
                Sample("digest", "BYTES", ""), Sample("title", "STRING", ""),
                Sample("rating", "DOUBLE", 0.1),
            ]
            for (position, sample) in samples.enumerated() {
                let name = "sample\(position)"
                let saved = try await caller.create(
                    name, fields: .object([.init(key: sample.field, value: sample.written)]))
                let expected: JSON = [
                    "value": sample.answer ?? sample.value, "type": .string(sample.tag),
                ]
                #expect(saved["fields"][sample.field] == expected)
                #expect(try await caller.lookUp([name])[0] == saved)
            }
            // References come back complete.
            let saved = try await caller.create(
                "pointer",
                fields: [
                    "author": ["value": ["recordName": "a"], "type": "REFERENCE"],
                    "authors": [
                        "value": [["recordName": "a", "action": "NONE"]], "type": "REFERENCE_LIST",
                    ],
                ])
            for reference in [
                saved["fields"]["author"]["value"], saved["fields"]["authors"]["value"][0],
            ] {
                #expect(reference["recordName"] == "a" && reference["action"] == "NONE")
                expectZoneID(reference["zoneID"], name: "_defaultZone")
            }
        },
        Scenario("check 11: a TIMESTAMP takes whole milliseconds, tagged or not, and no fraction") {
            caller in
            let saved = try await caller.create(
                "a", fields: ["published": ["value": 1_462_060_800_000]])
            #expect(
                saved["fields"]["published"]
                    == ["value": 1_462_060_800_000, "type": "TIMESTAMP"])
            for value in [1.5, "1.5", "soon", [:], true] as [JSON] {
                let records = try await caller.modify([
                    Operation.create("b", ["published": ["value": value, "type": "TIMESTAMP"]])
                ])
                expectItem(
                    records[0], failed: "BAD_REQUEST",
                    reason: "Invalid value, expected type TIMESTAMP.")
            }
        },
        Scenario("check 12: every comparator, several filters, sorts and distances") { caller in
            try await Comparators.run(caller)
        },
        Scenario("check 13: pages have markers until the last one") { caller in
            for name in ["a", "b", "c"] {
                try await caller.create(name, fields: ["title": ["value": .string(name)]])
            }
            var body: JSON = [
                "query": ["recordType": "Book", "sortBy": [["fieldName": "title"]]],
                "resultsLimit": 1,
            ]
            var names: [String?] = []
            var hasMarker: [Bool] = []
            for _ in 0..<3 {
                let page = try await caller.ask("private/records/query", body)
                names += page["records"].elements.map { $0["recordName"].text }
                hasMarker.append(page.keys.contains("continuationMarker"))
                body = body.setting("continuationMarker", page["continuationMarker"])
            }
            #expect(names == ["a", "b", "c"])
            #expect(hasMarker == [true, true, false])
            let one = try await caller.ask(
                "private/records/query",
                [
                    "query": [
                        "recordType": "Book",
                        "filterBy": [
                            "fieldName": "title", "comparator": "EQUALS",
                            "fieldValue": ["value": "b"],
                        ],
                    ], "resultsLimit": 1,
                ])
            #expect(one["records"].elements.count == 1)
            #expect(!one.keys.contains("continuationMarker"))
        },
        Scenario("check 14: getCurrentSyncToken adds the zone's token, and only when asked") {
            caller in
            try await caller.makeZone("Shelves")
            let zone: JSON = ["zoneName": "Shelves"]
            let bodies: [(String, JSON)] = [
                ("records/modify", ["zoneID": zone, "operations": [Operation.create("a")]]),
                ("records/lookup", ["zoneID": zone, "records": [["recordName": "a"]]]),
                ("records/query", ["zoneID": zone, "query": ["recordType": "Book"]]),
            ]
            var tokens: [String] = []
            for (operation, body) in bodies {
                for spelling in ["true", "True", "1"] {
                    let answer = try await caller.ask(
                        "private/\(operation)", body, query: "getCurrentSyncToken=\(spelling)")
                    tokens.append(try #require(answer["syncToken"].text))
                }
                let answer = try await caller.ask("private/\(operation)", body)
                #expect(!answer.keys.contains("syncToken"))
            }
            // Interchangeable with a feed's: nothing is new after the last of them.
            let feed = try await caller.changes("Shelves", after: tokens.last)
            #expect(feed["records"] == [] && feed["syncToken"].text == tokens.last)
        },
        Scenario("check 15: a lookup mixes records and NOT_FOUND in order") { caller in
            for name in ["a", "b"] {
                try await caller.create(
                    name, fields: ["title": ["value": "t"], "pages": ["value": 5]])
            }
            let answer = try await caller.ask(
                "private/records/lookup",
                [
                    "desiredKeys": ["title", "title", "unheard"],
                    "records": [
                        ["recordName": "b"], ["recordName": "ghost"],
                        ["recordName": "a", "desiredKeys": ["pages"]],
                    ],
                ])
            let records = answer["records"].elements
            #expect(records[0]["fields"].keys == ["title"] && records[0]["recordName"] == "b")
            expectItem(records[1], failed: "NOT_FOUND", reason: "Record not found")
            #expect(records[2]["fields"].keys == ["pages"] && records[2]["recordName"] == "a")
        },
        Scenario("check 16: zones are made, listed, looked up and deleted") { caller in
            let made = try await caller.makeZone("Shelves")
            #expect(made["atomic"] == true && made["isEligibleForZoneShare"] == true)
            expectZoneID(made["zoneID"], name: "Shelves")
            for answer in [
                try await caller.ask("private/zones/list", [:]),
                try await caller.ask(
                    "private/zones/lookup",
                    ["zones": [["zoneName": "_defaultZone"], ["zoneName": "Shelves"]]]),
            ] {
                let zones = answer["zones"].elements
                #expect(zones.count == 2, "\(answer)")
                let names = zones.map { $0["zoneID"]["zoneName"].text ?? "?" }
                #expect(names.sorted() == ["Shelves", "_defaultZone"])
                for zone in zones {
                    let isDefault = zone["zoneID"]["zoneName"] == "_defaultZone"
                    #expect(zone["atomic"].bool == !isDefault)
                    #expect((zone["syncToken"] == nil) == isDefault)
                    #expect(zone["deleted"] == false)
                }
            }
            let open = try await caller.ask(
                "public/zones/lookup", ["zones": [["zoneName": "_defaultZone"]]])
            #expect(open["zones"][0]["atomic"] == false)
            let mixed = try await caller.ask(
                "private/zones/modify",
                [
                    "operations": [
                        ["operationType": "delete", "zone": ["zoneID": ["zoneName": "Nope"]]],
                        ["operationType": "create", "zone": ["zoneID": ["zoneName": "More"]]],
                        ["operationType": "create", "zone": ["zoneID": ["zoneName": "_own"]]],
                        ["operationType": "delete", "zone": ["zoneID": ["zoneName": "Shelves"]]],
                    ]
                ])
            expectItem(mixed["zones"][0], failed: "ZONE_NOT_FOUND")
            expectZoneID(mixed["zones"][1]["zoneID"], name: "More")
            expectItem(mixed["zones"][2], failed: "BAD_REQUEST")
            #expect(mixed["zones"][3].keys.sorted() == ["deleted", "zoneID"])
            let gone = try await caller.ask(
                "private/zones/lookup", ["zones": [["zoneName": "Shelves"]]])
            expectItem(gone["zones"][0], failed: "ZONE_NOT_FOUND")
        },
        Scenario("check 17: changes/zone from scratch, on, deleted, missing, and by any token") {
            caller in
            try await Feeds.run(caller)
        },
        Scenario("check 17: 450 changes come in three pages") { caller in
            try await Feeds.pages(caller)
        },
        Scenario("check 18: changes/database tells which zones changed, and only those") { caller in
            try await Feeds.database(caller)
        },
        Scenario("check 19: zones/changes goes by metaSyncToken alone") { caller in
            try await caller.makeZone("One")
            let first = try await caller.ask("private/zones/changes", [:])
            #expect(first["zones"].elements.map { $0["zoneID"]["zoneName"] } == ["One"])
            let token = try #require(first["metaSyncToken"].text)
            let ignored = try await caller.ask(
                "private/zones/changes", ["syncToken": .string(token)])
            #expect(ignored["zones"].elements.count == 1)
            let none = try await caller.ask(
                "private/zones/changes", ["metaSyncToken": .string(token)])
            #expect(none["zones"] == [] && none["moreComing"] == false)
            try await caller.deleteZone("One")
            let gone = try await caller.ask(
                "private/zones/changes", ["metaSyncToken": .string(token)])
            #expect(
                gone["zones"][0].keys.sorted() == ["deleted", "deletionReason", "zoneID"])
        },
        Scenario("check 20: a zone is shared, resolved, accepted, used, and shared no more") {
            caller in
            let friend = caller.acting(as: .other("tom"))
            #expect(try await friend.ask("shared/zones/list", [:])["zones"] == [])
            let changes = try await friend.ask("shared/changes/database", [:])
            #expect(changes["zones"] == [] && changes["moreComing"] == false)
            let again = try await friend.ask(
                "shared/changes/database", ["syncToken": changes["syncToken"] ?? .null])
            #expect(again["zones"] == [])
            expectFailure(
                try await friend.post(
                    "shared/records/lookup",
                    ["zoneID": ["zoneName": "Shelves"], "records": [["recordName": "a"]]]),
                404, "ZONE_NOT_FOUND", reason: "Zone not found")
            let wide: JSON = ["query": ["recordType": "Book"], "zoneWide": true]
            #expect(try await friend.ask("shared/records/query", wide)["records"] == [])
            let shelves = try await SharedShelves(caller)
            let share = try await shelves.share()
            let own = try await shelves.resolve(share, as: caller).json["results"][0]
            #expect(own["databaseScope"] == "PRIVATE", "\(own ?? .null)")
            let invited = try await shelves.resolve(share, as: friend).json["results"][0]
            #expect(
                invited["databaseScope"] == "SHARED" && invited["participantStatus"] == "INVITED",
                "\(invited ?? .null)")
            try await shelves.accept(share)
            let found = try await friend.lookUp(["a"], in: shelves.theirs, database: "shared")
            #expect(found[0]["fields"]["title"]["value"] == "Sea Roads", "\(found)")
            let saved = try await friend.modify(
                [Operation.create("c")], in: shelves.theirs, database: "shared")
            #expect(saved[0]["recordChangeTag"] != nil, "\(saved)")
            // All zones that are shared with one: those of one owner after those of another.
            var (names, marker): ([String?], JSON?) = ([], nil)
            repeat {
                let page = try await friend.ask(
                    "shared/records/query",
                    wide.setting("resultsLimit", 2).setting("continuationMarker", marker))
                names += page["records"].elements.map { $0["recordName"].text }
                marker = page["continuationMarker"]
            } while marker != nil
            #expect(names.map { $0 ?? "" }.sorted() == ["a", "b", "c"])
            expectFailure(
                try await friend.post(
                    "shared/records/lookup", ["zoneID": shelves.zone, "records": ["a"]]),
                404, "ZONE_NOT_FOUND", reason: "Zone not found")
            _ = try await caller.modify(
                [Operation.of("delete", SharedShelves.name)], in: shelves.zone)
            try await shelves.expectClosed(to: friend)
        },
        Scenario("check 21: VALIDATE holds its target, DELETE_SELF follows it into the feed") {
            caller in
            try await caller.makeZone("Shelves")
            let zone: JSON = ["zoneName": "Shelves"]
            func pointing(at target: String, _ action: JSON) -> JSON {
                [
                    "author": [
                        "value": ["recordName": .string(target), "action": action],
                        "type": "REFERENCE",
                    ]
                ]
            }
            let dangling = try await caller.modify(
                [Operation.create("a", pointing(at: "nobody", "VALIDATE"))], in: zone)
            expectItem(dangling[0], failed: "VALIDATING_REFERENCE_ERROR", recordName: "a")
            try await caller.create("target", type: "Author", in: zone)
            try await caller.create("holder", fields: pointing(at: "target", "VALIDATE"), in: zone)
            let held = try await caller.modify([Operation.of("forceDelete", "target")], in: zone)
            expectItem(held[0], failed: "VALIDATING_REFERENCE_ERROR", recordName: "target")
            try await caller.create("root", type: "Author", in: zone)
            try await caller.create("leaf", fields: pointing(at: "root", "DELETE_SELF"), in: zone)
            let before = try await caller.changes("Shelves")["syncToken"].text
            _ = try await caller.modify([Operation.of("forceDelete", "root")], in: zone)
            let feed = try await caller.changes("Shelves", after: before)
            #expect(
                feed["records"].elements.map { $0["recordName"].text ?? "" }.sorted()
                    == ["leaf", "root"])
            #expect(feed["records"].elements.allSatisfy { $0["deleted"] == true })
        },
        Scenario("check 22: an anonymous write is 421 with all that a client needs") { caller in
            let answer = try await caller.acting(as: .anonymous).post(
                "public/records/modify", ["operations": [Operation.create("a")]])
            expectFailure(answer, 421, "AUTHENTICATION_REQUIRED")
            #expect(
                answer.json.keys.sorted() == ["reason", "redirectURL", "serverErrorCode", "uuid"])
        },
        Scenario("check 23: text bodies, strange parameters and keys, a filter that is an object") {
            caller in
            try await caller.create("a", fields: ["title": ["value": "t"]])
            let answer = try await caller.post(
                "private/records/query",
                [
                    "extra": 1,
                    "query": [
                        "recordType": "Book", "more": nil,
                        "filterBy": [
                            "fieldName": "title", "comparator": "EQUALS", "distance": nil,
                            "fieldValue": ["value": "t", "type": "STRING"],
                        ],
                    ],
                ], query: "whatever=1", contentType: "text/plain; charset=UTF-8")
            #expect(answer.json["records"][0]["recordName"] == "a", "\(answer)")
        },
        Scenario("check 24: numbersAsStrings says every digit") { caller in
            try await caller.create(
                "a",
                fields: [
                    "pages": ["value": 9_007_199_254_740_993], "rating": ["value": 0.5],
                    "counts": ["value": [1, -2]], "published": ["value": 77],
                ])
            for key in ["numbersAsStrings", "numberAsStrings"] {
                let answer = try await caller.ask(
                    "private/records/lookup",
                    (["records": [["recordName": "a"]]] as JSON).setting(key, true))
                let record = answer["records"][0]
                #expect(record["fields"]["pages"]["value"] == "9007199254740993")
                #expect(record["fields"]["rating"]["value"] == "0.5")
                #expect(record["fields"]["counts"]["value"] == ["1", "-2"])
                #expect(record["fields"]["published"]["value"] == "77")
                #expect(record["created"]["timestamp"].integer != nil)
            }
        },
        Scenario("check 25: tokens survive decoding and encoding again") { caller in
            for token in try await caller.everyToken() {
                let bytes = try #require(Base64Text.decode(token))
                #expect(Base64Text.encode(bytes) == token)
                #expect(token.count % 4 == 0)
            }
            let token = try #require(try await caller.changes("Tokens")["syncToken"].text)
            let again = Base64Text.encode(try #require(Base64Text.decode(token)))
            #expect(try await caller.changes("Tokens", after: again)["records"] == [])
        },
    ]
}
