import StratusIdentity
package import StratusModel

/// Where a request goes: what its path says.
package struct Route: Sendable, Equatable {
    /// The operations of the web services: on data, and on users.
    package enum Operation: String, Sendable, Hashable, CaseIterable {
        case recordsQuery = "records/query"
        case recordsLookup = "records/lookup"
        case recordsModify = "records/modify"
        case recordsChanges = "records/changes"
        case recordsResolve = "records/resolve"
        case recordsAccept = "records/accept"
        case zonesList = "zones/list"
        case zonesLookup = "zones/lookup"
        case zonesModify = "zones/modify"
        case zonesChanges = "zones/changes"
        case changesDatabase = "changes/database"
        case changesZone = "changes/zone"
        /// Not part of the public interface; web clients of Photos send it.
        case recordsQueryBatch = "internal/records/query/batch"
        case usersCurrent = "users/current"
        case usersCaller = "users/caller"
        case usersDiscover = "users/discover"
        case usersLookUpEmail = "users/lookup/email"
        case usersLookUpID = "users/lookup/id"
        case usersLookUpContacts = "users/lookup/contacts"
        case usersRestrict = "users/restrict"
        case usersUnrestrict = "users/unrestrict"
        /// Ours: ends the session, or all of the user's.
        case usersSignOut = "users/signOut"
        /// Ours: what the caller's database holds, and what it may hold.
        case usage

        /// What reads without being told what has a GET. Clients send it with and without a body.
        package func takes(method: String) -> Bool {
            switch self {
            case .zonesList, .usersCurrent, .usersCaller, .usersDiscover, .usersLookUpContacts,
                .usage:
                method == "POST" || method == "GET"
            default: method == "POST"
            }
        }

        /// Which databases have the operation: the public one has no feeds, and links to shares are
        /// resolved there only.
        package func isIn(_ scope: DatabaseScope) -> Bool {
            switch self {
            case .recordsQuery, .recordsLookup, .recordsModify, .zonesList, .zonesLookup,
                .zonesModify, .recordsQueryBatch:
                true
            case .recordsChanges, .zonesChanges, .changesDatabase, .changesZone: scope != .public
            case .recordsResolve, .recordsAccept, .usersDiscover, .usersLookUpEmail,
                .usersLookUpID, .usersLookUpContacts:
                scope == .public
            // Some clients ask the private database who they are.
            case .usersCurrent, .usersCaller, .usersSignOut: scope != .shared
            case .usersRestrict, .usersUnrestrict, .usage: scope == .private
            }
        }
    }

    package var container: ContainerReference
    package var scope: DatabaseScope
    package var operation: Operation

    package init(container: ContainerReference, scope: DatabaseScope, operation: Operation) {
        self.container = container
        self.scope = scope
        self.operation = operation
    }

    /// Reads `/database/1/<container>/<environment>/<database>/<operation>`. The path is as the client
    /// sent it: each segment is decoded here, and nothing else may rewrite it.
    package init(path: String) throws(InputRefusal) {
        // Every request comes by here more than once: bytes, not characters.
        var rest = Bytes(path.utf8)[...]
        // A trailing slash is an empty last segment: some clients join paths so.
        if rest.last == Self.slash { rest.removeLast() }
        guard rest.starts(with: Self.start) else { throw .unknownPath }
        rest.removeFirst(Self.start.count)
        guard let name = Self.segment(&rest), let environmentName = Self.segment(&rest),
            let scopeName = Self.segment(&rest),
            let container = PercentEncoding.decode(name), ContainerReference.isName(container)
        else { throw .unknownPath }
        let environmentText = String(decoding: environmentName, as: UTF8.self)
        guard let environment = Environment(name: environmentText) else {
            throw .unknownEnvironment(environmentText)
        }
        let scopeText = String(decoding: scopeName, as: UTF8.self)
        guard let scope = DatabaseScope(name: scopeText) else { throw .unknownDatabase(scopeText) }
        let operationName = String(decoding: rest, as: UTF8.self)
        guard let operation = Self.operations[operationName] else {
            throw .unknownOperation(operationName)
        }
        self.init(
            container: ContainerReference(container: container, environment: environment),
            scope: scope, operation: operation)
    }
    private static let slash = UInt8(ascii: "/")
    private static let start = Bytes("/database/1/".utf8)
    private static let operations = Dictionary(
        uniqueKeysWithValues: Operation.allCases.map { ($0.rawValue, $0) })

    /// Cuts off what stands before the next slash. Nil: there is none, and so nothing after it.
    private static func segment(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let end = rest.firstIndex(of: Self.slash) else { return nil }
        defer { rest = rest[(end + 1)...] }
        return rest[..<end]
    }
}
