import StratusCoding
package import StratusModel

/// A partition's copy of a container's schema, with the indexes it keeps for it.
///
/// - `indexes` are sorted by type, field and kind; no two share a number.
/// - Every index that the schema and its grants ask for stands there; none that they do not.
package struct IndexedSchema: Sendable, Equatable {
    package private(set) var schema: Schema
    package private(set) var indexes: [FieldIndex]
    private(set) var nextNumber: UInt32
    /// The version of the tables that text was folded and cut by.
    private(set) var tables: UInt8

    /// Types and fields (`type` or `type field`) that this partition knew once: records may hold
    /// them still.
    private(set) var retired: Set<String>
    /// The types that fields had which are gone: `type field`. Records may hold values of them
    /// still, so that a field that comes back has its old type.
    private(set) var formerTypes: [String: FieldType]
    /// Some records were saved before this partition had a schema: any may hold anything.
    private(set) var hasUnchecked: Bool

    /// The container's records that this partition holds when a schema arrives.
    package enum Records: Sendable {
        /// None: new indexes are complete as they are.
        case none
        /// None anywhere, since the environment was reset: what earlier schemas said binds nobody.
        case erased
        /// Every one was saved under an earlier version of the schema.
        case checked
        /// Some were saved before there was a schema.
        case unchecked
    }

    package init(schema: Schema = Schema(), over records: Records = .none) {
        self.init(
            schema: Schema(), indexes: [], nextNumber: 1, tables: TextFolding.version, retired: [],
            formerTypes: [:], hasUnchecked: false)
        self.install(schema, over: records)
    }

    init(
        schema: Schema, indexes: [FieldIndex], nextNumber: UInt32, tables: UInt8,
        retired: Set<String>, formerTypes: [String: FieldType], hasUnchecked: Bool
    ) {
        self.formerTypes = formerTypes
        self.schema = schema
        self.indexes = indexes
        self.nextNumber = nextNumber
        self.tables = tables
        self.retired = retired
        self.hasUnchecked = hasUnchecked
    }

    /// Takes a newer schema. An index that both schemas ask for keeps its number and state. A new
    /// index is `building` if there may be rows to write, else `ready`: no record has a type or
    /// field that never was.
    ///
    /// - Returns: the indexes that are no more: their rows are to be purged.
    @discardableResult
    package mutating func install(_ schema: Schema, over records: Records) -> [FieldIndex] {
        var records = records
        switch records {
        case .none: (self.retired, self.hasUnchecked) = ([], false)
        case .erased:
            (self.retired, self.hasUnchecked, self.formerTypes) = ([], false, [:])
            // Nothing of it is retired below: there is no record that could hold it.
            self.schema = Schema(version: self.schema.version)
            records = .none
        case .checked: break
        case .unchecked: self.hasUnchecked = true
        }
        var kept: [FieldIndex] = []
        var numbers = Set<UInt32>()
        for type in schema.types {
            for (field, kind) in FieldIndex.wanted(for: type) {
                if let index = self.index(kind, of: field.name, in: type.name),
                    index.type == field.type
                {
                    kept.append(index)
                    numbers.insert(index.number)
                    continue
                }
                let isBuilding: Bool
                if case .none = records {
                    isBuilding = false
                } else {
                    isBuilding = self.mayHold(field, kind, in: type.name)
                }
                kept.append(
                    FieldIndex(
                        number: self.nextNumber, recordType: type.name, field: field.name,
                        kind: kind, type: field.type, state: isBuilding ? .building : .ready))
                self.nextNumber += 1
            }
        }
        let removed = self.indexes.filter { !numbers.contains($0.number) }
        self.retire(schema)
        // What is there again has the type that it has now.
        for type in schema.types {
            for field in type.fields { self.formerTypes["\(type.name) \(field.name)"] = nil }
        }
        self.schema = schema
        self.indexes = kept.sorted(by: Self.isOrdered)
        return removed
    }

    /// Whether records could exist that a new index of this field has rows for.
    private func mayHold(
        _ field: FieldDefinition, _ kind: FieldIndex.Kind, in type: String
    ) -> Bool {
        if self.hasUnchecked || self.retired.contains(type) { return true }
        guard let known = self.schema.type(named: type) else { return false }
        // Every record lacks a new field and has the system's.
        if kind == .absence || SystemField(mappedName: field.name) != nil { return true }
        return known.field(named: field.name) != nil
            || self.retired.contains("\(type) \(field.name)")
    }

    private mutating func retire(_ next: Schema) {
        for type in self.schema.types {
            let after = next.type(named: type.name)
            if after == nil { self.retired.insert(type.name) }
            for field in type.fields
            where after?.field(named: field.name) == nil
                && SystemField(mappedName: field.name) == nil
            {
                if after != nil { self.retired.insert("\(type.name) \(field.name)") }
                self.formerTypes["\(type.name) \(field.name)"] = field.type
            }
        }
    }

    /// The first field that records may hold with another type than a schema gives it; nil if there
    /// is none. Versions in between may never have come here.
    package func conflict(with next: Schema) -> String? {
        for type in next.types {
            let held = self.schema.type(named: type.name)
            for field in type.fields {
                let former =
                    held?.field(named: field.name)?.type
                    ?? self.formerTypes["\(type.name) \(field.name)"]
                guard let former, former != field.type else { continue }
                return "field '\(field.name)' of '\(type.name)' was \(SchemaText.name(of: former))"
                    + " and cannot come back as \(SchemaText.name(of: field.type)):"
                    + " records may hold it still"
            }
        }
        return nil
    }

    package mutating func markReady(_ numbers: some Sequence<UInt32>) {
        let numbers = Set(numbers)
        for position in self.indexes.indices where numbers.contains(self.indexes[position].number) {
            self.indexes[position].state = .ready
        }
    }

    package var building: [FieldIndex] { self.indexes.filter { $0.state == .building } }

    /// The indexes of a type, `building` ones too: what a save writes.
    package func indexes(of recordType: String) -> ArraySlice<FieldIndex> {
        let start = self.position { $0.recordType < recordType }
        let end = self.position { $0.recordType <= recordType }
        return self.indexes[start..<end]
    }

    package func index(
        _ kind: FieldIndex.Kind, of field: String, in recordType: String
    ) -> FieldIndex? {
        let start = self.position {
            ($0.recordType, $0.field, $0.kind.rawValue) < (recordType, field, kind.rawValue)
        }
        guard start < self.indexes.count else { return nil }
        let found = self.indexes[start]
        return found.recordType == recordType && found.field == field && found.kind == kind
            ? found : nil
    }

    private func position(where isBefore: (FieldIndex) -> Bool) -> Int {
        var low = 0
        var high = self.indexes.count
        while low < high {
            let middle = (low + high) / 2
            if isBefore(self.indexes[middle]) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private static func isOrdered(_ one: FieldIndex, _ two: FieldIndex) -> Bool {
        (one.recordType, one.field, one.kind.rawValue) < (
            two.recordType, two.field, two.kind.rawValue
        )
    }
}
