import StratusModel
import Testing

@testable import StratusGateway
@testable import WireScenarios

/// `subscriptions/*` as clients send them: every row of the table of answers.
@Suite struct SubscriptionGatewayTests {
    private static func caller() async throws -> Caller {
        let wire = InProcess()
        let caller = Caller(wire: wire, container: try await wire.makeContainer())
        try await caller.makeZone("Shelves")
        return caller
    }

    private static let query: JSON = [
        "subscriptionID": "new-books", "subscriptionType": "query",
        "query": [
            "recordType": "Book",
            "filterBy": [
                [
                    "fieldName": "title", "comparator": "EQUALS",
                    "fieldValue": ["value": "Sea Roads", "type": "STRING"],
                ]
            ],
        ],
        "firesOn": ["create", "delete"],
        "notificationInfo": [
            "alertBody": "A book", "additionalFields": ["title"], "shouldBadge": true,
            "unknown": 7,
        ],
    ]
    private static let zone: JSON = [
        "subscriptionID": "shelf", "subscriptionType": "zone", "zoneWide": true,
        "zoneID": ["zoneName": "Shelves"], "notificationInfo": [:],
    ]
    private static let database: JSON = [
        "subscriptionID": "all", "subscriptionType": "database",
    ]

    private static func operation(_ kind: String, _ subscription: JSON) -> JSON {
        ["operationType": .string(kind), "subscription": subscription]
    }

    private static func modify(
        _ caller: Caller, _ operations: [JSON], in database: String = "private"
    ) async throws -> [JSON] {
        let answer = try await caller.ask(
            "\(database)/subscriptions/modify", ["operations": .array(operations)])
        let items = answer["subscriptions"].elements
        #expect(items.count == operations.count)
        return items
    }

    private static func create(
        _ caller: Caller, _ subscription: JSON, in database: String = "private"
    ) async throws -> JSON {
        try await Self.modify(caller, [Self.operation("create", subscription)], in: database)[0]
    }

    private static func expectFailure(
        _ item: JSON, _ code: String, _ id: String? = nil, _ reason: String = "",
        at location: SourceLocation = #_sourceLocation
    ) {
        #expect(item["serverErrorCode"].text == code, "\(item)", sourceLocation: location)
        #expect(
            item["reason"].text?.contains(reason) == true, "\(item)", sourceLocation: location)
        #expect(item["subscriptionID"].text != nil, "\(item)", sourceLocation: location)
        if let id { #expect(item["subscriptionID"].text == id, sourceLocation: location) }
    }

    @Test func `33: created, listed, looked up in both forms, updated and deleted`() async throws {
        let caller = try await Self.caller()
        let made = try await Self.modify(
            caller,
            [Self.query, Self.zone, Self.database].map { Self.operation("create", $0) })
        #expect(made.map { $0["subscriptionID"].text } == ["new-books", "shelf", "all"])
        #expect(made.map { $0["subscriptionType"].text } == ["query", "zone", "database"])
        let first = made[0]
        #expect(first["firesOn"].elements.map(\.text) == ["create", "delete"])
        #expect(first["firesOnce"].bool == false && first["zoneWide"].bool == true)
        #expect(first["query"]["recordType"].text == "Book")
        let filter = first["query"]["filterBy"][0]
        #expect(filter["fieldValue"]["value"].text == "Sea Roads")
        #expect(filter["comparator"].text == "EQUALS")
        let info = first["notificationInfo"]
        #expect(info["alertBody"].text == "A book" && info["shouldBadge"].bool == true)
        #expect(info["unknown"] == nil)
        #expect(made[1]["zoneID"]["zoneName"].text == "Shelves")
        #expect(made[1]["notificationInfo"] != nil)
        for list in [
            try await caller.ask("private/subscriptions/list", [:]),
            try await caller.ask(
                "private/subscriptions/lookup",
                ["subscriptions": ["all", ["subscriptionID": "new-books"], "shelf"]]),
        ] {
            #expect(list["subscriptions"].elements == [made[2], made[0], made[1]])
        }
        let changed = Self.query.setting("firesOn", ["update"])
        let updated = try await Self.modify(
            caller,
            [
                Self.operation("update", changed), Self.operation("delete", "shelf"),
                Self.operation("delete", ["subscriptionID": "all"]),
            ])
        #expect(updated[0]["firesOn"].elements.map(\.text) == ["update"])
        #expect(updated[1]["deleted"].bool == true && updated[1]["subscriptionID"].text == "shelf")
        let left = try await caller.ask("private/subscriptions/list", [:])
        #expect(left["subscriptions"].elements == [updated[0]])
    }

    @Test func `a list is asked for by GET too`() async throws {
        let caller = try await Self.caller()
        _ = try await Self.create(caller, Self.zone)
        let answer = try await caller.wire.send(
            WireRequest(
                method: "GET", target: caller.target("private/subscriptions/list"), headers: [],
                body: []))
        #expect(answer.status == 200)
        #expect(answer.json["subscriptions"].elements.count == 1)
    }

