/// The types and fields that a container's records may have, in one environment.
package struct Schema: Sendable, Hashable {
    /// Grows by one with every change.
    package var version: UInt64
    /// Sorted by name.
    package var types: [RecordType]
    /// Custom roles, sorted.
    package var roles: [String]

    package init(version: UInt64 = 0, types: [RecordType] = [], roles: [String] = []) {
        self.version = version
        self.types = types
        self.roles = roles
    }

    /// `Users` is in every schema, also where no text names it.
    package func type(named name: String) -> RecordType? {
        self.types.first { $0.name == name } ?? (name == RecordType.usersName ? .users : nil)
    }

    /// The schema with `Users` among its types: what is shown to people, and kept over an import.
    package var namingUsers: Schema {
        if self.types.contains(where: { $0.name == RecordType.usersName }) { return self }
        var complete = self
        complete.types.append(.users)
        complete.types.sort { $0.name < $1.name }
        return complete
    }
}

package struct RecordType: Sendable, Hashable {
    package var name: String
    /// Sorted by name. System fields (`___recordID`, …) appear when a schema gave them an index.
    package var fields: [FieldDefinition]
    package var grants: [Grant]

    package init(name: String, fields: [FieldDefinition] = [], grants: [Grant] = Grant.defaults) {
        self.name = name
        self.fields = fields
        self.grants = grants
    }

    package func field(named name: String) -> FieldDefinition? {
        self.fields.first { $0.name == name }
    }

    package static let usersName = "Users"

    /// The type of people's own records, as every container has it. An app may add fields.
    package static let users = RecordType(
        name: Self.usersName,
        fields: [FieldDefinition(name: "roles", type: FieldType(.int64, isList: true))],
        grants: [
            Grant(role: "_creator", permissions: [.write]),
            Grant(role: "_world", permissions: [.read]),
        ])
}

package struct FieldDefinition: Sendable, Hashable {
    package var name: String
    package var type: FieldType
    package var indexes: FieldIndexes

    package init(name: String, type: FieldType, indexes: FieldIndexes = []) {
        self.name = name
        self.type = type
        self.indexes = indexes
    }
}

package struct FieldIndexes: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }
    package static let queryable = FieldIndexes(rawValue: 1)
    package static let sortable = FieldIndexes(rawValue: 2)
    package static let searchable = FieldIndexes(rawValue: 4)
}

/// The permissions of a role for records of one type in the public database.
package struct Grant: Sendable, Hashable {
    package enum Permission: UInt8, Sendable, Hashable, CaseIterable {
        case read = 1
        case create = 2
        case write = 3
    }
    /// `_world`, `_icloud`, `_creator`, or a custom role.
    package var role: String
    /// Sorted.
    package var permissions: [Permission]

    package init(role: String, permissions: [Permission]) {
        self.role = role
        self.permissions = permissions
    }

    package static let defaults = [
        Grant(role: "_creator", permissions: [.write]),
        Grant(role: "_icloud", permissions: [.create]),
        Grant(role: "_world", permissions: [.read]),
    ]
}

extension [Grant] {
    /// The roles that may do `permission`. Who may write may read: every question of who reads a
    /// type is answered by this.
    package func roles(that permission: Grant.Permission) -> [String] {
        self.filter { grant in
            grant.permissions.contains(permission)
                || (permission == .read && grant.permissions.contains(.write))
        }.map(\.role)
    }
}
