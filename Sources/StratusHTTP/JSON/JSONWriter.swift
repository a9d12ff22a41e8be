package import StratusModel

/// Writes one JSON text as bytes. Commas and colons take care of themselves.
///
/// The caller keeps to the grammar: a key before each value of an object, none in an array, as many
/// ends as beginnings. ``finish()`` stops the process where the nesting does not come out even.
package struct JSONWriter: ~Copyable {
    private var output: JSONOutput
    private var needsComma = false
    private var depth = 0
    /// Whether keys that only Stratus has are to be written: whoever writes one asks first.
    package let hasExtensions: Bool

    package init(reserving capacity: Int = 512, hasExtensions: Bool = true) {
        self.output = JSONOutput(reserving: capacity)
        self.hasExtensions = hasExtensions
    }

    /// The text written.
    package consuming func finish() -> Bytes {
        precondition(self.depth == 0, "JSON left open at depth \(self.depth)")
        return self.output.bytes()
    }

    package var count: Int { self.output.count }

    // MARK: Containers

    package mutating func beginObject() { self.begin(0x7B) }
    package mutating func endObject() { self.end(0x7D) }
    package mutating func beginArray() { self.begin(0x5B) }
    package mutating func endArray() { self.end(0x5D) }

    package mutating func object<Failure: Error>(
        _ members: (inout JSONWriter) throws(Failure) -> Void
    ) throws(Failure) {
        self.beginObject()
        try members(&self)
        self.endObject()
    }

    package mutating func array<Failure: Error>(
        _ elements: (inout JSONWriter) throws(Failure) -> Void
    ) throws(Failure) {
        self.beginArray()
        try elements(&self)
        self.endArray()
    }

    private mutating func begin(_ bracket: UInt8) {
        self.separate()
        self.output.append(bracket)
        self.needsComma = false
        self.depth += 1
    }

    private mutating func end(_ bracket: UInt8) {
        precondition(self.depth > 0, "JSON closed more often than opened")
        self.output.append(bracket)
        self.needsComma = true
        self.depth -= 1
    }

    @inline(__always)
    private mutating func separate() {
        if self.needsComma { self.output.append(0x2C) }
        self.needsComma = true
    }

    // MARK: Keys

    package mutating func key(_ name: String) {
        self.separate()
        self.output.append(quoting: name.utf8Span.span)
        self.output.append(0x3A)
        self.needsComma = false
    }

    /// A name that the program chose, of letters and digits: it is copied as it is.
    package mutating func key(known name: StaticString) {
        self.separate()
        self.output.append(key: name)
        self.needsComma = false
    }

    package mutating func member(known name: StaticString, _ text: String) {
        self.key(known: name)
        self.write(text)
    }

    package mutating func member(known name: StaticString, _ value: Int64) {
        self.key(known: name)
        self.write(value)
    }

    package mutating func member(known name: StaticString, _ value: Int) {
        self.key(known: name)
        self.write(value)
    }

    package mutating func member(known name: StaticString, _ value: Double) {
        self.key(known: name)
        self.write(value)
    }

    package mutating func member(known name: StaticString, _ value: Bool) {
        self.key(known: name)
        self.write(value)
    }

    // MARK: Values

    package mutating func write(_ text: String) {
        self.separate()
        self.output.append(quoting: text.utf8Span.span)
    }

    package mutating func write(_ value: Int64) {
        self.separate()
        self.output.append(decimal: value)
    }

    package mutating func write(_ value: Int) { self.write(Int64(value)) }

    /// The shortest text that reads back as the same Double. JSON has no word for infinities and
    /// NaN: they are written as null.
    package mutating func write(_ value: Double) {
        guard value.isFinite else { return self.writeNull() }
        self.separate()
        self.output.append(copying: value.description.utf8Span.span)
    }

    package mutating func write(_ value: Bool) {
        self.separate()
        self.output.append(literal: value ? "true" : "false")
    }

    package mutating func writeNull() {
        self.separate()
        self.output.append(literal: "null")
    }

    /// A value that is JSON already.
    package mutating func write(raw json: Span<UInt8>) {
        self.separate()
        self.output.append(copying: json)
    }

    package mutating func write(raw json: Bytes) { self.write(raw: json.span) }

    package mutating func write(raw json: some Collection<UInt8>) { self.write(raw: Bytes(json)) }

    /// A value that was written before: the text between two values of ``count``. Between a key and
    /// its value there is no comma; between two elements there is.
    package mutating func write(again written: Range<Int>) {
        self.separate()
        self.output.append(again: written)
    }

    /// A string of digits and small letters: the number to base 36.
    package mutating func write(base36 value: UInt64) {
        self.separate()
        self.output.append(quotedBase36: value)
    }

    package mutating func write(base64 bytes: Bytes) {
        self.separate()
        self.output.append(0x22)
        Base64.encode(bytes.span) { word in self.output.append(low: word, 4) }
        self.output.append(0x22)
    }

    // MARK: Members

    package mutating func member(_ name: String, _ text: String) {
        self.key(name)
        self.write(text)
    }
    package mutating func member(_ name: String, _ value: Int64) {
        self.key(name)
        self.write(value)
    }
    package mutating func member(_ name: String, _ value: Int) {
        self.key(name)
        self.write(value)
    }
    package mutating func member(_ name: String, _ value: Double) {
        self.key(name)
        self.write(value)
    }
    package mutating func member(_ name: String, _ value: Bool) {
        self.key(name)
        self.write(value)
    }
    package mutating func member(_ name: String, base64 bytes: Bytes) {
        self.key(name)
        self.write(base64: bytes)
    }

    /// Returns an object on a line of its own.
    package static func line(_ members: (inout JSONWriter) -> Void) -> Bytes {
        var json = JSONWriter()
        json.object(members)
        return json.finish() + [0x0A]
    }

    /// Writes a member whose value is a list of objects, one for each of `elements`.
    package mutating func member<Elements: Sequence>(
        _ name: String, objects elements: Elements,
        _ members: (inout JSONWriter, Elements.Element) -> Void
    ) {
        self.key(name)
        self.array { list in
            for element in elements { list.object { members(&$0, element) } }
        }
    }
}