    @Test func `34: equal content is no change, other content replaces, an ID is drawn`()
        async throws
    {
        let caller = try await Self.caller()
        let first = try await Self.create(caller, Self.query)
        #expect(try await Self.create(caller, Self.query) == first)
        let other = try await Self.create(caller, Self.query.setting("firesOnce", true))
        #expect(other["firesOnce"].bool == true)
        let drawn = try await Self.create(caller, Self.query.setting("subscriptionID", nil))
        #expect(drawn["subscriptionID"].text?.utf8.count == 36, "\(drawn)")
        let all = try await caller.ask("private/subscriptions/list", [:])
        #expect(all["subscriptions"].elements.count == 2)
    }

    @Test func `33: a creation of nothing but an ID is refused, and so is what is not there`()
        async throws
    {
        let caller = try await Self.caller()
        let items = try await Self.modify(
            caller,
            [
                Self.operation("create", ["subscriptionID": "x"]),
                Self.operation("update", Self.zone), Self.operation("delete", "x"),
                Self.operation("replace", Self.zone), Self.operation("update", [:]),
                ["operationType": "create"],
            ])
        Self.expectFailure(items[0], "BAD_REQUEST", "x", "nothing but an ID")
        Self.expectFailure(items[1], "NOT_FOUND", "shelf")
        Self.expectFailure(items[2], "NOT_FOUND", "x")
        Self.expectFailure(items[3], "BAD_REQUEST", "shelf", "operationType")
        Self.expectFailure(items[4], "BAD_REQUEST", "", "subscriptionID")
        Self.expectFailure(items[5], "BAD_REQUEST", "", "subscription")
        let found = try await caller.ask(
            "private/subscriptions/lookup", ["subscriptions": ["x"]])
        Self.expectFailure(found["subscriptions"].elements[0], "NOT_FOUND", "x")
    }

    @Test func `35: kinds that a database does not have are refused`() async throws {
        let caller = try await Self.caller()
        for subscription in [Self.zone, Self.database] {
            Self.expectFailure(
                try await Self.create(caller, subscription, in: "public"), "BAD_REQUEST", nil,
                "public database")
        }
        for subscription in [Self.query, Self.zone, Self.database] {
            Self.expectFailure(
                try await Self.create(caller, subscription, in: "shared"), "BAD_REQUEST", nil,
                "shared database")
        }
        let shared = try await caller.ask("shared/subscriptions/list", [:])
        #expect(shared["subscriptions"].elements == [])
    }

    static let refusals: [(what: String, subscription: JSON, code: String, reason: String)] = [
        (
            "a zone that is not there", zone.setting("zoneID", ["zoneName": "No"]),
            "ZONE_NOT_FOUND",
            "Zone"
        ),
        (
            "somebody else's zone",
            zone.setting("zoneID", ["zoneName": "Shelves", "ownerRecordName": "_x"]),
            "ZONE_NOT_FOUND", "Zone"
        ),
        (
            "the default zone", zone.setting("zoneID", ["zoneName": "_defaultZone"]), "BAD_REQUEST",
            "default zone"
        ),
        ("no zone", zone.setting("zoneID", nil), "BAD_REQUEST", "zoneID"),
        (
            "a query on a zone", zone.setting("query", ["recordType": "Book"]), "BAD_REQUEST",
            "no query"
        ),
        ("no reasons", query.setting("firesOn", nil), "BAD_REQUEST", "firesOn"),
        ("an empty list of reasons", query.setting("firesOn", []), "BAD_REQUEST", "firesOn"),
        ("an unknown reason", query.setting("firesOn", ["save"]), "BAD_REQUEST", "firesOn"),
        ("no kind", query.setting("subscriptionType", nil), "BAD_REQUEST", "subscriptionType"),
        (
            "an unknown kind", query.setting("subscriptionType", "share"), "BAD_REQUEST",
            "subscriptionType"
        ),
        ("no query", query.setting("query", nil), "BAD_REQUEST", "query"),
        (
            "an unknown type", query.setting("query", ["recordType": "Ghost"]), "NOT_FOUND",
            "Did not find record type"
        ),
        ("the users", query.setting("query", ["recordType": "Users"]), "BAD_REQUEST", "Users"),
        (
            "a field without the index",
            query.setting(
                "query",
                [
                    "recordType": "Book",
                    "filterBy": [
                        [
                            "fieldName": "note", "comparator": "EQUALS",
                            "fieldValue": ["value": "x"],
                        ]
                    ],
                ]), "BAD_REQUEST", "not marked queryable"
        ),
        (
            "an unknown field",
            query.setting(
                "query",
                [
                    "recordType": "Book",
                    "filterBy": [
                        [
                            "fieldName": "ghost", "comparator": "EQUALS",
                            "fieldValue": ["value": "x"],
                        ]
                    ],
                ]), "BAD_REQUEST", "ghost"
        ),
        (
            "four additional fields",
            query.setting(
                "notificationInfo", ["additionalFields": ["title", "pages", "rating", "note"]]),
            "BAD_REQUEST", "limit is 3"
        ),
        (
            "a list as an additional field",
            query.setting("notificationInfo", ["additionalFields": ["tags"]]), "BAD_REQUEST", "tags"
        ),
        (
            "an encrypted additional field",
            query.setting("notificationInfo", ["additionalFields": ["secret"]]), "BAD_REQUEST",
            "secret"
        ),
        (
            "an unknown argument",
            query.setting("notificationInfo", ["alertLocalizationArgs": ["ghost"]]), "BAD_REQUEST",
            "ghost"
        ),
        (
            "P-19: a control character",
            query.setting("notificationInfo", ["alertBody": "a\u{7}b"]), "BAD_REQUEST",
            "control character"
        ),
        (
            "a long text",
            query.setting(
                "notificationInfo", ["alertBody": .string(String(repeating: "x", count: 1_025))]),
            "BAD_REQUEST", "alertBody"
        ),
        (
            "long texts",
            query.setting(
                "notificationInfo",
                [
                    "alertBody": .string(String(repeating: "x", count: 1_000)),
                    "title": .string(String(repeating: "x", count: 1_000)),
                    "subtitle": .string(String(repeating: "x", count: 1_000)),
                ]), "BAD_REQUEST", "notificationInfo"
        ),
        (
            "a collapse ID of a zone",
            zone.setting("notificationInfo", ["collapseIDKey": "k"]), "BAD_REQUEST", "collapseId"
        ),
        (
            "a long collapse ID",
            query.setting(
                "notificationInfo", ["collapseIDKey": .string(String(repeating: "x", count: 65))]),
            "BAD_REQUEST", "collapseIDKey"
        ),
        (
            "a long ID",
            query.setting("subscriptionID", .string(String(repeating: "x", count: 256))),
            "BAD_REQUEST", "subscriptionID"
        ),
        (
            "an ID with a control character", query.setting("subscriptionID", "a\u{1}"),
            "BAD_REQUEST", "subscriptionID"
        ),
        (
            "many filters",
            query.setting(
                "query",
                [
                    "recordType": "Book",
                    "filterBy": .array(
                        Array(
                            repeating: [
                                "fieldName": "title", "comparator": "EQUALS",
                                "fieldValue": ["value": "x"],
                            ], count: 21)),
                ]), "BAD_REQUEST", "limit is 20"
        ),
        (
            "large filters",
            query.setting(
                "query",
                [
                    "recordType": "Book",
                    "filterBy": [
                        [
                            "fieldName": "title", "comparator": "EQUALS",
                            "fieldValue": ["value": .string(String(repeating: "x", count: 9_000))],
                        ]
                    ],
                ]), "BAD_REQUEST", "8192 bytes"
        ),
    ]

