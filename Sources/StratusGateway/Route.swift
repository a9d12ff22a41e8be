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

        /// What reads without being told what has a GET. Clients send it with and without a body.
        package func takes(method: String) -> Bool {
            switch self {
            case .zonesList, .usersCurrent, .usersCaller, .usersDiscover, .usersLookUpContacts:
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
            case .usersRestrict, .usersUnrestrict: scope == .private
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
        var segments = path.utf8.split(
            separator: UInt8(ascii: "/"), omittingEmptySubsequences: false
        ).map { Substring($0) }
        // A trailing slash is an empty last segment: some clients join paths so.
        if segments.last?.isEmpty == true { segments.removeLast() }
        guard segments.count >= 7, segments[0].isEmpty, segments[1] == "database",
            segments[2] == "1"
        else { throw .unknownPath }
        guard let container = PercentEncoding.decode(segments[3]),
            ContainerReference.isName(container)
        else { throw .unknownPath }
        guard let environment = Environment(name: String(segments[4])) else {
            throw .unknownEnvironment(String(segments[4]))
        }
        guard let scope = DatabaseScope(name: String(segments[5])) else {
            throw .unknownDatabase(String(segments[5]))
        }
        let name = segments[6...].joined(separator: "/")
        guard let operation = Operation(rawValue: name) else { throw .unknownOperation(name) }
        self.init(
            container: ContainerReference(container: container, environment: environment),
            scope: scope, operation: operation)
    }
}
