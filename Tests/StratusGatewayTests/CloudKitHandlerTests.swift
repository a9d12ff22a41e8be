import StratusCluster
import StratusDoubles
import StratusGateway
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusQuery
import StratusRecords
import StratusRuntime
import Synchronization
import Testing

@testable import WireScenarios

/// Situations that only a test inside the process can arrange: faults of the world, switches, tiny
/// limits.
@Suite struct CloudKitHandlerTests {
    @Test func `a partition that cannot answer now is 503, in the body and in the header`()
        async throws
    {
        let wire = InProcess()
        let caller = Caller(wire: wire, container: try await wire.makeContainer())
        wire.router.fault.withLock { $0 = .notExecuted(retryAfter: .seconds(7)) }
        for operation in ["private/records/modify", "private/records/lookup"] {
            let answer = try await caller.post(
                operation,
                [
                    "operations": [Operation.create("a", ["title": ["value": "t"]])],
                    "records": [["recordName": "a"]],
                ])
            expectFailure(answer, 503, "TRY_AGAIN_LATER")
            #expect(answer.json["retryAfter"] == 7 && answer.header("Retry-After") == "7")
        }
        // A zone of a feed that cannot answer is no item: the client would take it for gone.
        let feed = try await caller.post(
            "private/changes/zone", ["zones": [["zoneID": ["zoneName": "Any"]]]])
        expectFailure(feed, 503, "TRY_AGAIN_LATER")
        wire.router.fault.withLock { $0 = .refused("secret detail") }
        let broken = try await caller.post("private/zones/list", [:])
        expectFailure(broken, 500, "INTERNAL_ERROR")
        #expect(!String(decoding: broken.body, as: UTF8.self).contains("secret"))
        wire.router.fault.withLock { $0 = nil }
        try await caller.create("a")
    }

