package import StratusModel

/// One index of one field of one record type, as a partition keeps it.
///
/// Its number is never used again, so that rows left over from an index that was dropped are
/// nobody's.
package struct FieldIndex: Sendable, Hashable {
    /// The content of the index's rows. The raw value is on disk for ever.
    package enum Kind: UInt8, Sendable, Hashable, CaseIterable {
        /// One row for each record that has a value, in the order of the values.
        case values = 1
        /// A row for every different element of a list.
        case elements = 2
        /// A row for every different word.
        case tokens = 3
        /// One row for each record that has a place, by grid cell.
        case cells = 4
        /// One row for each record that has *no* value: a sorted query must not lose it.
        case absence = 5
        /// One row for each record whose text has too many words for `tokens`: a summary of them.
        case longTexts = 6
        /// One row for each record of a public database, in the order of who created it: for types
        /// that people read their own records of. No schema names it.
        case creators = 7
    }

    package enum State: UInt8, Sendable, Hashable {
        /// Written by every save; queries that need it are refused until a job has filled it.
        case building = 1
        case ready = 2
    }

    package var number: UInt32
    package var recordType: String
    /// The field as the schema spells it: system fields by their mapped name.
    package let field: String
    /// The system field that ``field`` names, if any: asked for every record.
    package let systemField: SystemField?
    package var kind: Kind
    package var type: FieldType
    package var state: State

    package init(
        number: UInt32, recordType: String, field: String, kind: Kind, type: FieldType,
        state: State
    ) {
        self.number = number
        self.recordType = recordType
        self.field = field
        self.systemField = SystemField(mappedName: field)
        self.kind = kind
        self.type = type
        self.state = state
    }

    /// The fields of a type that have index rows, with each kind of them.
    static func wanted(for type: RecordType) -> [(field: FieldDefinition, kind: Kind)] {
        var wanted = type.fields.flatMap { field in
            Self.kinds(for: field).map { (field: field, kind: $0) }
        }
        let creator = SystemField.createdUserRecordName
        let hasCreators = wanted.contains {
            $0.kind == .values && $0.field.name == creator.mappedName
        }
        let readers = type.grants.roles(that: .read)
        if readers.contains("_creator"), !hasCreators,
            !readers.contains("_world"), !readers.contains("_icloud")
        {
            let field = FieldDefinition(name: creator.mappedName, type: FieldType(creator.type))
            wanted.append((field: field, kind: .creators))
        }
        return wanted
    }

    /// The index rows a definition asks for, without number and state.
    private static func kinds(for definition: FieldDefinition) -> [Kind] {
        let indexes = definition.indexes
        let type = definition.type
        guard !type.isEncrypted, type.scalar != .asset else { return [] }
        var kinds: [Kind] = []
        if type.isList {
            if indexes.contains(.queryable) { kinds.append(.elements) }
        } else if !indexes.isDisjoint(with: [.queryable, .sortable]) {
            kinds.append(type.scalar == .location ? .cells : .values)
        }
        if indexes.contains(.searchable), type.scalar == .string {
            kinds += [.tokens, .longTexts]
        }
        if indexes.contains(.sortable), !type.isList,
            SystemField(mappedName: definition.name)?.isAlwaysPresent != true
        {
            kinds.append(.absence)
        }
        return kinds
    }
}

extension SystemField {
    package init?(mappedName: String) {
        guard let field = Self.allCases.first(where: { $0.mappedName == mappedName }) else {
            return nil
        }
        self = field
    }

    /// Whether every record has it.
    var isAlwaysPresent: Bool {
        switch self {
        case .recordName, .createdTimestamp, .modifiedTimestamp, .createdUserRecordName,
            .modifiedUserRecordName:
            true
        case .share, .parent: false
        }
    }

    /// The field as `systemFieldName` spells it, and as refusals name it.
    package var publicName: String {
        switch self {
        case .recordName: "recordName"
        case .createdTimestamp: "createdTimestamp"
        case .modifiedTimestamp: "modifiedTimestamp"
        case .createdUserRecordName: "createdUserRecordName"
        case .modifiedUserRecordName: "modifiedUserRecordName"
        case .share: "share"
        case .parent: "parent"
        }
    }
}
