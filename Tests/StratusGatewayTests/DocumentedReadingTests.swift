import StratusModel
import Testing

@testable import StratusGateway
@testable import WireScenarios

/// What the pages say where more than one reading was possible (semantics audit 8). Each row is a
/// sentence of `Docs/internals/queries.md`, `Docs/reference/schema.md` or
/// `Docs/reference/compatibility.md`.
@Suite struct DocumentedReadingTests {
    private static func caller() async throws -> Caller {
        let wire = InProcess()
        return Caller(wire: wire, container: try await wire.makeContainer())
    }

    private static func filter(_ field: String, _ comparator: String, _ value: JSON) -> JSON {
        [
            "recordType": "Book",
            "filterBy": [
                [
                    "fieldName": .string(field), "comparator": .string(comparator),
                    "fieldValue": ["value": value],
                ]
            ],
        ]
    }

    @Test func `semantics audit 8: records without a place come first where far comes first`()
        async throws
    {
        let caller = try await Self.caller()
        for (name, latitude) in [("near", 1.0), ("far", 9.0)] {
            try await caller.create(
                name,
                fields: [
                    "place": ["value": ["latitude": .number("\(latitude)"), "longitude": 2.5]]
                ])
        }
        try await caller.create("without")
        for (ascending, names) in [
            (true, ["near", "far", "without"]), (false, ["without", "far", "near"]),
        ] {
            let found = try await caller.query([
                "recordType": "Book",
                "sortBy": [
                    [
                        "fieldName": "place", "ascending": .bool(ascending),
                        "relativeLocation": ["latitude": 0.5, "longitude": 2.5],
                    ]
                ],
            ])
            #expect(found == names)
        }
    }

    @Test func `semantics audit 8: the 240 bytes of an order are counted after escaping`()
        async throws
    {
        let caller = try await Self.caller()
        for (count, names) in [(119, ["second", "first"]), (120, ["first", "second"])] {
            let zeros = String(repeating: "\u{0}", count: count)
            for (name, end) in [("first", "b"), ("second", "a")] {
                let saved = try await caller.modify([
                    Operation.of(
                        "forceReplace", name, recordType: "Book",
                        fields: ["title": ["value": .string(zeros + end)]])
                ])
                #expect(saved[0]["recordChangeTag"] != nil, "\(saved)")
            }
            let found = try await caller.query([
                "recordType": "Book", "sortBy": [["fieldName": "title"]],
            ])
            // Beyond the cut the name decides.
            #expect(found == names, "\(count) zero bytes")
        }
    }

    @Test func `semantics audit 8: katakana runs are words, Han and hiragana are cut by letter`()
        async throws
    {
        let caller = try await Self.caller()
        try await caller.create("a", fields: ["title": ["value": "東京 タワー ひろば"]])
        for (word, isFound) in [
            ("タワー", true), ("ワ", false), ("東", true), ("京", true), ("ろ", true),
        ] {
            let found = try await caller.query(
                Self.filter("title", "CONTAINS_ANY_TOKENS", .string(word)))
            #expect(found == (isFound ? ["a"] : []), "\(word)")
        }
    }

    @Test func `semantics audit 8: an integer for a DOUBLE field is rounded first`() async throws {
        let caller = try await Self.caller()
        try await caller.create("a", fields: ["rating": ["value": 9223372036854775808.0]])
        let most: JSON = .number("9223372036854775807")
        #expect(
            try await caller.query(Self.filter("rating", "LESS_THAN_OR_EQUALS", most)) == ["a"])
    }

    @Test func `semantics audit 8: a type that grows follows the order of the batch`() async throws
    {
        var settings = GatewaySettings()
        settings.developmentSchema = .justInTime
        let caller = Caller(wire: InProcess(settings: settings), container: "iCloud.grows")
        func saved(_ type: String, _ values: [JSON]) async throws -> [JSON] {
            try await caller.modify(
                values.enumerated().map {
                    Operation.create(
                        "\(type)\($0.offset)", type: type, ["x": ["value": $0.element]])
                })
        }
        let first = try await saved("One", [1.5, 2])
        #expect(first.allSatisfy { $0["fields"]["x"]["type"] == "DOUBLE" }, "\(first)")
        let second = try await saved("Two", [2, 1.5])
        #expect(second[0]["fields"]["x"]["type"] == "INT64", "\(second)")
        #expect(second[1]["serverErrorCode"] == "BAD_REQUEST", "\(second)")
    }

    @Test func `semantics audit 8: a negative limit, no operations, no records`() async throws {
        let caller = try await Self.caller()
        let negative = try await caller.post(
            "private/records/query", ["query": ["recordType": "Book"], "resultsLimit": -1])
        expectFailure(negative, 400, "BAD_REQUEST")
        let missing = try await caller.post("private/records/modify", [:])
        expectFailure(missing, 400, "BAD_REQUEST")
        #expect(missing.json["reason"].text?.contains("missing required field") == true)
        let nothing = try await caller.ask("private/records/modify", ["operations": []])
        #expect(nothing["records"] == [])
        let empty = try await caller.ask("private/records/lookup", ["records": []])
        #expect(empty["records"].elements.isEmpty)
    }
}
