package import StratusModel
package import StratusQuery

/// The access checks. Roles and grants are read only here.
package enum AccessRules {
    /// Whether `principal` may use `database` at all.
    package static func mayUse(_ database: DatabaseID, _ principal: Principal) -> Bool {
        switch principal.kind {
        case .system, .administrator: true
        case .anonymous: database.scope == .public
        case .user, .serverKey:
            database.scope == .public || principal.userRecordName == database.owner
        }
    }

    /// Whether `principal` can be a participant of shares in somebody else's `database`: keys and
    /// anonymous callers never are.
    static func mayParticipate(in database: DatabaseID, _ principal: Principal) -> Bool {
        database.scope == .private && principal.kind == .user && !principal.userRecordName.isEmpty
    }

    /// Whether `principal` may see how much `database` holds: the owner of a private one, and
    /// administrators: of a public one the number tells of records that not everybody may read.
    package static func maySeeUse(of database: DatabaseID, _ principal: Principal) -> Bool {
        guard Self.mayUse(database, principal) else { return false }
        switch principal.kind {
        case .system, .administrator: return true
        case .user: return database.scope == .private
        case .anonymous, .serverKey: return false
        }
    }

    /// Whether `principal` may do `permission` with records of `type` in `database`.
    ///
    /// Grants rule the public database only: a private one is its owner's. Who may write may read.
    ///
    /// - Parameters:
    ///   - type: as the schema has it; nil where no schema is held, which means the default grants.
    ///   - creator: who created the record in question; nil when it is about to be created.
    package static func allows(
        _ permission: Grant.Permission, _ type: RecordType?, creator: String?,
        in database: DatabaseID, _ principal: Principal
    ) -> Bool {
        if database.scope != .public { return true }
        if principal.kind == .system || principal.kind == .administrator { return true }
        return Self.roles(that: permission, type).contains {
            Self.holds($0, creator: creator, principal)
        }
    }

    /// The roles that may do `permission` with records of `type`.
    package static func roles(that permission: Grant.Permission, _ type: RecordType?) -> [String] {
        (type?.grants ?? Grant.defaults).roles(that: permission)
    }

    /// Whether there are types of which `principal` may not read every record.
    static func hidesTypes(
        of schema: Schema?, in database: DatabaseID, _ principal: Principal
    ) -> Bool {
        guard let schema, database.scope == .public, principal.kind != .system,
            principal.kind != .administrator
        else { return false }
        return schema.types.contains { type in
            // What everybody reads is most of it, and is told without looking at roles.
            let isOpen = type.grants.contains {
                $0.role == "_world" && $0.permissions.contains(.read)
            }
            return !isOpen && Self.visible(type, in: database, principal) != .all
        }
    }

    /// Which records of `type` `principal` may read: known before any of them is looked at, so that
    /// a query does the same work whatever the others hold.
    package static func visible(
        _ type: RecordType?, in database: DatabaseID, _ principal: Principal
    ) -> VisibleRecords {
        if Self.allows(.read, type, creator: nil, in: database, principal) { return .all }
        let isOwn = Self.allows(
            .read, type, creator: principal.userRecordName, in: database, principal)
        return isOwn ? .created(by: principal.userRecordName) : .none
    }

    private static func holds(_ role: String, creator: String?, _ principal: Principal) -> Bool {
        switch role {
        case "_world": true
        case "_icloud": principal.kind != .anonymous
        case "_creator": principal.kind != .anonymous && creator == principal.userRecordName
        default: principal.kind != .anonymous && principal.roles.contains(role)
        }
    }
}
