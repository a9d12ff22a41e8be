import StratusIdentity
import StratusModel
import Testing

@testable import StratusGateway
@testable import WireScenarios

/// X-01, beside `AuthorizationMatrixTests`: every way to ask about a record, or about a person,
/// whom the caller may not see. The answer must be the one for what does not exist (security audit
/// 3, 5), but for the exceptions that `Docs/security.md` names (security audit 10).
@Suite struct VisibilityMatrixTests {
    private static let schema = """
        DEFINE SCHEMA
            CREATE ROLE staff;
            RECORD TYPE Secret (
                "___recordID" REFERENCE QUERYABLE,
                "___createdBy" REFERENCE QUERYABLE,
                digits STRING QUERYABLE SORTABLE SEARCHABLE,
                list LIST<STRING> QUERYABLE,
                place LOCATION QUERYABLE SORTABLE,
                up REFERENCE QUERYABLE,
                GRANT CREATE TO "_icloud", GRANT READ, WRITE TO "_creator" );
            RECORD TYPE Open (
                "___recordID" REFERENCE QUERYABLE,
                up REFERENCE QUERYABLE,
                GRANT CREATE TO "_icloud", GRANT WRITE TO "_creator", GRANT READ TO "_world" );
            RECORD TYPE Hidden ( "___recordID" REFERENCE QUERYABLE, GRANT READ TO staff );
        """

    private enum Who: String, CaseIterable { case anonymous, other }

    private struct Town {
        let town: Neighbourhood
        let api: String
        let owner: String
        let other: String

        func post(_ operation: String, _ body: JSON, as who: Who) async throws -> WireAnswer {
            try await self.town.post(
                "public/" + operation, body, api: self.api,
                user: who == .anonymous ? nil : self.other)
        }

        func save(_ operations: [JSON], as user: String) async throws -> [JSON] {
            let answer = try await self.town.post(
                "public/records/modify", ["operations": .array(operations)], api: self.api,
                user: user)
            return answer.json["records"].elements
        }
    }

    private static func town() async throws -> Town {
        let town = Neighbourhood()
        try await town.install(Self.schema)
        let api = try await town.apiToken()
        let owner = try await town.signIn(try await town.account("ann@example.org"))
        let other = try await town.signIn(try await town.account("bob@example.org"))
        let street = Town(town: town, api: api, owner: owner, other: other)
        let saved = try await street.save(
            ["there", "there2"].map {
                Operation.create(
                    $0, type: "Secret",
                    [
                        "digits": ["value": "hunter0417"],
                        "list": ["value": ["hunter0417"]],
                        "place": ["value": ["latitude": 1.5, "longitude": 2.5]],
                    ])
            }, as: owner)
        #expect(saved.allSatisfy { $0["recordChangeTag"] != nil }, "\(saved)")
        return street
    }

    /// What is asked: about a record or a value of one, of which `true` exists and is not visible.
    private typealias Row = (name: String, operation: String, body: @Sendable (Bool) -> JSON)

    private static let rows: [Row] = {
        @Sendable func name(_ isThere: Bool) -> JSON { isThere ? "there" : "nowhere" }
        @Sendable func query(_ field: String, _ comparator: String, _ value: JSON) -> JSON {
            [
                "recordType": "Secret",
                "filterBy": [
                    [
                        "fieldName": .string(field), "comparator": .string(comparator),
                        "fieldValue": ["value": value],
                    ]
                ],
            ]
        }
        @Sendable func change(_ kind: String, _ isThere: Bool) -> JSON {
            [
                "operations": [
                    Operation.of(
                        kind, isThere ? "there" : "nowhere", tag: "1", recordType: "Secret",
                        fields: ["digits": ["value": "x"]])
                ]
            ]
        }
        var rows: [Row] = [
            ("lookup", "records/lookup", { ["records": [["recordName": name($0)]]] }),
            ("update", "records/modify", { change("update", $0) }),
            ("replace", "records/modify", { change("replace", $0) }),
            ("delete", "records/modify", { change("delete", $0) }),
            ("forceDelete", "records/modify", { change("forceDelete", $0) }),
            (
                "a reference that must exist", "records/modify",
                {
                    [
                        "operations": [
                            Operation.create(
                                "refers", type: "Open",
                                [
                                    "up": [
                                        "value": [
                                            "recordName": name($0), "action": "VALIDATE",
                                        ]
                                    ]
                                ])
                        ]
                    ]
                }
            ),
        ]
        let filters: [(String, String, JSON, JSON)] = [
            ("digits", "EQUALS", "hunter0417", "zunter0417"),
            ("digits", "BEGINS_WITH", "hunter04", "zunter04"),
            ("digits", "GREATER_THAN", "hunter", "zunter"),
            ("digits", "IN", ["hunter0417"], ["zunter0417"]),
            ("digits", "CONTAINS_ANY_TOKENS", "hunter0417", "zunter0417"),
            ("list", "LIST_CONTAINS", "hunter0417", "zunter0417"),
            ("list", "LIST_MEMBER_BEGINS_WITH", "hunter", "zunter"),
            ("___recordID", "EQUALS", ["recordName": "there"], ["recordName": "nowhere"]),
        ]
        for (field, comparator, there, absent) in filters {
            for sorts in [[], [["fieldName": "digits"]]] as [JSON] {
                rows.append(
                    (
                        "query \(field) \(comparator) \(sorts)", "records/query",
                        {
                            [
                                "query": query(field, comparator, $0 ? there : absent).setting(
                                    "sortBy", sorts)
                            ]
                        }
                    ))
            }
            rows.append(
                (
                    "batch \(field) \(comparator)", "internal/records/query/batch",
                    { ["batch": [["query": query(field, comparator, $0 ? there : absent)]]] }
                ))
        }
        return rows
    }()

