import StratusHTTP
import StratusModel
import StratusQuery
import StratusRecords

/// Turns the operations of a request into those of a command, by one schema. What a schema lacks is
/// noted: where it may grow, it grows by that and the compiler runs again.
struct OperationCompiler {
    let schema: Schema
    let reader: FieldReader
    let isProduction: Bool
    /// Whether a save may make the types and fields it needs.
    let growsSchema: Bool
    /// Types of stored records, for operations that name none.
    let storedTypes: [String: String]
    /// Makes the short GUIDs of a zone's records. Nil where nothing can be shared.
    let links: ZoneLinks?

    /// The types and fields that would have to be added to the schema, and the operations that need
    /// them, in their order.
    private(set) var missing: [(operation: Int, type: RecordType)] = []
    /// Whether a value does not fit the type that the schema gives its field: a newer schema may
    /// give it another.
    private(set) var hasMisfit = false
    private var operationCount = 0

    init(
        schema: Schema, reader: FieldReader, isProduction: Bool, growsSchema: Bool,
        storedTypes: [String: String], links: ZoneLinks? = nil
    ) {
        self.links = links
        self.growsSchema = growsSchema
        self.schema = schema
        self.reader = reader
        self.isProduction = isProduction
        self.storedTypes = storedTypes
    }

    mutating func compile(
        _ operation: ModifyRequest.Operation
    ) -> Result<RecordOperation, ClientError> {
        defer { self.operationCount += 1 }
        if let share = operation.share { return self.compile(operation, share) }
        if let refusal = self.refusalOfType(operation) { return .failure(refusal) }
        do throws(FieldRefusal) {
            let (fields, cleared) = try self.fields(of: operation)
            let type = operation.recordType ?? self.storedTypes[operation.recordName]
            if let type, !operation.kind.isDelete, let refusal = self.note(type, holding: fields) {
                return .failure(refusal)
            }
            return .success(
                RecordOperation(
                    operation.kind, recordName: operation.recordName,
                    recordType: operation.recordType, changeTag: operation.changeTag,
                    fields: fields, clearedFields: cleared, parent: operation.parent,
                    drawnShortGUID: operation.drawnGUID.flatMap { self.links?.link(drawn: $0) }))
        } catch {
            self.hasMisfit = self.hasMisfit || error.isMisfit
            return .failure(ClientError(error))
        }
    }

    /// A save of a share. Its fields have names that no schema could have.
    private func compile(
        _ operation: ModifyRequest.Operation, _ share: Result<ShareDraft, InputRefusal>
    ) -> Result<RecordOperation, ClientError> {
        do {
            var draft = try share.get()
            guard let links = self.links else { throw InputRefusal.nothingToShare }
            draft.drawnLink = operation.drawnGUID.flatMap { links.link(drawn: $0) }
            let (fields, cleared) = try self.shareFields(of: operation)
            return .success(
                RecordOperation(
                    operation.kind, recordName: operation.recordName, recordType: ShareNames.type,
                    changeTag: operation.changeTag, fields: fields, clearedFields: cleared,
                    share: draft))
        } catch { return .failure(ClientError(error)) }
    }

    private static let shareFields: [String: FieldType] = [
        ShareNames.title: FieldType(.string), ShareNames.thumbnail: FieldType(.bytes),
        ShareNames.kind: FieldType(.string),
    ]

    private func shareFields(
        of operation: ModifyRequest.Operation
    ) throws(FieldRefusal) -> (set: [Field], cleared: [String]) {
        var set: [Field] = []
        var cleared: [String] = []
        guard let object = operation.fields else { return (set, cleared) }
        for member in object {
            guard let type = Self.shareFields[member.name] else {
                if member.name.hasPrefix("cloudkit.") { throw .nameInvalid(field: member.name) }
                throw .notDefined(
                    field: member.name, recordType: ShareNames.type,
                    isProduction: self.isProduction)
            }
            let value = try self.reader.value(
                of: member.value, field: member.name, record: operation.recordName,
                recordType: ShareNames.type, defined: type)
            if let value {
                set.append(Field(name: member.name, value: value))
            } else {
                cleared.append(member.name)
            }
        }
        return (set, cleared)
    }

    /// A type that does not exist and will not is refused before its fields are read: nothing says
    /// what they are.
    private mutating func refusalOfType(_ operation: ModifyRequest.Operation) -> ClientError? {
        guard !self.growsSchema, !operation.kind.isDelete, let type = operation.recordType,
            self.schema.type(named: type) == nil
        else { return nil }
        return self.note(type, holding: []) ?? ClientError(RecordRefusal(.typeUnknown, type))
    }

