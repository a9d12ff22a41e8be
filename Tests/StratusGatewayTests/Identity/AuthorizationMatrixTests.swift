import StratusContainers
import StratusDoubles
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime
import Testing

@testable import StratusGateway
@testable import WireScenarios

/// X-01: every route × everybody × every database × every environment × one's own and a foreign
/// container, each with the answer it must get. The routes are those of the gateway's own table:
/// one without a line here fails.
@Suite struct AuthorizationMatrixTests {
    /// The callers of an operation, and a body that it takes. It is written apart from the table,
    /// which must agree.
    private struct Line {
        var need: GatewayOperation.Need
        var scopes: GatewayOperation.Scopes
        var body: JSON = [:]
        var method = "POST"
    }

    private static let everywhere: GatewayOperation.Scopes = [.public, .private, .shared]
    private static let feeds: GatewayOperation.Scopes = [.private, .shared]

    private static let lines: [String: Line] = [
        "records/query": Line(
            need: .reader, scopes: everywhere, body: ["query": ["recordType": "Book"]]),
        "internal/records/query/batch": Line(
            need: .reader, scopes: everywhere,
            body: ["batch": [["query": ["recordType": "Book"]]]]),
        "records/lookup": Line(
            need: .reader, scopes: everywhere, body: ["records": [["recordName": "r"]]]),
        "records/modify": Line(
            need: .user, scopes: everywhere,
            body: [
                "operations": [
                    [
                        "operationType": "forceUpdate",
                        "record": ["recordName": "r", "recordType": "Book", "fields": [:]],
                    ]
                ]
            ]),
        "records/resolve": Line(
            need: .user, scopes: .public, body: ["shortGUIDs": [["value": "nope"]]]),
        "records/accept": Line(
            need: .user, scopes: .public, body: ["shortGUIDs": [["value": "nope"]]]),
        "records/changes": Line(
            need: .user, scopes: feeds, body: ["zoneID": ["zoneName": "Z"]]),
        "changes/zone": Line(
            need: .user, scopes: feeds, body: ["zones": [["zoneID": ["zoneName": "Z"]]]]),
        "changes/database": Line(need: .user, scopes: feeds),
        "zones/changes": Line(need: .user, scopes: feeds),
        "zones/list": Line(need: .user, scopes: everywhere),
        "zones/lookup": Line(
            need: .user, scopes: everywhere, body: ["zones": [["zoneName": "_defaultZone"]]]),
        "zones/modify": Line(
            need: .user, scopes: everywhere,
            body: [
                "operations": [
                    ["operationType": "create", "zone": ["zoneID": ["zoneName": "Z"]]]
                ]
            ]),
        "users/current": Line(need: .user, scopes: [.public, .private]),
        "users/caller": Line(need: .user, scopes: [.public, .private]),
        "users/discover": Line(
            need: .user, scopes: .public,
            body: ["lookupInfos": [["emailAddress": "x@example.org"]]]),
        "users/lookup/email": Line(
            need: .user, scopes: .public, body: ["users": [["emailAddress": "x@example.org"]]]),
        "users/lookup/id": Line(
            need: .user, scopes: .public, body: ["users": [["userRecordName": "_x"]]]),
        "users/lookup/contacts": Line(need: .user, scopes: .public),
        "users/restrict": Line(need: .user, scopes: .private),
        "users/unrestrict": Line(need: .user, scopes: .private),
        "users/signOut": Line(need: .user, scopes: [.public, .private]),
        "users/appPasswords": Line(need: .user, scopes: .private),
        "usage": Line(need: .user, scopes: .private),
        "live": Line(need: .user, scopes: everywhere, method: "GET"),
        "subscriptions/list": Line(need: .user, scopes: everywhere),
        "subscriptions/lookup": Line(
            need: .user, scopes: everywhere, body: ["subscriptions": ["s"]]),
        "subscriptions/modify": Line(
            need: .user, scopes: everywhere,
            body: ["operations": [["operationType": "delete", "subscription": "s"]]]),
        "tokens/create": Line(
            need: .user, scopes: everywhere, body: ["apnsEnvironment": "development"]),
        "tokens/register": Line(
            need: .user, scopes: everywhere, body: ["apnsToken": "AAAA"]),
        "device/tokens/create": Line(
            need: .user, scopes: everywhere, body: ["apnsEnvironment": "development"]),
        "device/tokens/register": Line(
            need: .user, scopes: everywhere, body: ["apnsToken": "AAAA"]),
        "kvs/values": Line(need: .user, scopes: .private, method: "GET"),
        "kvs/sync": Line(
            need: .user, scopes: .private,
            body: [
                "device": "d", "batch": 1, "now": 1,
                "changes": [["key": "k", "at": 1, "value": ["integer": 1]]],
            ]),
        "ubiquity/account": Line(need: .reader, scopes: .public, method: "GET"),
        "documents/items/list": Line(need: .user, scopes: .private, body: ["folder": "root"]),
        "documents/items/lookup": Line(
            need: .user, scopes: .private, body: ["items": [["id": "root"]]]),
        "documents/items/modify": Line(
            need: .user, scopes: .private,
            body: [
                "device": "d", "now": 1,
                "operations": [
                    ["operation": "create", "folder": "root", "name": "x", "onClash": "rename"]
                ],
            ]),
        "documents/versions/list": Line(need: .user, scopes: .private, body: ["id": "root"]),
        "documents/publications/make": Line(need: .user, scopes: .private, body: ["id": "x"]),
        "documents/publications/list": Line(need: .user, scopes: .private),
        "documents/publications/withdraw": Line(
            need: .user, scopes: .private, body: ["publication": "x"]),
        "documents/data/remove": Line(
            need: .user, scopes: .private, body: ["device": "d", "now": 1]),
        "documents/changes": Line(need: .user, scopes: .private, body: ["device": "d"]),
        "documents/content/*": Line(need: .user, scopes: .private, method: "GET"),
        "documents/content/upload": Line(need: .user, scopes: .private),
        "documents/content/download": Line(need: .user, scopes: .private, body: ["id": "x"]),
        "assets/upload": Line(
            need: .user, scopes: [.public, .private],
            body: ["tokens": [["recordType": "Book", "fieldName": "cover"]]]),
        "assets/rereference": Line(
            need: .user, scopes: [.public, .private],
            body: ["assets": [["recordName": "r", "fieldName": "cover"]]]),
    ]

