import StratusCluster
import StratusDoubles
import StratusModel
import StratusQuery
import StratusRecords
import Synchronization
import Testing

@testable import StratusGateway
@testable import WireScenarios

/// G-33: what a query may ask, and what its operands mean, as a client says it.
@Suite struct QueryRequestTests {
    private static func caller(limits: Limits = Limits()) async throws -> Caller {
        let wire = InProcess(limits: limits)
        return Caller(wire: wire, container: try await wire.makeContainer())
    }

    private static func query(_ field: String, _ comparator: String, _ value: JSON) -> JSON {
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

    @Test(arguments: [
        ("title", "IN"), ("title", "NOT_IN"), ("tags", "LIST_CONTAINS_ANY"),
        ("tags", "LIST_CONTAINS_ALL"), ("tags", "NOT_LIST_CONTAINS_ANY"),
        ("tags", "NOT_LIST_CONTAINS_ALL"), ("recordName", "IN"),
        ("title", "CONTAINS_ANY_TOKENS"), ("title", "CONTAINS_ALL_TOKENS"),
    ])
    func `a filter names 250 values and no more (security audit 1b)`(
        field: String, comparator: String
    ) async throws {
        let caller = try await Self.caller()
        func values(_ count: Int) -> JSON {
            comparator.hasSuffix("TOKENS")
                ? .string((0..<count).map { "w\($0)" }.joined(separator: " "))
                : .array((0..<count).map { .string("w\($0)") })
        }
        _ = try await caller.query(Self.query(field, comparator, values(250)))
        let answer = try await caller.post(
            "private/records/query", ["query": Self.query(field, comparator, values(251))])
        expectFailure(
            answer, 400, "BAD_REQUEST",
            reason: "Filter type \(comparator) on field '\(field)' has more than 250 values: "
                + "ask in several queries")
    }

    @Test
    func `a long text is cut by the gateway, and found by any of its words (security audit 2)`()
        async throws
    {
        let wire = InProcess()
        let caller = Caller(wire: wire, container: try await wire.makeContainer())
        let long = (0..<3_000).map { "w\($0)" }.joined(separator: " ")
        let repeated = String(repeating: "sea roads ", count: 1_000)
        for (name, text) in [("short", "w7 sea"), ("long", long), ("repeated", repeated)] {
            try await caller.create(name, fields: ["title": ["value": .string(text)]])
        }
        // A short text is cut where it is indexed.
        let container = ContainerReference(container: "c", environment: .production)
        let cut = try wire.router.bodies.withLock { $0.suffix(3) }.map { body in
            guard
                case .modifyRecords(let modify) = try RecordCommand(
                    decoding: body, container: container)
            else { return -1 }
            return modify.words.count
        }
        #expect(cut == [0, 1, 1])
        for (word, names) in [
            ("w7", ["long", "short"]), ("w2999", ["long"]), ("sea", ["repeated", "short"]),
            ("nosuchword", []),
        ] {
            let found = try await caller.ask(
                "private/records/query",
                ["query": Self.query("title", "CONTAINS_ANY_TOKENS", .string(word))])
            #expect(
                found["records"].elements.compactMap { $0["recordName"].text }.sorted() == names)
        }
    }

    @Test func `the bound of operands is a setting`() async throws {
        var limits = Limits()
        limits.queryOperandCountMax = 2
        let caller = try await Self.caller(limits: limits)
        _ = try await caller.query(Self.query("title", "IN", ["a", "b"]))
        let answer = try await caller.post(
            "private/records/query", ["query": Self.query("title", "IN", ["a", "b", "c"])])
        expectFailure(answer, 400, "BAD_REQUEST")
    }

    @Test
    func
        `without a zone an operand of a query of all zones means each record's (semantics audit 4)`()
        async throws
    {
        let caller = try await Self.caller()
        try await caller.makeZone("Q1")
        let zones: [JSON?] = [nil, ["zoneName": "Q1"]]
        for zone in zones {
            try await caller.create("tgt", in: zone)
            var target: JSON = ["recordName": "tgt"]
            if let zone { target = target.setting("zoneID", zone) }
            try await caller.create("src", fields: ["author": ["value": target]], in: zone)
        }
        func found(_ comparator: String, _ value: JSON) async throws -> [String] {
            let body: JSON = [
                "zoneWide": true, "query": Self.query("author", comparator, value),
            ]
            return try await caller.ask("private/records/query", body)["records"].elements.map {
                ($0["zoneID"]["zoneName"].text ?? "") + "/" + ($0["recordName"].text ?? "")
            }.sorted()
        }
        let bare: JSON = ["recordName": "tgt"]
        let placed: JSON = ["recordName": "tgt", "zoneID": ["zoneName": "Q1"]]
        #expect(try await found("EQUALS", bare) == ["Q1/src", "_defaultZone/src"])
        #expect(try await found("IN", [bare]) == ["Q1/src", "_defaultZone/src"])
        #expect(try await found("NOT_EQUALS", bare) == [])
        #expect(try await found("EQUALS", placed) == ["Q1/src"])
    }

