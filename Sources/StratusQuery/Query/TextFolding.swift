package import StratusModel

/// Text as comparisons and searches see it, by the frozen tables of ``UnicodeTables``.
///
/// Scalar by scalar and without context, so that what a text begins with, its folding begins with.
package enum TextFolding {
    /// The version stored with every index over text.
    package static let version = UnicodeTables.version

    private static let cases = ScalarMap(UnicodeTables.caseFolding)
    private static let search = ScalarMap(UnicodeTables.searchFolding)
    private static let classes = ScalarClasses(UnicodeTables.wordClasses)

    /// The UTF-8 of `text` without its case: what `EQUALS` compares and what strings are ordered
    /// by.
    package static func caseFolded(_ text: String) -> Bytes {
        var folded = Bytes(text.utf8)
        var asciiCount = 0
        while asciiCount < folded.count, folded[asciiCount] < 0x80 {
            folded[asciiCount] = Self.lowercased(folded[asciiCount])
            asciiCount += 1
        }
        if asciiCount == folded.count { return folded }
        // All before it is ASCII, so this is where a scalar begins.
        folded.removeSubrange(asciiCount...)
        let rest = text.utf8.index(text.utf8.startIndex, offsetBy: asciiCount)
        for scalar in text.unicodeScalars[rest...] {
            if scalar.value < 0x80 {
                folded.append(Self.lowercased(UInt8(truncatingIfNeeded: scalar.value)))
            } else if let mapped = Self.cases.mapped(scalar.value) {
                for value in mapped { Self.append(value, to: &folded) }
            } else {
                Self.append(scalar.value, to: &folded)
            }
        }
        return folded
    }

    /// Appends the scalar as a search sees it: decomposed, without accents and case. May append
    /// nothing.
    static func appendSearchFolded(_ scalar: Unicode.Scalar, to folded: inout Bytes) {
        let value = scalar.value
        if value < 0x80 {
            folded.append(Self.lowercased(UInt8(truncatingIfNeeded: value)))
        } else if value >= 0xAC00 && value < 0xD7A4 {
            // Hangul syllables decompose by arithmetic (Unicode, section 3.12).
            let index = value - 0xAC00
            Self.append(0x1100 + index / 588, to: &folded)
            Self.append(0x1161 + index % 588 / 28, to: &folded)
            if index % 28 != 0 { Self.append(0x11A7 + index % 28, to: &folded) }
        } else if let mapped = Self.search.mapped(value) {
            for value in mapped { Self.append(value, to: &folded) }
        } else {
            Self.append(value, to: &folded)
        }
    }

    /// The lower case of an ASCII character.
    static func lowercased(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }

    enum WordClass: UInt8 {
        /// Between words.
        case separator = 0
        /// A letter or digit of a word.
        case word = 1
        /// A word of its own, in scripts written without spaces.
        case single = 2
        /// A mark: continues whatever stands before it.
        case mark = 3
    }

    static func wordClass(of scalar: Unicode.Scalar) -> WordClass {
        let value = scalar.value
        if value < 0x80 {
            return Self.isWordCharacter(UInt8(truncatingIfNeeded: value)) ? .word : .separator
        }
        return WordClass(rawValue: Self.classes.value(of: value)) ?? .separator
    }

    /// Whether an ASCII character is a letter or a digit.
    static func isWordCharacter(_ byte: UInt8) -> Bool {
        (byte | 0x20) &- 0x61 < 26 || byte &- 0x30 < 10
    }

    private static func append(_ value: UInt32, to bytes: inout Bytes) {
        guard let scalar = Unicode.Scalar(value) else { return }
        bytes.append(contentsOf: UTF8.encode(scalar) ?? UTF8.EncodedScalar())
    }
}

/// Code points and what they become: sorted, searched by halving. A bit for each code point of the
/// first plane says whether there is anything to find: most become themselves.
private struct ScalarMap: Sendable {
    private var keys: [UInt32] = []
    private var starts: [UInt32] = []
    private var values: [UInt32] = []
    private var isMapped = [UInt64](repeating: 0, count: 0x1_0000 / 64)

    init(_ table: String) {
        var parser = TableParser(table)
        var key: UInt32 = 0
        while let gap = parser.number() {
            key += gap
            self.keys.append(key)
            if key < 0x1_0000 { self.isMapped[Int(key / 64)] |= 1 << UInt64(key % 64) }
            self.starts.append(UInt32(self.values.count))
            while parser.continues() { self.values.append(parser.number() ?? 0) }
        }
        self.starts.append(UInt32(self.values.count))
    }

    func mapped(_ key: UInt32) -> ArraySlice<UInt32>? {
        if key < 0x1_0000, self.isMapped[Int(key / 64)] & 1 << UInt64(key % 64) == 0 { return nil }
        var low = 0
        var high = self.keys.count
        while low < high {
            let middle = (low + high) / 2
            if self.keys[middle] < key { low = middle + 1 } else { high = middle }
        }
        guard low < self.keys.count, self.keys[low] == key else { return nil }
        return self.values[Int(self.starts[low])..<Int(self.starts[low + 1])]
    }
}

/// Runs of code points of one class. Those of the first plane have a byte each: text is cut by
/// them.
private struct ScalarClasses: Sendable {
    private var starts: [UInt32] = [0]
    private var values: [UInt8] = [0]
    private var first: Bytes = []

    init(_ table: String) {
        var parser = TableParser(table)
        var start: UInt32 = 0
        while let gap = parser.number() {
            start += gap
            self.starts.append(start)
            self.values.append(parser.continues() ? UInt8(parser.number() ?? 0) : 0)
        }
        var first = Bytes(repeating: 0, count: 0x1_0000)
        for (position, start) in self.starts.enumerated() where start < 0x1_0000 {
            let end = position + 1 < self.starts.count ? self.starts[position + 1] : 0x1_0000
            for key in start..<min(end, 0x1_0000) { first[Int(key)] = self.values[position] }
        }
        self.first = first
    }

    func value(of key: UInt32) -> UInt8 {
        if key < 0x1_0000 { return self.first[Int(key)] }
        var low = 0
        var high = self.starts.count
        while low < high {
            let middle = (low + high) / 2
            if self.starts[middle] <= key { low = middle + 1 } else { high = middle }
        }
        return self.values[low - 1]
    }
}

/// Numbers in base 36: a comma continues an item, white space ends it.
private struct TableParser {
    private let bytes: Bytes
    private var position = 0

    init(_ table: String) { self.bytes = Bytes(table.utf8) }

    mutating func number() -> UInt32? {
        while self.position < self.bytes.count, self.bytes[self.position] <= 0x20 {
            self.position += 1
        }
        guard self.position < self.bytes.count else { return nil }
        var value: UInt32 = 0
        while self.position < self.bytes.count {
            let byte = self.bytes[self.position]
            if byte &- 0x30 < 10 {
                value = value * 36 + UInt32(byte - 0x30)
            } else if byte &- 0x61 < 26 {
                value = value * 36 + UInt32(byte - 0x61) + 10
            } else {
                break
            }
            self.position += 1
        }
        return value
    }

    mutating func continues() -> Bool {
        guard self.position < self.bytes.count, self.bytes[self.position] == UInt8(ascii: ",")
        else { return false }
        self.position += 1
        return true
    }
}
