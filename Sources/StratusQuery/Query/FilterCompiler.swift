package import StratusModel

/// Checks filters and sorts against the schema: what may be asked of which field, with which
/// operand.
package struct FilterCompiler: Sendable {
    let recordType: RecordType
    let schema: IndexedSchema
    /// The zone that a reference points into when it names none.
    package var home: ZoneID
    /// Whether fields need an index.
    let requiresIndexes: Bool
    /// The fields by name, and the names of the texts among them. Only where no index is needed:
    /// there one compiler serves many filters.
    private let known: (fields: [String: FieldDefinition], texts: [String])?

    package init(
        _ recordType: RecordType, in schema: IndexedSchema, home: ZoneID,
        requiresIndexes: Bool = true
    ) {
        self.recordType = recordType
        self.schema = schema
        self.home = home
        self.requiresIndexes = requiresIndexes
        self.known =
            requiresIndexes
            ? nil
            : (
                Dictionary(
                    recordType.fields.map { ($0.name, $0) }, uniquingKeysWith: { one, _ in one }),
                Self.texts(of: recordType).map(\.name)
            )
    }

    /// What a search of every field looks through.
    private static func texts(of recordType: RecordType) -> [FieldDefinition] {
        recordType.fields.filter { field in
            field.type.scalar == .string && !field.type.isEncrypted
                && SystemField(mappedName: field.name) == nil
        }
    }

    /// Whether what becomes of the filter depends on the home zone.
    package func namesHome(_ filter: RecordFilter) -> Bool {
        switch filter.operand {
        case .scalar(.reference), .list(.reference, _): return true
        case .list(_, let elements):
            let hasReference = elements.contains { if case .reference = $0 { true } else { false } }
            if hasReference { return true }
        case .scalar, .sealed: break
        }
        guard let field = try? self.field(filter.field) else { return false }
        return field.type.scalar == .reference
    }

    package func compile(_ filter: RecordFilter) throws(QueryRefusal) -> CompiledFilter {
        let comparator = filter.comparator
        guard case .anySearchable = filter.field else {
            let field = try self.field(filter.field)
            let test = try self.test(filter, on: field)
            try self.requireIndex(for: comparator, on: field)
            return CompiledFilter(target: field.target, type: field.type, test: test)
        }
        let type = FieldType(.string)
        guard comparator == .containsAllTokens || comparator == .containsAnyTokens else {
            throw .invalid("Filter type \(comparator.wireName) needs a field name")
        }
        let names: [String]
        if let known = self.known { names = known.texts } else { names = try self.searchable() }
        guard !names.isEmpty else {
            throw .invalid("No field of record type '\(self.recordType.name)' is marked searchable")
        }
        return CompiledFilter(
            target: .fields(names), type: type,
            test: .words(try self.words(filter), all: comparator == .containsAllTokens))
    }

    /// The names of the fields that are marked so. Words of one that is being indexed would be
    /// missing from the answer: that is no smaller answer, but none.
    private func searchable() throws(QueryRefusal) -> [String] {
        let fields = Self.texts(of: self.recordType).filter { $0.indexes.contains(.searchable) }
        if let field = fields.first(where: { !self.isReady(.tokens, $0.name) }) {
            throw .notMarked(field.name, .searchable)
        }
        return fields.map(\.name)
    }

    // MARK: Fields

    struct FieldInfo {
        var target: CompiledFilter.Target
        /// The field's name as the schema spells it.
        var name: String
        /// The field's name as refusals spell it.
        var publicName: String
        var type: FieldType
        var indexes: FieldIndexes
    }

    func field(_ selector: FieldSelector) throws(QueryRefusal) -> FieldInfo {
        switch selector {
        case .anySearchable:
            throw .invalid("A field name is needed")
        case .system(let field):
            return self.field(field)
        case .field(let name):
            if let field = SystemField(mappedName: name) { return self.field(field) }
            guard let definition = self.definition(of: name) else { throw .fieldUnknown(name) }
            return FieldInfo(
                target: .field(name), name: name, publicName: name, type: definition.type,
                indexes: definition.indexes)
        }
    }

    private func field(_ field: SystemField) -> FieldInfo {
        FieldInfo(
            target: .system(field), name: field.mappedName, publicName: field.publicName,
            type: FieldType(field.type),
            indexes: self.definition(of: field.mappedName)?.indexes ?? [])
    }

    private func definition(of name: String) -> FieldDefinition? {
        guard let known = self.known else { return self.recordType.field(named: name) }
        return known.fields[name]
    }

    func isReady(_ kind: FieldIndex.Kind, _ field: String) -> Bool {
        self.schema.index(kind, of: field, in: self.recordType.name)?.state == .ready
    }

    // MARK: Indexes

    /// Equality, membership and distance need QUERYABLE, ranges SORTABLE, prefixes either, words
    /// SEARCHABLE. An index that is being built is not there yet.
    private func requireIndex(for comparator: Comparator, on field: FieldInfo) throws(QueryRefusal)
    {
        guard self.requiresIndexes else { return }
        switch comparator {
        case .equals, .notEquals, .in, .notIn, .near:
            try self.require(.queryable, field)
        case .lessThan, .lessThanOrEquals, .greaterThan, .greaterThanOrEquals:
            // On a location these are other spellings of NEAR.
            try self.require(field.type.scalar == .location ? .queryable : .sortable, field)
        case .beginsWith, .notBeginsWith:
            try self.require(field.indexes.contains(.sortable) ? .sortable : .queryable, field)
        case .containsAllTokens, .containsAnyTokens:
            guard field.indexes.contains(.searchable), self.isReady(.tokens, field.name) else {
                throw .notMarked(field.publicName, .searchable)
            }
        case .listContains, .notListContains, .listContainsAll, .notListContainsAll,
            .listContainsAny, .notListContainsAny, .listMemberBeginsWith,
            .notListMemberBeginsWith:
            try self.require(.queryable, field)
        }
    }

    private func require(_ need: QueryRefusal.Need, _ field: FieldInfo) throws(QueryRefusal) {
        let option: FieldIndexes = need == .queryable ? .queryable : .sortable
        let kind: FieldIndex.Kind =
            field.type.isList ? .elements : field.type.scalar == .location ? .cells : .values
        guard field.indexes.contains(option), self.isReady(kind, field.name) else {
            throw .notMarked(field.publicName, need)
        }
    }

    /// Sorting also needs to know the records that lack the field.
    func requireSortable(_ field: FieldInfo) throws(QueryRefusal) {
        try self.require(.sortable, field)
        if case .system(let system) = field.target, system.isAlwaysPresent { return }
        guard self.isReady(.absence, field.name) else {
            throw .notMarked(field.publicName, .sortable)
        }
    }

    // MARK: Comparators and operands

    private func test(
        _ filter: RecordFilter, on field: FieldInfo
    ) throws(QueryRefusal) -> CompiledFilter.Test {
        let comparator = filter.comparator
        guard Self.accepts(comparator, field.type) else {
            throw .comparatorUnavailable(field.publicName, field.type, comparator)
        }
        if case .system(let system) = field.target,
            let test = try self.identity(filter, system, field)
        {
            return test
        }
        switch comparator {
        case .equals: return .compare(.equal, try self.value(filter.operand, for: field))
        case .notEquals: return .compare(.notEqual, try self.value(filter.operand, for: field))
        case .lessThan, .lessThanOrEquals, .greaterThan, .greaterThanOrEquals, .near:
            if field.type.scalar == .location { return try self.distance(filter, on: field) }
            let value = try self.value(filter.operand, for: field)
            switch comparator {
            case .lessThan: return .compare(.less, value)
            case .lessThanOrEquals: return .compare(.lessOrEqual, value)
            case .greaterThan: return .compare(.greater, value)
            default: return .compare(.greaterOrEqual, value)
            }
        case .in: return .member(try self.values(filter, for: field), isNegated: false)
        case .notIn: return .member(try self.values(filter, for: field), isNegated: true)
        case .beginsWith, .notBeginsWith:
            let text = try self.text(filter.operand)
            return .prefix(
                exact: Bytes(text.utf8), folded: TextFolding.caseFolded(text),
                isNegated: comparator == .notBeginsWith)
        case .listMemberBeginsWith, .notListMemberBeginsWith:
            let text = try self.text(filter.operand)
            return .memberPrefix(
                exact: Bytes(text.utf8), folded: TextFolding.caseFolded(text),
                isNegated: comparator == .notListMemberBeginsWith)
        case .containsAllTokens, .containsAnyTokens:
            return .words(try self.words(filter), all: comparator == .containsAllTokens)
        case .listContains, .notListContains:
            return .holds(
                OperandSet(
                    [try self.value(filter.operand, for: field)], for: field.type.scalar),
                all: true,
                isNegated: comparator == .notListContains)
        case .listContainsAll, .notListContainsAll:
            return .holds(
                try self.values(filter, for: field), all: true,
                isNegated: comparator == .notListContainsAll)
        case .listContainsAny, .notListContainsAny:
            return .holds(
                try self.values(filter, for: field), all: false,
                isNegated: comparator == .notListContainsAny)
        }
    }

    /// The table of §6.3: which comparator a type accepts, whatever indexes it has.
    package static func accepts(_ comparator: Comparator, _ type: FieldType) -> Bool {
        guard !type.isEncrypted, type.scalar != .asset else { return false }
        switch comparator {
        case .equals, .notEquals:
            return !type.isList && type.scalar != .location
        case .lessThan, .lessThanOrEquals:
            return !type.isList && type.scalar != .reference && type.scalar != .bytes
        case .greaterThan, .greaterThanOrEquals:
            return !type.isList && type.scalar != .reference && type.scalar != .bytes
                && type.scalar != .location
        case .near:
            return !type.isList && type.scalar == .location
        case .in, .notIn:
            return !type.isList && type.scalar != .location && type.scalar != .bytes
        case .beginsWith, .notBeginsWith:
            return !type.isList && type.scalar == .string
        case .containsAllTokens, .containsAnyTokens:
            return type.scalar == .string
        case .listContains, .notListContains, .listContainsAll, .notListContainsAll,
            .listContainsAny, .notListContainsAny:
            return type.isList
        case .listMemberBeginsWith, .notListMemberBeginsWith:
            return type.isList && type.scalar == .string
        }
    }

    private func distance(
        _ filter: RecordFilter, on field: FieldInfo
    ) throws(QueryRefusal) -> CompiledFilter.Test {
        guard let distance = filter.distance, distance >= 0 else {
            throw .distanceMissing(filter.comparator)
        }
        guard case .scalar(.location(let place)) = filter.operand else {
            throw .valueInvalid(.location)
        }
        return .within(
            SpherePoint(place), chord: Sphere.squaredChord(ofDistance: distance),
            isStrict: filter.comparator == .lessThan)
    }

    /// Whether a record's name, parent or share is one of some records': by zone and name, so that
    /// an operand that names another zone is none of this zone's. Nil for other fields and
    /// comparators.
    private func identity(
        _ filter: RecordFilter, _ system: SystemField, _ field: FieldInfo
    ) throws(QueryRefusal) -> CompiledFilter.Test? {
        guard [.recordName, .parent, .share].contains(system) else { return nil }
        let operands: [Scalar]
        switch (filter.comparator, filter.operand) {
        case (.equals, .scalar(let scalar)), (.notEquals, .scalar(let scalar)): operands = [scalar]
        case (.in, .list(_, let elements)), (.notIn, .list(_, let elements)): operands = elements
        default: return nil
        }
        let own = operands.filter { operand in
            guard case .reference(let reference) = operand else { return true }
            return reference.zone.name.isEmpty || reference.zone == self.home
        }
        if own.count == operands.count { return nil }
        var known = filter
        known.comparator = .in
        known.operand = .list(.reference, own)
        let isNegated = filter.comparator == .notEquals || filter.comparator == .notIn
        return .member(try self.values(known, for: field), isNegated: isNegated)
    }

    /// More than any setting allows: gateways refuse far fewer.
    static let operandCountMax = 10_000

    private func words(_ filter: RecordFilter) throws(QueryRefusal) -> [Bytes] {
        let operand = filter.operand
        // A word has at least one byte, so a short text need not be cut twice.
        let size = Tokeniser.texts(operand).reduce(0) { $0 + $1.utf8.count }
        if size > Self.operandCountMax,
            Tokeniser.hasWords(operand, moreThan: Self.operandCountMax)
        {
            throw .tooManyOperands(filter.comparator, Self.operandCountMax)
        }
        switch operand {
        case .scalar(.string(let text)):
            return Tokeniser.words(of: text)
        case .list(let type, let elements):
            var texts: [String] = []
            for element in elements {
                guard case .string(let text) = element else {
                    throw .valueInvalid(.string, isList: true)
                }
                texts.append(text)
            }
            guard type == .string || elements.isEmpty else {
                throw .valueInvalid(.string, isList: true)
            }
            return Tokeniser.words(of: texts)
        case .scalar, .sealed:
            throw .valueInvalid(.string)
        }
    }

    private func text(_ operand: FieldValue) throws(QueryRefusal) -> String {
        guard case .scalar(.string(let text)) = operand else { throw .valueInvalid(.string) }
        return text
    }

    private func value(
        _ operand: FieldValue, for field: FieldInfo
    ) throws(QueryRefusal) -> ComparableValue {
        guard case .scalar(let scalar) = operand, let value = self.coerced(scalar, for: field)
        else { throw .valueInvalid(field.type.scalar) }
        return value
    }

    private func values(
        _ filter: RecordFilter, for field: FieldInfo
    ) throws(QueryRefusal) -> OperandSet {
        guard case .list(_, let elements) = filter.operand else {
            throw .valueInvalid(field.type.scalar, isList: true)
        }
        guard elements.count <= Self.operandCountMax else {
            throw .tooManyOperands(filter.comparator, Self.operandCountMax)
        }
        var values: [ComparableValue] = []
        for element in elements {
            guard let value = self.coerced(element, for: field) else {
                throw .valueInvalid(field.type.scalar, isList: true)
            }
            values.append(value)
        }
        return OperandSet(values, for: field.type.scalar)
    }

    /// Numbers compare across their two types; whole numbers are timestamps and text is a record
    /// name where the field says so, since requests need not tag their operands.
    private func coerced(_ scalar: Scalar, for field: FieldInfo) -> ComparableValue? {
        switch (field.type.scalar, scalar) {
        case (.reference, .reference(let reference)):
            return self.reference(reference.recordName, zone: reference.zone, for: field)
        case (.reference, .string(let name)):
            return self.reference(name, zone: self.home, for: field)
        case (.timestamp, .int64(let value)):
            return .time(value)
        case (.int64, .double), (.double, .int64):
            return ComparableValue(scalar)
        default:
            return scalar.type == field.type.scalar ? ComparableValue(scalar) : nil
        }
    }

    private func reference(
        _ name: String, zone: ZoneID, for field: FieldInfo
    ) -> ComparableValue {
        let name = Bytes(name.utf8)
        if case .system = field.target { return .name(name) }
        return .reference(name: name, zone: zone.name.isEmpty ? self.home : zone)
    }
}
