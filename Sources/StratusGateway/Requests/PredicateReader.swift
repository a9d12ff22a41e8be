import StratusHTTP
import StratusModel
import StratusQuery
import StratusRecords

/// Turns the clauses of a query into a predicate, by the schema of the type asked for.
struct PredicateReader {
    /// Nil for a type the schema lacks; nothing then says what its fields are.
    let type: RecordType?
    let fields: FieldReader
    /// Values or words of one filter.
    let operandCountMax: Int

    /// - Throws: ``InputRefusal`` or ``FieldRefusal``: a query is refused whole.
    func predicate(_ request: QueryRequest) throws -> RecordPredicate {
        RecordPredicate(
            recordType: request.recordType,
            filters: try request.filters.map { try self.filter($0) },
            sorts: try request.sorts.map { try self.sort($0) })
    }

    private func filter(_ input: Input) throws -> RecordFilter {
        guard let comparator = Self.comparator(try input.requiredString("comparator")) else {
            throw InputRefusal.unexpectedInput(key: "comparator")
        }
        let selector: FieldSelector
        if let named = try self.selector(input) {
            selector = named
        } else {
            guard comparator == .containsAllTokens || comparator == .containsAnyTokens else {
                throw InputRefusal.missingKey("fieldName")
            }
            selector = .anySearchable
        }
        var distance: Double?
        if let given = input["distance"] {
            guard let metres = given.double, metres >= 0 else {
                throw InputRefusal.unexpectedInput(key: "distance")
            }
            distance = metres
        }
        guard let given = input["fieldValue"] else { throw InputRefusal.missingKey("fieldValue") }
        let name = input["fieldName"]?.string ?? input["systemFieldName"]?.string
        let refusal = InputRefusal.tooManyOperands(
            filter: comparator.wireName, field: name, limit: self.operandCountMax)
        // Counted before they are read: a body holds millions.
        if given["value"]?.array?.count ?? 0 > self.operandCountMax { throw refusal }
        let operand = try self.operand(given, of: comparator, on: selector)
        if comparator == .containsAllTokens || comparator == .containsAnyTokens,
            Tokeniser.hasWords(operand, moreThan: self.operandCountMax)
        {
            throw refusal
        }
        return RecordFilter(
            field: selector, comparator: comparator, operand: operand, distance: distance)
    }

    private func sort(_ input: Input) throws -> RecordSort {
        guard let selector = try self.selector(input) else {
            throw InputRefusal.missingKey("fieldName")
        }
        var sort = RecordSort(field: selector, ascending: try input.flag("ascending") ?? true)
        if let given = input["relativeLocation"] {
            // Documented as a field dictionary; one client sends the place itself.
            let place = given["value"] ?? given
            guard let location = self.fields.location(place) else {
                throw FieldRefusal.wrongShape(expected: FieldType(.location))
            }
            sort.relativeLocation = location
        }
        return sort
    }

    // MARK: Fields

    private func selector(_ input: Input) throws(InputRefusal) -> FieldSelector? {
        if let name = try input.string("systemFieldName") {
            guard let system = Self.systemField(name) else {
                throw .unexpectedInput(key: "systemFieldName")
            }
            return .system(system)
        }
        guard let name = try input.string("fieldName") else { return nil }
        if name.hasPrefix("___") {
            guard let system = Self.systemField(name) else {
                throw .unexpectedInput(key: "fieldName")
            }
            return .system(system)
        }
        // An app's own field comes before a system field that could be meant.
        if self.type?.field(named: name) == nil, let system = Self.systemField(name) {
            return .system(system)
        }
        return .field(name)
    }

    /// Every spelling of a system field: its own, the schema language's, and that without its
    /// prefix.
    static func systemField(_ name: String) -> SystemField? {
        switch name {
        case "recordName", "___recordID", "___recordId", "recordID": .recordName
        case "createdTimestamp", "___createTime", "createTime": .createdTimestamp
        case "modifiedTimestamp", "___modTime", "modTime": .modifiedTimestamp
        case "createdUserRecordName", "___createdBy", "createdBy": .createdUserRecordName
        case "modifiedUserRecordName", "___modifiedBy", "modifiedBy": .modifiedUserRecordName
        case "share", "___share": .share
        case "parent", "___parent": .parent
        default: nil
        }
    }

