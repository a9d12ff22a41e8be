import Testing

@testable import WireScenarios

/// Every conversation once more, over real sockets with a real process. Skipped, visibly, where the
/// program has not been built.
@Suite(.serialized, .enabled(if: ServerProcess.binary != nil, "no stratus program was built"))
struct WireTests {
    @Test(arguments: Scenario.all)
    func `over HTTP`(scenario: Scenario) async throws {
        try await scenario.run(over: try await OverHTTP.strict.value)
    }

    /// The answers are the same, but for what is said in `Docs/internals/buckets.md` to be another.
    @Test(arguments: Scenario.all)
    func `over HTTP, about public records in four buckets`(scenario: Scenario) async throws {
        let wire = try await OverHTTP.spread.value
        try await scenario.run(
            over: scenario.isAlsoOfPublicRecords ? InPublic(wire) : wire as any Wire)
    }

    /// The answers are the same, but for what is said in `Docs/internals/zones.md` to be another.
    @Test(arguments: Scenario.all)
    func `over HTTP, with custom zones in four buckets`(scenario: Scenario) async throws {
        try await scenario.run(over: try await OverHTTP.zoned.value)
    }

    @Test(arguments: Scenario.all)
    func `over HTTP, with custom zones in four buckets of three nodes`(
        scenario: Scenario
    ) async throws {
        try await scenario.run(over: try await OverHTTP.zonedCluster.value)
    }

    @Test(arguments: Scenario.growing)
    func `over HTTP, where the schema grows`(scenario: Scenario) async throws {
        try await scenario.run(over: try await OverHTTP.growing.value)
    }

    @Test func `promise: a development user has a record from the first request on`() async throws {
        let wire = try await OverHTTP.strict.value
        let caller = Caller(wire: wire, container: try await wire.makeContainer())
        for someone in [caller, caller.acting(as: .other("new"))] {
            let name = try await someone.ask("public/users/caller", [:])["userRecordName"].text
            let found = try await someone.lookUp([name ?? ""], database: "public")[0]
            #expect(found["recordType"] == "Users", "\(found)")
        }
    }

    @Test func `promise: a field that was removed comes back with another type`() async throws {
        let wire = try await OverHTTP.strict.value
        let container = try await wire.makeContainer()
        let caller = Caller(wire: wire, container: container)
        try await caller.create("old", fields: ["note": ["value": "text"]])
        func offer(_ note: String) throws -> Int {
            try wire.administer(
                "PUT", container, "/schema",
                body: Library.schema.replacing("note            STRING,", with: note))
        }
        #expect(try offer("note INT64,") == 409, "a field's type is not changed in one step")
        #expect(try offer("") / 100 == 2)
        #expect(try offer("note INT64,") / 100 == 2)
        var saved: JSON = .null
        for _ in 0..<100 where saved["recordChangeTag"] == nil {
            saved = try await caller.modify([Operation.create("new", ["note": ["value": 5]])])[0]
            try await Task.sleep(for: .milliseconds(100))
        }
        #expect(saved["fields"]["note"]["value"] == 5, "\(saved)")
        var note: JSON? = "text"
        for _ in 0..<100 where note != nil {
            note = try await caller.lookUp(["old"])[0]["fields"]["note"]
            try await Task.sleep(for: .milliseconds(100))
        }
        #expect(note == nil, "a job clears the old value: \(note ?? .null)")
    }

    /// A second development user exists because a test of permissions needs two people (decision
    /// 0052).
    @Test
    func `semantics audit 3: a role that is granted counts, and one that is revoked does not`()
        async throws
    {
        let wire = try await OverHTTP.strict.value
        let container = try await wire.makeContainer()
        let caller = Caller(wire: wire, container: container)
        #expect(
            try wire.administer(
                "PUT", container, "/schema",
                body: Library.schema + """

                    CREATE ROLE reviewer;
                    RECORD TYPE Draft (title STRING,
                        GRANT CREATE TO "_icloud", GRANT READ, WRITE TO "_creator",
                        GRANT READ TO reviewer);
                    """) / 100 == 2)
        try await caller.create("draft", type: "Draft", database: "public")
        let tom = caller.acting(as: .other("tom"))
        let name = try await tom.ask("public/users/caller", [:])["userRecordName"].text ?? ""
        func sees(_ expected: Bool) async throws -> Bool {
            for _ in 0..<100 {
                let found = try await tom.lookUp(["draft"], database: "public")[0]
                if (found["recordType"] == "Draft") == expected { return true }
                try await Task.sleep(for: .milliseconds(100))
            }
            return false
        }
        #expect(try await sees(false))
        for isMember in [true, false] {
            let status = try wire.administer(
                "POST", container, "/members",
                body: #"{"user":"\#(name)","role":"reviewer","member":\#(isMember)}"#)
            #expect(status / 100 == 2)
            #expect(try await sees(isMember))
        }
    }