    @Test func `G-31 a database's token that has expired sends its client back to the beginning`()
        async throws
    {
        let wire = InProcess()
        let container = try await wire.makeContainer()
        let caller = Caller(wire: wire, container: container)
        try await caller.makeZone("Shelves")
        let known = try await caller.ask("private/changes/database", [:])
        let older = try await caller.ask("private/zones/changes", [:])
        let owner = try #require(known["zones"][0]["zoneID"]["ownerRecordName"].text)
        let reference = ContainerReference(container: container, environment: .development)
        let database = DatabaseID(container: reference, scope: .private, owner: owner)
        let outcome = try await wire.router.submit(
            RecordCommand.eraseDatabase(EraseDatabase(database: database)).enveloped(
                container: reference, identity: wire.world.drawIdentity(),
                deadlineMilliseconds: .max, schemaVersion: 0, principal: Principal(kind: .system)),
            to: .database(database), deadline: wire.world.now)
        #expect(outcome.verdict == .decided)
        try await caller.makeZone("Lamps")
        let asks: [(path: String, body: JSON)] = [
            ("private/changes/database", ["syncToken": try #require(known["syncToken"])]),
            ("private/zones/changes", ["metaSyncToken": try #require(older["metaSyncToken"])]),
        ]
        for (path, body) in asks {
            expectFailure(
                try await caller.post(path, body), 400, "BAD_REQUEST",
                reason: "Unknown sync continuation type")
            let again = try await caller.ask(path, [:])
            #expect(again["zones"].elements.map { $0["zoneID"]["zoneName"].text } == ["Lamps"])
        }
    }

    @Test
    func
        `core audit 3.4: the lead of some partition is not added to the deadline of a save`()
        async throws
    {
        let wire = InProcess()
        let caller = Caller(wire: wire, container: try await wire.makeContainer())
        let patience = Limits().commandDeadline.clampedNanoseconds / 1_000_000
        for lead: Int64 in [0, 3_600_000] {
            wire.router.lead.withLock { $0 = lead }
            try await caller.create("a\(lead)")
            #expect(
                wire.router.last.withLock { $0 }
                    == (wire.world.wallMilliseconds + patience, true))
        }
    }

    @Test func `the body of a stranger is not even read`() async throws {
        let handler = InProcess().handler
        let head = RequestHead(
            method: "POST", path: "/database/1/iCloud.a/development/private/records/query")
        // Reading it would end in a 400.
        let response = await handler.respond(
            to: HTTPRequest(
                head: head, body: CutBody(), peer: "test",
                identity: RequestIdentity(high: 1, low: 2)))
        #expect(response.status == 401)
    }

    @Test func `a body that ends early is the client's error`() async throws {
        let handler = InProcess().handler
        let head = RequestHead(
            method: "POST", path: "/database/1/iCloud.a/development/private/records/query",
            query: "ckAPIToken=\(String(repeating: "a", count: 64))&ckWebAuthToken=u")
        let response = await handler.respond(
            to: HTTPRequest(
                head: head, body: CutBody(), peer: "test",
                identity: RequestIdentity(high: 1, low: 2)))
        #expect(response.status == 400)
        #expect(
            response.headers["X-Apple-Request-UUID"] == "00000000-0000-0001-0000-000000000002")
    }

    @Test func `what leads nowhere is not read`() {
        let handler = InProcess().handler
        func limit(_ path: String) -> ByteCount {
            handler.bodyLimit(for: RequestHead(method: "POST", path: path))
        }
        #expect(limit("/database/1/iCloud.a/development/private/records/modify") == .mebibytes(16))
        #expect(limit("/favicon.ico") == .kibibytes(64))
    }

    @Test func `tokens outlive a restart of the gateway`() async throws {
        let wire = InProcess()
        let caller = Caller(wire: wire, container: try await wire.makeContainer())
        try await caller.makeZone("Shelves")
        let token = try await caller.changes("Shelves")["syncToken"].text
        let restarted = Restarted(first: wire)
        let later = Caller(wire: restarted, container: caller.container)
        try await later.create("a", in: ["zoneName": "Shelves"])
        let feed = try await later.changes("Shelves", after: token)
        #expect(feed["records"].elements.count == 1)
    }

    @Test func `the switch puts syncToken and moreComing into the feed's errors`() async throws {
        var settings = GatewaySettings()
        settings.changesErrorsCarryTokens = true
        let wire = InProcess(settings: settings)
        let caller = Caller(wire: wire, container: try await wire.makeContainer())
        let entry = try await caller.changes("Nope")
        #expect(entry["syncToken"] == "" && entry["moreComing"] == false)
        expectItem(entry, failed: "ZONE_NOT_FOUND")
    }

    @Test func `the switch leaves out the keys that only Stratus has`() async throws {
        for hasExtensions in [true, false] {
            var settings = GatewaySettings()
            settings.hasExtensions = hasExtensions
            let wire = InProcess(settings: settings)
            let caller = Caller(wire: wire, container: try await wire.makeContainer())
            func makeZone(_ kind: JSON) async throws -> JSON {
                let zone: JSON = ["zoneID": ["zoneName": "Old"], "encryptionScope": "PER_ZONE"]
                let answer = try await caller.ask(
                    "private/zones/modify",
                    ["operations": [["operationType": kind, "zone": zone]]])
                return answer["zones"][0] ?? .null
            }
            #expect((try await makeZone("create")["encryptionScope"] != nil) == hasExtensions)
            let token = try await caller.ask("private/changes/database", [:])["syncToken"]
            _ = try await makeZone("delete")
            let news = try await caller.ask(
                "private/changes/database", ["syncToken": token ?? .null])
            #expect(news["zones"][0]["deleted"] == true)
            #expect((news["zones"][0]["deletionReason"] != nil) == hasExtensions)
            _ = try await makeZone("create")
            let again = try await caller.ask(
                "private/changes/database", ["syncToken": token ?? .null])
            #expect((again["zones"][0]["deletedBefore"] != nil) == hasExtensions)
            try await caller.create("a")
            let conflict = try await caller.modify([Operation.create("a")])[0]
            expectItem(conflict, failed: "CONFLICT")
            #expect((conflict["serverRecord"] != nil) == hasExtensions)
            let many = JSON.array((0..<201).map { Operation.create("r\($0)") })
            let refused = try await caller.post("private/records/modify", ["operations": many])
            expectFailure(refused, 400, "BAD_REQUEST")
            #expect((refused.json["stratus"] != nil) == hasExtensions)
        }
    }

    typealias FlagRow = (
        name: String, flag: RecordRules.Flags, operation: JSON, expected: String?
    )
    static let flags: [FlagRow] = [
        ("delete of the missing", .deleteMissingSucceeds, Operation.of("delete", "ghost"), nil),
        ("update without tag", .tagIsOptional, Operation.of("update", "a"), nil),
        (
            "another type", .typeMismatchIsIgnored,
            Operation.of("forceUpdate", "a", recordType: "Author"), nil
        ),
        ("the same create", .repeatedCreateSucceeds, Operation.create("a"), nil),
        (
            "not the same create", .repeatedCreateSucceeds,
            Operation.create("a", ["pages": ["value": 1]]), "CONFLICT"
        ),
    ]

    @Test(arguments: flags) func `what Apple leaves open has a switch`(row: FlagRow) async throws {
        for isOn in [false, true] {
            var settings = GatewaySettings()
            if isOn { settings.ruleFlags = row.flag }
            let wire = InProcess(settings: settings)
            let caller = Caller(wire: wire, container: try await wire.makeContainer())
            try await caller.create("a")
            let answer = try await caller.modify([row.operation])
            let code = answer[0]["serverErrorCode"].text
            #expect((isOn ? code == row.expected : code != nil), "\(row.name): \(answer)")
        }
    }

    @Test func `limits come from the settings`() async throws {
        var limits = Limits()
        limits.operationCountMax = 3
        limits.requestSizeMax = 1_000
        let wire = InProcess(limits: limits)
        let caller = Caller(wire: wire, container: try await wire.makeContainer())
        let four = JSON.array((0..<4).map { Operation.create("r\($0)") })
        expectFailure(
            try await caller.post("private/records/modify", ["operations": four]), 400,
            "BAD_REQUEST", reason: "4 operations are too many, the limit is 3")
        expectFailure(
            try await caller.post(
                "private/records/lookup", text: String(repeating: " ", count: 1_001)), 413,
            "QUOTA_EXCEEDED", reason: "the request is larger than 1000 bytes")
    }

    // MARK: Schema

    private func growing() -> InProcess {
        var settings = GatewaySettings()
        settings.developmentSchema = .justInTime
        return InProcess(settings: settings)
    }

    @Test func `just in time, a save makes the type and the fields it needs`() async throws {
        let caller = Caller(wire: self.growing(), container: "iCloud.grows")
        let saved = try await caller.create(
            "a", type: "Note",
            fields: [
                "text": ["value": "t"], "count": ["value": 1], "weight": ["value": 0.5],
                "when": ["value": 5, "type": "TIMESTAMP"], "open": ["value": true],
                "spot": ["value": ["latitude": 1.5, "longitude": 2.5]],
                "next": ["value": ["recordName": "b"]], "words": ["value": ["x"]],
                "nothing": ["value": nil],
            ])
        let types = saved["fields"].keys.map { "\($0) \(saved["fields"][$0]["type"].text ?? "?")" }
        #expect(
            types == [
                "count INT64", "next REFERENCE", "open INT64", "spot LOCATION", "text STRING",
                "weight DOUBLE", "when TIMESTAMP", "words STRING_LIST",
            ])
        // Later saves add to the type, and cannot change what it says.
        let more = try await caller.modify([
            Operation.of("forceUpdate", "a", fields: ["extra": ["value": "e"]]),
            Operation.create("b", type: "Note", ["text": ["value": 7]]),
            Operation.create("c", type: "Note", ["empty": ["value": []]]),
        ])
        #expect(more[0]["fields"]["extra"]["type"] == "STRING")
        expectItem(more[1], failed: "BAD_REQUEST", reason: "Invalid value, expected type STRING.")
        expectItem(
            more[2], failed: "BAD_REQUEST",
            reason: "the type of field 'empty' cannot be told from its value: send 'type'")
        #expect(try await caller.query(["recordType": "Note"]) == ["a"])
        // A type that nobody made is still nobody's.
        expectFailure(
            try await caller.post("private/records/query", ["query": ["recordType": "Other"]]),
            404, "NOT_FOUND")
    }

    @Test func `real clients: a save that is refused makes no type and no field`() async throws {
        let caller = Caller(wire: self.growing(), container: "iCloud.grows")
        try await caller.makeZone("Shelves")
        let shelves: JSON = ["zoneName": "Shelves"]
        let first = try await caller.create("a", type: "Note", in: shelves)
        func knows(_ type: String) async throws -> Bool {
            try await caller.post("private/records/query", ["query": ["recordType": .string(type)]])
                .status == 200
        }
        // A zone that is not there, a name that is taken, a tag that is not the record's.
        _ = try await caller.post(
            "private/records/modify",
            [
                "operations": [Operation.create("b", type: "Nowhere")],
                "zoneID": ["zoneName": "Nope"],
            ])
        let taken = try await caller.modify(
            [Operation.create("a", type: "Taken"), Operation.create("c", type: "Beside")],
            in: shelves, atomic: false)
        expectItem(taken[0], failed: "CONFLICT")
        #expect(taken[1]["recordName"] == "c")
        let stale = try await caller.modify(
            [
                Operation.of(
                    "update", "a", tag: "stale", fields: ["lost": ["value": 1]])
            ], in: shelves, atomic: false)
        expectItem(stale[0], failed: "CONFLICT")
        // A batch that fails as a whole.
        let batch = try await caller.modify(
            [Operation.create("d", type: "Whole"), Operation.create("a", type: "Note")],
            in: shelves, atomic: true)
        expectItem(batch[0], failed: "ATOMIC_ERROR")
        expectItem(batch[1], failed: "CONFLICT")
        for type in ["Nowhere", "Taken", "Whole"] { #expect(try await !knows(type), "\(type)") }
        #expect(try await knows("Beside"))
        // The field can still have any type.
        let fresh = try await caller.modify(
            [
                Operation.of(
                    "update", "a", tag: first["recordChangeTag"],
                    fields: ["lost": ["value": "text"]])
            ], in: shelves)
        #expect(fresh[0]["fields"]["lost"]["type"] == "STRING", "\(fresh)")
    }

    /// A parent and a child of it, in each order, by each kind of reference.
    private static func family(
        _ round: String, _ types: (parent: String, child: String), byReference: Bool,
        childFirst: Bool
    ) -> [JSON] {
        var child: JSON = [
            "recordName": .string("c\(round)"), "recordType": .string(types.child), "fields": [:],
        ]
        let parent: JSON = ["recordName": .string("p\(round)")]
        child =
            byReference
            ? child.setting("fields", ["of": ["value": parent.setting("action", "VALIDATE")]])
            : child.setting("parent", parent)
        let operations: [JSON] = [
            Operation.create("p\(round)", type: types.parent),
            ["operationType": "create", "record": child],
        ]
        return childFirst ? operations.reversed() : operations
    }

    /// A batch in a container that grows ends as it would where the types exist.
    @Test(arguments: [true, false], [true, false])
    func `a batch that brings a type is judged by the schema as it will be`(
        isAtomic: Bool, byReference: Bool
    ) async throws {
        let caller = Caller(wire: self.growing(), container: "iCloud.grows")
        try await caller.makeZone("Shelves")
        let shelves: JSON = ["zoneName": "Shelves"]
        // One record of the type, so that the type and the field are known.
        let known = Self.family(
            "known", ("Known", "Known"), byReference: byReference, childFirst: false)
        _ = try await caller.modify(known, in: shelves, atomic: false)
        var round = 0
        for childFirst in [true, false] {
            for isParentNew in [true, false] {
                for isChildNew in [true, false] {
                    round += 1
                    let types = (
                        isParentNew ? "Parent\(round)" : "Known",
                        isChildNew ? "Child\(round)" : "Known"
                    )
                    let items = try await caller.modify(
                        Self.family(
                            "\(round)", types, byReference: byReference, childFirst: childFirst),
                        in: shelves, atomic: .bool(isAtomic))
                    #expect(
                        items.allSatisfy { $0["recordChangeTag"].text != nil },
                        "\(types) \(childFirst): \(items)")
                }
            }
        }
    }

    @Test(arguments: [true, false], [true, false])
    func `a parent of a new type that is refused anyway brings no type, and no child`(
        isAtomic: Bool, childFirst: Bool
    ) async throws {
        let caller = Caller(wire: self.growing(), container: "iCloud.grows")
        try await caller.makeZone("Shelves")
        let shelves: JSON = ["zoneName": "Shelves"]
        try await caller.create("p1", type: "Known", in: shelves)
        func knows(_ type: String) async throws -> Bool {
            try await caller.post("private/records/query", ["query": ["recordType": .string(type)]])
                .status == 200
        }
        let child: JSON = [
            "operationType": "create",
            "record": ["recordName": "c", "recordType": "Child", "parent": ["recordName": "gone"]],
        ]
        let operations = [
            Operation.of("update", "gone", tag: "1", recordType: "New", fields: [:]), child,
            Operation.create("beside", type: "Beside", ["f": ["value": 1]]),
            Operation.create("p1", type: "Taken", ["f": ["value": "text"]]),
        ]
        let items = try await caller.modify(
            childFirst ? operations.reversed() : operations, in: shelves, atomic: .bool(isAtomic))
        let named = Dictionary(
            uniqueKeysWithValues: items.map { ($0["recordName"].text ?? "", $0) })
        for name in ["gone", "c", "p1"] {
            let code = named[name]?["serverErrorCode"].text
            // In an atomic batch the child is innocent.
            let isInnocent = isAtomic && name == "c"
            #expect(code != nil && (code == "ATOMIC_ERROR") == isInnocent, "\(name): \(items)")
        }
        for type in ["New", "Child", "Taken"] { #expect(try await !knows(type), "\(type)") }
        #expect(try await knows("Beside") == !isAtomic, "\(items)")
    }

    /// The type of a field is what the first operation says that is carried out.
    @Test func `a field that only a refused save names may have any type`() async throws {
        let caller = Caller(wire: self.growing(), container: "iCloud.grows")
        try await caller.makeZone("Shelves")
        let shelves: JSON = ["zoneName": "Shelves"]
        try await caller.create("taken", type: "Known", in: shelves)
        let operations = [
            Operation.create("taken", type: "Fresh", ["f": ["value": "text"]]),
            Operation.create("free", type: "Fresh", ["f": ["value": 1]]),
        ]
        let items = try await caller.modify(operations, in: shelves, atomic: false)
        expectItem(items[0], failed: "CONFLICT")
        #expect(items[1]["fields"]["f"]["type"] == "INT64", "\(items)")
        // Two that contradict each other: nothing of an atomic batch happens.
        let other = [
            Operation.create("one", type: "Other", ["f": ["value": "text"]]),
            Operation.create("two", type: "Other", ["f": ["value": 1]]),
        ]
        let refused = try await caller.modify(other, in: shelves, atomic: true)
        expectItem(refused[1], failed: "BAD_REQUEST")
        expectFailure(
            try await caller.post("private/records/query", ["query": ["recordType": "Other"]]),
            404, "NOT_FOUND")
    }

    @Test func `production does not grow, whatever development does`() async throws {
        var settings = GatewaySettings()
        settings.developmentSchema = .justInTime
        let wire = InProcess(settings: settings, authenticator: Anybody())
        var caller = Caller(wire: wire, container: "iCloud.grows")
        caller.environment = "production"
        let records = try await caller.modify([Operation.create("a", type: "Note")])
        expectItem(records[0], failed: "NOT_FOUND", reason: "Did not find record type: Note")
    }

    @Test func `a zone's first query needs no job to have run`() async throws {
        let wire = InProcess()
        wire.router.runsJobs.withLock { $0 = false }
        let caller = Caller(wire: wire, container: try await wire.makeContainer())
        try await caller.makeZone("Shelves")
        try await caller.create("a", in: ["zoneName": "Shelves"])
        #expect(
            try await caller.query(["recordType": "Book"], in: ["zoneName": "Shelves"]) == ["a"])
    }

    @Test func `a partition that is behind learns the schema before it saves`() async throws {
        let wire = InProcess()
        let caller = Caller(wire: wire, container: try await wire.makeContainer())
        // Each user's database is a partition of its own here; none has seen the schema.
        for name in ["ada", "tom", "eva"] {
            try await caller.acting(as: .other(name)).create("a", fields: ["pages": ["value": 1]])
            #expect(
                try await caller.acting(as: .other("new" + name)).query(["recordType": "Book"])
                    == [])
        }
    }