    @Test func `a record's identity is its zone and its name (semantics audit 5)`() async throws {
        let caller = try await Self.caller()
        try await caller.makeZone("Q1")
        let q1: JSON = ["zoneName": "Q1"]
        try await caller.create("tgt", in: q1)
        try await caller.create("tgt")
        func found(_ comparator: String, _ value: JSON, isWide: Bool) async throws -> [String] {
            var body: JSON = ["query": Self.query("___recordID", comparator, value)]
            body =
                isWide ? body.setting("zoneWide", true) : body.setting("zoneID", ["zoneName": "Q1"])
            return try await caller.ask("private/records/query", body)["records"].elements.map {
                ($0["zoneID"]["zoneName"].text ?? "") + "/" + ($0["recordName"].text ?? "")
            }.sorted()
        }
        let elsewhere: JSON = ["recordName": "tgt", "zoneID": ["zoneName": "Elsewhere"]]
        let here: JSON = ["recordName": "tgt", "zoneID": ["zoneName": "Q1"]]
        let both = ["Q1/tgt", "_defaultZone/tgt"]
        #expect(try await found("EQUALS", elsewhere, isWide: false) == [])
        #expect(try await found("NOT_EQUALS", elsewhere, isWide: false) == ["Q1/tgt"])
        #expect(try await found("EQUALS", here, isWide: false) == ["Q1/tgt"])
        #expect(try await found("EQUALS", here, isWide: true) == ["Q1/tgt"])
        #expect(try await found("IN", [here, elsewhere], isWide: true) == ["Q1/tgt"])
        #expect(try await found("NOT_IN", [here], isWide: true) == ["_defaultZone/tgt"])
        #expect(try await found("EQUALS", ["recordName": "tgt"], isWide: true) == both)
        #expect(try await found("EQUALS", "tgt", isWide: true) == both)
    }

    @Test
    func
        `an unknown type and a missing record come before a value without a type (semantics audit 7)`()
        async throws
    {
        let caller = try await Self.caller()
        try await caller.create("taken")
        let list: JSON = ["tags": ["value": []]]
        let items = try await caller.modify([
            Operation.create("a", type: "Nothing", list),
            Operation.of("update", "ghost", tag: "1", fields: list),
            Operation.of("create", "taken", fields: list),
        ])
        expectItem(
            items[0], failed: "NOT_FOUND", reason: "Did not find record type: Nothing",
            recordName: "a")
        expectItem(items[1], failed: "NOT_FOUND", recordName: "ghost")
        expectItem(items[2], failed: "CONFLICT", recordName: "taken")
        // Where the type is known, the list is what the schema says.
        let saved = try await caller.create("b", fields: list)
        #expect(saved["fields"]["tags"]["value"].elements.isEmpty)
    }

    @Test
    func `who may only write a type is asked to sign in, as who may read it (semantics audit 6)`()
        async throws
    {
        let wire = InProcess()
        let caller = Caller(wire: wire, container: try await wire.makeContainer())
        let answer = try await caller.acting(as: .anonymous).post(
            "public/records/query", ["query": ["recordType": "Diary"]])
        expectFailure(answer, 421, "AUTHENTICATION_REQUIRED")
    }

    @Test
    func
        `a database that nobody saves to answers by the newest schema (semantics audit 1)`()
        async throws
    {
        let wire = InProcess()
        let caller = Caller(wire: wire, container: try await wire.makeContainer())
        try await caller.create(
            "p", fields: ["title": ["value": "hay"], "note": ["value": "needle"]])
        let search: JSON = [
            "recordType": "Book",
            "filterBy": [
                ["comparator": "CONTAINS_ANY_TOKENS", "fieldValue": ["value": "needle"]]
            ],
        ]
        #expect(try await caller.query(search) == [])
        var schema = try SchemaText.read(
            Library.schema.replacing("note            STRING,", "note STRING SEARCHABLE,"))
        schema.version = 2
        let container = ContainerReference(
            container: caller.container, environment: .development)
        let command = RecordCommand.schema(.install(schema)).enveloped(
            container: container, identity: wire.world.drawIdentity(),
            deadlineMilliseconds: .max, schemaVersion: 0, principal: Principal(kind: .system))
        _ = try await wire.router.submit(
            command, to: .container(container), deadline: wire.world.now)
        wire.world.advance(by: .seconds(2))
        #expect(try await caller.query(search) == ["p"])
    }
}

extension String {
    fileprivate func replacing(_ one: String, _ other: String) -> String {
        self.split(separator: one, omittingEmptySubsequences: false).joined(separator: other)
    }
}
