import Testing

/// Every comparator over the types it takes, sorts, and distances.
enum Comparators {
    static func run(_ caller: Caller) async throws {
        try await Self.fill(caller)
        for row in Self.rows {
            let names = try await caller.query(["recordType": "Book", "filterBy": row.filter])
            #expect(names.sorted() == row.expected, "\(row.filter)")
        }
        for (sorts, expected) in Self.orders {
            let names = try await caller.query(["recordType": "Book", "sortBy": sorts])
            #expect(names == expected, "\(sorts)")
        }
    }

    /// Three books: a near Oslo, b in Bergen, c without a place.
    private static func fill(_ caller: Caller) async throws {
        func reference(_ name: String) -> JSON { ["recordName": .string(name), "action": "NONE"] }
        try await caller.create(
            "a",
            fields: [
                "title": ["value": "Sea Roads"], "pages": ["value": 100],
                "rating": ["value": 4.5], "published": ["value": 1_000],
                "tags": ["value": ["travel", "maps"]], "counts": ["value": [1, 2, 3]],
                "author": ["value": reference("x")],
                "place": ["value": ["latitude": 59.91, "longitude": 10.75]],
            ])
        try await caller.create(
            "b",
            fields: [
                "title": ["value": "Low Tide at Sea"], "pages": ["value": 200],
                "rating": ["value": 3.5], "published": ["value": 2_000],
                "tags": ["value": ["maps"]], "counts": ["value": [3]],
                "author": ["value": reference("y")],
                "place": ["value": ["latitude": 60.39, "longitude": 5.32]],
            ])
        try await caller.create(
            "c",
            fields: [
                "title": ["value": "Étude"], "pages": ["value": 300], "rating": ["value": 2.5],
                "published": ["value": 3_000], "tags": ["value": []],
            ])
    }

    private static func filter(
        _ field: String, _ comparator: String, _ value: JSON, _ type: JSON? = nil
    ) -> JSON {
        [
            "fieldName": .string(field), "comparator": .string(comparator),
            "fieldValue": (["value": value] as JSON).setting("type", type),
        ]
    }

    private static let oslo: JSON = ["latitude": 59.9, "longitude": 10.7]