    /// The differences between the lines and a table, by label.
    private static func differences(from table: OperationTable) -> [String] {
        let known = Set(table.operations.map(\.label))
        var found = lines.keys.filter { !known.contains($0) }.map { "\($0) is not served" }
        for operation in table.operations {
            guard let line = Self.lines[operation.label] else {
                found.append("\(operation.label) has no line")
                continue
            }
            if line.need != operation.need { found.append("\(operation.label) needs another") }
            if line.scopes != operation.scopes { found.append("\(operation.label) is elsewhere") }
        }
        return found.sorted()
    }

    @Test func `X-01: every operation of the table has its line`() {
        #expect(Self.differences(from: .standard()) == [])
    }

    @Test func `X-01: an operation without a line is found`() {
        let more = OperationTable(
            OperationTable.standard().operations,
            [GatewayOperation("records/destroy", in: .all, needs: .reader) { _, _ in [] }])
        #expect(Self.differences(from: more) == ["records/destroy has no line"])
    }

    private enum Who: String, CaseIterable {
        case nobody, unknownToken, apiToken, brokenUser, expiredUser, signedOutUser, disabledUser
        /// Disabled and enabled again; signed in before the password was set anew (security audit
        /// 8).
        case enabledAgainUser, newPasswordUser
        case user, otherUser, roleMember, serverKey, halfSignature, administrator, peer
        /// An app password in the place of a web-auth token, and as `Basic` beside an API token.
        case appPassword, readOnlyAppPassword, revokedAppPassword, appPasswordInField

