import Testing

/// Faults that a client can bring about, by their numbers in the list of faults.
extension Scenario {
    static let faults: [Scenario] = [
        Scenario("G-30: of many writers with one tag exactly one wins, and the record is its") {
            caller in
            let first = try await caller.create("a", fields: ["pages": ["value": 0]])
            let tag = first["recordChangeTag"]
            let answers = try await withThrowingTaskGroup(of: (Int, JSON?).self) { tasks in
                for number in 1...24 {
                    tasks.addTask {
                        let records = try await caller.modify([
                            Operation.of(
                                "update", "a", tag: tag, recordType: "Book",
                                fields: ["pages": ["value": .number("\(number)")]])
                        ])
                        return (number, records.first)
                    }
                }
                return try await tasks.reduce(into: []) { $0.append($1) }
            }
            let winners = answers.filter { $0.1["recordChangeTag"] != nil }
            #expect(winners.count == 1)
            for (number, answer) in answers where number != winners.first?.0 {
                expectItem(
                    answer, failed: "CONFLICT", reason: "client oplock error updating record")
            }
            let held = try await caller.lookUp(["a"])[0]
            #expect(held == winners.first?.1)
            #expect(held["fields"]["pages"]["value"].integer == winners.first.map { Int64($0.0) })
        },
        Scenario("X-05: what only the server says of a record is not taken from a client") {
            caller in
            let lie: JSON = ["timestamp": 1, "userRecordName": "_evil", "deviceID": "evil"]
            func lying(_ type: String, _ name: String, tag: JSON? = nil) -> JSON {
                var record: JSON = [
                    "recordName": .string(name), "recordType": "Book", "created": lie,
                    "modified": lie, "deleted": true, "creatorUserRecordName": "_evil",
                    "fields": ["title": ["value": "t"]],
                ]
                if let tag { record = record.setting("recordChangeTag", tag) }
                return ["operationType": .string(type), "record": record]
            }
            let honest = try await caller.create("honest")
            let owner = honest["created"]["userRecordName"].text
            #expect(owner != nil && owner != "_evil")
            var saved = try await caller.modify([lying("create", "a")])[0]
            func expectTruth() {
                for stamp in ["created", "modified"] {
                    #expect(saved[stamp]["userRecordName"].text == owner, "\(saved)")
                    #expect((saved[stamp]["timestamp"].integer ?? 0) > 1, "\(saved)")
                }
                #expect(saved["deleted"] != true, "\(saved)")
            }
            expectTruth()
            saved = try await caller.modify([
                lying("update", "a", tag: saved["recordChangeTag"])
            ])[0]
            expectTruth()
            // A tag is one that the server has given, or the save is refused.
            let made = try await caller.modify([lying("update", "a", tag: "zzzz")])
            expectItem(made[0], failed: "CONFLICT")
            // Under their own names neither.
            for (number, (name, value)) in [
                ("___createTime", 1), ("___createdBy", ["recordName": "_evil"]),
                ("___modTime", 1), ("___recordID", ["recordName": "evil"]),
            ].enumerated() as EnumeratedSequence<[(String, JSON)]> {
                let records = try await caller.modify([
                    Operation.create(
                        "b\(number)", .object([.init(key: name, value: ["value": value])]))
                ])
                expectItem(records[0], failed: "BAD_REQUEST")
            }
            #expect(try await caller.lookUp(["a"])[0] == saved)
        },
        Scenario("X-04: what is another's answers as what is not there") { caller in
            let (ada, tom) = (caller.acting(as: .other("ada")), caller.acting(as: .other("tom")))
            try await ada.makeZone("Secrets")
            let zone: JSON = ["zoneName": "Secrets"]
            let record = try await ada.create("secret", in: zone)
            let page = try await ada.changes("Secrets")
            let owner = try #require(record["created"]["userRecordName"].text)
            // By its name, and by its owner's: the same words as for an owner nobody is.
            for (operation, body) in [
                ("records/lookup", ["records": [["recordName": "secret"]]]),
                ("records/query", ["query": ["recordType": "Book"]]),
                (
                    "records/modify",
                    ["operations": [Operation.of("forceDelete", "secret")]]
                ),
            ] as [(String, JSON)] {
                var answers: [WireAnswer] = []
                for owner in [owner, "_" + String(repeating: "0", count: owner.utf8.count - 1)] {
                    answers.append(
                        try await tom.post(
                            "private/\(operation)",
                            body.setting(
                                "zoneID",
                                ["zoneName": "Secrets", "ownerRecordName": .string(owner)])))
                }
                let own = try await tom.post(
                    "private/\(operation)", body.setting("zoneID", zone))
                #expect(answers[0].status == answers[1].status, "\(answers)")
                for key in ["serverErrorCode", "reason"] {
                    #expect(answers[0].json[key] == answers[1].json[key], "\(answers)")
                    #expect(answers[0].json[key] == own.json[key], "\(answers) \(own)")
                }
                #expect(answers[0].json["serverErrorCode"] != nil, "\(answers[0])")
            }
            // A token is its owner's: with it in hand another still sees nothing.
            let feed = try await tom.post(
                "private/changes/zone",
                [
                    "zones": [
                        ["zoneID": zone, "syncToken": page["syncToken"] ?? .null]
                    ]
                ])
            #expect(feed.json["zones"][0]["serverErrorCode"] != nil, "\(feed)")
            #expect(feed.json["zones"][0]["records"].elements.isEmpty, "\(feed)")
            #expect(try await ada.lookUp(["secret"], in: zone)[0] == record)
        },
        Scenario("G-33 X-21: text of statements is text, wherever a client may write some") {
            caller in
            let attacks = [
                "'; DROP TABLE rows; --", "\" OR 1=1 --", "a' UNION SELECT * FROM rows --", "%",
                "$(reboot)", "`reboot`", "../../etc/passwd", "((((a+)+)+)+)$",
                String(repeating: "a", count: 200) + "!",
            ]
            for (number, text) in attacks.enumerated() {
                try await caller.create(text, fields: ["title": ["value": .string(text)]])
                let found = try await caller.lookUp([text])[0]
                #expect(found["fields"]["title"]["value"].text == text, "attack \(number)")
                let query: JSON = [
                    "recordType": "Book",
                    "filterBy": [
                        [
                            "fieldName": "title", "comparator": "EQUALS",
                            "fieldValue": ["value": .string(text)],
                        ]
                    ],
                ]
                #expect(try await caller.query(query) == [text], "attack \(number)")
                // As a name of what there is not: refused, in the documented words.
                for body in [
                    ["recordType": .string(text)],
                    [
                        "recordType": "Book",
                        "filterBy": [
                            [
                                "fieldName": .string(text), "comparator": "EQUALS",
                                "fieldValue": ["value": 1],
                            ]
                        ],
                    ],
                    [
                        "recordType": "Book",
                        "filterBy": [
                            [
                                "fieldName": "title", "comparator": .string(text),
                                "fieldValue": ["value": "t"],
                            ]
                        ],
                    ],
                    [
                        "recordType": "Book",
                        "sortBy": [["fieldName": .string(text), "ascending": true]],
                    ],
                ] as [JSON] {
                    let answer = try await caller.post("private/records/query", ["query": body])
                    #expect((400..<500).contains(answer.status), "\(body): \(answer)")
                    #expect(answer.json.codes.allSatisfy { documentedCodes.contains($0) })
                }
                let marked = try await caller.post(
                    "private/records/query",
                    ["query": ["recordType": "Book"], "continuationMarker": .string(text)])
                #expect((400..<500).contains(marked.status), "\(marked)")
            }
            #expect(
                try await Set(caller.query(["recordType": "Book"])) == Set(attacks),
                "whatever was said, everything is there")
        },
    ]
}
