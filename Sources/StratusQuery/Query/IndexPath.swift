import StratusCoding
import StratusModel

/// Rows of one index between two keys.
struct KeyRange: Sendable {
    var index: FieldIndex
    /// Included.
    var lower: Bytes
    /// Excluded.
    var upper: Bytes
    /// The words that a long text must have. Its row is passed over if it summarises a text
    /// without them.
    var sought: SoughtWords?

    func contains(_ key: Bytes) -> Bool {
        !Bytes.isOrdered(key, before: self.lower) && Bytes.isOrdered(key, before: self.upper)
    }

    /// Whether the row's record may match: false only for a long text without the words.
    func admits(_ row: Bytes) throws(StoreError) -> Bool {
        guard let sought = self.sought else { return true }
        let summary = try decodingRow("word summary") { () throws(DecodingError) in
            try WordSummary(decoding: row)
        }
        return summary.mayHold(sought)
    }

    /// The ranges without those that equal an earlier one.
    ///
    /// Keys are cut, so two operands may have one range. A record would stand in both, and be found
    /// in both.
    static func distinct(_ ranges: [KeyRange]) -> [KeyRange] {
        var seen: Set<[Bytes]> = []
        return ranges.filter { seen.insert([$0.lower, $0.upper]).inserted }
    }

    /// Whether no key is in two of the ranges.
    static func areDisjoint(_ ranges: [KeyRange]) -> Bool {
        let sorted = ranges.filter { Bytes.isOrdered($0.lower, before: $0.upper) }
            .sorted { Bytes.isOrdered($0.lower, before: $1.lower) }
        return zip(sorted, sorted.dropFirst()).allSatisfy {
            !Bytes.isOrdered($1.lower, before: $0.upper)
        }
    }
}

/// One way to find every record that one filter matches, and perhaps some that it does not.
struct IndexPath: Sendable {
    enum Access: Sendable {
        /// In this order. A record may stand in several of them where an index has many rows for
        /// it.
        case ranges([KeyRange])
        /// Record names, sorted.
        case names([Bytes])
        /// Every record of the zone: only where no index is required.
        case records
    }

    var access: Access
    /// The path's preference when all are long: lower first.
    var rank: Int

    static let records = IndexPath(access: .records, rank: 100)
}

/// Turns filters into index paths for one zone.
struct PathPlanner {
    let schema: IndexedSchema
    let zone: ZoneScope
    let recordType: String

    /// Alternatives that are compared by looking: more would cost more than they save.
    static let pathCountMax = 8
    private static let cellCountMax = 24

    init(_ query: CompiledQuery, in schema: IndexedSchema, zone: ZoneScope) {
        self.schema = schema
        self.zone = zone
        self.recordType = query.recordType.name
    }

    /// Every path the filters offer, the best ranks first; the same for the same query and schema.
    func paths(for filters: [CompiledFilter]) -> [IndexPath] {
        let all = filters.flatMap(self.paths)
        let order = all.indices.sorted { (all[$0].rank, $0) < (all[$1].rank, $1) }
        return order.prefix(Self.pathCountMax).map { all[$0] }
    }

    /// All records of the type; nil without that index.
    var extent: IndexPath? {
        guard let index = self.ready(.values, SystemField.recordName.mappedName) else {
            return nil
        }
        return IndexPath(access: .ranges([self.whole(index)]), rank: 90)
    }

    /// The records that one user created; nil while no index of creators is complete.
    func created(by user: String) -> IndexPath? {
        let field = SystemField.createdUserRecordName.mappedName
        guard let index = self.ready(.values, field) ?? self.ready(.creators, field) else {
            return nil
        }
        return IndexPath(access: .ranges([self.exact(.name(Bytes(user.utf8)), index)]), rank: 0)
    }

    /// The names that a filter leaves; nil where none does.
    func names(for filters: [CompiledFilter]) -> IndexPath? {
        for filter in filters {
            if case .system(.recordName) = filter.target, let names = Self.names(filter.test) {
                return IndexPath(access: .names(names), rank: 0)
            }
        }
        return nil
    }

    func ready(_ kind: FieldIndex.Kind, _ field: String) -> FieldIndex? {
        guard let index = self.schema.index(kind, of: field, in: self.recordType),
            index.state == .ready
        else { return nil }
        return index
    }

    func whole(_ index: FieldIndex) -> KeyRange {
        let start = IndexKey.start(self.zone, index.number)
        return KeyRange(
            index: index, lower: start, upper: OrderedKey.successor(ofPrefix: start))
    }

    // MARK: One filter

