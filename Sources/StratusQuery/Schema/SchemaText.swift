package import StratusModel

/// Text that is no schema, with where and why. Lines and columns count from 1.
package struct SchemaTextError: Error, Sendable, Equatable, CustomStringConvertible {
    package var line: Int
    package var column: Int
    package var reason: String

    package init(line: Int, column: Int, reason: String) {
        self.line = line
        self.column = column
        self.reason = reason
    }

    package var description: String { "line \(self.line), column \(self.column): \(self.reason)" }
}

/// Apple's schema language (`.ckdb`): reading and writing.
///
/// Reading drops comments and order. `NUMBER` is read as the type it prefers, DOUBLE where it
/// prefers none. Writing is complete and sorted: the implicit fields are in every type, so that two
/// exports can be compared line by line. Reading the text gives the schema back.
package enum SchemaText {
    /// Far beyond any schema; a bound on the work of one request.
    package static let sizeMax = 1 << 20

    /// The schema of a whole file, version 0, checked by ``SchemaRules/check(_:)``.
    package static func read(_ text: String) throws(SchemaTextError) -> Schema {
        guard text.utf8.count <= Self.sizeMax else {
            throw SchemaTextError(line: 1, column: 1, reason: "the schema is larger than 1 MiB")
        }
        var parser = SchemaParser(text)
        return try parser.schema()
    }

    // MARK: Writing

    /// The fields that every type has, and their types, in the order they are written.
    static let implicitFields: [(name: String, type: ScalarType)] = [
        ("___createTime", .timestamp), ("___createdBy", .reference), ("___etag", .string),
        ("___modTime", .timestamp), ("___modifiedBy", .reference), ("___recordID", .reference),
    ]

    package static func write(_ schema: Schema) -> String {
        var text = "DEFINE SCHEMA\n"
        for role in schema.roles.sorted() { text += "\n    CREATE ROLE \(Self.quoted(role));\n" }
        for type in schema.types.sorted(by: { $0.name < $1.name }) {
            text += "\n    RECORD TYPE \(Self.quoted(type.name)) (\n"
            text += Self.items(of: type).map { "        " + $0 }.joined(separator: ",\n")
            text += "\n    );\n"
        }
        return text
    }

    private static func items(of type: RecordType) -> [String] {
        var columns: [(name: String, type: String)] = []
        for implicit in Self.implicitFields where type.field(named: implicit.name) == nil {
            columns.append((Self.quoted(implicit.name), Self.name(of: implicit.type)))
        }
        for field in type.fields {
            columns.append((Self.quoted(field.name), Self.definition(of: field)))
        }
        // The quote sorts before every letter: implicit fields come first.
        columns.sort { $0.name < $1.name }
        let width = columns.map(\.name.count).max() ?? 0
        var items = columns.map { column in
            column.name + String(repeating: " ", count: width - column.name.count + 1) + column.type
        }
        for grant in type.grants.sorted(by: { $0.role < $1.role }) where !grant.permissions.isEmpty
        {
            let permissions = grant.permissions.sorted { $0.rawValue < $1.rawValue }
            items.append(
                "GRANT " + permissions.map(Self.name).joined(separator: ", ") + " TO "
                    + Self.quoted(grant.role))
        }
        return items
    }

    package static func definition(of field: FieldDefinition) -> String {
        var text = Self.name(of: field.type)
        if field.indexes.contains(.queryable) { text += " QUERYABLE" }
        if field.indexes.contains(.sortable) { text += " SORTABLE" }
        if field.indexes.contains(.searchable) { text += " SEARCHABLE" }
        return text
    }

    package static func name(of type: FieldType) -> String {
        let scalar = (type.isEncrypted ? "ENCRYPTED " : "") + Self.name(of: type.scalar)
        return type.isList ? "LIST<\(scalar)>" : scalar
    }

    private static func name(of type: ScalarType) -> String {
        type == .asset ? "ASSET" : type.tag
    }

    static func name(_ permission: Grant.Permission) -> String {
        switch permission {
        case .read: "READ"
        case .create: "CREATE"
        case .write: "WRITE"
        }
    }

    static let reserved: Set<String> = [
        "GRANT", "PREFERRED", "QUERYABLE", "SORTABLE", "SEARCHABLE",
    ]

    private static func quoted(_ name: String) -> String {
        name.utf8.first == UInt8(ascii: "_") || Self.reserved.contains(name.uppercased())
            ? "\"\(name)\"" : name
    }
}
