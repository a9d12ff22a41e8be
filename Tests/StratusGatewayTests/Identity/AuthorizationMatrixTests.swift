import StratusGateway
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime
import StratusSimulation
import Testing

@testable import WireScenarios

/// X-01: every route × everybody × every database × every environment × one's own and a foreign container,
/// each with the answer it must get. The routes are those of the gateway's own table: a new one has no row
/// in `kind(of:)` and does not compile.
@Suite struct AuthorizationMatrixTests {
    /// What a route asks of its caller.
    private enum Kind {
        /// Open to the world, as far as the world may read.
        case reads
        /// Needs a user.
        case needsUser
    }

    /// A switch without a default: whoever adds a route decides here who may call it.
    private static func kind(of operation: Route.Operation) -> Kind {
        switch operation {
        case .recordsQuery, .recordsLookup, .recordsQueryBatch: .reads
        case .zonesList, .zonesLookup, .recordsModify, .recordsChanges, .recordsResolve,
            .recordsAccept, .zonesModify,
            .zonesChanges, .changesDatabase, .changesZone, .usersCurrent, .usersCaller,
            .usersDiscover, .usersLookUpEmail, .usersLookUpID, .usersLookUpContacts,
            .usersRestrict, .usersUnrestrict, .usersSignOut, .usage:
            .needsUser
        }
    }

    private static func body(of operation: Route.Operation) -> JSON {
        switch operation {
        case .recordsQuery: ["query": ["recordType": "Book"]]
        case .recordsQueryBatch: ["batch": [["query": ["recordType": "Book"]]]]
        case .recordsLookup: ["records": [["recordName": "r"]]]
        case .recordsModify:
            [
                "operations": [
                    [
                        "operationType": "forceUpdate",
                        "record": ["recordName": "r", "recordType": "Book", "fields": [:]],
                    ]
                ]
            ]
        case .recordsChanges: ["zoneID": ["zoneName": "Z"]]
        case .changesZone: ["zones": [["zoneID": ["zoneName": "Z"]]]]
        case .zonesLookup: ["zones": [["zoneName": "_defaultZone"]]]
        case .zonesModify:
            [
                "operations": [
                    ["operationType": "create", "zone": ["zoneID": ["zoneName": "Z"]]]
                ]
            ]
        case .recordsResolve, .recordsAccept: ["shortGUIDs": [["value": "nope"]]]
        case .usersDiscover: ["lookupInfos": [["emailAddress": "x@example.org"]]]
        case .usersLookUpEmail: ["users": [["emailAddress": "x@example.org"]]]
        case .usersLookUpID: ["users": [["userRecordName": "_x"]]]
        default: [:]
        }
    }

    private enum Who: String, CaseIterable {
        case nobody, unknownToken, apiToken, brokenUser, expiredUser, signedOutUser, disabledUser
        case user, otherUser, roleMember, serverKey, halfSignature, administrator, peer

        /// 401, 421, or let through.
        func expected(_ kind: Kind, _ scope: DatabaseScope) -> Expected {
            switch self {
            // An administrator's token and a peer's frames are no credentials here.
            case .nobody, .unknownToken, .halfSignature, .administrator, .peer: .refused(401)
            case .apiToken: scope == .public && kind == .reads ? .passed : .refused(421)
            case .brokenUser, .expiredUser, .signedOutUser, .disabledUser: .refused(421)
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
        case .apiToken: return api
        case .brokenUser: return api + "&ckWebAuthToken=s1_nonsense"
        default: return api + user
        }
    }

    private func headers(_ who: Who) -> [(name: String, value: String)] {
        switch who {
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

    @Test func `X-01: every cell of the matrix`() async throws {
        let town = Neighbourhood()
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
            for who in [Who.user, .otherUser, .roleMember, .signedOutUser, .disabledUser] {
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
                for operation in Route.Operation.allCases {
                    for scope in DatabaseScope.allCases {
                        for who in Who.allCases {
                            // Signing out would change who the user is for the cells after it.
                            if operation == .usersSignOut { continue }
                            let answer = try await self.ask(
                                town, operation, scope, who, street, target)
                            let expected = self.expected(
                                operation, scope, who, isHome: target == home)
                            let cell =
                                "\(operation.rawValue) \(scope.name) \(who) "
                                + "\(home.container) -> \(target.container) "
                                + target.environment.name
                            switch expected {
                            case .refused(let status):
                                #expect(answer.status == status, "\(cell): \(answer)")
                            case .passed:
                                #expect(
                                    ![401, 421, 403, 500].contains(answer.status),
                                    "\(cell): \(answer)")
                            case .notThere:
                                #expect(answer.status == 400, "\(cell): \(answer)")
                            }
                            cells += 1
                            if operation == .usersRestrict, answer.status == 200 {
                                _ = try await self.ask(
                                    town, .usersUnrestrict, scope, who, street, target)
                            }
                        }
                    }
                }
            }
        }
        #expect(cells >= 2_000, "\(cells) cells")
    }

    private func ask(
        _ town: Neighbourhood, _ operation: Route.Operation, _ scope: DatabaseScope, _ who: Who,
        _ street: Street, _ target: ContainerReference
    ) async throws -> WireAnswer {
        let query = self.query(who, street, target)
        return try await town.send(
            WireRequest(
                method: "POST",
                target: town.path("\(scope.name)/\(operation.rawValue)", in: target)
                    + (query.isEmpty ? "" : "?" + query),
                headers: self.headers(who),
                body: Array(Self.body(of: operation).description.utf8)))
    }

    private func expected(
        _ operation: Route.Operation, _ scope: DatabaseScope, _ who: Who, isHome: Bool
    ) -> Expected {
        var expected = who.expected(Self.kind(of: operation), scope)
        // A session of one container is nothing in another.
        if !isHome, expected == .passed, who != .apiToken { expected = .refused(421) }
        switch expected {
        case .passed: return operation.isIn(scope) ? .passed : .notThere
        case .notThere: return .notThere
        case .refused(421) where !operation.isIn(scope) && who == .apiToken && scope == .public:
            return .notThere
        case .refused: return expected
        }
    }
}
