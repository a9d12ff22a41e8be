import StratusCluster
import StratusDoubles
import StratusGateway
import StratusIdentity
import StratusModel
import StratusRecords
import StratusSealing
import Testing
import WireScenarios

/// Encrypted fields in rows, and what an erasure leaves of them.
@Suite struct EncryptedFieldTests {
    private static let mark = "a planted secret of a field"
    private static let container = Neighbourhood.container

    private static func operation(_ value: JSON, name: String = "a") -> JSON {
        [
            "operations": [
                [
                    "operationType": "forceReplace",
                    "record": [
                        "recordName": .string(name), "recordType": "Note",
                        "fields": [
                            "text": ["value": value, "type": "STRING", "isEncrypted": true]
                        ],
                    ],
                ]
            ]
        ]
    }

    private static func post(_ wire: InProcess, _ path: String, _ body: JSON) async throws -> JSON {
        let answer = try await wire.send(
            WireRequest(
                method: "POST",
                target: "/database/1/\(Self.container.container)/development/private/\(path)"
                    + "?ckAPIToken=\(Caller.apiToken)&ckWebAuthToken=stratus-user-ada",
                headers: [("Content-Type", "text/plain")], body: Array(body.description.utf8)))
        return try #require(answer.json, "\(answer)")
    }

    private static func wire() -> InProcess {
        var settings = GatewaySettings()
        settings.developmentSchema = .justInTime
        return InProcess(settings: settings)
    }

    private static func database(_ record: JSON) throws -> DatabaseID {
        let owner = try #require(record["created"]["userRecordName"].text)
        return DatabaseID(container: Self.container, scope: .private, owner: owner)
    }

    private static func contains(_ bytes: Bytes, _ text: String) -> Bool {
        let wanted = Bytes(text.utf8)
        guard bytes.count >= wanted.count else { return false }
        return (0...(bytes.count - wanted.count)).contains {
            bytes[$0] == wanted[0] && Bytes(bytes[$0..<($0 + wanted.count)]) == wanted
        }
    }

    @Test func `rows hold no encrypted value in plain text, and all other fields`() async throws {
        let wire = Self.wire()
        let saved = try await Self.post(
            wire, "records/modify", Self.operation(.string(Self.mark), name: "readable-name"))
        #expect(saved["records"][0]["fields"]["text"]["value"].text == Self.mark)
        let rows = wire.router.rowBytes(of: try Self.database(#require(saved["records"][0])))
        #expect(Self.contains(rows, "readable-name"))
        #expect(!Self.contains(rows, Self.mark))
    }

    @Test func `nothing that was sealed before an erasure opens after it`() async throws {
        let wire = Self.wire()
        let saved = try await Self.post(
            wire, "records/modify", Self.operation(.string(Self.mark)))
        let database = try Self.database(#require(saved["records"][0]))
        let keys = InProcess.databaseKeys(wire.router, wire.world)
        #expect(try await keys.key(1, of: database) != nil)
        _ = try await PartitionClient(wire.router, in: wire.world).submit(
            RecordCommand.eraseDatabase(EraseDatabase(database: database)),
            at: .database(database), as: .system())
        #expect(try await keys.key(1, of: database) == nil)
        // A record that was read before, answered after.
        let sealer = try await keys.fieldSealer(of: database)
        #expect(sealer.version == 2)
        let looked = try await Self.post(
            wire, "records/lookup", ["records": [["recordName": "a"]]])
        #expect(looked["records"][0]["serverErrorCode"] == "NOT_FOUND", "\(looked)")
        let again = try await Self.post(wire, "records/modify", Self.operation("new"))
        #expect(again["records"][0]["fields"]["text"]["value"] == "new", "\(again)")
    }

    @Test func `a field that contradicts itself is refused by its full type`() async throws {
        let wire = Self.wire()
        _ = try await Self.post(wire, "records/modify", Self.operation("x"))
        let cases: [(JSON, String)] = [
            (["value": 1, "type": "INT64", "isEncrypted": true], "ENCRYPTED_INT64"),
            (["value": "AA==", "type": "ENCRYPTED_BYTES"], "ENCRYPTED_BYTES"),
            (["value": "x", "type": "STRING"], "STRING"),
            (["value": "x", "isEncrypted": false], "STRING"),
            (
                ["value": ["x"], "type": "STRING_LIST", "isEncrypted": true],
                "ENCRYPTED_STRING_LIST"
            ),
        ]
        for (field, claimed) in cases {
            let answer = try await Self.post(
                wire, "records/modify",
                [
                    "operations": [
                        [
                            "operationType": "create",
                            "record": ["recordType": "Note", "fields": ["text": field]],
                        ]
                    ]
                ])
            #expect(
                answer["records"][0]["reason"].text
                    == "invalid attempt to set value type \(claimed) for field 'text' for type "
                    + "'Note', defined to be: ENCRYPTED_STRING", "\(answer)")
        }
    }
}