    @Test func `each broken rule is its item's error, and the others are saved`() async throws {
        let caller = try await Self.caller()
        for row in Self.refusals {
            let items = try await Self.modify(
                caller,
                [
                    Self.operation("create", row.subscription),
                    Self.operation("create", Self.database),
                ])
            let item = items[0]
            #expect(item["serverErrorCode"].text == row.code, "\(row.what): \(item)")
            #expect(
                item["reason"].text?.contains(row.reason) == true, "\(row.what): \(item)")
            #expect(items[1]["serverErrorCode"] == nil, "\(row.what)")
        }
        let left = try await caller.ask("private/subscriptions/list", [:])
        #expect(left["subscriptions"].elements.count == 1)
    }

    @Test func `a request of too many operations is refused whole, and one of none does nothing`()
        async throws
    {
        let caller = try await Self.caller()
        for (count, status) in [(0, 200), (201, 400)] {
            let answer = try await caller.post(
                "private/subscriptions/modify",
                [
                    "operations": .array(
                        Array(repeating: Self.operation("delete", "x"), count: count))
                ])
            #expect(answer.status == status, "\(answer)")
        }
    }

    @Test func `X-04: another user's subscription is like one that is not there`() async throws {
        let caller = try await Self.caller()
        _ = try await Self.create(caller, Self.query, in: "public")
        let other = caller.acting(as: .other("two"))
        let found = try await other.ask(
            "public/subscriptions/lookup", ["subscriptions": ["new-books", "none"]])
        let items = found["subscriptions"].elements
        for key in ["serverErrorCode", "reason"] { #expect(items[0][key] == items[1][key]) }
        #expect(items[0].keys.sorted() == items[1].keys.sorted())
        let list = try await other.ask("public/subscriptions/list", [:])
        #expect(list["subscriptions"].elements == [])
        let deleted = try await Self.modify(
            other, [Self.operation("delete", "new-books")], in: "public")
        Self.expectFailure(deleted[0], "NOT_FOUND")
        let own = try await caller.ask("public/subscriptions/list", [:])
        #expect(own["subscriptions"].elements.count == 1)
    }

    @Test func `an API token alone is sent to sign in`() async throws {
        let caller = try await Self.caller().acting(as: .anonymous)
        for operation in ["list", "lookup", "modify"] {
            let answer = try await caller.post("public/subscriptions/\(operation)", [:])
            #expect(answer.status == 421, "\(operation): \(answer)")
        }
    }
}
