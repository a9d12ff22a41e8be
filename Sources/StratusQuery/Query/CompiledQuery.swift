import StratusCoding
package import StratusModel
import StratusRows

/// A predicate checked against the schema, for one zone.
package struct CompiledQuery: Sendable {
    let recordType: RecordType
    package let filters: [CompiledFilter]
    let sorts: [CompiledSort]
    let requiresIndexes: Bool
    /// The parts that filters and sorts ask about: no other is read.
    let wanted: WantedParts

    static let sortCountMax = 16

    /// - Parameter requiresIndexes: whether a field must have the index a filter needs; otherwise
    ///   the records of the zone are read where there is none.
    package init(
        _ predicate: RecordPredicate, in schema: IndexedSchema, home: ZoneID,
        requiresIndexes: Bool = true
    ) throws(QueryRefusal) {
        if predicate.recordType == "Users" { throw .invalid("Can't query system types") }
        guard let type = schema.schema.type(named: predicate.recordType) else {
            throw .typeUnknown(predicate.recordType)
        }
        let compiler = FilterCompiler(
            type, in: schema, home: home, requiresIndexes: requiresIndexes)
        var filters: [CompiledFilter] = []
        for filter in predicate.filters { filters.append(try compiler.compile(filter)) }
        if filters.isEmpty && requiresIndexes { try compiler.requireExtent() }
        guard predicate.sorts.count <= Self.sortCountMax else {
            throw .invalid("More than \(Self.sortCountMax) sort descriptors")
        }
        var sorts: [CompiledSort] = []
        for sort in predicate.sorts {
            guard let compiled = try compiler.compile(sort) else { continue }
            // What an earlier key made equal, the same key cannot order.
            if sorts.contains(where: { $0.isSameOrder(as: compiled) }) { continue }
            sorts.append(compiled)
            // Names are unique: nothing after them matters.
            if compiled.field == SystemField.recordName.mappedName { break }
        }
        // Ties fall to the name in the last key's direction anyway.
        if sorts.count > 1, let last = sorts.last,
            last.field == SystemField.recordName.mappedName,
            last.ascending == sorts[sorts.count - 2].ascending
        {
            sorts.removeLast()
        }
        self.recordType = type
        self.filters = filters
        self.sorts = sorts
        self.requiresIndexes = requiresIndexes
        var names = Set<String>()
        var hasStamps = false
        for target in filters.map(\.target) + sorts.map(\.target) {
            switch target {
            case .field(let name): names.insert(name)
            case .fields(let all): names.formUnion(all)
            case .system(let field): hasStamps = hasStamps || field != .recordName
            }
        }
        self.wanted = WantedParts(fields: names.sorted(), hasStamps: hasStamps)
    }

    package func matches(_ record: Record) -> Bool {
        record.type == self.recordType.name && self.filters.allSatisfy { $0.matches(record) }
    }

    /// Adds what finding a record's place in the order costs.
    func count(_ record: Record, in work: inout ReadWork) {
        work.comparisonCount += self.sorts.count
        for sort in self.sorts {
            guard case .field(let name) = sort.target,
                case .scalar(.string(let text))? = record.value(of: name)
            else { continue }
            work.cutByteCount += text.utf8.count
        }
    }

    /// The record's sort keys, one for each sort of the query.
    func keys(of record: Record) -> [Bytes] { self.sorts.map { $0.key(of: record) } }

    /// Ties fall to the record name, in the direction of the last sort.
    var tieAscending: Bool { self.sorts.last?.ascending ?? true }
}

/// One sort descriptor, ready to be asked of records.
struct CompiledSort: Sendable {
    let target: CompiledFilter.Target
    /// The field's name as the schema spells it.
    let field: String
    let type: FieldType
    let ascending: Bool
    /// Order by the distance from here.
    let centre: SpherePoint?

    /// Values begin with this; what stands for a missing one is below it, or above for distances.
    static let present: UInt8 = 1

    /// The key of records that lack the field: first among values, last among distances.
    var absent: Bytes { self.centre == nil ? [0] : [2] }

    func isSameOrder(as other: CompiledSort) -> Bool {
        self.field == other.field && self.centre == other.centre
    }

    /// Bytes that order as this sort does, ascending. Text beyond its first 240 bytes does not
    /// count.
    func key(of record: Record) -> Bytes {
        let value: ComparableValue?
        switch self.target {
        case .system(.recordName):
            return [Self.present]
        case .system(let field):
            value = ComparableValue(field, of: record)
        case .field(let name):
            guard case .scalar(let scalar)? = record.value(of: name),
                scalar.type == self.type.scalar
            else { return self.absent }
            if let centre, case .location(let place) = scalar {
                return Self.key(distanceFrom: centre, code: GeoCell.code(of: place))
            }
            value = ComparableValue(scalar)
        case .fields:
            return self.absent
        }
        guard let value else { return self.absent }
        var key: Bytes = [Self.present]
        value.append(to: &key, home: record.zone)
        return key
    }

    /// Places in one finest cell are one place here: their index rows have no order among them.
    static func key(distanceFrom centre: SpherePoint, code: UInt64) -> Bytes {
        var key: Bytes = [Self.present]
        OrderedKey.append(GeoCell(code: code).middle.squaredChord(to: centre), to: &key)
        return key
    }
}

extension FilterCompiler {
    /// A query without filters needs the list of all records of the type.
    func requireExtent() throws(QueryRefusal) {
        let field = SystemField.recordName
        let indexes = self.recordType.field(named: field.mappedName)?.indexes ?? []
        guard indexes.contains(.queryable), self.isReady(.values, field.mappedName) else {
            throw .notMarked(field.publicName, .queryable)
        }
    }

    /// Nil for an encrypted field: sorting by it is accepted and means nothing.
    func compile(_ sort: RecordSort) throws(QueryRefusal) -> CompiledSort? {
        let field = try self.field(sort.field)
        if field.type.isEncrypted { return nil }
        guard !field.type.isList, field.type.scalar != .asset,
            (field.type.scalar == .location) == (sort.relativeLocation != nil)
        else { throw .sortUnavailable(field.publicName, field.type) }
        if self.requiresIndexes { try self.requireSortable(field) }
        return CompiledSort(
            target: field.target, field: field.name, type: field.type, ascending: sort.ascending,
            centre: sort.relativeLocation.map(SpherePoint.init))
    }
}
