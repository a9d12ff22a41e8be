import StratusCoding
package import StratusModel
package import StratusRows

/// The index rows that one change of a record removes and adds. Both are sorted by key; no key is
/// in both.
package struct IndexChanges: Sendable, Equatable {
    package var removed: [Bytes] = []
    package var put: [IndexRow] = []

    package init(removed: [Bytes] = [], put: [IndexRow] = []) {
        self.removed = removed
        self.put = put
    }
}

/// Derives index rows from records: the only place that knows which rows a record has.
package enum IndexMaintenance {
    /// A list or text with more different elements or words than this gets one row that says so;
    /// queries then look at the record. It bounds the rows a single save can write.
    package static let rowCountMax = 1_000

    /// The difference between what `old` has and what `new` shall have. Nil: no record.
    ///
    /// - Parameter words: the words of texts of `new` that were cut already, by field.
    package static func changes(
        in schema: IndexedSchema, zone: ZoneScope, from old: Record?, to new: Record?,
        words: [String: TextWords] = [:]
    ) -> IndexChanges {
        if let old, let new, old.type == new.type {
            // Most saves change few fields, and deriving rows is most of what a save costs.
            let indexes = schema.indexes(of: new.type).filter {
                !Self.isUnchanged($0, from: old, to: new)
            }
            return Self.difference(
                from: Self.rows(of: old, for: indexes, zone: zone, keysOnly: true),
                to: Self.rows(of: new, for: indexes, zone: zone, words: words))
        }
        return Self.difference(
            from: old.map {
                Self.rows(of: $0, for: schema.indexes(of: $0.type), zone: zone, keysOnly: true)
            } ?? [],
            to: new.map {
                Self.rows(of: $0, for: schema.indexes(of: $0.type), zone: zone, words: words)
            } ?? [])
    }

    private static func difference(from before: [IndexRow], to after: [IndexRow]) -> IndexChanges {
        if before.isEmpty { return IndexChanges(put: after) }
        if after.isEmpty { return IndexChanges(removed: before.map(\.key)) }
        var changes = IndexChanges()
        var left = before.startIndex
        var right = after.startIndex
        while left < before.endIndex && right < after.endIndex {
            if before[left].key == after[right].key {
                if before[left].row != after[right].row { changes.put.append(after[right]) }
                left += 1
                right += 1
            } else if Bytes.isOrdered(before[left].key, before: after[right].key) {
                changes.removed.append(before[left].key)
                left += 1
            } else {
                changes.put.append(after[right])
                right += 1
            }
        }
        changes.removed.append(contentsOf: before[left...].map(\.key))
        changes.put.append(contentsOf: after[right...])
        return changes
    }

    /// Every index row of a record, sorted by key.
    package static func rows(
        of record: Record, in schema: IndexedSchema, zone: ZoneScope
    ) -> [IndexRow] {
        Self.rows(of: record, for: schema.indexes(of: record.type), zone: zone)
    }

    /// The rows of some indexes of the record's type, sorted by key.
    ///
    /// - Parameters:
    ///   - words: the words of texts that were cut already, by field.
    ///   - keysOnly: the rows of long texts are empty: only their keys are wanted, and no long text
    ///     is cut to its end.
    package static func rows(
        of record: Record, for indexes: some Sequence<FieldIndex>, zone: ZoneScope,
        words: [String: TextWords] = [:], keysOnly: Bool = false
    ) -> [IndexRow] {
        var rows: [IndexRow] = []
        for index in indexes {
            Self.append(
                index, of: record, zone: zone, words: words[index.field], keysOnly: keysOnly,
                to: &rows)
        }
        rows.sort { Bytes.isOrdered($0.key, before: $1.key) }
        return rows
    }

    private static func append(
        _ index: FieldIndex, of record: Record, zone: ZoneScope, words: TextWords?,
        keysOnly: Bool, to rows: inout [IndexRow]
    ) {
        let start = IndexKey.start(zone, index.number)
        let value = index.systemField == nil ? Self.value(of: index, in: record) : nil
        // Words are of a value of the index's type: of another, this index has none.
        let words = value == nil ? nil : words
        switch index.kind {
        case .values, .creators:
            guard index.kind != .creators || zone.isPublic,
                let comparable = Self.comparable(index, value, record)
            else { return }
            var key = start
            if index.systemField != .recordName { comparable.append(to: &key, home: zone.id) }
            key.append(contentsOf: record.name.utf8)
            rows.append(IndexRow(key: key))
        case .absence:
            guard Self.comparable(index, value, record) == nil else { return }
            rows.append(IndexRow(key: start + Bytes(record.name.utf8)))
        case .cells:
            guard case .scalar(.location(let place))? = value else { return }
            var key = start
            OrderedKey.append(bits: GeoCell.code(of: place), to: &key)
            key.append(contentsOf: record.name.utf8)
            var row = ByteWriter(reserving: 16)
            row.write(double: place.latitude)
            row.write(double: place.longitude)
            rows.append(IndexRow(key: key, row: row.bytes))
        case .elements:
            guard case .list(_, let elements)? = value else { return }
            Self.append(
                Self.distinct(elements, home: zone.id), hasValue: true, name: record.name,
                start: start, to: &rows)
        case .tokens:
            let keys: [Bytes]?
            switch words {
            case .few(let few)?: keys = few
            case .many?: keys = nil
            case nil: keys = TextWords.keys(of: value)
            }
            Self.append(keys, hasValue: false, name: record.name, start: start, to: &rows)
        case .longTexts:
            // Almost every text is short, and found to be so without a summary.
            if words == nil, TextWords.keys(of: value) != nil { return }
            let key = start + record.name.utf8
            if keysOnly { return rows.append(IndexRow(key: key)) }
            guard case .many(let summary) = words ?? TextWords(of: value) else { return }
            rows.append(IndexRow(key: key, row: summary.row))
        }
    }

    /// - Parameter bodies: sorted; nil: more than ``rowCountMax``.
    private static func append(
        _ bodies: [Bytes]?, hasValue: Bool, name: String, start: Bytes, to rows: inout [IndexRow]
    ) {
        guard let bodies else {
            return rows.append(IndexRow(key: start + [IndexKey.tooMany] + name.utf8))
        }
        if bodies.isEmpty {
            if hasValue { rows.append(IndexRow(key: start + [IndexKey.emptyList] + name.utf8)) }
        }
        for body in bodies {
            rows.append(IndexRow(key: start + [IndexKey.present] + body + name.utf8))
        }
    }

    /// Looks at no more elements than it takes to tell that there are too many.
    private static func distinct(_ elements: [Scalar], home: ZoneID) -> [Bytes]? {
        var distinct = Set<Bytes>()
        for element in elements {
            guard let comparable = ComparableValue(element) else { continue }
            var body = Bytes()
            comparable.append(to: &body, home: home)
            distinct.insert(body)
            if distinct.count > Self.rowCountMax { return nil }
        }
        return distinct.sorted { Bytes.isOrdered($0, before: $1) }
    }

    /// Whether both records have the same rows in the index. False also where that is not plain.
    private static func isUnchanged(_ index: FieldIndex, from old: Record, to new: Record) -> Bool {
        if let field = index.systemField {
            return ComparableValue(field, of: old) == ComparableValue(field, of: new)
        }
        switch (Self.value(of: index, in: old), Self.value(of: index, in: new)) {
        case (nil, nil): return true
        case (.scalar(let one), .scalar(let two)): return Self.isSame(one, two)
        case (.list(_, let one), .list(_, let two)):
            return one.count == two.count && zip(one, two).allSatisfy { Self.isSame($0, $1) }
        default: return false
        }
    }

    /// Strings by their bytes: to Swift, one accent composed and decomposed are equal.
    private static func isSame(_ one: Scalar, _ two: Scalar) -> Bool {
        switch (one, two) {
        case (.string(let one), .string(let two)): Bytes(one.utf8) == Bytes(two.utf8)
        case (.int64(let one), .int64(let two)): one == two
        case (.timestamp(let one), .timestamp(let two)): one == two
        case (.double(let one), .double(let two)): one.bitPattern == two.bitPattern
        case (.bytes(let one), .bytes(let two)): one == two
        default: false
        }
    }

    /// The field's value where it has the type the index was made for.
    private static func value(of index: FieldIndex, in record: Record) -> FieldValue? {
        guard let value = record.value(of: index.field), value.type == index.type else {
            return nil
        }
        return value
    }

    private static func comparable(
        _ index: FieldIndex, _ value: FieldValue?, _ record: Record
    ) -> ComparableValue? {
        if let field = index.systemField { return ComparableValue(field, of: record) }
        guard case .scalar(let scalar)? = value else { return nil }
        return ComparableValue(scalar)
    }
}

extension IndexMaintenance {
    /// Brings the index rows of one record up to date, in the same commit as the record. It is
    /// called once for every record that a command changed, with the old and the new record.
    package static func update(
        in schema: IndexedSchema, zone: ZoneScope, from old: Record?, to new: Record?,
        rows: Rows
    ) throws(StoreError) {
        let changes = Self.changes(in: schema, zone: zone, from: old, to: new)
        for key in changes.removed { try unsafe rows.remove(.index, key.span.bytes) }
        for row in changes.put {
            try unsafe rows.put(.index, row.key.span.bytes, row.row.span.bytes)
        }
    }
}
