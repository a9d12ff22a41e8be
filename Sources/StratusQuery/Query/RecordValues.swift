import StratusCoding
package import StratusModel
package import StratusRows

/// A record that many filters are asked about.
///
/// What they need of a field (its words, its folded text, its elements in order) is made once, when
/// the first of them asks. So a filter costs its operands, whatever the field holds.
package struct RecordValues: Sendable {
    package let record: Record
    private var words: [String: [Bytes]] = [:]
    /// The words of several fields together.
    private var joined: (names: [String], words: [Bytes])?
    private var scalars: [String: ComparableValue] = [:]
    private var elements: [String: [ComparableValue]] = [:]
    private var texts: [String: [Bytes]] = [:]

    package init(_ record: Record) { self.record = record }

    // MARK: What a field holds

    /// The words of a field, sorted, each once.
    mutating func words(of name: String, _ work: inout ReadWork) -> [Bytes] {
        if let known = self.words[name] { return known }
        let texts = Tokeniser.texts(self.record.value(of: name))
        work.cutByteCount += texts.reduce(0) { $0 + $1.utf8.count }
        let words = Tokeniser.words(of: texts)
        self.words[name] = words
        return words
    }

    /// The words of several fields, as if they were one. One list of names is kept: all filters of
    /// one record type that search every field have the same.
    mutating func words(of names: [String], _ work: inout ReadWork) -> [Bytes] {
        if let joined = self.joined, joined.names == names { return joined.words }
        var texts: [String] = []
        for name in names { texts += Tokeniser.texts(self.record.value(of: name)) }
        work.comparisonCount += names.count
        work.cutByteCount += texts.reduce(0) { $0 + $1.utf8.count }
        let words = Tokeniser.words(of: texts)
        self.joined = (names, words)
        return words
    }

    /// A field's one value; nil where nothing compares it.
    mutating func scalar(
        _ scalar: Scalar, of name: String, _ work: inout ReadWork
    ) -> ComparableValue? {
        guard case .string(let text) = scalar else { return ComparableValue(scalar) }
        if let known = self.scalars[name] { return known }
        work.cutByteCount += text.utf8.count
        let value = ComparableValue(scalar)
        self.scalars[name] = value
        return value
    }

    /// A list's elements in their order.
    mutating func elements(
        _ list: [Scalar], of name: String, _ work: inout ReadWork
    ) -> [ComparableValue] {
        if let known = self.elements[name] { return known }
        work.comparisonCount += list.count
        for case .string(let text) in list { work.cutByteCount += text.utf8.count }
        var values = list.compactMap { ComparableValue($0) }
        values.sort { ($0.ordered(to: $1) ?? 0) < 0 }
        self.elements[name] = values
        return values
    }

    /// A list's texts as they were sent, sorted.
    mutating func texts(
        _ list: [Scalar], of name: String, _ work: inout ReadWork
    ) -> [Bytes] {
        if let known = self.texts[name] { return known }
        var texts: [Bytes] = []
        for case .string(let text) in list { texts.append(Bytes(text.utf8)) }
        work.comparisonCount += list.count
        work.byteCount += texts.reduce(0) { $0 + $1.count }
        texts.sort { Bytes.isOrdered($0, before: $1) }
        self.texts[name] = texts
        return texts
    }
}

extension CompiledFilter {
    /// Says what ``matches(_:)`` says, of a record that many filters are asked about, and adds to
    /// `work` what it costs.
    package func matches(_ values: inout RecordValues, _ work: inout ReadWork) -> Bool {
        work.comparisonCount += 1
        switch self.target {
        case .fields(let names):
            guard case .words(let words, let all) = self.test else { return false }
            return Self.hasWords(words, all: all, in: values.words(of: names, &work), &work)
        case .system(let field):
            guard let value = ComparableValue(field, of: values.record) else { return false }
            return self.matches(value, &work)
        case .field(let name):
            guard let value = values.record.value(of: name), value.type == self.type else {
                return false
            }
            return self.matches(value, of: name, &values, &work)
        }
    }

    private func matches(
        _ value: FieldValue, of name: String, _ values: inout RecordValues, _ work: inout ReadWork
    ) -> Bool {
        switch (self.test, value) {
        case (.words(let words, let all), _):
            return Self.hasWords(words, all: all, in: values.words(of: name, &work), &work)
        case (.memberPrefix(let exact, _, let isNegated), .list(.string, let list)):
            let texts = values.texts(list, of: name, &work)
            work.comparisonCount += 1
            work.byteCount += exact.count
            let first = texts.firstPlace { Bytes.isOrdered($0, before: exact) }
            return (first < texts.count && texts[first].starts(with: exact)) != isNegated
        case (.holds(let wanted, let all, let isNegated), .list(_, let list)):
            let have = values.elements(list, of: name, &work)
            func isThere(_ value: ComparableValue) -> Bool {
                work.comparisonCount += 1
                let first = have.firstPlace { ($0.ordered(to: value) ?? 0) < 0 }
                return first < have.count && have[first].isEqual(to: value)
            }
            let holds =
                all
                ? !wanted.hasStranger && wanted.values.allSatisfy(isThere)
                : wanted.values.contains(where: isThere)
            return holds != isNegated
        case (.compare, .scalar(let scalar)), (.member, .scalar(let scalar)):
            guard let value = values.scalar(scalar, of: name, &work) else { return false }
            return self.matches(value, &work)
        case (.prefix(let exact, _, _), _):
            work.byteCount += exact.count
            return self.matches(value)
        case (.compare, _), (.member, _), (.within, _), (.memberPrefix, _), (.holds, _):
            return self.matches(value)
        }
    }

    private func matches(_ value: ComparableValue, _ work: inout ReadWork) -> Bool {
        guard case .member(let operands, let isNegated) = self.test else {
            if case .text(let text) = value, case .compare(_, .text(let operand)) = self.test {
                work.byteCount += min(text.count, operand.count)
            }
            return self.matches(value)
        }
        // One after the other: a hash of the value would cost all of its bytes for each filter.
        let isThere = operands.values.contains { operand in
            work.comparisonCount += 1
            return value.isEqual(to: operand)
        }
        return isThere != isNegated
    }

    private static func hasWords(
        _ wanted: [Bytes], all: Bool, in words: [Bytes], _ work: inout ReadWork
    ) -> Bool {
        guard !wanted.isEmpty else { return false }
        func isThere(_ word: Bytes) -> Bool {
            work.comparisonCount += 1
            let first = words.firstPlace { Bytes.isOrdered($0, before: word) }
            return first < words.count && words[first] == word
        }
        return all ? wanted.allSatisfy(isThere) : wanted.contains(where: isThere)
    }
}

extension Array {
    /// The place of the first element that does not precede; by halving.
    fileprivate func firstPlace(where precedes: (Element) -> Bool) -> Int {
        var (low, high) = (0, self.count)
        while low < high {
            let middle = (low + high) / 2
            if precedes(self[middle]) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
