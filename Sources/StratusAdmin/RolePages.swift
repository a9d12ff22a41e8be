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
        ) { try await Self.setRole($0, $0.json(), in: $0.container()) },
        AdminRoute(
            "POST", "/v1/containers/{container}/environments/{environment}/access",
            body: "recordType, user, creator",
            answer: "every grant of the type, and whether it counts for this user"
        ) { try await Self.explain($0, $0.json(), in: $0.container()) },
    ]

    private static func listMembers(_ exchange: AdminExchange, in container: ContainerReference)
        async throws -> HTTPResponse
    {
        let users = try await exchange.access.users(in: container)
        var json = JSONWriter()
        json.object {
            $0.member("members", objects: users) { json, element in
                let (name, user) = element
                json.member("userRecordName", name)
                json.key("roles")
                json.array { for role in user.roles { $0.write(role) } }
                json.member("isRestricted", user.isRestricted)
                json.member("firstSeen", WallTime.text(user.firstSeenMilliseconds))
            }
        }
        return AdminAnswer.json(json.finish())
    }

    private static func setRole(
        _ exchange: AdminExchange, _ body: JSONValue, in container: ContainerReference
    ) async throws
        -> HTTPResponse
    {
        try await exchange.admit(container)
        guard let role = body["role"]?.string, let isMember = body["member"]?.bool else {
            throw AdminRefusal.bad("'role' and 'member' are missing")
        }
        if isMember {
            let schema = try await exchange.schema(of: container)
            guard schema.roles.contains(role) else {
                throw AdminRefusal.bad(
                    "the schema has no role '\(role)': add 'CREATE ROLE \(role);' to it first")
            }
        }
        let (name, account) = try await Self.member(exchange, body, in: container)
        try await exchange.access.changeUser(name, account: account, in: container) { user in
            user.roles.removeAll { $0 == role }
            if isMember { user.roles = (user.roles + [role]).sorted() }
        }
        return await exchange.done(
            isMember ? "role grant" : "role revoke", "\(role) \(name)", container)
    }

    /// By e-mail address, by record name, or by a key's identity.
    private static func member(
        _ exchange: AdminExchange, _ body: JSONValue, in container: ContainerReference
    ) async throws -> (
        String, AccountID?
    ) {
        guard let text = body["user"]?.string else { throw AdminRefusal.bad("'user' is missing") }
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
        _ exchange: AdminExchange, _ body: JSONValue?, in container: ContainerReference
    ) async throws
        -> HTTPResponse
    {
        guard let body, let typeName = body["recordType"]?.string else {
            throw AdminRefusal.bad("'recordType' is missing")
        }
        let creator = body["creator"]?.string
        var principal = Principal(kind: .anonymous)
        if body["user"]?.string != nil {
            let (name, account) = try await Self.member(exchange, body, in: container)
            let user = try await exchange.access.user(name, in: container)
            principal = Principal(
                kind: account == nil ? .serverKey : .user, userRecordName: name,
                roles: user?.roles ?? [])
        }
        let schema = try await exchange.schema(of: container)
        let type = schema.type(named: typeName)
        let database = DatabaseID(container: container, scope: .public, owner: "")
        var json = JSONWriter()
        json.object { object in
            object.member("recordType", typeName)
            object.member("isInSchema", type != nil)
            if !principal.userRecordName.isEmpty {
                object.member("userRecordName", principal.userRecordName)
            }
            object.key("roles")
            object.array { array in
                array.write("_world")
                if principal.kind != .anonymous { array.write("_icloud") }
                if principal.kind != .anonymous, creator == principal.userRecordName {
                    array.write("_creator")
                }
                for role in principal.roles { array.write(role) }
            }
            for permission in Grant.Permission.allCases {
                let isAllowed = AccessRules.allows(
                    permission, type, creator: permission == .create ? nil : creator, in: database,
                    principal)
                object.key("\(permission)")
                object.object {
                    $0.member("allowed", isAllowed)
                    $0.key("grantedTo")
                    $0.array { array in
                        for grant in type?.grants ?? Grant.defaults
                        where grant.permissions.contains(permission)
                            || (permission == .read && grant.permissions.contains(.write))
                        { array.write(grant.role) }
                    }
                }
            }
        }
        return AdminAnswer.json(json.finish())
    }
}