    private func fields(
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
            // A schema names the system's fields too; only the system sets them.
            guard NameRules.isIdentifier(name, limit: 255) else {
                throw .nameInvalid(field: name)
            }
            let value: FieldValue?
            do throws(FieldRefusal) {
                value = try self.reader.value(
                    of: member.value, field: name, record: operation.recordName,
                    recordType: typeName ?? "", defined: definition?.type)
            } catch {
                // Nobody knows the record's type: whether there is a record comes first, and the
                // partition says that. Of a list that is empty it can also say whether it fits.
                guard typeName == nil, case .undecidable = error,
                    member.value["value"]?.array?.count == 0
                else { throw error }
                value = .list(.string, [])
            }
            if var value {
                if let typeName {
                    try self.refuseAmbiguous(value, field: name, operation, stored: typeName)
                } else {
                    value = try self.reader.covered(
                        value, field: name, record: operation.recordName,
                        isSecret: Self.isEncrypted(name, of: nil, in: self.schema))
                }
                set.append(Field(name: name, value: value))
            } else if typeName == nil || definition != nil {
                // Clearing what the schema does not have clears nothing. A type that it lacks is
                // made before the operation is compiled for good.
                cleared.append(name)
            }
        }
        return (set, cleared)
    }

    /// The record may get another type before the operation is decided, and everything that is to
    /// be decided stands in a log first. A clear value that is a secret in another type is taken
    /// only where the operation itself says the type.
    private func refuseAmbiguous(
        _ value: FieldValue, field: String, _ operation: ModifyRequest.Operation,
        stored type: String
    ) throws(FieldRefusal) {
        if operation.recordType != nil || self.reader.scope == .public { return }
        if case .sealed = value { return }
        let other = self.schema.types.first { $0.field(named: field)?.type.isEncrypted == true }
        if let other, other.name != type {
            throw .typeNeeded(field: field, recordType: other.name)
        }
    }

    /// Whether the operation sets a field that is to be sealed, by the schema or by its own word.
    static func needsSealing(
        _ operation: ModifyRequest.Operation, by schema: Schema, storedTypes: [String: String]
    ) -> Bool {
        guard !operation.kind.isDelete, let fields = operation.fields else { return false }
        let type = operation.recordType ?? storedTypes[operation.recordName]
        return fields.contains { member in
            Self.isEncrypted(member.name, of: type, in: schema)
                || FieldReader.wantsSealing(member.value)
        }
    }

    /// Whether a field is encrypted in a type.
    ///
    /// - Parameter type: nil where nobody knows the record's type: the record may have been deleted
    ///   a moment ago. Any type counts then, since no plain text of an encrypted field may get into
    ///   a log.
    private static func isEncrypted(_ field: String, of type: String?, in schema: Schema) -> Bool {
        schema.types.contains { known in
            (type == nil || known.name == type)
                && known.field(named: field)?.type.isEncrypted == true
        }
    }

    /// Notes what a schema lacks to hold a record.
    ///
    /// - Returns: what is wrong with a type that no schema can have.
    private mutating func note(_ type: String, holding fields: [Field]) -> ClientError? {
        if self.schema.type(named: type) == nil {
            if type == "cloudKit.share" { return ClientError(InputRefusal.nothingToShare) }
            guard NameRules.isIdentifier(type, limit: 255) else {
                return ClientError(RecordRefusal(.typeUnknown, type))
            }
        }
        if let lacking = JustInTime.missing(in: self.schema, recordType: type, fields: fields) {
            self.missing.append((self.operationCount, lacking))
        }
        return nil
    }

    /// The refusal of an operation that needs what a closed schema lacks; nil where it lacks
    /// nothing.
    func refusal(of operation: RecordOperation) -> ClientError? {
        guard !operation.kind.isDelete, operation.share == nil else { return nil }
        if let type = operation.recordType, self.schema.type(named: type) == nil {
            return ClientError(RecordRefusal(.typeUnknown, type))
        }
        guard let name = operation.recordType ?? self.storedTypes[operation.recordName],
            let type = self.schema.type(named: name)
        else { return nil }
        for field in operation.fields where type.field(named: field.name) == nil {
            return ClientError(
                FieldRefusal.notDefined(
                    field: field.name, recordType: name, isProduction: self.isProduction))
        }
        return nil
    }
}