    // MARK: Operands

    /// The operand in the type the comparator needs beside this field. A client that claims another
    /// type gets what it claims, so that the query engine can say what does not fit.
    private func operand(
        _ dictionary: JSONValue, of comparator: Comparator, on selector: FieldSelector
    ) throws -> FieldValue {
        let input = try Input(dictionary, at: "fieldValue")
        guard let value = input["value"] else { throw InputRefusal.missingKey("value") }
        let isList = value.array != nil
        if case .system(let field) = selector, field.type == .reference {
            return try self.references(value, of: field)
        }
        var claim: TypeTag.Claim?
        if let word = try input.string("type") {
            guard let known = TypeTag.claim(word) else { throw FieldRefusal.unknownTag(word) }
            claim = known
        }
        let wanted = self.operandType(of: comparator, on: selector)
        if let wanted {
            let type = FieldType(wanted, isList: isList)
            let contradicts = claim.map { !$0.scalars.isEmpty && !$0.scalars.contains(wanted) }
            if contradicts != true, let read = try? self.fields.value(value, as: type) {
                return read
            }
            // A whole-number field may be compared with a fraction.
            if wanted == .int64 || wanted == .double,
                let read = try? self.fields.value(value, as: FieldType(.double, isList: isList))
            {
                return read
            }
            guard let claimed = claim?.scalars.first, claimed != wanted else {
                throw FieldRefusal.wrongShape(expected: type)
            }
            return try self.fields.value(value, as: FieldType(claimed, isList: isList))
        }
        guard
            let read = try self.fields.value(
                of: dictionary, field: "fieldValue", record: "", recordType: "", defined: nil)
        else { throw InputRefusal.missingKey("value") }
        return read
    }

    /// Nil where neither the comparator nor the schema says.
    private func operandType(
        of comparator: Comparator, on selector: FieldSelector
    ) -> ScalarType? {
        switch comparator {
        case .near: .location
        case .containsAllTokens, .containsAnyTokens, .beginsWith, .notBeginsWith,
            .listMemberBeginsWith, .notListMemberBeginsWith:
            .string
        case .equals, .notEquals, .lessThan, .lessThanOrEquals, .greaterThan,
            .greaterThanOrEquals, .in, .notIn, .listContains, .notListContains, .listContainsAll,
            .notListContainsAll, .listContainsAny, .notListContainsAny:
            switch selector {
            case .field(let name): self.type?.field(named: name)?.type.scalar
            case .system(let field): field.type
            case .anySearchable: .string
            }
        }
    }

    /// Record and user names come as references or as plain strings.
    private func references(_ value: JSONValue, of field: SystemField) throws -> FieldValue {
        if let array = value.array {
            return .list(
                .reference, try array.map { .reference(try self.reference($0, of: field)) })
        }
        return .scalar(.reference(try self.reference(value, of: field)))
    }

    private func reference(_ value: JSONValue, of field: SystemField) throws -> Reference {
        var reference: Reference
        if let name = value.string {
            reference = Reference(recordName: name, zone: self.fields.zone, action: .none)
        } else if let read = self.fields.reference(value) {
            reference = read
        } else {
            throw FieldRefusal.wrongShape(expected: FieldType(.reference))
        }
        let isPerson = field == .createdUserRecordName || field == .modifiedUserRecordName
        if isPerson, ["__defaultOwner__", "_defaultOwner"].contains(reference.recordName) {
            reference.recordName = self.fields.caller
        }
        return reference
    }

    // MARK: Comparators

    /// The documented spellings, and those of clients whose own lists differ.
    static func comparator(_ word: String) -> Comparator? {
        switch word {
        case "LIST_NOT_CONTAINS": .notListContains
        case "CONTAINS_ANY": .listContainsAny
        case "LIST_NOT_CONTAINS_ANY": .notListContainsAny
        default: Comparator(wireName: word)
        }
    }
}
