package import StratusModel

/// Who may do what: the one place where roles and grants are read.
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

    /// Whether `principal` may see how much `database` holds: the owner of a private one, and administrators:
    /// of a public one the number tells of records that not everybody may read.
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
        for grant in type?.grants ?? Grant.defaults {
            let isGranted =
                grant.permissions.contains(permission)
                || (permission == .read && grant.permissions.contains(.write))
            if isGranted, Self.holds(grant.role, creator: creator, principal) { return true }
        }
        return false
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
