package import StratusModel

/// Why a schema may not become another.
package struct SchemaRefusal: Error, Sendable, Hashable {
    /// The reasons, in words for the person who asked.
    package var reasons: [String]

    package var text: String { self.reasons.joined(separator: "; ") }
}

/// The rules for what a schema may be, and what it may become. Every function answers with a schema
/// whose version is one above the old one's, or with the old one where nothing changes.
package enum SchemaRules {
    static let systemRoles: Set<String> = ["_world", "_icloud", "_creator"]
    package static let typeCountMax = 1_000
    package static let fieldCountMax = 1_000
    package static let roleCountMax = 1_000

    // MARK: One schema

    /// The first fault of a schema by itself; nil if there is none.
    package static func check(_ schema: Schema) -> String? {
        if schema.types.count > Self.typeCountMax {
            return "more than \(Self.typeCountMax) record types"
        }
        if schema.roles.count > Self.roleCountMax { return "more than \(Self.roleCountMax) roles" }
        if let twice = Self.repeated(schema.types.map(\.name)) {
            return "record type '\(twice)' is defined twice"
        }
        if let twice = Self.repeated(schema.roles) { return "role '\(twice)' is created twice" }
        for role in schema.roles where !NameRules.isIdentifier(role, limit: 255) {
            return "'\(role)' is no name for a role"
        }
        for type in schema.types {
            if !NameRules.isIdentifier(type.name, limit: 255) {
                return "'\(type.name)' is no name for a record type"
            }
            if type.fields.count > Self.fieldCountMax {
                return "record type '\(type.name)' has more than \(Self.fieldCountMax) fields"
            }
            if let twice = Self.repeated(type.fields.map(\.name)) {
                return "field '\(twice)' of '\(type.name)' is defined twice"
            }
            for field in type.fields {
                if let reason = Self.check(field) { return "record type '\(type.name)': \(reason)" }
            }
            for grant in type.grants
            where !Self.systemRoles.contains(grant.role) && !schema.roles.contains(grant.role) {
                return "record type '\(type.name)' grants to '\(grant.role)', which is no role"
            }
        }
        return nil
    }

    /// The first fault of a field; nil if there is none.
    package static func check(_ field: FieldDefinition) -> String? {
        let name = field.name
        let type = field.type
        if name.utf8.first == UInt8(ascii: "_") {
            if name == "___etag" {
                return type == FieldType(.string) && field.indexes.isEmpty
                    ? nil : "field '___etag' is a STRING without indexes"
            }
            guard let system = SystemField(mappedName: name) else {
                return "'\(name)' is no field of the system's"
            }
            if type != FieldType(system.type) {
                return "field '\(name)' is a \(SchemaText.name(of: FieldType(system.type)))"
            }
        } else if !NameRules.isIdentifier(name, limit: 255) {
            return "'\(name)' is no name for a field"
        }
        let typeName = SchemaText.name(of: type)
        if type.isEncrypted, type.scalar == .asset || type.scalar == .reference {
            return "field '\(name)': \(type.scalar.tag) cannot be encrypted"
        }
        if type.isEncrypted, !field.indexes.isEmpty {
            return "field '\(name)' is encrypted and cannot be indexed"
        }
        if field.indexes.contains(.queryable), type.scalar == .asset {
            return "field '\(name)' of type \(typeName) cannot be QUERYABLE"
        }
        if field.indexes.contains(.sortable), type.isList || type.scalar == .asset {
            return "field '\(name)' of type \(typeName) cannot be SORTABLE"
        }
        if field.indexes.contains(.searchable), type.scalar != .string {
            return "field '\(name)' of type \(typeName) cannot be SEARCHABLE"
        }
        return nil
    }

    private static func repeated(_ names: [String]) -> String? {
        var seen = Set<String>()
        return names.first { !seen.insert($0).inserted }
    }

    // MARK: From one schema to the next

    /// Adds what is missing; what is there stays as it is: the first type of a field wins.
    ///
    /// How development grows by saving, and how two gateways that saw the same new field agree.
    package static func extending(
        _ schema: Schema, with types: [RecordType]
    ) -> Result<Schema, SchemaRefusal> {
        var grown = schema
        for type in types {
            if type.name == RecordType.usersName { grown = grown.namingUsers }
            if let position = grown.types.firstIndex(where: { $0.name == type.name }) {
                for field in type.fields
                where grown.types[position].field(named: field.name) == nil {
                    grown.types[position].fields.append(field)
                }
                grown.types[position].fields.sort { $0.name < $1.name }
            } else {
                grown.types.append(type)
            }
        }
        return Self.successor(of: schema, grown)
    }

    /// Takes a whole schema for development. What production has must stay in it.
    ///
    /// A text that does not name `Users` leaves the type as it is: hand-written ones seldom do, and
    /// people's records must stay writable.
    package static func importing(
        _ imported: Schema, over current: Schema, production: Schema
    ) -> Result<Schema, SchemaRefusal> {
        let new = Self.keepingUsers(of: current, in: imported)
        var reasons: [String] = []
        for deployed in production.types {
            guard let type = new.type(named: deployed.name) else {
                reasons.append("record type '\(deployed.name)' is in production and missing here")
                continue
            }
            for field in deployed.fields where SystemField(mappedName: field.name) == nil {
                if type.field(named: field.name) == nil {
                    reasons.append(
                        "field '\(field.name)' of '\(type.name)' is in production and missing here")
                }
            }
        }
        reasons += Self.typeChanges(from: production, to: new)
        reasons += Self.typeChanges(from: current, to: new).filter { !reasons.contains($0) }
        if !reasons.isEmpty { return .failure(SchemaRefusal(reasons: reasons)) }
        return Self.successor(of: current, new)
    }

    private static func keepingUsers(of current: Schema, in imported: Schema) -> Schema {
        var new = imported
        guard let position = new.types.firstIndex(where: { $0.name == RecordType.usersName })
        else {
            new.types += current.types.filter { $0.name == RecordType.usersName }
            return new
        }
        // Its own record is of no use to a person who may not write it.
        if new.types[position].grants.isEmpty {
            new.types[position].grants = RecordType.users.grants
        }
        for field in RecordType.users.fields
        where new.types[position].field(named: field.name) == nil {
            new.types[position].fields.append(field)
        }
        new.types[position].fields.sort { $0.name < $1.name }
        // An export names it. Taken back as it is, it changes nothing.
        if new.types[position] == .users,
            !current.types.contains(where: { $0.name == RecordType.usersName })
        {
            new.types.remove(at: position)
        }
        return new
    }

    /// Production's schema after development is deployed: everything of development's, and what
    /// only production has. Indexes, roles and grants are development's.
    package static func promoting(
        _ development: Schema, over production: Schema
    ) -> Result<Schema, SchemaRefusal> {
        let reasons = Self.typeChanges(from: production, to: development)
        if !reasons.isEmpty { return .failure(SchemaRefusal(reasons: reasons)) }
        var promoted = development
        for type in production.types {
            guard let position = promoted.types.firstIndex(where: { $0.name == type.name }) else {
                promoted.types.append(type)
                continue
            }
            for field in type.fields
            where SystemField(mappedName: field.name) == nil
                && promoted.types[position].field(named: field.name) == nil
            {
                promoted.types[position].fields.append(field)
            }
            promoted.types[position].fields.sort { $0.name < $1.name }
        }
        for role in production.roles where !promoted.roles.contains(role) {
            promoted.roles.append(role)
        }
        return Self.successor(of: production, promoted)
    }

    /// Versions from one reset of an environment to the next: a version tells how many resets were
    /// before it.
    package static let versionsOfAnEra: UInt64 = 1_000_000_000

    /// Development as production is, in a new era. The caller has erased the records that the last
    /// era's schemas were for, so nothing those schemas said is binding.
    package static func resetting(_ development: Schema, to production: Schema) -> Schema {
        var next = production
        next.version = (development.version / Self.versionsOfAnEra + 1) * Self.versionsOfAnEra + 1
        return next
    }

    /// Whether the environment was reset after `old`: no record from before is left in any
    /// partition.
    package static func isReset(from old: Schema, to new: Schema) -> Bool {
        new.version / Self.versionsOfAnEra > old.version / Self.versionsOfAnEra
    }

    private static func typeChanges(from old: Schema, to new: Schema) -> [String] {
        SchemaChange.between(old, new).compactMap { change in
            guard case .changeType(let type, let from, let to) = change else { return nil }
            return "field '\(to.name)' of '\(type)' is \(SchemaText.name(of: from.type))"
                + " and cannot become \(SchemaText.name(of: to.type))"
        }
    }

    private static func successor(
        of old: Schema, _ new: Schema
    ) -> Result<Schema, SchemaRefusal> {
        var next = new
        next.types.sort { $0.name < $1.name }
        next.roles.sort()
        next.version = old.version
        if let reason = Self.check(next) { return .failure(SchemaRefusal(reasons: [reason])) }
        if next == old { return .success(old) }
        next.version = old.version + 1
        return .success(next)
    }
}
