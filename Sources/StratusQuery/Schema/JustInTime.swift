package import StratusModel

/// The schema that saving a record makes where development grows just in time.
package enum JustInTime {
    /// The type as this record needs it: ask `SchemaRules.extending` to add it.
    ///
    /// Indexes as Apple gives them: strings everything, other scalars QUERYABLE and SORTABLE,
    /// references and lists QUERYABLE, bytes and assets none. Besides, the names are QUERYABLE, so
    /// that the first query without filters works as well.
    package static func recordType(named name: String, holding fields: [Field]) -> RecordType {
        var definitions = fields.map { field in
            FieldDefinition(
                name: field.name, type: field.value.type,
                indexes: Self.indexes(for: field.value.type))
        }
        definitions.append(
            FieldDefinition(
                name: SystemField.recordName.mappedName, type: FieldType(.reference),
                indexes: .queryable))
        return RecordType(name: name, fields: definitions.sorted { $0.name < $1.name })
    }

    /// The record type with the fields that a schema lacks to hold the record; nil if it lacks
    /// none.
    package static func missing(
        in schema: Schema, recordType name: String, fields: [Field]
    ) -> RecordType? {
        guard let type = schema.type(named: name) else {
            return Self.recordType(named: name, holding: fields)
        }
        let unknown = fields.filter { type.field(named: $0.name) == nil }
        if unknown.isEmpty { return nil }
        var missing = Self.recordType(named: name, holding: unknown)
        missing.fields.removeAll { SystemField(mappedName: $0.name) != nil }
        return missing
    }

    package static func indexes(for type: FieldType) -> FieldIndexes {
        if type.isEncrypted { return [] }
        switch type.scalar {
        case .bytes, .asset: return []
        case .string: return type.isList ? .queryable : [.queryable, .sortable, .searchable]
        case .reference: return .queryable
        case .int64, .double, .timestamp, .location:
            return type.isList ? .queryable : [.queryable, .sortable]
        }
    }
}