    private func paths(_ filter: CompiledFilter) -> [IndexPath] {
        switch filter.target {
        case .system(let field):
            if field == .recordName, let names = Self.names(filter.test) {
                return [IndexPath(access: .names(names), rank: 0)]
            }
            return self.valuePaths(filter.test, field.mappedName)
        case .fields(let names):
            guard case .words(let words, let all) = filter.test else { return [] }
            let indexes = names.compactMap { self.ready(.tokens, $0) }
            guard indexes.count == names.count else { return [] }
            return self.wordPaths(words, all: all, indexes)
        case .field(let name):
            switch filter.test {
            case .compare, .member, .prefix:
                return self.valuePaths(filter.test, name)
            case .within(let centre, let chord, _):
                guard let index = self.ready(.cells, name) else { return [] }
                let start = IndexKey.start(self.zone, index.number)
                let ranges = GeoCell.cover(
                    around: centre, within: chord, countMax: Self.cellCountMax
                ).map { codes in
                    var lower = start
                    OrderedKey.append(bits: codes.lowerBound, to: &lower)
                    var upper = start
                    OrderedKey.append(bits: codes.upperBound + 1, to: &upper)
                    return KeyRange(index: index, lower: lower, upper: upper)
                }
                return [IndexPath(access: .ranges(ranges), rank: 40)]
            case .words(let words, let all):
                guard let index = self.ready(.tokens, name) else { return [] }
                return self.wordPaths(words, all: all, [index])
            case .holds, .memberPrefix:
                guard let index = self.ready(.elements, name) else { return [] }
                return self.elementPaths(filter.test, index)
            }
        }
    }

    private static func names(_ test: CompiledFilter.Test) -> [Bytes]? {
        let values: [ComparableValue]
        switch test {
        case .compare(.equal, let value): values = [value]
        case .member(let operands, isNegated: false): values = operands.values
        case .compare, .member, .within, .prefix, .words, .holds, .memberPrefix: return nil
        }
        return values.compactMap { if case .name(let name) = $0 { name } else { nil } }
            .sorted { Bytes.isOrdered($0, before: $1) }
    }

    private func valuePaths(_ test: CompiledFilter.Test, _ field: String) -> [IndexPath] {
        guard let index = self.ready(.values, field) else { return [] }
        let rank: Int
        switch test {
        case .compare(.equal, _): rank = 10
        case .member(_, isNegated: false): rank = 20
        case .prefix(_, let folded, isNegated: false): rank = folded.isEmpty ? 80 : 35
        case .compare(.notEqual, _), .member, .prefix: rank = 80
        case .compare, .within, .words, .holds, .memberPrefix: rank = 50
        }
        return [IndexPath(access: .ranges(self.valueRanges(test, index)), rank: rank)]
    }

    /// The ranges of a value index that hold whatever passes the test. Every one includes its bound
    /// where the bound may stand for other values too: what was cut, what was rounded.
    func valueRanges(_ test: CompiledFilter.Test, _ index: FieldIndex) -> [KeyRange] {
        let whole = self.whole(index)
        switch test {
        case .compare(let comparison, let operand):
            return self.comparisonRanges(comparison, operand, index, whole)
        case .member(let operands, isNegated: false):
            return self.ranges(operands.values, index).sorted {
                Bytes.isOrdered($0.lower, before: $1.lower)
            }
        case .prefix(_, let folded, isNegated: false):
            var lower = whole.lower
            OrderedKey.append(prefix: folded, to: &lower)
            return [
                KeyRange(
                    index: index, lower: lower, upper: OrderedKey.successor(ofPrefix: lower))
            ]
        case .member, .prefix, .within, .words, .holds, .memberPrefix:
            return [whole]
        }
    }

    private func comparisonRanges(
        _ comparison: CompiledFilter.Comparison, _ operand: ComparableValue, _ index: FieldIndex,
        _ whole: KeyRange
    ) -> [KeyRange] {
        if index.systemField == .recordName { return [whole] }
        guard let bound = operand.aligned(to: index.type.scalar) else {
            return self.unalignedRanges(comparison, operand, index, whole)
        }
        let exact = self.exact(bound, index)
        // A cut value's key stands for every longer one: what is below or above it may share the
        // key.
        let isCut = Self.isCut(bound)
        let below = KeyRange(
            index: index, lower: whole.lower, upper: isCut ? exact.upper : exact.lower)
        let above = KeyRange(
            index: index, lower: isCut ? exact.lower : exact.upper, upper: whole.upper)
        switch comparison {
        case .equal: return [exact]
        case .notEqual: return isCut ? [whole] : [below, above]
        case .less: return [below]
        case .lessOrEqual:
            return [KeyRange(index: index, lower: whole.lower, upper: exact.upper)]
        case .greater: return [above]
        case .greaterOrEqual:
            return [KeyRange(index: index, lower: exact.lower, upper: whole.upper)]
        }
    }

