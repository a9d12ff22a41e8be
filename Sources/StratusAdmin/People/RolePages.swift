import StratusAdminModel
import StratusContainers
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime

/// Who has which role in a container, and what that allows.
enum RolePages {
    static let routes: [AdminRoute] = [
        AdminRoute(
            "GET", "/v1/containers/{container}/environments/{environment}/members",
            answer: "the users of the container, with their roles"
        ) { try await Self.listMembers($0, in: $0.container()) },
        AdminRoute(
            "POST", "/v1/containers/{container}/environments/{environment}/members",
            body: "role, member, user (an address, a record name or the id of a key)",
            answer: "nothing"
        ) { try await Self.setRole($0, $0.body(), in: $0.openContainer()) },
        AdminRoute(
            "POST", "/v1/containers/{container}/environments/{environment}/access",
            body: "recordType, user, creator",
            answer: "every grant of the type, and whether it counts for this user"
        ) { try await Self.explain($0, $0.body(), in: $0.container()) },
    ]

    private static func listMembers(_ exchange: AdminExchange, in container: ContainerReference)
        async throws -> HTTPResponse
    {
        let users = try await exchange.access.users(in: container)
        return AdminAnswer.json(
            Listing(
                users.map { name, user in
                    MemberRow {
                        $0.userRecordName = name
                        $0.roles = user.roles
                        $0.isRestricted = user.isRestricted
                        $0.firstSeen = WallTime.text(user.firstSeenMilliseconds)
                    }
                }))
    }

    private static func setRole(
        _ exchange: AdminExchange, _ body: MemberBody, in container: ContainerReference
    ) async throws
        -> HTTPResponse
    {
        guard let role = body.role, let isMember = body.isMember else {
            throw AdminRefusal.bad("'role' and 'member' are missing")
        }
        if isMember {
            let schema = try await exchange.schema(of: container)
            guard schema.roles.contains(role) else {
                throw AdminRefusal.bad(
                    "the schema has no role '\(role)': add 'CREATE ROLE \(role);' to it first")
            }
        }
        let (name, account) = try await Self.member(exchange, body.user, in: container)
        try await exchange.access.changeUser(name, account: account, in: container) { user in
            user.roles.removeAll { $0 == role }
            if isMember { user.roles = (user.roles + [role]).sorted() }
        }
        return await exchange.done(
            isMember ? "role grant" : "role revoke", "\(role) \(name)", container)
    }

    /// By e-mail address, by record name, or by a key's identity.
    private static func member(
        _ exchange: AdminExchange, _ text: String?, in container: ContainerReference
    ) async throws -> (
        String, AccountID?
    ) {
        guard let text else { throw AdminRefusal.bad("'user' is missing") }
        let keys = try exchange.store.keys
        if text.hasPrefix("_") {
            let known = try await exchange.access.user(text, in: container)
            if let known { return (text, known.account) }
            throw AdminRefusal.missing("user in this container")
        }
        if text.utf8.count == 64, let bytes = Hexadecimal.bytes(text) {
            return (
                keys.userRecordName(ofServerKey: bytes, in: container), nil
            )
        }
        let id = try await UserPages.account(exchange, text)
        let epoch = try await exchange.accounts.account(id)?.epoch ?? 1
        return (
            keys.userRecordName(of: id, epoch: epoch, in: container), id
        )
    }

    /// Why somebody may or may not: every grant of the type, and whether it counts.
    private static func explain(
        _ exchange: AdminExchange, _ body: AccessBody, in container: ContainerReference
    ) async throws
        -> HTTPResponse
    {
        guard let typeName = body.recordType else {
            throw AdminRefusal.bad("'recordType' is missing")
        }
        let creator = body.creator
        var principal = Principal(kind: .anonymous)
        if body.user != nil {
            let (name, account) = try await Self.member(exchange, body.user, in: container)
            let user = try await exchange.access.user(name, in: container)
            principal = Principal(
                kind: account == nil ? .serverKey : .user, userRecordName: name,
                roles: user?.roles ?? [])
        }
        let schema = try await exchange.schema(of: container)
        let type = schema.type(named: typeName)
        let database = DatabaseID(container: container, scope: .public, owner: "")
        func permission(_ permission: Grant.Permission) -> AccessAnswer.Permission {
            AccessAnswer.Permission {
                $0.isAllowed = AccessRules.allows(
                    permission, type, creator: permission == .create ? nil : creator,
                    in: database, principal)
                $0.grantedTo = (type?.grants ?? Grant.defaults).filter { grant in
                    grant.permissions.contains(permission)
                        || (permission == .read && grant.permissions.contains(.write))
                }.map(\.role)
            }
        }
        return AdminAnswer.json(
            AccessAnswer {
                $0.recordType = typeName
                $0.isInSchema = type != nil
                if !principal.userRecordName.isEmpty {
                    $0.userRecordName = principal.userRecordName
                }
                $0.roles = Self.roles(of: principal, creator: creator)
                $0.read = permission(.read)
                $0.create = permission(.create)
                $0.write = permission(.write)
            })
    }

    private static func roles(of principal: Principal, creator: String?) -> [String] {
        guard principal.kind != .anonymous else { return ["_world"] + principal.roles }
        let isCreator = creator == principal.userRecordName
        return ["_world", "_icloud"] + (isCreator ? ["_creator"] : []) + principal.roles
    }
}
