package import StratusModel

/// One difference between two schemas.
package enum SchemaChange: Sendable, Hashable, CustomStringConvertible {
    case addRole(String)
    case removeRole(String)
    case addRecordType(String)
    case removeRecordType(String)
    case addField(String, FieldDefinition)
    case removeField(String, FieldDefinition)
    case changeType(String, from: FieldDefinition, to: FieldDefinition)
    case changeIndexes(String, from: FieldDefinition, to: FieldDefinition)
    case changeGrants(String, from: [Grant], to: [Grant])

    /// Everything that differs, by role, type and field.
    package static func between(_ old: Schema, _ new: Schema) -> [SchemaChange] {
        var changes: [SchemaChange] = []
        changes += new.roles.filter { !old.roles.contains($0) }.sorted().map { .addRole($0) }
        changes += old.roles.filter { !new.roles.contains($0) }.sorted().map { .removeRole($0) }
        let names = Set(old.types.map(\.name)).union(new.types.map(\.name)).sorted()
        for name in names {
            switch (old.type(named: name), new.type(named: name)) {
            case (nil, let type?):
                changes.append(.addRecordType(name))
                changes += Self.between(RecordType(name: name, grants: []), type)
            case (_?, nil):
                changes.append(.removeRecordType(name))
            case (let one?, let two?):
                changes += Self.between(one, two)
            case (nil, nil): break
            }
        }
        return changes
    }

    private static func between(_ old: RecordType, _ new: RecordType) -> [SchemaChange] {
        var changes: [SchemaChange] = []
        let names = Set(old.fields.map(\.name)).union(new.fields.map(\.name)).sorted()
        for name in names {
            switch (old.field(named: name), new.field(named: name)) {
            case (nil, let field?): changes.append(.addField(new.name, field))
            case (let field?, nil): changes.append(.removeField(new.name, field))
            case (let one?, let two?) where one.type != two.type:
                changes.append(.changeType(new.name, from: one, to: two))
            case (let one?, let two?) where one.indexes != two.indexes:
                changes.append(.changeIndexes(new.name, from: one, to: two))
            case (_?, _?), (nil, nil): break
            }
        }
        if old.grants != new.grants {
            changes.append(.changeGrants(new.name, from: old.grants, to: new.grants))
        }
        return changes
    }

    /// One line of a diff.
    package var description: String {
        switch self {
        case .addRole(let role): "+ role \(role)"
        case .removeRole(let role): "- role \(role)"
        case .addRecordType(let type): "+ record type \(type)"
        case .removeRecordType(let type): "- record type \(type)"
        case .addField(let type, let field):
            "+ \(type).\(field.name) \(SchemaText.definition(of: field))"
        case .removeField(let type, let field):
            "- \(type).\(field.name) \(SchemaText.definition(of: field))"
        case .changeType(let type, let from, let to), .changeIndexes(let type, let from, let to):
            "~ \(type).\(to.name) \(SchemaText.definition(of: from)) → \(SchemaText.definition(of: to))"
        case .changeGrants(let type, let from, let to):
            "~ \(type) grants \(Self.text(from)) → \(Self.text(to))"
        }
    }

    private static func text(_ grants: [Grant]) -> String {
        if grants.isEmpty { return "none" }
        return grants.map { grant in
            grant.role + ":" + grant.permissions.map(SchemaText.name).joined(separator: "+")
        }.joined(separator: " ")
    }
}
