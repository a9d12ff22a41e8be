import StratusCluster
import StratusContainers
import StratusDoubles
import StratusGateway
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime
import Testing

@testable import WireScenarios

/// what a container holds about a person comes out whole, and goes whole.
@Suite struct UserArchiveTests {
    @Test(arguments: [1, 8])
    func `an archive holds every record of a person, and an erasure leaves none`(buckets: Int)
        async throws
    {
        let town = Neighbourhood()
        _ = try await town.authenticator.registry.create(
            Neighbourhood.container, buckets: buckets)
        _ = try await town.makeContainer()
        let api = try await town.apiToken()
        let ann = try await town.account("ann@example.org")
        let bob = try await town.account("bob@example.org")
        let signedIn = town.world.wallMilliseconds
        let tokens = [ann: try await town.signIn(ann), bob: try await town.signIn(bob)]
        func save(_ who: AccountID, _ names: [String], zone: String?, database: String) async throws
        {
            var body: JSON = [
                "operations": .array(
                    names.map { name in
                        [
                            "operationType": "create",
                            "record": [
                                "recordName": .string(name), "recordType": "Book",
                                "fields": ["title": ["value": "planted"]],
                            ],
                        ]
                    })
            ]
            if let zone { body = body.setting("zoneID", ["zoneName": .string(zone)]) }
            let answer = try await town.post(
                "\(database)/records/modify", body, api: api, user: tokens[who])
            #expect(!answer.text.contains("serverErrorCode"), "\(answer)")
        }
        for who in [ann, bob] {
            _ = try await town.post(
                "private/zones/modify",
                [
                    "operations": [
                        ["operationType": "create", "zone": ["zoneID": ["zoneName": "Shelves"]]]
                    ]
                ], api: api, user: tokens[who])
            for part in 0..<3 {
                let names = (0..<150).map { "\(part)-\($0)" }
                try await save(who, names, zone: "Shelves", database: "private")
            }
            try await save(who, ["d1", "d2"], zone: nil, database: "private")
            let own = (0..<10).map { "public-\(who.description.prefix(6))-\($0)" }
            try await save(who, own, zone: nil, database: "public")
        }

        let archive = UserArchive(town.service.directory)
        let lines = try await self.lines(
            try #require(try await archive.export(ann, in: Neighbourhood.container)))
        #expect(lines[0]["email"] == "ann@example.org")
        #expect(lines[0]["userRecordName"].text == town.recordName(ann))
        #expect(lines[0]["verified"] == "administrator")
        #expect(lines[0]["lastSignInMilliseconds"].integer == signedIn)
        let sessions = lines[0]["sessions"].elements
        #expect(sessions.map { $0["openedMilliseconds"].integer } == [signedIn], "\(lines[0])")
        #expect(lines[0]["appPasswords"].elements.isEmpty)
        #expect(lines.count == 464)
        #expect(lines.dropFirst().allSatisfy { $0["record"]["recordName"] != nil })
        // The person's own record, and the ten.
        #expect(lines.count { $0["database"] == "public" } == 11)
        let owners = Set(
            lines.dropFirst().compactMap { $0["record"]["created"]["userRecordName"].text })
        #expect(owners == [town.recordName(ann)])

        let receipt = try #require(try await archive.erase(ann, settling: .zero))
        #expect(receipt.containerCount == 1 && receipt.zoneCount == 1)
        // 450 in the zone, two in the default zone, and the person's own in the public database.
        #expect(receipt.recordCount == 453)
        town.world.advance(by: .seconds(1))
        #expect(
            try await town.post("public/users/caller", api: api, user: tokens[ann]).status == 421)
        #expect(try await archive.export(ann, in: Neighbourhood.container) == nil)
        #expect(try await town.accounts.all().map(\.email) == ["bob@example.org"])
        // Bob has lost nothing.
        let bobs = try await self.lines(
            try #require(try await archive.export(bob, in: Neighbourhood.container)))
        #expect(bobs.count == 464)
        // The address is free, and whoever takes it is somebody else.
        let other = try await town.account("ann@example.org")
        #expect(other != ann && town.recordName(other) != town.recordName(ann))
        let fresh = try await town.signIn(other)
        let zones = try await town.post("private/zones/list", api: api, user: fresh)
        #expect(!zones.text.contains("Shelves"))
    }

    /// As Apple's console writes a schema, which always has the type of users.
    private static let consoleSchema = """
        DEFINE SCHEMA
            RECORD TYPE Page (
                "___createTime" TIMESTAMP,
                "___createdBy"  REFERENCE,
                "___etag"       STRING,
                "___modTime"    TIMESTAMP,
                "___modifiedBy" REFERENCE,
                "___recordID"   REFERENCE QUERYABLE,
                title           STRING QUERYABLE SEARCHABLE SORTABLE,
                GRANT WRITE TO "_creator",
                GRANT CREATE TO "_icloud",
                GRANT READ TO "_world"
            );
            RECORD TYPE Users (
                "___createTime" TIMESTAMP,
                "___createdBy"  REFERENCE,
                "___etag"       STRING,
                "___modTime"    TIMESTAMP,
                "___modifiedBy" REFERENCE,
                "___recordID"   REFERENCE,
                roles           LIST<INT64>,
                GRANT WRITE TO "_creator",
                GRANT READ TO "_world"
            );
        """

    @Test(arguments: [1, 8])
    func `a schema that names the type of users keeps nothing out of an archive`(buckets: Int)
        async throws
    {
        let town = Neighbourhood()
        _ = try await town.authenticator.registry.create(
            Neighbourhood.container, buckets: buckets)
        try await town.install(Self.consoleSchema)
        let api = try await town.apiToken()
        let ann = try await town.account("ann@example.org")
        let token = try await town.signIn(ann)
        for database in ["private", "public"] {
            let create: JSON = [
                "operationType": "create",
                "record": [
                    "recordName": .string("in \(database)"), "recordType": "Page",
                    "fields": ["title": ["value": "planted"]],
                ],
            ]
            let saved = try await town.post(
                "\(database)/records/modify", ["operations": [create]], api: api, user: token)
            #expect(!saved.text.contains("serverErrorCode"), "\(saved)")
        }
        let archive = UserArchive(town.service.directory)
        let lines = try await self.lines(
            try #require(try await archive.export(ann, in: Neighbourhood.container)))
        let names = lines.compactMap { $0["record"]["recordName"].text }
        #expect(names.sorted() == [town.recordName(ann), "in private", "in public"].sorted())
        let own = lines.first { $0["record"]["recordName"].text == town.recordName(ann) }
        #expect(own?["record"]["recordType"] == "Users" && own?["database"] == "public")
    }

    @Test func `A-12 an archive has encrypted fields in plain, and an erasure ends their keys`()
        async throws
    {
        let town = Neighbourhood()
        _ = try await town.makeContainer()
        let api = try await town.apiToken()
        let ann = try await town.account("ann@example.org")
        let token = try await town.signIn(ann)
        let secret: JSON = ["value": "hush", "type": "STRING", "isEncrypted": true]
        let saved = try await town.post(
            "private/records/modify",
            ["operations": [Operation.create("a", ["secret": secret])]], api: api, user: token)
        #expect(saved.json?["records"][0]["fields"]["secret"] == secret, "\(saved)")
        let archive = UserArchive(town.service.directory)
        let lines = try await self.lines(
            try #require(try await archive.export(ann, in: Neighbourhood.container)))
        #expect(lines.count { $0["record"]["fields"]["secret"] == secret } == 1)
        let database = DatabaseID(
            container: Neighbourhood.container, scope: .private, owner: town.recordName(ann))
        let keys = InProcess.databaseKeys(town.router, town.world)
        #expect(try await keys.key(1, of: database) != nil)
        _ = try #require(try await archive.erase(ann, settling: .zero))
        #expect(try await keys.key(1, of: database) == nil)
    }

    @Test func `an archive holds the key-value store, and an erasure takes it`() async throws {
        let town = Neighbourhood()
        _ = try await town.makeContainer()
        let api = try await town.apiToken()
        let ann = try await town.account("ann@example.org")
        let token = try await town.signIn(ann)
        func sync(_ body: JSON) async throws -> WireAnswer {
            try await town.send(
                WireRequest(
                    method: "POST",
                    target: town.path("sync").replacing("/database/1/", with: "/kvs/1/")
                        + "?ckAPIToken=\(api)&ckWebAuthToken=\(token)", headers: [],
                    body: Array(body.description.utf8)))
        }
        let answer = try await sync([
            "device": "d", "batch": 1, "now": 10,
            "changes": [
                ["key": "theme", "at": 5, "value": ["string": "dark"]],
                ["key": "gone", "at": 5, "removed": true],
            ],
        ])
        #expect(answer.status == 200, "\(answer)")
        let archive = UserArchive(town.service.directory)
        let lines = try await self.lines(
            try #require(try await archive.export(ann, in: Neighbourhood.container)))
        let stored = lines.compactMap { $0["keyValue"] }
        #expect(stored.count == 1)
        #expect(stored.first["key"].text == "theme")
        #expect(stored.first["value"]["string"].text == "dark")

        let store = try #require(
            try await UserKeyValues(ann, in: Neighbourhood.container, town.service.directory))
        #expect(try await store.content().values.map(\.key) == ["theme"])
        #expect(try await store.change("theme", to: nil) == nil)
        #expect(try await store.content().values.isEmpty)
        #expect(try await store.devices().map(\.device) == ["administrator", "d"])
        #expect(
            try await store.change("k", to: Bytes(repeating: 0, count: 2 << 20)) == .valueTooLarge)

        let receipt = try #require(try await archive.erase(ann, settling: .zero))
        // The rows of two keys, and of the person's own record.
        #expect(receipt.zoneCount == 0 && receipt.recordCount == 3)
        #expect(try await store.content().use == KeyValueUse())
    }

    /// Changes documents, as an app does.
    private func modify(
        _ operations: [JSON], _ device: String = "mac", as token: String, api: String,
        in town: Neighbourhood
    ) async throws -> [JSON] {
        let body: JSON = [
            "device": .string(device), "now": .number("\(town.world.wallMilliseconds)"),
            "operations": .array(operations),
        ]
        let answer = try await town.send(
            WireRequest(
                method: "POST",
                target: town.path("items/modify")
                    .replacing("/database/1/", with: "/documents/1/")
                    + "?ckAPIToken=\(api)&ckWebAuthToken=\(token)", headers: [],
                body: Array(body.description.utf8)))
        #expect(answer.status == 200 && !answer.text.contains("serverErrorCode"), "\(answer)")
        return try JSON(parsing: answer.body)["items"].elements
    }

    @Test func `an archive holds documents, with every content of them`() async throws {
        let town = Neighbourhood()
        _ = try await town.makeContainer()
        let api = try await town.apiToken()
        let ann = try await town.account("ann@example.org")
        let token = try await town.signIn(ann)
        let made = try await self.modify(
            [
                ["operation": "create", "kind": "folder", "name": "Letters", "path": "Documents"],
                ["operation": "create", "name": "a.txt", "folder": "root", "content": "AP8="],
                ["operation": "create", "name": "b.txt", "folder": "root", "content": "AQ=="],
            ], as: token, api: api, in: town)
        let id = JSON.string(made[1]["id"].text ?? "")
        let base = JSON.string(made[1]["contentTag"].text ?? "")
        for (device, content) in [("mac", "Ag=="), ("phone", "Aw==")] {
            _ = try await self.modify(
                [
                    [
                        "operation": "save", "id": id, "content": .string(content),
                        "basedOn": base,
                    ]
                ], device, as: token, api: api, in: town)
        }
        _ = try await self.modify(
            [["operation": "remove", "id": .string(made[2]["id"].text ?? "")]], as: token, api: api,
            in: town)
        let archive = UserArchive(town.service.directory)
        let lines = try await self.lines(
            try #require(try await archive.export(ann, in: Neighbourhood.container)))
        let documents = lines.compactMap { $0["document"] }
        #expect(documents.map { $0["name"].text } == ["Letters", "a.txt"])
        #expect(documents.map { $0["kind"].text } == ["folder", "file"])
        let contents = lines.compactMap { $0["documentContent"] }
        #expect(contents.allSatisfy { $0["id"] == id })
        #expect(Set(contents.compactMap { $0["content"].text }) == ["Ag==", "Aw=="])
        #expect(Set(contents.compactMap { $0["state"].text }) == ["current", "waits"])
        _ = try #require(try await archive.erase(ann, settling: .zero))
    }

    @Test func `documents whose feed loses its place are begun again, and are whole`() async throws
    {
        let town = Neighbourhood()
        _ = try await town.makeContainer()
        let api = try await town.apiToken()
        let ann = try await town.account("ann@example.org")
        let token = try await town.signIn(ann)
        for part in 0..<2 {
            _ = try await self.modify(
                (0..<150).map { number in
                    [
                        "operation": "create", "name": .string("\(part)-\(number)"),
                        "folder": "root", "content": "AQ==",
                    ]
                }, as: token, api: api, in: town)
        }
        let database = DatabaseID(
            container: Neighbourhood.container, scope: .private, owner: town.recordName(ann))
        let archive = try #require(
            try await UserArchive(town.service.directory).export(ann, in: Neighbourhood.container))
        var pieces: [Bytes] = []
        var isExpired = false
        while let piece = try await archive.next() {
            pieces.append(piece)
            if !isExpired, String(decoding: piece, as: UTF8.self).contains("\"documentContent\"") {
                isExpired = true
                try await self.expirePositions(of: database, in: town)
            }
        }
        let lines = try self.lines(pieces)
        #expect(isExpired)
        let place = try #require(lines.firstIndex { $0["begunAgain"] != nil })
        let whole = lines[place...].compactMap { $0["document"]?["name"].text }
        #expect(Set(whole).count == 300 && whole.count == 300)
        #expect(lines[place...].count { $0["documentContent"] != nil } == 300)
    }

    /// A private zone of `count` records, and where it is.
    private func shelves(_ count: Int, of email: String, in town: Neighbourhood) async throws
        -> (AccountID, DatabaseID)
    {
        _ = try await town.makeContainer()
        let api = try await town.apiToken()
        let ann = try await town.account(email)
        let token = try await town.signIn(ann)
        _ = try await town.post(
            "private/zones/modify",
            [
                "operations": [
                    ["operationType": "create", "zone": ["zoneID": ["zoneName": "Shelves"]]]
                ]
            ], api: api, user: token)
        for start in stride(from: 0, to: count, by: 150) {
            let answer = try await town.post(
                "private/records/modify",
                [
                    "zoneID": ["zoneName": "Shelves"],
                    "operations": .array(
                        (start..<min(start + 150, count)).map { number in
                            [
                                "operationType": "create",
                                "record": [
                                    "recordName": .string("r\(number)"), "recordType": "Book",
                                    "fields": ["title": ["value": "planted"]],
                                ],
                            ]
                        }),
                ], api: api, user: token)
            #expect(!answer.text.contains("serverErrorCode"), "\(answer)")
        }
        let database = DatabaseID(
            container: Neighbourhood.container, scope: .private, owner: town.recordName(ann))
        return (ann, database)
    }

    /// Expires every position in any feed of the database's partition, and changes nothing else.
    private func expirePositions(of database: DatabaseID, in town: Neighbourhood) async throws {
        try await self.submit(.recover, to: database, in: town)
    }

    private func submit(
        _ command: RecordCommand, to database: DatabaseID, in town: Neighbourhood
    ) async throws {
        let outcome = try await town.router.submit(
            command.enveloped(
                container: database.container, identity: town.world.drawIdentity(),
                deadlineMilliseconds: .max, schemaVersion: 0, principal: Principal(kind: .system)),
            to: .database(database), deadline: town.world.now)
        #expect(outcome.verdict == .decided)
    }

    private func shelved(_ lines: [JSON]) -> [String] {
        lines.compactMap { line in
            guard line["record"]["zoneID"]["zoneName"].text == "Shelves" else { return nil }
            return line["record"]["recordName"].text
        }
    }

    @Test func `a zone whose feed loses its place is begun again, and is whole`() async throws {
        let town = Neighbourhood()
        let (ann, database) = try await self.shelves(450, of: "ann@example.org", in: town)
        let archive = try #require(
            try await UserArchive(town.service.directory).export(ann, in: Neighbourhood.container))
        var pieces: [Bytes] = []
        while let piece = try await archive.next() {
            pieces.append(piece)
            // The head, then a page of the zone.
            if pieces.count == 2 { try await self.expirePositions(of: database, in: town) }
        }
        let lines = try self.lines(pieces)
        let place = try #require(lines.firstIndex { $0["begunAgain"] != nil })
        #expect(lines[place]["zoneID"]["zoneName"] == "Shelves")
        #expect(lines[place]["database"] == "private")
        #expect(lines.count { $0["begunAgain"] != nil } == 1)
        #expect(!lines.contains { $0["incomplete"] != nil })
        let names = self.shelved(Array(lines[place...]))
        #expect(Set(names) == Set((0..<450).map { "r\($0)" }))
        #expect(names.count == 450)
    }

    @Test func `a zone that was made again meanwhile is in the archive as it is now`() async throws
    {
        let town = Neighbourhood()
        let (ann, database) = try await self.shelves(250, of: "ann@example.org", in: town)
        let archive = try #require(
            try await UserArchive(town.service.directory).export(ann, in: Neighbourhood.container))
        var pieces: [Bytes] = []
        while let piece = try await archive.next() {
            pieces.append(piece)
            guard pieces.count == 2 else { continue }
            for (kind, number) in [(ModifyZones.Kind.delete, 5), (.create, 6)] {
                let command = RecordCommand.modifyZones(
                    ModifyZones(
                        database: database,
                        operations: [
                            .init(
                                kind, zone: "Shelves",
                                drawnIncarnation: ZoneIncarnation(UInt64(number)))
                        ]))
                try await self.submit(command, to: database, in: town)
            }
            let save = RecordCommand.modifyRecords(
                ModifyRecords(
                    database: database, zone: "Shelves", drawnIncarnation: ZoneIncarnation(7),
                    operations: [
                        RecordOperation(.create, recordName: "new", recordType: "Book")
                    ]))
            try await self.submit(save, to: database, in: town)
        }
        let lines = try self.lines(pieces)
        let place = try #require(lines.firstIndex { $0["begunAgain"] != nil })
        #expect(self.shelved(Array(lines[place...])) == ["new"])
    }

