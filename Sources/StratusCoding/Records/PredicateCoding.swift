package import StratusModel

// Record predicate, format 1: in query pages and, later, in stored subscriptions.
//
// | bytes  | what                                                                          |
// | ------ | ----------------------------------------------------------------------------- |
// | 1      | format, 1                                                                     |
// | text   | record type                                                                   |
// | count  | filters: selector, 1 byte comparator, field value, flag and double distance   |
// | count  | sorts: selector, flag ascending, flag and location                            |
//
// A selector is 1 byte: 0 and a text for a declared field, 1…7 for a system field (its raw value),
// 255 for every searchable field.

extension ByteWriter {
    package mutating func write(_ predicate: RecordPredicate) {
        self.write(1 as UInt8)
        self.write(text: predicate.recordType)
        self.write(count: predicate.filters.count)
        for filter in predicate.filters {
            self.write(filter.field)
            self.write(filter.comparator.rawValue)
            self.write(filter.operand)
            self.write(flag: filter.distance != nil)
            if let distance = filter.distance { self.write(double: distance) }
        }
        self.write(count: predicate.sorts.count)
        for sort in predicate.sorts {
            self.write(sort.field)
            self.write(flag: sort.ascending)
            self.write(flag: sort.relativeLocation != nil)
            if let location = sort.relativeLocation { self.write(location) }
        }
    }

    package mutating func write(_ selector: FieldSelector) {
        switch selector {
        case .field(let name):
            self.write(0 as UInt8)
            self.write(text: name)
        case .system(let field): self.write(field.rawValue)
        case .anySearchable: self.write(0xFF as UInt8)
        }
    }
}

extension ByteReader {
    package mutating func predicate() throws(DecodingError) -> RecordPredicate {
        let version = try self.byte()
        guard version == 1 else {
            throw DecodingError(.unknownVersion(version), at: self.offset - 1)
        }
        var predicate = RecordPredicate(recordType: try self.text())
        for _ in 0..<(try self.count(minimumSize: 5)) {
            let selector = try self.selector()
            let number = try self.byte()
            guard let comparator = Comparator(rawValue: number) else {
                throw self.unknown(number, of: .comparator)
            }
            let operand = try self.fieldValue()
            let distance = try self.flag() ? try self.finiteDouble() : nil
            predicate.filters.append(
                RecordFilter(
                    field: selector, comparator: comparator, operand: operand, distance: distance))
        }
        for _ in 0..<(try self.count(minimumSize: 3)) {
            let selector = try self.selector()
            let ascending = try self.flag()
            let location = try self.flag() ? try self.location() : nil
            predicate.sorts.append(
                RecordSort(field: selector, ascending: ascending, relativeLocation: location))
        }
        return predicate
    }

    package mutating func selector() throws(DecodingError) -> FieldSelector {
        switch try self.byte() {
        case 0: return .field(try self.text())
        case 0xFF: return .anySearchable
        case let raw:
            guard let field = SystemField(rawValue: raw) else {
                throw self.unknown(raw, of: .systemField)
            }
            return .system(field)
        }
    }

    /// A number that was just read, and that a later build may have written. Nobody writes 0.
    private func unknown(_ number: UInt8, of family: NumberFamily) -> DecodingError {
        DecodingError(
            number == 0 ? .malformed : .unknownNumber(family: family.name, number),
            at: self.offset - 1)
    }
}