    @Test func `references hold and follow from bucket to bucket`() async throws {
        let wire = try await OverHTTP.spread.value
        let caller = Caller(wire: wire, container: try await wire.makeContainer())
        func pointing(_ action: JSON) -> JSON {
            ["author": ["value": ["recordName": "root", "action": action]]]
        }
        func once(_ question: () async throws -> Bool) async throws -> Bool {
            for _ in 0..<200 {
                if try await question() { return true }
                try await Task.sleep(for: .milliseconds(50))
            }
            return false
        }
        func delete(_ name: String) async throws -> JSON {
            try await caller.modify([Operation.of("forceDelete", name)], database: "public")[0]
        }
        try await caller.create("root", type: "Author", database: "public")
        // So many that some are in every bucket.
        let names = (0..<40).map { "\($0 % 2 == 0 ? "leaf" : "holder")\($0)" }
        let saved = try await caller.modify(
            names.map { name in
                Operation.create(
                    name, pointing(name.hasPrefix("leaf") ? "DELETE_SELF" : "VALIDATE"))
            }, database: "public")
        #expect(saved.allSatisfy { $0["recordChangeTag"] != nil }, "\(saved)")
        // While it is on its way it is "not now".
        #expect(
            try await once { try await delete("root")["serverErrorCode"] != "TRY_AGAIN_LATER" })
        let held = try await delete("root")
        #expect(held["serverErrorCode"] == "VALIDATING_REFERENCE_ERROR", "\(held)")
        for name in names where name.hasPrefix("holder") {
            #expect(try await delete(name)["deleted"] == true)
        }
        #expect(try await once { try await delete("root")["deleted"] == true })
        #expect(
            try await once {
                try await caller.lookUp(names, database: "public").allSatisfy {
                    $0["serverErrorCode"] == "NOT_FOUND"
                }
            })
        #expect(try await caller.query(["recordType": "Book"], database: "public") == [])
    }

    @Test func `one connection's broken request disturbs no other`() async throws {
        let wire = try await OverHTTP.strict.value
        var patient = try wire.connect()
        let request = WireRequest(
            method: "POST", target: "/database/1/iCloud.x/development/public/records/lookup",
            body: Array("{}".utf8))
        let whole = OverHTTP.message(request, close: false)
        patient.send(Array(whole[..<40]))
        for broken in [
            "GARBAGE\r\n\r\n", "POST / HTTP/9.9\r\n\r\n", "GET /\u{0} HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\nshort",
        ] {
            var other = try wire.connect()
            other.send(Array(broken.utf8))
            // The last one waits for the rest of its body: nothing comes, and it is left alone.
            if broken.hasSuffix("short") { continue }
            if let answer = try other.receive() {
                #expect((400..<600).contains(answer.status), "\(broken)")
                let json = try? JSON(parsing: answer.body)
                #expect(json?["serverErrorCode"] != nil, "\(broken): \(answer)")
            }
        }
        patient.send(Array(whole[40...]))
        let answer = try #require(try patient.receive())
        #expect(answer.status == 401)
    }

    @Test func `while a chain of ten thousand goes, others are answered between its slices`()
        async throws
    {
        let wire = try await OverHTTP.strict.value
        let caller = Caller(wire: wire, container: try await wire.makeContainer())
        try await caller.makeZone("Deep")
        let zone: JSON = ["zoneName": "Deep"]
        let depth = 10_000
        for start in stride(from: 0, to: depth, by: 200) {
            let records = try await caller.modify(
                (start..<(start + 200)).map { number in
                    Operation.create(
                        "r\(number)",
                        [
                            "author": [
                                "value": [
                                    "recordName": .string("r\(number - 1)"),
                                    "action": "DELETE_SELF",
                                ]
                            ]
                        ])
                }, in: zone)
            #expect(records.allSatisfy { $0["serverErrorCode"] == nil })
        }
        // In the same database, so in the same partition: what takes its time takes theirs.
        try await caller.create("other", fields: ["title": ["value": "here"]])
        let root = try await caller.modify(
            [Operation.of("forceDelete", "r0")], in: zone, atomic: false)
        #expect(root[0]["deleted"] == true)
        var answeredCount = 0
        var isGoing = true
        while isGoing {
            #expect(try await caller.lookUp(["other"])[0]["fields"]["title"]["value"] == "here")
            isGoing = try await caller.lookUp(["r\(depth - 1)"], in: zone)[0]["deleted"] == false
            answeredCount += isGoing ? 1 : 0
            try #require(answeredCount < 100_000)
        }
        // Twenty slices and more: whoever comes in between waits for one of them, not for all.
        #expect(answeredCount >= 5, "\(answeredCount) look-ups while the chain went")
        // And the feed tells of every one.
        var deletions = 0
        var token: String?
        while true {
            let page = try await caller.changes("Deep", after: token)
            deletions += page["records"].elements.count { $0["deleted"] == true }
            token = page["syncToken"].text
            if page["moreComing"] == false { break }
        }
        #expect(deletions == depth)
    }

    @Test func `a connection carries many requests, also sent ahead of their answers`() async throws
    {
        let wire = try await OverHTTP.strict.value
        var socket = try wire.connect()
        let request = OverHTTP.message(
            WireRequest(method: "GET", target: "/nowhere"), close: false)
        for _ in 0..<50 { socket.send(request) }
        var names: Set<String> = []
        for _ in 0..<50 {
            let answer = try #require(try socket.receive())
            #expect(answer.status == 404)
            names.insert(
                answer.headers.first { $0.name.lowercased() == "x-apple-request-uuid" }?.value ?? ""
            )
        }
        #expect(names.count == 50)
    }
}