        /// 401, 421, or let through.
        func expected(_ need: GatewayOperation.Need, _ scope: DatabaseScope) -> Expected {
            switch self {
            // An administrator's token and a peer's frames are no credentials here.
            case .nobody, .unknownToken, .halfSignature, .administrator, .peer: .refused(401)
            // App passwords are for WebDAV alone: `Basic` says nothing here.
            case .apiToken, .appPasswordInField:
                scope == .public && need == .reader ? .passed : .refused(421)
            case .appPassword, .readOnlyAppPassword, .revokedAppPassword: .refused(421)
            case .brokenUser, .expiredUser, .signedOutUser, .disabledUser, .enabledAgainUser,
                .newPasswordUser:
                .refused(421)
            case .user, .otherUser, .roleMember: .passed
            // Judged by a signature over this very request, which the test cannot make: refused.
            case .serverKey: .refused(401)
            }
        }
    }

    private enum Expected: Equatable {
        case refused(Int)
        /// Neither 401 nor 421 nor 403: the request itself is judged.
        case passed
        /// The database has no such operation: told to whoever may know.
        case notThere
    }

    private struct Street {
        var api: [ContainerReference: String] = [:]
        var tokens: [Who: String] = [:]
    }

    private func query(_ who: Who, _ street: Street, _ container: ContainerReference) -> String {
        let api = "ckAPIToken=\(street.api[container] ?? "")"
        let user = street.tokens[who].map { "&ckWebAuthToken=\($0)" } ?? ""
        switch who {
        case .nobody, .peer, .administrator, .halfSignature, .serverKey: return ""
        case .unknownToken: return "ckAPIToken=\(String(repeating: "0", count: 64))"
        case .apiToken, .appPasswordInField: return api
        case .brokenUser: return api + "&ckWebAuthToken=s1_nonsense"
        default: return api + user
        }
    }

    private func headers(_ who: Who, _ street: Street) -> [(name: String, value: String)] {
        switch who {
        case .appPasswordInField:
            [
                (
                    "Authorization",
                    "Basic " + Base64.encode(Bytes("x:\(street.tokens[who] ?? "")".utf8))
                )
            ]
        case .administrator: [("Authorization", "Bearer secret")]
        // X-03: marks of the inside that come from outside mean nothing.
        case .peer:
            [
                ("X-Stratus-Principal", "administrator"), ("X-Forwarded-User", "_admin"),
                ("X-Stratus-Peer", "1"),
            ]
        case .halfSignature: [(SignedRequest.keyField, String(repeating: "a", count: 64))]
        case .serverKey:
            [
                (SignedRequest.keyField, String(repeating: "a", count: 64)),
                (SignedRequest.dateField, "2024-03-05T09:30:00Z"),
                (
                    SignedRequest.signatureField,
                    "MEQCIF7sYAOGwDZdHtBAvc3e+sDdPUgi3JSYrajcCGMKnhvkAiBmcBzpLBgV5mkPuVQtlHilD1HBW+gQEQ5SHmYVERotyw=="
                ),
            ]
        default: []
        }
    }

