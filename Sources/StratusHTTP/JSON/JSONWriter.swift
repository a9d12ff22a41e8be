package import StratusModel

/// Writes one JSON text as bytes. Commas and colons take care of themselves.
///
/// The caller keeps to the grammar: a key before each value of an object, none in an array, as many
/// ends as beginnings. ``finish()`` stops the process where the nesting does not come out even.
package struct JSONWriter: ~Copyable {
    private var bytes: Bytes
    private var needsComma = false
    private var depth = 0

    package init(reserving capacity: Int = 512) {
        self.bytes = []
        self.bytes.reserveCapacity(capacity)
    }

    /// The text written.
    package consuming func finish() -> Bytes {
        precondition(self.depth == 0, "JSON left open at depth \(self.depth)")
        return self.bytes
    }

    package var count: Int { self.bytes.count }

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
        self.bytes.append(bracket)
        self.needsComma = false
        self.depth += 1
    }

    private mutating func end(_ bracket: UInt8) {
        precondition(self.depth > 0, "JSON closed more often than opened")
        self.bytes.append(bracket)
        self.needsComma = true
        self.depth -= 1
    }

    @inline(__always)
    private mutating func separate() {
        if self.needsComma { self.bytes.append(0x2C) }
        self.needsComma = true
    }

    // MARK: Keys

    package mutating func key(_ name: String) {
        self.separate()
        self.append(quoting: name)
        self.bytes.append(0x3A)
        self.needsComma = false
    }

    // MARK: Values

    package mutating func write(_ text: String) {
        self.separate()
        self.append(quoting: text)
    }

    package mutating func write(_ value: Int64) {
        self.separate()
        self.bytes.append(decimal: value)
    }

    package mutating func write(_ value: Int) { self.write(Int64(value)) }

    /// The shortest text that reads back as the same Double. JSON has no word for infinities and
    /// NaN: they are written as null.
    package mutating func write(_ value: Double) {
        guard value.isFinite else { return self.writeNull() }
        self.separate()
        self.bytes.append(contentsOf: value.description.utf8)
    }

    package mutating func write(_ value: Bool) {
        self.separate()
        self.bytes.append(literal: value ? "true" : "false")
    }

    package mutating func writeNull() {
        self.separate()
        self.bytes.append(literal: "null")
    }

    /// A value that is JSON already.
    package mutating func write(raw json: some Collection<UInt8>) {
        self.separate()
        self.bytes.append(contentsOf: json)
    }

    package mutating func write(base64 bytes: Bytes) {
        self.separate()
        self.bytes.append(0x22)
        Base64.encode(bytes.span, into: &self.bytes)
        self.bytes.append(0x22)
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

    // MARK: Bytes

    private mutating func append(quoting text: String) {
        self.bytes.append(0x22)
        let source = text.utf8Span.span
        let raw = unsafe source.bytes  // A UInt8 has no padding.
        var plain = 0
        var at = 0
        while at < source.count {
            if at + 8 <= source.count {
                let special = WordScan.mustEscape(raw.word(at: at))
                if special == 0 {
                    at += 8
                    continue
                }
                at += special.trailingZeroBitCount >> 3
            }
            let byte = source[at]
            if byte >= 0x20, byte != 0x22, byte != 0x5C {
                at += 1
                continue
            }
            self.bytes.append(copying: source.extracting(plain..<at))
            self.append(escaping: byte)
            at += 1
            plain = at
        }
        self.bytes.append(copying: source.extracting(plain..<source.count))
        self.bytes.append(0x22)
    }

    private mutating func append(escaping byte: UInt8) {
        self.bytes.append(0x5C)
        switch byte {
        case 0x22, 0x5C: self.bytes.append(byte)
        case 0x08: self.bytes.append(0x62)
        case 0x09: self.bytes.append(0x74)
        case 0x0A: self.bytes.append(0x6E)
        case 0x0C: self.bytes.append(0x66)
        case 0x0D: self.bytes.append(0x72)
        default:
            self.bytes.append(literal: "u00")
            self.bytes.append(ASCII.hexDigit(byte >> 4))
            self.bytes.append(ASCII.hexDigit(byte))
        }
    }
}