    @Test func `a zone that never comes to its end is said to be incomplete`() async throws {
        let town = Neighbourhood()
        let (ann, database) = try await self.shelves(250, of: "ann@example.org", in: town)
        let archive = try #require(
            try await UserArchive(town.service.directory).export(ann, in: Neighbourhood.container))
        var pieces: [Bytes] = []
        while let piece = try await archive.next() {
            pieces.append(piece)
            try await self.expirePositions(of: database, in: town)
            try #require(pieces.count < 100, "it does not end")
        }
        let lines = try self.lines(pieces)
        #expect(
            lines.count { $0["begunAgain"] != nil } == UserArchive.restartCountMax)
        let last = try #require(lines.lastIndex { $0["zoneID"] != nil })
        #expect(lines[last]["incomplete"].bool == true)
        #expect(lines[last]["zoneID"]["zoneName"] == "Shelves")
        // What stands behind it is there still: the person's own record in the public database.
        #expect(lines.last?["database"] == "public")
    }

    private func lines(_ pieces: [Bytes]) throws -> [JSON] {
        try pieces.joined().split(separator: 0x0A).map { try JSON(parsing: Array($0)) }
    }

    private func lines(_ body: any ResponseBody) async throws -> [JSON] {
        var pieces: [Bytes] = []
        while let piece = try await body.next() { pieces.append(piece) }
        return try self.lines(pieces)
    }
}