    @Test func `what one may not see answers as what is not there (security audit 3)`() async throws
    {
        let street = try await Self.town()
        var cells = 0
        for row in Self.rows {
            for who in Who.allCases {
                let there = try await street.post(row.operation, row.body(true), as: who)
                let absent = try await street.post(row.operation, row.body(false), as: who)
                #expect(there.status == absent.status, "\(row.name) \(who)")
                #expect(
                    Self.bare(there) == Self.bare(absent),
                    "\(row.name) \(who): \(there.text) and \(absent.text)")
                cells += 1
            }
        }
        #expect(cells >= 50, "\(cells)")
        // None of it has changed anything.
        let kept = try await street.town.post(
            "public/records/lookup", ["records": [["recordName": "there"]]], api: street.api,
            user: street.owner)
        #expect(kept.json["records"][0]["fields"]["digits"]["value"] == "hunter0417")
    }

    /// An answer without what differs because the question did, without its identity, and without
    /// the link of a 421, which names the moment.
    private static func bare(_ answer: WireAnswer) -> String {
        func bare(_ json: JSON) -> JSON {
            switch json {
            case .array(let elements): return .array(elements.map(bare))
            case .object(let members):
                return .object(
                    members.filter { !["uuid", "redirectURL"].contains($0.key) }.map {
                        JSON.Member(key: $0.key, value: bare($0.value))
                    })
            default: return json
            }
        }
        return bare(answer.json ?? .null).description
            .replacing("nowhere", with: "there").replacing("zunter", with: "hunter")
    }

    @Test func `who does not consent answers as nobody does (security audit 5)`() async throws {
        let street = try await Self.town()
        let ann = street.town.recordName(
            try #require(
                street.town.authenticator.session(street.owner, in: Neighbourhood.container)
            ).account)
        let nobody = "_00000000000000000000000000000000"
        let rows: [(operation: String, body: (Bool) -> JSON)] = [
            (
                "users/lookup/email",
                {
                    [
                        "users": [
                            ["emailAddress": $0 ? "ann@example.org" : "nob@example.org"]
                        ]
                    ]
                }
            ),
            ("users/lookup/id", { ["users": [["userRecordName": .string($0 ? ann : nobody)]]] }),
            (
                "users/discover",
                { ["lookupInfos": [["userRecordName": .string($0 ? ann : nobody)]]] }
            ),
            (
                "users/discover",
                {
                    [
                        "lookupInfos": [
                            ["emailAddress": $0 ? "ann@example.org" : "nob@example.org"]
                        ]
                    ]
                }
            ),
        ]
        for row in rows {
            for who in Who.allCases {
                let there = try await street.post(row.operation, row.body(true), as: who)
                let absent = try await street.post(row.operation, row.body(false), as: who)
                #expect(there.status == (who == .other ? 200 : 421), "\(there)")
                #expect(
                    Self.bare(there).replacing(ann, with: nobody).replacing(
                        "ann@example.org", with: "nob@example.org") == Self.bare(absent),
                    "\(row.operation) \(who): \(there.text) and \(absent.text)")
            }
        }
    }

    /// The exceptions: names are taken whoever took them, deletions go through references, and
    /// types are known.
    @Test func `the exceptions are those that the page names (security audit 10)`() async throws {
        let street = try await Self.town()
        func create(_ name: String) async throws -> JSON {
            try #require(
                try await street.save(
                    [Operation.create(name, type: "Open")], as: street.other
                ).first)
        }
        let taken = try await create("there")
        #expect(taken["serverErrorCode"] == "CONFLICT", "\(taken)")
        #expect(taken["serverRecord"] == nil && !"\(taken)".contains("hunter"), "\(taken)")
        #expect(try await create("free")["recordChangeTag"] != nil)

        let refers = try await street.save(
            [
                Operation.create(
                    "refers", type: "Open",
                    ["up": ["value": ["recordName": "there2", "action": "DELETE_SELF"]]])
            ], as: street.other)
        #expect(refers.first["recordChangeTag"] != nil, "\(refers)")
        let gone = try await street.save([Operation.of("forceDelete", "there2")], as: street.owner)
        #expect(gone.first["deleted"] == true, "\(gone)")
        let after = try await street.post(
            "records/lookup", ["records": [["recordName": "refers"]]], as: .other)
        #expect(after.json["records"][0]["serverErrorCode"] == "NOT_FOUND")

        for (type, status) in [("Hidden", 200), ("Nothing", 404)] {
            let answer = try await street.post(
                "records/query", ["query": ["recordType": .string(type)]], as: .other)
            #expect(answer.status == status, "\(type): \(answer)")
            if status == 200 { #expect(answer.json["records"].elements.isEmpty) }
        }
    }
}
