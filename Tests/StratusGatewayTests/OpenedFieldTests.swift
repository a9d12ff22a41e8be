import StratusCluster
import StratusCoding
import StratusDoubles
import StratusGateway
import StratusIdentity
import StratusModel
import StratusQuery
import StratusRecords
import StratusRows
import Synchronization
import Testing
import WireScenarios

/// Answers with encrypted fields when a key or a value cannot be had.
@Suite struct OpenedFieldTests {
    private static let secret: JSON = ["value": "hush", "type": "STRING", "isEncrypted": true]
    private static let zone: JSON = ["zoneName": "Shelves"]

    /// A container with the library's schema, and ada's zone in it.
    private struct House {
        let wire = InProcess()
        let container: String
        private(set) var database = DatabaseID(
            container: Neighbourhood.container, scope: .private, owner: "nobody")

        init() async throws {
            self.container = try await self.wire.makeContainer()
            let answer = try await self.post(
                "zones/modify",
                ["operations": [["operationType": "create", "zone": ["zoneID": zone]]]])
            let owner = answer["zones"][0]["zoneID"]["ownerRecordName"].text
            self.database = DatabaseID(
                container: ContainerReference(
                    container: self.container, environment: .development),
                scope: .private, owner: try #require(owner, "\(answer)"))
        }

        func post(_ path: String, _ body: JSON) async throws -> JSON {
            let answer = try await self.wire.send(
                WireRequest(
                    method: "POST",
                    target: "/database/1/\(self.container)/development/private/\(path)"
                        + "?ckAPIToken=\(Caller.apiToken)&ckWebAuthToken=stratus-user-ada",
                    headers: [("Content-Type", "text/plain")],
                    body: Array(body.description.utf8)))
            return try #require(answer.json, "\(answer)")
        }

        func save(
            _ kind: String, _ name: String, type: JSON? = "Book", _ fields: JSON
        ) async throws -> JSON {
            var record: JSON = ["recordName": .string(name), "fields": fields]
            if let type { record = record.setting("recordType", type) }
            return try await self.post(
                "records/modify",
                [
                    "zoneID": zone, "atomic": false,
                    "operations": [["operationType": .string(kind), "record": record]],
                ])
        }

        /// Gives the database another key and destroys the first, as a rotation does in the end.
        func destroyFirstKey() async throws {
            let put = PutKey(self.database) {
                $0.version = 2
                $0.key.wrapped = Bytes(repeating: 0xAB, count: 60)
                $0.key.wrappingVersion = 1
                $0.key.check = [1, 2, 3, 4]
            }
            _ = try await self.submit(put).get()
            _ = try await self.submit(RetireKeys(self.database) { $0.below = 2 }).get()
        }

        private func submit<Operation: DatabaseOperation>(_ operation: Operation) async throws
            -> Result<Operation.Outcome, Operation.State.Refusal>
        {
            let outcome = try await self.wire.router.submit(
                operation.enveloped(
                    container: self.database.container, identity: self.wire.world.drawIdentity(),
                    deadlineMilliseconds: .max, principal: Principal(kind: .system)),
                to: .database(self.database), deadline: self.wire.world.now)
            return try Operation.result(decoding: outcome.body)
        }

        /// Puts bytes into a record's encrypted field that nobody has sealed.
        func spoil(_ name: String) async throws {
            let value = FieldValue.sealed(
                FieldType(.string, isEncrypted: true),
                SealedFieldCoding.bytes(keyVersion: 1, content: Bytes(repeating: 7, count: 40)))
            let modify = ModifyRecords(
                database: self.database, zone: "Shelves",
                drawnIncarnation: ZoneIncarnation(1),
                operations: [
                    RecordOperation(
                        .forceUpdate, recordName: name, recordType: "Book",
                        fields: [Field(name: "secret", value: value)])
                ])
            let command = RecordCommand.modifyRecords(modify).enveloped(
                container: self.database.container, identity: self.wire.world.drawIdentity(),
                deadlineMilliseconds: .max, schemaVersion: 1,
                principal: Principal(kind: .user, userRecordName: self.database.owner))
            let outcome = try await self.wire.router.submit(
                command, to: .database(self.database), deadline: self.wire.world.now)
            guard
                case .records(let modified) = try RecordOutcome(
                    decoding: outcome.body, detail: outcome.detail),
                case .saved? = modified.results.first
            else {
                Issue.record("\(outcome)")
                return
            }
        }
    }