    /// All principals in turn over the same connections, which know the last callers: each asks as
    /// often as it takes for every connection to have known it.
    @Test(arguments: [0, 1, 4])
    func `X-01: every cell of the matrix`(connections: Int) async throws {
        let town = Neighbourhood(connections: connections)
        let own = Neighbourhood.container
        let containers = [
            own, Neighbourhood.production,
            ContainerReference(container: "iCloud.foreign", environment: .development),
            ContainerReference(container: "iCloud.foreign", environment: .production),
        ]
        var streets: [ContainerReference: Street] = [:]
        for container in containers { try await town.install(Library.schema, in: container) }
        for container in containers {
            var street = Street()
            for other in containers { street.api[other] = try await town.apiToken(in: other) }
            let signedIn: [Who] = [
                .user, .otherUser, .roleMember, .signedOutUser, .disabledUser, .enabledAgainUser,
                .newPasswordUser,
            ]
            let holder = try await town.account(
                "holder@\(container.container).\(container.environment.name)")
            for who in [
                Who.appPassword, .readOnlyAppPassword, .revokedAppPassword, .appPasswordInField,
            ] {
                let kind = Session.AppPassword(
                    label: who.rawValue, isReadOnly: who == .readOnlyAppPassword)
                guard
                    case .made(let password, id: let session) =
                        try await town.service.directory.makeAppPassword(
                            kind, of: holder, in: container)
                else { throw Problem(text: "no password") }
                street.tokens[who] = password
                if who == .revokedAppPassword {
                    #expect(
                        try await town.accounts.revokeAppPassword(
                            session, of: holder, in: container))
                }
            }
            for who in signedIn {
                let id = try await town.account(
                    "\(who.rawValue)@\(container.container).\(container.environment.name)")
                let token = try await town.signIn(id, in: container)
                street.tokens[who] = token
                switch who {
                case .signedOutUser:
                    let session = try #require(town.authenticator.session(token, in: container))
                    try await town.accounts.closeSession(session.session, of: id)
                case .disabledUser:
                    _ = try await town.accounts.change(id) { $0.status = .disabled }
                case .enabledAgainUser:
                    #expect(try await town.accounts.disable(id))
                    _ = try await town.accounts.change(id) { $0.status = .active }
                case .newPasswordUser:
                    _ = try await town.accounts.setPassword(
                        Secret("another password"), of: id)
                case .roleMember:
                    try await town.access.changeUser(
                        town.recordName(id, in: container), account: id, in: container
                    ) { $0.roles = ["Editors"] }
                default: break
                }
            }
            let late = WebAuthToken(
                account: AccountID(RequestIdentity(high: 1, low: 2)),
                session: Bytes(repeating: 0, count: 16), stays: false,
                issuedAtMilliseconds: town.world.wallMilliseconds - 30 * 3_600_000)
            street.tokens[.expiredUser] = late.text(
                in: container, sealedWith: town.accounts.store.keys.cipher)
            streets[container] = street
        }
        town.authenticator.forget()

        var cells = 0
        for home in containers {
            let street = try #require(streets[home])
            for target in containers where target == home || target.container != home.container {
                for operation in OperationTable.standard().operations {
                    let line = try #require(Self.lines[operation.label])
                    for scope in DatabaseScope.allCases {
                        // A path that names no database means the service's.
                        if !operation.service.namesDatabase, scope != operation.service.scope {
                            continue
                        }
                        for who in Who.allCases {
                            // Signing out would change who the user is for the cells after it.
                            if operation.name == "users/signOut" { continue }
                            let expected = self.expected(
                                line, scope, who, isHome: target == home)
                            let cell =
                                "\(operation.label) \(scope.name) \(who) "
                                + "\(home.container) -> \(target.container) "
                                + target.environment.name
                            for _ in 0...connections {
                                let answer = try await self.ask(
                                    town, operation.name, line.body, scope, who, street, target,
                                    in: operation.service, method: line.method)
                                Self.check(answer, expected, cell)
                                if operation.name == "users/restrict", answer.status == 200 {
                                    _ = try await self.ask(
                                        town, "users/unrestrict", [:], scope, who, street, target)
                                }
                            }
                            cells += 1
                        }
                    }
                }
            }
        }
        if connections > 0 { #expect(town.knownCount >= 100, "\(town.knownCount) known") }
        #expect(cells >= 2_000, "\(cells) cells")
    }

    private static func check(_ answer: WireAnswer, _ expected: Expected, _ cell: String) {
        switch expected {
        case .refused(let status): #expect(answer.status == status, "\(cell): \(answer)")
        case .passed:
            #expect(![401, 421, 403, 500].contains(answer.status), "\(cell): \(answer)")
        case .notThere: #expect(answer.status == 400, "\(cell): \(answer)")
        }
    }

