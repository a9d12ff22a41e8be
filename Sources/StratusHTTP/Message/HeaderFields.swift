import StratusModel

/// Header fields in the order received. Names compare without regard to ASCII case.
///
/// All names and values share one block of bytes; a `String` is made for what is looked up and for
/// nothing else, since a server reads four fields of the fifteen a browser sends.
package struct HeaderFields: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    package struct Line: Sendable, Equatable {
        package var name: String
        package var value: String
        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The place of one field in ``text``.
    struct Field: Sendable {
        var nameStart: UInt32
        var nameCount: UInt32
        var valueStart: UInt32
        var valueCount: UInt32

        init(name: Range<Int>, value: Range<Int>) {
            self.nameStart = UInt32(name.lowerBound)
            self.nameCount = UInt32(name.count)
            self.valueStart = UInt32(value.lowerBound)
            self.valueCount = UInt32(value.count)
        }

        var name: Range<Int> { Int(self.nameStart)..<Int(self.nameStart + self.nameCount) }
        var value: Range<Int> { Int(self.valueStart)..<Int(self.valueStart + self.valueCount) }
    }

    private(set) var text: Bytes
    private(set) var fields: [Field]
    /// Whether ``text`` is what an answer's head says of the fields: a line for each, in which
    /// nothing has to be encoded.
    private(set) var isWritten: Bool

    package init(_ lines: [Line] = []) {
        self.text = []
        self.fields = []
        self.isWritten = true
        for line in lines { self.append(line.name, line.value) }
    }

    package init(dictionaryLiteral elements: (String, String)...) {
        self.init(elements.map { Line(name: $0.0, value: $0.1) })
    }

    /// Makes the fields that a parser found: `fields` point into `text`.
    init(text: Bytes, fields: [Field]) {
        self.text = text
        self.fields = fields
        self.isWritten = false
    }

    /// Reads lines that were written for an answer, each with its line end.
    init(lines: Span<UInt8>) {
        self.text = Bytes(copying: lines)
        self.fields = []
        self.isWritten = true
        var (start, middle) = (0, 0)
        for at in lines.indices {
            if lines[at] == 0x3A, middle <= start { middle = at }
            guard lines[at] == 0x0A else { continue }
            self.fields.append(Field(name: start..<middle, value: (middle + 2)..<(at - 1)))
            start = at + 1
            middle = start
        }
    }

    package var lines: [Line] {
        self.fields.map { Line(name: self.string($0.name), value: self.string($0.value)) }
    }

    package var count: Int { self.fields.count }

    /// The first value of a field; nil when it is absent.
    package subscript(_ name: String) -> String? {
        let wanted = name.utf8Span.span
        for field in self.fields where self.isNamed(field, wanted) {
            return self.string(field.value)
        }
        return nil
    }

    package func values(of name: String) -> [String] {
        let wanted = name.utf8Span.span
        var values: [String] = []
        for field in self.fields where self.isNamed(field, wanted) {
            values.append(self.string(field.value))
        }
        return values
    }

    package func contains(_ name: String) -> Bool { self.contains(name.utf8Span.span) }

    private func contains(_ wanted: Span<UInt8>) -> Bool {
        for field in self.fields where self.isNamed(field, wanted) { return true }
        return false
    }

    /// The members of a field that is a comma-separated list, over all its lines, trimmed, without
    /// the empty ones. Not for fields whose members may be quoted.
    package func list(_ name: String) -> [String] {
        self.values(of: name).flatMap { value in
            value.utf8.split(separator: 0x2C).compactMap { part in
                let trimmed = part.drop { $0 == 0x20 || $0 == 0x09 }
                let end = trimmed.lastIndex { $0 != 0x20 && $0 != 0x09 }
                return end.map { String(Substring(trimmed[...$0])) }
            }
        }
    }

    /// Whether the connection is to end with this message.
    var saysClose: Bool {
        for field in self.fields
        where field.nameCount == 10
            && HTTPMessageFraming.isNamed(self.text.span, field, "connection")
        {
            return self.list("connection").contains { ASCII.equalIgnoringCase($0, "close") }
        }
        return false
    }

    package mutating func append(_ name: String, _ value: String) {
        let start = self.text.count
        if start == 0 {
            // The usual size of an answer's fields.
            self.text.reserveCapacity(768)
            self.fields.reserveCapacity(12)
        }
        self.text.append(contentsOf: name.utf8)
        let middle = self.text.count
        self.text.append(literal: ": ")
        self.text.append(contentsOf: value.utf8)
        let end = self.text.count
        self.text.append(literal: "\r\n")
        let field = Field(name: start..<middle, value: (middle + 2)..<end)
        self.fields.append(field)
        if !HTTPResponseHead.isWritten(self.text.span, field) { self.isWritten = false }
    }

    /// Sets fields that were put together once for many answers.
    package mutating func set(_ others: HeaderFields) {
        for field in others.fields { self.remove(others.text.span.extracting(field.name)) }
        let start = UInt32(self.text.count)
        self.text.append(copying: others.text.span)
        for var field in others.fields {
            field.nameStart += start
            field.valueStart += start
            self.fields.append(field)
        }
        if !others.isWritten { self.isWritten = false }
    }

    package mutating func set(_ name: String, _ value: String) {
        self.remove(name)
        self.append(name, value)
    }

    package mutating func remove(_ name: String) { self.remove(name.utf8Span.span) }

    private mutating func remove(_ wanted: Span<UInt8>) {
        // Nearly always there is none.
        guard self.contains(wanted) else { return }
        var kept: [Field] = []
        for field in self.fields where !self.isNamed(field, wanted) { kept.append(field) }
        self.fields = kept
        self.isWritten = false
    }

    package static func == (one: Self, other: Self) -> Bool {
        one.fields.count == other.fields.count
            && zip(one.fields, other.fields).allSatisfy { mine, theirs in
                one.text[mine.name] == other.text[theirs.name]
                    && one.text[mine.value] == other.text[theirs.value]
            }
    }

    func string(_ range: Range<Int>) -> String {
        String(decoding: self.text[range], as: UTF8.self)
    }

    private func isNamed(_ field: Field, _ name: Span<UInt8>) -> Bool {
        guard Int(field.nameCount) == name.count else { return false }
        let start = Int(field.nameStart)
        for position in 0..<name.count
        where ASCII.lowered(self.text[start + position]) != ASCII.lowered(name[position]) {
            return false
        }
        return true
    }
}
