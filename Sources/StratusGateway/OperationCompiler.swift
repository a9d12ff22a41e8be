import StratusHTTP
import StratusModel
import StratusRecords

/// Turns the operations of a request into those of a command, by one schema. What a schema lacks is
/// noted: where it may grow, it grows by that and the compiler runs again.
struct OperationCompiler {
    let schema: Schema
    let reader: FieldReader
    let isProduction: Bool
    /// Types of stored records, for operations that name none.
    let storedTypes: [String: String]

    /// What would have to be added to the schema; sorted.
    private(set) var missing: [RecordType] = []

    init(
        schema: Schema, reader: FieldReader, isProduction: Bool, storedTypes: [String: String]
    ) {
        self.schema = schema
        self.reader = reader
        self.isProduction = isProduction
        self.storedTypes = storedTypes
    }

    mutating func compile(
        _ operation: ModifyRequest.Operation
    ) -> Result<RecordOperation, ClientError> {
        do throws(FieldRefusal) {
            let (fields, cleared) = try self.fields(of: operation)
            if let type = operation.recordType, !operation.kind.isDelete,
                let refusal = self.note(type)
            {
                return .failure(refusal)
            }
            return .success(
                RecordOperation(
                    operation.kind, recordName: operation.recordName,
                    recordType: operation.recordType, changeTag: operation.changeTag,
                    fields: fields, clearedFields: cleared, parent: operation.parent,
                    drawnShortGUID: operation.shortGUID))
        } catch {
            return .failure(ClientError(error))
        }
    }

    private mutating func fields(
        of operation: ModifyRequest.Operation
    ) throws(FieldRefusal) -> (set: [Field], cleared: [String]) {
        var set: [Field] = []
        var cleared: [String] = []
        // A delete says what to delete; some clients send the whole record with it.
        guard !operation.kind.isDelete, let object = operation.fields else { return (set, cleared) }
        let typeName = operation.recordType ?? self.storedTypes[operation.recordName]
        let type = typeName.flatMap { self.schema.type(named: $0) }
        for member in object {
            let name = member.name
            let definition = type?.field(named: name)
            guard definition != nil || NameRules.isIdentifier(name, limit: 255) else {
                throw .nameInvalid(field: name)
            }
            let value = try self.reader.value(
                of: member.value, field: name, recordType: typeName ?? "",
                defined: definition?.type)
            guard let value else {
                cleared.append(name)
                continue
            }
            set.append(Field(name: name, value: value))
            if definition == nil, let typeName { self.note(value.type, named: name, in: typeName) }
        }
        return (set, cleared)
    }

    /// Says what is wrong with a type the schema lacks, and notes it.
    private mutating func note(_ type: String) -> ClientError? {
        guard self.schema.type(named: type) == nil else { return nil }
        if type == "cloudKit.share" {
            return ClientError(InputRefusal.shareInLegacySpelling)
        }
        guard NameRules.isIdentifier(type, limit: 255) else {
            return ClientError(RecordRefusal(.typeUnknown, type))
        }
        if !self.missing.contains(where: { $0.name == type }) {
            self.missing.append(JustInTimeSchema.type(named: type))
        }
        return nil
    }

    private mutating func note(_ type: FieldType, named name: String, in recordType: String) {
        let field = FieldDefinition(
            name: name, type: type, indexes: JustInTimeSchema.indexes(of: type))
        guard let position = self.missing.firstIndex(where: { $0.name == recordType }) else {
            self.missing.append(
                self.schema.type(named: recordType) == nil
                    ? JustInTimeSchema.type(named: recordType, with: field)
                    : RecordType(name: recordType, fields: [field]))
            return
        }
        guard self.missing[position].field(named: name) == nil else { return }
        self.missing[position].fields.append(field)
        self.missing[position].fields.sort { $0.name < $1.name }
    }

    /// The refusal of an operation that needs what a closed schema lacks; nil where it lacks nothing.
    func refusal(of operation: RecordOperation) -> ClientError? {
        guard !operation.kind.isDelete else { return nil }
        if let type = operation.recordType, self.schema.type(named: type) == nil {
            return ClientError(RecordRefusal(.typeUnknown, type))
        }
        guard let name = operation.recordType ?? self.storedTypes[operation.recordName],
            let type = self.schema.type(named: name)
        else { return nil }
        // Clearing what cannot be there is no offence.
        for field in operation.fields where type.field(named: field.name) == nil {
            return ClientError(
                FieldRefusal.notDefined(
                    field: field.name, recordType: name, isProduction: self.isProduction))
        }
        return nil
    }
}

/// What a save makes of names the development schema does not know, as Apple's native development
/// saves do.
enum JustInTimeSchema {
    static func type(named name: String, with field: FieldDefinition? = nil) -> RecordType {
        let fields = [field, Self.recordName].compactMap { $0 }.sorted { $0.name < $1.name }
        return RecordType(name: name, fields: fields)
    }

    static func indexes(of type: FieldType) -> FieldIndexes {
        if type.isEncrypted { return [] }
        switch type.scalar {
        case .string: return type.isList ? [.queryable] : [.queryable, .sortable, .searchable]
        case .int64, .double, .timestamp, .location:
            return type.isList ? [.queryable] : [.queryable, .sortable]
        case .reference: return [.queryable]
        case .bytes, .asset: return []
        }
    }

    /// Queryable from the start, so that a new type can be listed.
    private static let recordName = FieldDefinition(
        name: SystemField.recordName.mappedName, type: FieldType(.reference), indexes: [.queryable])
}
