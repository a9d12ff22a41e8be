import StratusCoding
package import StratusModel

/// A partition's copy of a container's schema, with the indexes it keeps for it.
///
/// - `indexes` are sorted by type, field and kind; no two share a number.
/// - Every index that the schema asks for stands there; none that it does not.
package struct IndexedSchema: Sendable, Equatable {
    package private(set) var schema: Schema
    package private(set) var indexes: [FieldIndex]
    private(set) var nextNumber: UInt32
    /// The version of the tables that text was folded and cut by.
    private(set) var tables: UInt8

    /// - Parameter isEmpty: no record of the container exists in this partition, so that new indexes
    ///   are complete as they are.
    package init(schema: Schema = Schema(), isEmpty: Bool = true) {
        self.schema = Schema()
        self.indexes = []
        self.nextNumber = 1
        self.tables = TextFolding.version
        self.install(schema, isEmpty: isEmpty)
    }

    init(schema: Schema, indexes: [FieldIndex], nextNumber: UInt32, tables: UInt8) {
        self.schema = schema
        self.indexes = indexes
        self.nextNumber = nextNumber
        self.tables = tables
    }

    /// Takes a newer schema. What both ask for keeps its number and state; the rest of the new is
    /// `building`, or `ready` where there is nothing to build from.
    ///
    /// - Parameter isEmpty: as in ``init(schema:isEmpty:)``. A type that did not exist before has no
    ///   records either way: its indexes are ready at once.
    /// - Returns: the indexes that are no more: their rows are to be purged.
    @discardableResult
    package mutating func install(_ schema: Schema, isEmpty: Bool) -> [FieldIndex] {
        var kept: [FieldIndex] = []
        var numbers = Set<UInt32>()
        for type in schema.types {
            let hasRecords = !isEmpty && self.schema.type(named: type.name) != nil
            for field in type.fields {
                for kind in FieldIndex.kinds(for: field) {
                    if let index = self.index(kind, of: field.name, in: type.name),
                        index.type == field.type
                    {
                        kept.append(index)
                        numbers.insert(index.number)
                    } else {
                        kept.append(
                            FieldIndex(
                                number: self.nextNumber, recordType: type.name, field: field.name,
                                kind: kind, type: field.type,
                                state: hasRecords ? .building : .ready))
                        self.nextNumber += 1
                    }
                }
            }
        }
        let removed = self.indexes.filter { !numbers.contains($0.number) }
        self.schema = schema
        self.indexes = kept.sorted(by: Self.isOrdered)
        return removed
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