    /// No value of the field's type equals the operand: it lies between two, or beyond them all.
    private func unalignedRanges(
        _ comparison: CompiledFilter.Comparison, _ operand: ComparableValue, _ index: FieldIndex,
        _ whole: KeyRange
    ) -> [KeyRange] {
        let split: Bytes
        switch operand {
        case .real(let value):
            // Integers: the first one above.
            if value >= 9_223_372_036_854_775_808 {
                split = whole.upper
            } else if value < -9_223_372_036_854_775_808 {
                split = whole.lower
            } else {
                split = self.exact(.integer(Int64(value.rounded(.up))), index).lower
            }
        case .integer(let value):
            // Doubles: the first one above.
            let real = Double(value)
            let above = ComparableValue.real(real).ordered(to: operand) ?? 0
            split = self.exact(.real(above > 0 ? real : real.nextUp), index).lower
        case .text, .time, .bytes, .name, .reference, .place:
            return [whole]
        }
        switch comparison {
        case .equal: return []
        case .notEqual: return [whole]
        case .less, .lessOrEqual:
            return [KeyRange(index: index, lower: whole.lower, upper: split)]
        case .greater, .greaterOrEqual:
            return [KeyRange(index: index, lower: split, upper: whole.upper)]
        }
    }

    /// The rows whose key is the value's.
    private func exact(
        _ value: ComparableValue, _ index: FieldIndex, marker: UInt8? = nil
    ) -> KeyRange {
        var lower = IndexKey.start(self.zone, index.number)
        if let marker { lower.append(marker) }
        value.append(to: &lower, home: self.zone.id)
        return KeyRange(index: index, lower: lower, upper: OrderedKey.successor(ofPrefix: lower))
    }

    /// The rows whose keys are those of the operands, each range once.
    private func ranges(
        _ operands: some Sequence<ComparableValue>, _ index: FieldIndex, marker: UInt8? = nil
    ) -> [KeyRange] {
        KeyRange.distinct(operands.map { self.exact($0, index, marker: marker) })
    }

    private static func isCut(_ value: ComparableValue) -> Bool {
        var key = Bytes()
        switch value {
        case .text(let bytes), .bytes(let bytes), .name(let bytes):
            return OrderedKey.append(text: bytes, to: &key)
        case .reference:
            return true
        case .integer, .real, .time, .place:
            return false
        }
    }

    private func wordPaths(
        _ words: [Bytes], all: Bool, _ indexes: [FieldIndex]
    ) -> [IndexPath] {
        // A search of several fields for all words may find each in another field.
        let sought = SoughtWords(words, all: all)
        func ranges(_ some: some Sequence<Bytes>) -> [KeyRange] {
            let wanted =
                all && indexes.count > 1 ? SoughtWords(some, all: false) : sought
            return indexes.flatMap { index in
                self.ranges(
                    some.lazy.map { ComparableValue.text($0) }, index, marker: IndexKey.present)
                    + [self.long(index, wanted)]
            }
        }
        if words.isEmpty { return [IndexPath(access: .ranges([]), rank: 0)] }
        if !all { return [IndexPath(access: .ranges(ranges(words)), rank: 45)] }
        return words.prefix(Self.pathCountMax).map {
            IndexPath(access: .ranges(ranges([$0])), rank: 30)
        }
    }

    /// The records whose texts have too many words for the index: by what their words are, where
    /// that is known.
    private func long(_ index: FieldIndex, _ sought: SoughtWords) -> KeyRange {
        guard let summaries = self.ready(.longTexts, index.field) else {
            return self.tooMany(index)
        }
        var range = self.whole(summaries)
        range.sought = sought
        return range
    }

    private func tooMany(_ index: FieldIndex) -> KeyRange {
        let lower = IndexKey.start(self.zone, index.number) + [IndexKey.tooMany]
        return KeyRange(index: index, lower: lower, upper: OrderedKey.successor(ofPrefix: lower))
    }

    private func elementPaths(_ test: CompiledFilter.Test, _ index: FieldIndex) -> [IndexPath] {
        let all = IndexPath(access: .ranges([self.whole(index)]), rank: 85)
        switch test {
        case .holds(let wanted, all: let all_, isNegated: false):
            if all_ && wanted.hasStranger { return [IndexPath(access: .ranges([]), rank: 0)] }
            if all_ && wanted.values.isEmpty { return [all] }
            func path(_ values: some Sequence<ComparableValue>, rank: Int) -> IndexPath {
                let ranges = self.ranges(values, index, marker: IndexKey.present)
                return IndexPath(access: .ranges(ranges + [self.tooMany(index)]), rank: rank)
            }
            if !all_ { return [path(wanted.values, rank: 25)] }
            return wanted.values.prefix(Self.pathCountMax).map { path([$0], rank: 15) }
        case .memberPrefix(_, let folded, isNegated: false):
            if folded.isEmpty { return [all] }
            var lower = IndexKey.start(self.zone, index.number) + [IndexKey.present]
            OrderedKey.append(prefix: folded, to: &lower)
            let range = KeyRange(
                index: index, lower: lower, upper: OrderedKey.successor(ofPrefix: lower))
            return [IndexPath(access: .ranges([range, self.tooMany(index)]), rank: 36)]
        case .holds, .memberPrefix, .compare, .within, .member, .prefix, .words:
            return [all]
        }
    }
}
