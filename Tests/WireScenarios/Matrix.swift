import Testing

/// Every comparator of §6.3 over every type of field: its matches where it is accepted, and its
/// refusal everywhere else.
enum Matrix {
    /// A field, and its values in three records, in order. A fourth record lacks it.
    private struct Scalar {
        var field: String
        var tag: String
        var values: [JSON]
        var hasOrder = true
        var hasMembership = true
    }

    private static let scalars: [Scalar] = [
        Scalar(field: "title", tag: "STRING", values: ["alpha", "beta", "gamma"]),
        Scalar(field: "pages", tag: "INT64", values: [-1, 0, 9_007_199_254_740_993]),
        Scalar(field: "rating", tag: "DOUBLE", values: [-0.5, 0.25, 1e9]),
        Scalar(field: "published", tag: "TIMESTAMP", values: [-5, 0, 5]),
        Scalar(
            field: "author", tag: "REFERENCE",
            values: [["recordName": "x"], ["recordName": "y"], ["recordName": "z"]],
            hasOrder: false),
        Scalar(
            field: "code", tag: "BYTES", values: ["AA==", "AQ==", "Ag=="], hasOrder: false,
            hasMembership: false),
    ]

    /// A list field and two elements.
    private static let lists: [(field: String, tag: String, one: JSON, two: JSON)] = [
        ("tags", "STRING", "one", "two"), ("counts", "INT64", 1, 2), ("ratios", "DOUBLE", 0.5, 2.5),
        ("dates", "TIMESTAMP", -1, 2), ("codes", "BYTES", "AA==", "AQ=="),
        ("authors", "REFERENCE", ["recordName": "x"], ["recordName": "y"]),
        (
            "spots", "LOCATION", ["latitude": 1.5, "longitude": 2.5],
            ["latitude": -1.5, "longitude": 2.5]
        ),
    ]

    private static let scalarOnly = [
        "EQUALS", "NOT_EQUALS", "LESS_THAN", "LESS_THAN_OR_EQUALS", "GREATER_THAN",
        "GREATER_THAN_OR_EQUALS", "IN", "NOT_IN", "BEGINS_WITH", "NOT_BEGINS_WITH", "NEAR",
    ]
    private static let listOnly = [
        "LIST_CONTAINS", "NOT_LIST_CONTAINS", "LIST_CONTAINS_ALL", "NOT_LIST_CONTAINS_ALL",
        "LIST_CONTAINS_ANY", "NOT_LIST_CONTAINS_ANY", "LIST_MEMBER_BEGINS_WITH",
        "NOT_LIST_MEMBER_BEGINS_WITH",
    ]

    private static func body(
        _ field: String, _ comparator: String, _ value: JSON, _ type: String, near: Bool = false
    ) -> JSON {
        var filter: JSON = [
            "fieldName": .string(field), "comparator": .string(comparator),
            "fieldValue": ["value": value, "type": .string(type)],
        ]
        if near { filter = filter.setting("distance", 1_000) }
        return ["recordType": "Book", "filterBy": filter]
    }

    static func scalars(_ caller: Caller) async throws {
        for (position, name) in ["a", "b", "c"].enumerated() {
            try await caller.create(
                name,
                fields: .object(
                    Self.scalars.map {
                        .init(key: $0.field, value: ["value": $0.values[position]])
                    }))
        }
        try await caller.create("d")
        for row in Self.scalars {
            let (low, middle, high) = (row.values[0], row.values[1], row.values[2])
            var accepted: [(comparator: String, operand: JSON, type: String, found: [String])] = [
                ("EQUALS", middle, row.tag, ["b"]), ("NOT_EQUALS", middle, row.tag, ["a", "c"]),
            ]
            if row.hasMembership {
                accepted += [
                    ("IN", [low, high], row.tag + "_LIST", ["a", "c"]),
                    ("NOT_IN", [low, high], row.tag + "_LIST", ["b"]),
                    ("IN", [], row.tag + "_LIST", []),
                    ("NOT_IN", [], row.tag + "_LIST", ["a", "b", "c"]),
                ]
            }
            if row.hasOrder {
                accepted += [
                    ("LESS_THAN", middle, row.tag, ["a"]),
                    ("LESS_THAN_OR_EQUALS", middle, row.tag, ["a", "b"]),
                    ("GREATER_THAN", middle, row.tag, ["c"]),
                    ("GREATER_THAN_OR_EQUALS", middle, row.tag, ["b", "c"]),
                ]
            }
            if row.tag == "STRING" {
                accepted += [
                    ("BEGINS_WITH", "be", row.tag, ["b"]),
                    ("NOT_BEGINS_WITH", "be", row.tag, ["a", "c"]),
                    ("CONTAINS_ALL_TOKENS", "BETA", row.tag, ["b"]),
                    ("CONTAINS_ANY_TOKENS", "beta gamma", row.tag, ["b", "c"]),
                    ("CONTAINS_ANY_TOKENS", ["beta", "alpha"], "STRING_LIST", ["a", "b"]),
                ]
            }
            for (comparator, operand, type, expected) in accepted {
                let found = try await caller.query(
                    Self.body(row.field, comparator, operand, type))
                #expect(found.sorted() == expected, "\(row.tag) \(comparator) \(operand)")
            }
            let taken = Set(accepted.map(\.comparator))
            let all =
                Self.scalarOnly + Self.listOnly + ["CONTAINS_ALL_TOKENS", "CONTAINS_ANY_TOKENS"]
            for comparator in all where !taken.contains(comparator) {
                try await Self.expectRefusal(caller, row.field, row.tag, comparator, middle)
            }
        }
        // A place is compared with a distance and with nothing else.
        let here: JSON = ["latitude": 1.5, "longitude": 2.5]
        for comparator in Self.scalarOnly + Self.listOnly
        where !["NEAR", "LESS_THAN", "LESS_THAN_OR_EQUALS"].contains(comparator) {
            try await Self.expectRefusal(caller, "place", "LOCATION", comparator, here)
        }
    }

