package import StratusModel
import StratusRows

/// One filter, checked against the schema and made ready to be asked of many records.
///
/// The meaning of every comparator stands here and nowhere else: indexes only narrow what is asked.
/// A record that lacks the field matches no filter on it, the negated ones included.
package struct CompiledFilter: Sendable {
    package enum Target: Sendable, Hashable {
        case field(String)
        case system(SystemField)
        /// Every searchable string field of the type.
        case fields([String])
    }

    enum Comparison: Sendable { case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual }

    enum Test: Sendable {
        case compare(Comparison, ComparableValue)
        /// Squared chord below the limit, or at it unless `isStrict`.
        case within(SpherePoint, chord: Double, isStrict: Bool)
        case member(OperandSet, isNegated: Bool)
        /// Case counts: `exact` is compared, `folded` only finds candidates.
        case prefix(exact: Bytes, folded: Bytes, isNegated: Bool)
        case words([Bytes], all: Bool)
        case holds(OperandSet, all: Bool, isNegated: Bool)
        case memberPrefix(exact: Bytes, folded: Bytes, isNegated: Bool)
    }

    package let target: Target
    /// The field's type; for `fields`, string.
    let type: FieldType
    let test: Test

    // MARK: Asking a record

    /// Adds what asking this of a record costs.
    func count(_ record: Record, in work: inout ReadWork) {
        switch self.target {
        case .fields(let names):
            for name in names { self.count(record.value(of: name), in: &work) }
        case .system:
            work.comparisonCount += 1
        case .field(let name):
            self.count(record.value(of: name), in: &work)
        }
    }

    private func count(_ value: FieldValue?, in work: inout ReadWork) {
        work.comparisonCount += 1
        switch value {
        case .scalar(let scalar)?: work.cutByteCount += Self.textSize(scalar)
        case .list(_, let elements)?:
            work.comparisonCount += elements.count
            for element in elements { work.cutByteCount += Self.textSize(element) }
        case .sealed?, nil: break
        }
    }

    private static func textSize(_ scalar: Scalar) -> Int {
        guard case .string(let text) = scalar else { return 0 }
        return text.utf8.count
    }

    package func matches(_ record: Record) -> Bool {
        switch self.target {
        case .fields(let names):
            guard case .words(let words, let all) = self.test else { return false }
            let texts = names.lazy.flatMap { Tokeniser.texts(record.value(of: $0)) }
            return Self.hasWords(words, all: all, texts)
        case .system(let field):
            guard let value = ComparableValue(field, of: record) else { return false }
            return self.matches(value)
        case .field(let name):
            guard let value = record.value(of: name), value.type == self.type else { return false }
            return self.matches(value)
        }
    }

    func matches(_ value: FieldValue) -> Bool {
        switch (self.test, value) {
        case (.words(let words, let all), _):
            return Self.hasWords(words, all: all, Tokeniser.texts(value))
        case (.within(let centre, let chord, let isStrict), .scalar(.location(let place))):
            let actual = SpherePoint(place).squaredChord(to: centre)
            return isStrict ? actual < chord : actual <= chord
        case (.prefix(let exact, _, let isNegated), .scalar(.string(let text))):
            return text.utf8.starts(with: exact) != isNegated
        case (.memberPrefix(let exact, _, let isNegated), .list(.string, let elements)):
            let found = elements.contains { element in
                guard case .string(let text) = element else { return false }
                return text.utf8.starts(with: exact)
            }
            return found != isNegated
        case (.holds(let wanted, let all, let isNegated), .list(_, let elements)):
            let have = elements.lazy.compactMap(ComparableValue.init)
            return (all ? wanted.isSubset(of: have) : wanted.intersects(have)) != isNegated
        case (.compare, .scalar(let scalar)), (.member, .scalar(let scalar)):
            guard let comparable = ComparableValue(scalar) else { return false }
            return self.matches(comparable)
        case (.compare, _), (.member, _), (.within, _), (.prefix, _), (.memberPrefix, _),
            (.holds, _):
            return false
        }
    }

    func matches(_ value: ComparableValue) -> Bool {
        switch self.test {
        case .compare(let comparison, let operand):
            guard let order = value.ordered(to: operand) else { return false }
            switch comparison {
            case .equal: return order == 0
            case .notEqual: return order != 0
            case .less: return order < 0
            case .lessOrEqual: return order <= 0
            case .greater: return order > 0
            case .greaterOrEqual: return order >= 0
            }
        case .member(let operands, let isNegated):
            return operands.contains(value) != isNegated
        case .within, .prefix, .words, .holds, .memberPrefix:
            return false
        }
    }

    /// A search for no word (only stop words, only signs) finds nothing. Cuts no further than it
    /// takes to tell.
    private static func hasWords(
        _ words: [Bytes], all: Bool, _ texts: some Sequence<String>
    ) -> Bool {
        var missing = Set(words)
        guard !missing.isEmpty else { return false }
        var isFound = false
        for text in texts where !isFound {
            Tokeniser.visit(text) { word in
                if missing.remove(word) != nil { isFound = !all || missing.isEmpty }
                return !isFound
            }
        }
        return isFound
    }
}

/// The operands of a membership test, as values of the field's own type. They are found by hash, so
/// that the lengths of a record's list and of a request's list do not multiply.
struct OperandSet: Sendable {
    /// The values in the order given, each once.
    private(set) var values: [ComparableValue] = []
    private var members: Set<ComparableValue> = []
    /// An operand that no value of the field's type equals, such as 1.5 for an integer.
    private(set) var hasStranger = false

    init(_ operands: [ComparableValue], for type: ScalarType) {
        for operand in operands {
            if let value = operand.aligned(to: type) {
                if self.members.insert(value).inserted { self.values.append(value) }
            } else {
                self.hasStranger = true
            }
        }
    }

    func contains(_ value: ComparableValue) -> Bool { self.members.contains(value) }

    func intersects(_ have: some Sequence<ComparableValue>) -> Bool {
        have.contains(where: self.members.contains)
    }

    func isSubset(of have: some Sequence<ComparableValue>) -> Bool {
        if self.hasStranger { return false }
        var missing = self.members
        for value in have where !missing.isEmpty { missing.remove(value) }
        return missing.isEmpty
    }
}
