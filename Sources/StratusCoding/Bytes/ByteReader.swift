package import StratusModel

/// Bytes that do not say what they should. Where they came from decides what follows: a peer is
/// refused, a row is unreadable, a file is damaged.
package struct DecodingError: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Kind: Sendable, Equatable {
        case truncated, malformed, trailingBytes
        /// Written by a version of Stratus newer than this one.
        case unknownVersion(UInt8)
        /// A number of this family that this build does not know: a newer one may have written it.
        case unknownNumber(family: String, UInt8)
    }
    package let kind: Kind
    package let offset: Int

    package init(_ kind: Kind, at offset: Int) {
        self.kind = kind
        self.offset = offset
    }

    package var description: String { "\(self.kind) at byte \(self.offset)" }
}

/// Reads what ``ByteWriter`` wrote. Never reads outside its bytes, whatever they are.
package struct ByteReader: Sendable {
    private let bytes: Bytes
    package private(set) var offset: Int
    private let end: Int

    package init(_ bytes: Bytes) {
        self.bytes = bytes
        self.offset = 0
        self.end = bytes.count
    }

    package var remaining: Int { self.end - self.offset }
    package var isAtEnd: Bool { self.offset == self.end }

    /// The last call: what is not expected is not ignored.
    package func finish() throws(DecodingError) {
        guard self.isAtEnd else { throw DecodingError(.trailingBytes, at: self.offset) }
    }

    package mutating func byte() throws(DecodingError) -> UInt8 {
        guard self.offset < self.end else { throw DecodingError(.truncated, at: self.offset) }
        defer { self.offset += 1 }
        return self.bytes[self.offset]
    }

    package mutating func fixed16() throws(DecodingError) -> UInt16 { try self.fixed() }
    package mutating func fixed32() throws(DecodingError) -> UInt32 { try self.fixed() }
    package mutating func fixed64() throws(DecodingError) -> UInt64 { try self.fixed() }

    private mutating func fixed<Integer: FixedWidthInteger>() throws(DecodingError) -> Integer {
        let width = Integer.bitWidth / 8
        guard self.remaining >= width else { throw DecodingError(.truncated, at: self.offset) }
        var value: Integer = 0
        for position in 0..<width {
            value |=
                Integer(truncatingIfNeeded: self.bytes[self.offset + position]) << (8 * position)
        }
        self.offset += width
        return value
    }

    /// Refuses what ``ByteWriter`` would not write: more than ten bytes, or needless trailing
    /// zeros.
    @inline(__always)
    package mutating func varint() throws(DecodingError) -> UInt64 {
        // Most are a single byte.
        if self.offset < self.end {
            let byte = self.bytes[self.offset]
            if byte < 0x80 {
                self.offset += 1
                return UInt64(byte)
            }
        }
        return try self.longVarint()
    }

    private mutating func longVarint() throws(DecodingError) -> UInt64 {
        let start = self.offset
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while true {
            let byte = try self.byte()
            let bits = UInt64(byte & 0x7F)
            guard shift < 63 || (shift == 63 && bits <= 1) else {
                throw DecodingError(.malformed, at: start)
            }
            value |= bits << shift
            if byte & 0x80 == 0 {
                guard byte != 0 || shift == 0 else { throw DecodingError(.malformed, at: start) }
                return value
            }
            shift += 7
        }
    }

    package mutating func signed() throws(DecodingError) -> Int64 {
        let raw = try self.varint()
        return Int64(bitPattern: raw >> 1) ^ -Int64(bitPattern: raw & 1)
    }

    /// A count of things that each take at least `minimumSize` bytes. A false length therefore
    /// cannot make the caller reserve memory for things that are not there.
    package mutating func count(minimumSize: Int = 1) throws(DecodingError) -> Int {
        let start = self.offset
        let raw = try self.varint()
        guard raw <= UInt64(self.remaining / max(1, minimumSize)) else {
            throw DecodingError(.truncated, at: start)
        }
        return Int(raw)
    }

    package mutating func raw(_ count: Int) throws(DecodingError) -> Bytes {
        guard count >= 0, self.remaining >= count else {
            throw DecodingError(.truncated, at: self.offset)
        }
        defer { self.offset += count }
        return Bytes(self.bytes[self.offset..<(self.offset + count)])
    }

    package mutating func skip(_ count: Int) throws(DecodingError) {
        guard count >= 0, self.remaining >= count else {
            throw DecodingError(.truncated, at: self.offset)
        }
        self.offset += count
    }

    /// Past a text or prefixed bytes, without looking at them.
    package mutating func skipPrefixed() throws(DecodingError) {
        try self.skip(try self.count())
    }

    /// Past a text, if it is one of `texts`; else nothing is read.
    ///
    /// - Returns: which one; nil for another.
    package mutating func text(among texts: [Bytes]) throws(DecodingError) -> Int? {
        let start = self.offset
        let count = try self.count()
        for position in texts.indices where self.isNext(texts[position], count) {
            self.offset += count
            return position
        }
        self.offset = start
        return nil
    }

    /// Whether the next `count` bytes, which are there, are this text.
    private func isNext(_ text: Bytes, _ count: Int) -> Bool {
        guard text.count == count else { return false }
        for place in text.indices where text[place] != self.bytes[self.offset + place] {
            return false
        }
        return true
    }

    package mutating func prefixed() throws(DecodingError) -> Bytes {
        let count = try self.count()
        return try self.raw(count)
    }

    package mutating func text() throws(DecodingError) -> String {
        let start = self.offset
        let count = try self.count()
        let range = self.offset..<(self.offset + count)
        guard let text = String(utf8: self.bytes.span.extracting(range)) else {
            throw DecodingError(.malformed, at: start)
        }
        self.offset += count
        return text
    }

    package mutating func flag() throws(DecodingError) -> Bool {
        switch try self.byte() {
        case 0: return false
        case 1: return true
        default: throw DecodingError(.malformed, at: self.offset - 1)
        }
    }

    package mutating func double() throws(DecodingError) -> Double {
        Double(bitPattern: try self.fixed64())
    }

    package mutating func optionalText() throws(DecodingError) -> String? {
        try self.flag() ? try self.text() : nil
    }
}
