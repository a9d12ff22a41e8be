import StratusModel
import Testing

@testable import StratusGateway
@testable import WireScenarios

/// An error in one operation is that operation's error, wherever it is found.
@Suite struct ItemErrorTests {
    private static let shelves: JSON = ["zoneName": "Shelves"]

    private static func caller(_ settings: GatewaySettings = GatewaySettings()) async throws
        -> Caller
    {
        let wire = InProcess(settings: settings)
        let caller = Caller(wire: wire, container: try await wire.makeContainer())
        try await caller.makeZone("Shelves")
        return caller
    }

    @Test func `an atomic batch names every culprit, the gateway's and the partition's`()
        async throws
    {
        let caller = try await Self.caller()
        try await caller.create("taken", in: Self.shelves)
        let items = try await caller.modify(
            [
                Operation.create("fine"),
                Operation.create("shape", ["pages": ["value": "many"]]),
                Operation.create("taken"),
                Operation.of("update", "ghost", tag: "1"),
            ], in: Self.shelves)
        expectItem(items[0], failed: "ATOMIC_ERROR", recordName: "fine")
        expectItem(items[1], failed: "BAD_REQUEST", recordName: "shape")
        expectItem(items[2], failed: "CONFLICT", recordName: "taken")
        expectItem(items[3], failed: "NOT_FOUND", recordName: "ghost")
        // Judged is not done.
        let found = try await caller.lookUp(["fine"], in: Self.shelves)
        expectItem(found[0], failed: "NOT_FOUND")
    }

    static let unreadable: [(name: String, value: String)] = [
        ("half a pair in a string", #""title": {"value": "a \ud800 b"}"#),
        ("a low half", #""title": {"value": "\udc00"}"#),
        ("beyond Double", #""price": {"value": 1e999, "type": "DOUBLE"}"#),
        ("beyond Double in a place", #""place": {"value": {"latitude": 1e999, "longitude": 0}}"#),
        ("half a pair in a list", #""tags": {"value": ["a", "\ud83d"]}"#),
        ("half a pair as the type", #""title": {"value": "a", "type": "\ud800"}"#),
        ("half a pair in a field's name", #""ti\ud800tle": {"value": "a"}"#),
        ("half a pair in a reference", #""author": {"value": {"recordName": "\ud800"}}"#),
    ]

    @Test(arguments: unreadable)
    func `G-17 a value that cannot be read is its operation's error, and the others are saved`(
        row: (name: String, value: String)
    ) async throws {
        let caller = try await Self.caller()
        let answer = try await caller.post(
            "private/records/modify",
            text: """
                {"zoneID": {"zoneName": "Shelves"}, "atomic": false, "operations": [
                {"operationType": "create", "record": {"recordName": "bad", "recordType": "Book",
                "fields": {\(row.value)}}},
                {"operationType": "create", "record": {"recordName": "good", "recordType": "Book",
                "fields": {"title": {"value": "whole 😀"}}}}]}
                """)
        #expect(answer.status == 200, "\(answer)")
        expectItem(answer.json["records"][0], failed: "BAD_REQUEST", recordName: "bad")
        #expect(answer.json["records"][1]["fields"]["title"]["value"] == "whole 😀")
    }

    @Test func `a record name that cannot be read is nobody's item`() async throws {
        let caller = try await Self.caller()
        let answer = try await caller.post(
            "private/records/lookup",
            text: #"{"records": [{"recordName": "\ud800"}], "zoneID": {"zoneName": "Shelves"}}"#)
        expectFailure(answer, 400, "BAD_REQUEST")
    }

    @Test func `just in time makes two hundred types in one command`() async throws {
        var settings = GatewaySettings()
        settings.developmentSchema = .justInTime
        let caller = try await Self.caller(settings)
        let items = try await caller.modify(
            (0..<200).map {
                Operation.of(
                    "create", "r\($0)", recordType: "Type\($0)",
                    fields: ["a": ["value": .number("\($0)")], "b": ["value": "text"]])
            }, in: Self.shelves)
        #expect(items.allSatisfy { $0["recordChangeTag"].text != nil }, "\(items)")
        for number in [0, 199] {
            let names = try await caller.query(
                ["recordType": .string("Type\(number)")], in: Self.shelves)
            #expect(names == ["r\(number)"])
        }
    }

    @Test func `a marker ends with the zone it was made in`() async throws {
        let caller = try await Self.caller()
        for name in ["a", "b", "c"] { try await caller.create(name, in: Self.shelves) }
        let query: JSON = [
            "zoneID": Self.shelves, "query": ["recordType": "Book"], "resultsLimit": 1,
        ]
        let marker = try #require(
            try await caller.ask("private/records/query", query)["continuationMarker"])
        let next = query.setting("continuationMarker", marker)
        #expect(try await caller.ask("private/records/query", next)["records"].elements.count == 1)
        try await caller.deleteZone("Shelves")
        try await caller.makeZone("Shelves")
        for name in ["a", "b", "c"] { try await caller.create(name, in: Self.shelves) }
        expectFailure(
            try await caller.post("private/records/query", next), 400, "BAD_REQUEST")
    }
}