    /// WebDAV has methods instead of operations, and app passwords instead of tokens.
    @Test func `X-01: every method of WebDAV × every app password`() async throws {
        let (right, ann) = try await DAVClient.make()
        let town = right.town
        let bob = try await town.account("bob@example.org", password: "other words")
        func client(
            _ kind: Session.AppPassword, _ account: AccountID
        ) async throws -> DAVClient {
            var client = right
            client.password = try await right.makePassword(kind, account)
            return client
        }
        let readOnly = try await client(.init(label: "reader", isReadOnly: true), ann)
        let revoked = try await client(.init(label: "revoked"), ann)
        let stranger = try await client(.init(label: "bob"), bob)
        let sessions = try await town.accounts.appPasswords(of: ann)
        for session in sessions where session.kind.label == "revoked" {
            #expect(
                try await town.accounts.revokeAppPassword(
                    session.id, of: ann, in: Neighbourhood.container))
        }
        town.world.advance(by: .seconds(2))
        var elsewhere = right
        elsewhere.container = ContainerReference(
            container: "iCloud.other", environment: .development)
        #expect(try await right.status("PUT", "/Documents/a", body: "ann's") == 201)
        let info =
            "<lockinfo xmlns='DAV:'><lockscope><exclusive/></lockscope><locktype><write/>"
            + "</locktype></lockinfo>"
        let lock = try await right.send("LOCK", "/Documents/a", body: info)
        let token = try #require(lock.headers["Lock-Token"])
        for method in DAVSurface.methods.subtracting(["OPTIONS"]).sorted() {
            let isReading = DAVSurface.reading.contains(method)
            let headers = [
                ("Destination", right.path("/Documents/b")), ("Lock-Token", token),
                ("Depth", method == "PROPFIND" ? "1" : "infinity"), ("If", "(\(token))"),
            ]
            let expected: [(DAVClient, String, (Int) -> Bool)] = [
                (readOnly, "read-only", { isReading ? $0 < 300 : $0 == 403 }),
                (revoked, "revoked", { $0 == 401 }),
                (elsewhere, "of another container", { $0 == 401 }),
                // In a store of their own the token names nothing.
                (stranger, "somebody else's", { [404, 409, 412].contains($0) }),
            ]
            for (client, who, isExpected) in expected {
                let given = isReading ? Array(headers.prefix(3)) : headers
                let answer = try await client.send(method, "/Documents/a", given)
                #expect(isExpected(answer.status), "\(method) \(who): \(answer)")
            }
        }
        #expect(try await right.send("GET", "/Documents/a").text == "ann's")
        #expect(try await right.status("UNLOCK", "/Documents/a", [("Lock-Token", token)]) == 204)
    }

    private func ask(
        _ town: Neighbourhood, _ operation: String, _ body: JSON, _ scope: DatabaseScope,
        _ who: Who, _ street: Street, _ target: ContainerReference,
        in service: GatewayService = .database, method: String = "POST"
    ) async throws -> WireAnswer {
        let query = self.query(who, street, target)
        var path = town.path("\(scope.name)/\(operation)", in: target)
        if !service.namesDatabase {
            path = path.replacing("/database/1/", with: service.root).replacing(
                "/\(scope.name)/", with: "/")
        }
        return try await town.send(
            WireRequest(
                method: method,
                target: path
                    + (query.isEmpty ? "" : "?" + query),
                headers: self.headers(who, street),
                body: Array(body.description.utf8)))
    }

    private func expected(
        _ line: Line, _ scope: DatabaseScope, _ who: Who, isHome: Bool
    ) -> Expected {
        var expected = who.expected(line.need, scope)
        // A session of one container is nothing in another.
        if !isHome, expected == .passed, who != .apiToken, who != .appPasswordInField {
            expected = .refused(421)
        }
        switch expected {
        case .passed: return line.scopes.has(scope) ? .passed : .notThere
        case .notThere: return .notThere
        case .refused(421)
        where !line.scopes.has(scope) && scope == .public
            && (who == .apiToken || who == .appPasswordInField):
            return .notThere
        case .refused: return expected
        }
    }
}