    static func lists(_ caller: Caller) async throws {
        func fields(_ elements: (JSON, JSON) -> [JSON]) -> JSON {
            .object(
                Self.lists.map {
                    .init(
                        key: $0.field,
                        value: [
                            "value": .array(elements($0.one, $0.two)),
                            "type": .string($0.tag + "_LIST"),
                        ])
                })
        }
        try await caller.create("a", fields: fields { one, _ in [one] })
        try await caller.create("b", fields: fields { [$0, $1] })
        try await caller.create("c", fields: fields { _, _ in [] })
        try await caller.create("d")
        for (field, tag, one, two) in Self.lists {
            var accepted: [(comparator: String, operand: JSON, type: String, found: [String])] = [
                ("LIST_CONTAINS", two, tag, ["b"]), ("NOT_LIST_CONTAINS", two, tag, ["a", "c"]),
                ("LIST_CONTAINS_ALL", [one, two], tag + "_LIST", ["b"]),
                ("NOT_LIST_CONTAINS_ALL", [one, two], tag + "_LIST", ["a", "c"]),
                ("LIST_CONTAINS_ANY", [one, two], tag + "_LIST", ["a", "b"]),
                ("NOT_LIST_CONTAINS_ANY", [one, two], tag + "_LIST", ["c"]),
            ]
            if tag == "STRING" {
                accepted += [
                    ("LIST_MEMBER_BEGINS_WITH", "tw", tag, ["b"]),
                    ("NOT_LIST_MEMBER_BEGINS_WITH", "tw", tag, ["a", "c"]),
                ]
            }
            for (comparator, operand, type, expected) in accepted {
                let found = try await caller.query(Self.body(field, comparator, operand, type))
                #expect(found.sorted() == expected, "\(tag)_LIST \(comparator)")
            }
            let taken = Set(accepted.map(\.comparator))
            for comparator in Self.scalarOnly + Self.listOnly where !taken.contains(comparator) {
                try await Self.expectRefusal(caller, field, tag, comparator, one)
            }
        }
    }

    private static func expectRefusal(
        _ caller: Caller, _ field: String, _ tag: String, _ comparator: String, _ value: JSON
    ) async throws {
        let takesList =
            ["IN", "NOT_IN"].contains(comparator) || comparator.hasSuffix("ALL")
            || comparator.hasSuffix("ANY")
        let answer = try await caller.post(
            "private/records/query",
            [
                "query": Self.body(
                    field, comparator, takesList ? [value] : value,
                    takesList ? tag + "_LIST" : tag, near: comparator == "NEAR")
            ])
        #expect(answer.status == 400, "\(field) \(comparator): \(answer)")
        #expect(answer.json["serverErrorCode"] == "BAD_REQUEST")
    }

    static func systemFields(_ caller: Caller) async throws {
        try await caller.makeZone("Shelves")
        let zone: JSON = ["zoneName": "Shelves"]
        let root = try await caller.create("root", in: zone)
        var child = try #require(Operation.create("child")["record"])
        child = child.setting("parent", ["recordName": "root"])
        let saved = try await caller.modify(
            [["operationType": "create", "record": child]], in: zone)
        #expect(saved[0]["parent"]["recordName"] == "root")
        let me = try #require(root["created"]["userRecordName"])
        let made = try #require(root["created"]["timestamp"])
        let rows:
            [(names: [String], comparator: String, value: JSON, type: String, found: [String])] = [
                (
                    ["recordName", "___recordID", "___recordId"], "EQUALS", ["recordName": "root"],
                    "REFERENCE", ["root"]
                ),
                (
                    ["recordName", "___recordID"], "IN", [["recordName": "root"]], "REFERENCE_LIST",
                    ["root"]
                ),
                (["recordName", "___recordID"], "EQUALS", "child", "STRING", ["child"]),
                (
                    ["createdTimestamp", "___createTime"], "GREATER_THAN_OR_EQUALS", made,
                    "TIMESTAMP", ["child", "root"]
                ),
                (["modifiedTimestamp", "___modTime"], "LESS_THAN", made, "TIMESTAMP", []),
                (
                    ["createdUserRecordName", "___createdBy"], "EQUALS", ["recordName": me],
                    "REFERENCE", ["child", "root"]
                ),
                (
                    ["createdUserRecordName", "___createdBy"], "EQUALS", me, "STRING",
                    ["child", "root"]
                ),
                (
                    ["modifiedUserRecordName", "___modifiedBy"], "NOT_EQUALS", ["recordName": me],
                    "REFERENCE", []
                ),
                (
                    ["parent", "___parent"], "EQUALS", ["recordName": "root"], "REFERENCE",
                    ["child"]
                ),
                (["share", "___share"], "EQUALS", ["recordName": "root"], "REFERENCE", []),
            ]
        for row in rows {
            for name in row.names {
                for key in ["systemFieldName", "fieldName"] {
                    let found = try await caller.query(
                        [
                            "recordType": "Book",
                            "filterBy": [
                                [
                                    "comparator": .string(row.comparator),
                                    "fieldValue": ["value": row.value, "type": .string(row.type)],
                                ] as JSON
                            ].map { $0.setting(key, .string(name)) }[0],
                        ], in: zone)
                    #expect(found.sorted() == row.found, "\(key) \(name) \(row.comparator)")
                }
            }
        }
    }
}