    private static let rows: [(filter: JSON, expected: [String])] = [
        (filter("title", "EQUALS", "Sea Roads", "STRING"), ["a"]),
        (filter("title", "NOT_EQUALS", "Sea Roads"), ["b", "c"]),
        (filter("title", "BEGINS_WITH", "Sea"), ["a"]),
        (filter("title", "NOT_BEGINS_WITH", "Sea"), ["b", "c"]),
        (filter("title", "IN", ["Sea Roads", "Étude"], "STRING_LIST"), ["a", "c"]),
        (filter("title", "NOT_IN", ["Sea Roads", "Étude"]), ["b"]),
        (filter("title", "LESS_THAN", "M"), ["b"]),
        (filter("title", "CONTAINS_ALL_TOKENS", "sea roads"), ["a"]),
        (filter("title", "CONTAINS_ANY_TOKENS", "roads tide"), ["a", "b"]),
        (filter("title", "CONTAINS_ANY_TOKENS", "ETUDE"), ["c"]),
        (filter("pages", "EQUALS", 200, "INT64"), ["b"]),
        (filter("pages", "EQUALS", 200, "NUMBER_INT64"), ["b"]),
        (filter("pages", "EQUALS", 200), ["b"]),
        (filter("pages", "NOT_EQUALS", 200), ["a", "c"]),
        (filter("pages", "LESS_THAN", 200), ["a"]),
        (filter("pages", "LESS_THAN_OR_EQUALS", 200), ["a", "b"]),
        (filter("pages", "GREATER_THAN", 200), ["c"]),
        (filter("pages", "GREATER_THAN_OR_EQUALS", 200), ["b", "c"]),
        (filter("pages", "IN", [100, 300], "INT64_LIST"), ["a", "c"]),
        (filter("pages", "NOT_IN", [100, 300]), ["b"]),
        (filter("rating", "EQUALS", 3.5, "DOUBLE"), ["b"]),
        (filter("rating", "GREATER_THAN", 3, "DOUBLE"), ["a", "b"]),
        (filter("rating", "LESS_THAN_OR_EQUALS", 2.5), ["c"]),
        (filter("published", "EQUALS", 2_000, "TIMESTAMP"), ["b"]),
        (filter("published", "GREATER_THAN_OR_EQUALS", 2_000), ["b", "c"]),
        (filter("published", "IN", [1_000], "TIMESTAMP_LIST"), ["a"]),
        (filter("author", "EQUALS", ["recordName": "x"], "REFERENCE"), ["a"]),
        (filter("author", "EQUALS", ["recordName": "x", "action": "DELETE_SELF"]), ["a"]),
        (filter("author", "IN", [["recordName": "x"], ["recordName": "y"]]), ["a", "b"]),
        (filter("tags", "LIST_CONTAINS", "maps", "STRING"), ["a", "b"]),
        (filter("tags", "LIST_CONTAINS_ALL", ["maps", "travel"], "STRING_LIST"), ["a"]),
        (filter("tags", "LIST_CONTAINS_ANY", ["travel", "x"]), ["a"]),
        (filter("tags", "CONTAINS_ANY", ["travel"], "STRING_LIST"), ["a"]),
        (filter("tags", "LIST_MEMBER_BEGINS_WITH", "tra"), ["a"]),
        (filter("tags", "NOT_LIST_CONTAINS", "maps"), ["c"]),
        (filter("tags", "LIST_NOT_CONTAINS", "travel"), ["b", "c"]),
        (filter("tags", "NOT_LIST_CONTAINS_ALL", ["maps", "travel"]), ["b", "c"]),
        (filter("tags", "NOT_LIST_CONTAINS_ANY", ["travel", "x"]), ["b", "c"]),
        (filter("tags", "LIST_NOT_CONTAINS_ANY", ["maps"]), ["c"]),
        (filter("tags", "NOT_LIST_MEMBER_BEGINS_WITH", "tra"), ["b", "c"]),
        // A record without the field matches no filter, not even a negated one.
        (filter("counts", "NOT_LIST_CONTAINS", 1), ["b"]),
        (filter("author", "NOT_EQUALS", ["recordName": "x"]), ["b"]),
        (filter("author", "NOT_IN", [["recordName": "x"]]), ["b"]),
        (
            ["comparator": "CONTAINS_ANY_TOKENS", "fieldValue": ["value": "roads tide"]],
            ["a", "b"]
        ),
        (filter("ratios", "LIST_CONTAINS", 0.5), []),
        (filter("dates", "LIST_CONTAINS", 5), []),
        (filter("authors", "LIST_CONTAINS", ["recordName": "x"]), []),
        (filter("counts", "LIST_CONTAINS", 3), ["a", "b"]),
        (filter("counts", "LIST_CONTAINS_ALL", [1, 3]), ["a"]),
        (
            filter("place", "NEAR", oslo, "LOCATION").setting("distance", 20_000), ["a"]
        ),
        (filter("place", "NEAR", oslo).setting("distance", 400_000), ["a", "b"]),
        (filter("place", "LESS_THAN", oslo).setting("distance", 20_000), ["a"]),
        (
            [filter("pages", "GREATER_THAN", 100), filter("tags", "LIST_CONTAINS", "maps")], ["b"]
        ),
        (
            [
                "systemFieldName": "recordName", "comparator": "EQUALS",
                "fieldValue": ["value": ["recordName": "b"], "type": "REFERENCE"],
            ], ["b"]
        ),
        (
            [
                "systemFieldName": "recordName", "comparator": "EQUALS",
                "fieldValue": ["value": "b", "type": "STRING"],
            ], ["b"]
        ),
        (filter("___recordID", "EQUALS", ["recordName": "c", "action": "NONE"]), ["c"]),
        (
            filter(
                "___recordID", "IN", [["recordName": "c"], ["recordName": "a"]], "REFERENCE_LIST"),
            ["a", "c"]
        ),
        (
            [
                "systemFieldName": "createdTimestamp", "comparator": "GREATER_THAN",
                "fieldValue": ["value": 1_000, "type": "TIMESTAMP"],
            ], ["a", "b", "c"]
        ),
        (
            [
                "systemFieldName": "createdUserRecordName", "comparator": "EQUALS",
                "fieldValue": ["value": ["recordName": "__defaultOwner__"]],
            ], ["a", "b", "c"]
        ),
        (
            [
                "systemFieldName": "createdUserRecordName", "comparator": "EQUALS",
                "fieldValue": ["value": ["recordName": "_nobody"], "type": "REFERENCE"],
            ], []
        ),
    ]

    private static let orders: [(sorts: JSON, expected: [String])] = [
        ([["fieldName": "pages", "ascending": false]], ["c", "b", "a"]),
        ([["fieldName": "rating"]], ["c", "b", "a"]),
        ([["fieldName": "title", "ascending": true]], ["b", "a", "c"]),
        (
            [["systemFieldName": "createdTimestamp", "ascending": true], ["fieldName": "pages"]],
            ["a", "b", "c"]
        ),
        (
            [
                [
                    "fieldName": "place",
                    "relativeLocation": ["value": oslo, "type": "LOCATION"],
                ]
            ], ["a", "b", "c"]
        ),
        (
            [["fieldName": "place", "relativeLocation": ["latitude": 60.4, "longitude": 5.3]]],
            ["b", "a", "c"]
        ),
    ]
}