    @Test func `a field that has changed its type is saved by the newest schema at once`()
        async throws
    {
        let wire = InProcess()
        let container = try await wire.makeContainer()
        let caller = Caller(wire: wire, container: container)
        let place = ContainerReference(container: container, environment: .development)
        let note: JSON = ["value": ["one"]]
        let old = try await caller.acting(as: .other("ada")).modify([
            Operation.create("a", ["note": note])
        ])
        expectItem(old[0], failed: "BAD_REQUEST")
        // The gateway still holds the schema where the note is a text.
        for (version, line) in [(2, ""), (3, "note LIST<STRING>,")] as [(UInt64, String)] {
            var schema = try SchemaText.read(
                Library.schema.replacing("note            STRING,", with: line))
            schema.version = version
            let command = RecordCommand.schema(.install(schema)).enveloped(
                container: place, identity: wire.world.drawIdentity(),
                deadlineMilliseconds: .max, schemaVersion: 0, principal: Principal(kind: .system))
            _ = try await wire.router.submit(
                command, to: .container(place), deadline: wire.world.now)
        }
        let new = try await caller.acting(as: .other("tom")).modify([
            Operation.create("a", ["note": note])
        ])
        #expect(new[0]["fields"]["note"]["value"] == ["one"], "\(new)")
    }
}

private struct CutBody: RequestBody {
    func next() async throws(RequestBodyError) -> Bytes? { throw .cutShort }
}

/// Lets everybody in as one user, in any environment.
private struct Anybody: Authenticator {
    func needsBody(_ head: RequestHead) -> Bool { false }

    func authenticate(_ request: PresentedRequest) async throws(AuthenticationRefusal)
        -> Authentication
    {
        Authentication(principal: Principal(kind: .user, userRecordName: "_anybody"))
    }

    func refusalWithoutUser(_ request: PresentedRequest) async -> AuthenticationRefusal {
        .required(redirectURL: "")
    }
}

/// Another handler over the same partitions and with the same key.
private struct Restarted: Wire {
    let second: InProcess

    init(first: InProcess) { self.second = InProcess(after: first) }

    func send(_ request: WireRequest) async throws -> WireAnswer {
        try await self.second.send(request)
    }
    func makeContainer() async throws -> String { try await self.second.makeContainer() }
}