    @Test func `a value that does not open is its record's error, and the page goes on`()
        async throws
    {
        let house = try await House()
        for name in ["a", "b", "c"] {
            _ = try await house.save("create", name, ["secret": Self.secret])
        }
        try await house.spoil("b")
        let looked = try await house.post(
            "records/lookup",
            ["zoneID": Self.zone, "records": ["a", "b", "c"].asNames])
        let queried = try await house.post(
            "records/query", ["zoneID": Self.zone, "query": ["recordType": "Book"]])
        let fed = try await house.post(
            "changes/zone", ["zones": [["zoneID": Self.zone]]])["zones"][0]
        for (what, answer) in [("lookup", looked), ("query", queried), ("feed", fed)] {
            let records = answer["records"].elements
            #expect(records.count == 3, "\(what): \(answer)")
            for record in records {
                if record["recordName"] == "b" {
                    #expect(record["serverErrorCode"] == "INTERNAL_ERROR", "\(what): \(record)")
                    #expect(
                        record["reason"] == "the encrypted field 'secret' cannot be opened",
                        "\(what): \(record)")
                } else {
                    #expect(record["fields"]["secret"] == Self.secret, "\(what): \(record)")
                }
            }
        }
        #expect(fed["syncToken"].text != nil)
        // Who does not want the field gets the record.
        let without = try await house.post(
            "records/lookup",
            ["zoneID": Self.zone, "records": ["b"].asNames, "desiredKeys": ["title"]])
        #expect(without["records"][0]["recordType"] == "Book", "\(without)")
        // A save of another field is carried out, and says what it cannot show.
        let saved = try await house.save(
            "forceUpdate", "b", ["title": ["value": "kept"]])["records"][0]
        #expect(
            saved["reason"]
                == "the record was saved, but its encrypted field 'secret' cannot be opened",
            "\(saved)")
        let mended = try await house.save("forceUpdate", "b", ["secret": Self.secret])
        #expect(mended["records"][0]["fields"]["title"]["value"] == "kept", "\(mended)")
    }

    /// Sealing anew changes no feed: a client that went past the record would never get it.
    @Test func `a feed does not pass over a record whose key is gone`() async throws {
        let house = try await House()
        _ = try await house.save("create", "a", ["secret": Self.secret])
        try await house.destroyFirstKey()
        let looked = try await house.post(
            "records/lookup", ["zoneID": Self.zone, "records": ["a"].asNames])
        #expect(looked["records"][0]["serverErrorCode"] == "TRY_AGAIN_LATER", "\(looked)")
        let fed = try await house.post(
            "changes/zone", ["zones": [["zoneID": Self.zone]]])
        #expect(fed["serverErrorCode"] == "TRY_AGAIN_LATER", "\(fed)")
        #expect(fed["zones"].elements.isEmpty, "\(fed)")
    }

    @Test func `a save is answered with what it sealed, though no key can be read any more`()
        async throws
    {
        let house = try await House()
        _ = try await house.save("create", "a", ["secret": Self.secret])
        house.wire.router.failsReadsAfterSave.withLock { $0 = true }
        let saved = try await house.save("create", "b", ["secret": Self.secret])["records"][0]
        #expect(saved["fields"]["secret"] == Self.secret, "\(saved)")
    }

    @Test func `a save of which the answer cannot be read is not called undone`() async throws {
        let house = try await House()
        _ = try await house.save("create", "a", ["secret": Self.secret])
        house.wire.router.failsReadsAfterSave.withLock { $0 = true }
        // Seals nothing, so it has no key at hand for the field that is there.
        let saved = try await house.save("forceUpdate", "a", ["title": ["value": "new"]])
        #expect(saved["serverErrorCode"] == "TRY_AGAIN_LATER", "\(saved)")
        #expect(
            saved["reason"] == "it is not known whether the request was carried out", "\(saved)")
        house.wire.router.failsReadsAfterSave.withLock { $0 = false }
        house.wire.router.readFault.withLock { $0 = nil }
        let looked = try await house.post(
            "records/lookup", ["zoneID": Self.zone, "records": ["a"].asNames])
        #expect(looked["records"][0]["fields"]["title"]["value"] == "new", "\(looked)")
        // Nothing happened, and the answer may say so.
        house.wire.router.readFault.withLock { $0 = .notExecuted(retryAfter: .seconds(1)) }
        let refused = try await house.save("update", "a", type: nil, ["secret": Self.secret])
        #expect(refused["reason"] == "nothing was done, try again later", "\(refused)")
    }

    @Test(arguments: [true, false])
    func `no plain text of a record that was just deleted gets into the log`(saysType: Bool)
        async throws
    {
        let house = try await House()
        let mark = "a planted secret of a field"
        _ = try await house.save("create", "a", ["secret": Self.secret])
        _ = try await house.post(
            "records/modify",
            [
                "zoneID": Self.zone,
                "operations": [
                    ["operationType": "forceDelete", "record": ["recordName": "a"]]
                ],
            ])
        house.wire.router.bodies.withLock { $0 = [] }
        let field: JSON =
            saysType ? ["value": .string(mark), "type": "STRING"] : ["value": .string(mark)]
        let saved = try await house.save(
            "update", "a", type: nil, ["secret": field, "title": ["value": "plain"]])
        #expect(saved["records"][0]["serverErrorCode"] == "NOT_FOUND", "\(saved)")
        let bodies = house.wire.router.bodies.withLock { $0 }
        #expect(bodies.contains { Self.contains($0, "plain") })
        #expect(!bodies.contains { Self.contains($0, mark) })
    }

    @Test func `no plain text of a record that just got another type gets into the log`()
        async throws
    {
        let house = try await House()
        let mark = "a planted secret of a field"
        var schema = try SchemaText.read(
            Library.schema + "\nRECORD TYPE Scrap (secret STRING, size INT64);")
        schema.version = 2
        let container = house.database.container
        _ = try await house.wire.router.submit(
            RecordCommand.schema(.install(schema)).enveloped(
                container: container, identity: house.wire.world.drawIdentity(),
                deadlineMilliseconds: .max, schemaVersion: 0,
                principal: Principal(kind: .system)),
            to: .container(container), deadline: house.wire.world.now)
        // Of the type Scrap, in which the field is clear.
        let made = try await house.save(
            "create", "a", type: "Scrap", ["secret": ["value": "clear"], "size": ["value": 1]])
        #expect(made["records"][0]["recordName"] == "a", "\(made)")
        // Somebody makes a book of it when its type has been looked up.
        let isLooking = Mutex(true)
        let home = ShardKey.database(house.database)
        house.wire.router.afterRead.withLock {
            $0 = { key in
                guard key == home, isLooking.withLock({ $0 }) else { return }
                isLooking.withLock { $0 = false }
                for (kind, type) in [("forceDelete", nil), ("create", "Book")] as [(String, JSON?)]
                {
                    _ = try? await house.save(
                        kind, "a", type: type, kind == "create" ? ["secret": Self.secret] : [:])
                }
                house.wire.router.bodies.withLock { $0 = [] }
            }
        }
        let saved = try await house.save(
            "forceUpdate", "a", type: nil, ["secret": ["value": .string(mark)]])
        house.wire.router.afterRead.withLock { $0 = nil }
        #expect(!isLooking.withLock { $0 })
        #expect(saved["records"][0]["serverErrorCode"] == "BAD_REQUEST", "\(saved)")
        #expect(!house.wire.router.bodies.withLock { $0 }.contains { Self.contains($0, mark) })
        // With its type, and of other fields without, it is saved.
        _ = try await house.save("create", "b", type: "Scrap", ["secret": ["value": "clear"]])
        for (type, fields) in [
            ("Scrap", ["secret": ["value": "new"]]), (nil, ["size": ["value": 2]]),
        ] as [(JSON?, JSON)] {
            let updated = try await house.save("forceUpdate", "b", type: type, fields)
            #expect(updated["records"][0]["serverErrorCode"] == nil, "\(updated)")
        }
    }

    private static func contains(_ bytes: Bytes, _ text: String) -> Bool {
        let wanted = Bytes(text.utf8)
        guard bytes.count >= wanted.count else { return false }
        return (0...(bytes.count - wanted.count)).contains {
            Bytes(bytes[$0..<($0 + wanted.count)]) == wanted
        }
    }
}

private let zone: JSON = ["zoneName": "Shelves"]

extension [String] {
    fileprivate var asNames: JSON { .array(self.map { ["recordName": .string($0)] }) }
}
