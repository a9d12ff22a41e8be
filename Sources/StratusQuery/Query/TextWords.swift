package import StratusCoding
package import StratusModel

/// The different words of a field's text: those of a short text as index keys, those of a long one
/// as a summary.
///
/// They follow from the text alone, so that it does not matter who cuts it: a gateway does before a
/// save, and the state where no gateway did.
package enum TextWords: Sendable, Equatable {
    /// The keys of at most ``IndexMaintenance/rowCountMax`` different words, sorted.
    case few([Bytes])
    case many(WordSummary)

    /// Cuts the whole text.
    package init(of value: FieldValue?) {
        var words = Set<Bytes>()
        var keys = Set<Bytes>()
        for text in Tokeniser.texts(value) {
            Tokeniser.visit(text) { word in
                guard words.insert(word).inserted else { return true }
                if keys.count <= IndexMaintenance.rowCountMax { keys.insert(Self.key(of: word)) }
                return true
            }
        }
        if keys.count > IndexMaintenance.rowCountMax {
            self = .many(WordSummary(of: words))
        } else {
            self = .few(keys.sorted { Bytes.isOrdered($0, before: $1) })
        }
    }

    /// The keys of a text's words, sorted; nil for more than ``IndexMaintenance/rowCountMax``. Cuts
    /// no further than it takes to tell.
    static func keys(of value: FieldValue?) -> [Bytes]? {
        var words = Set<Bytes>()
        var keys = Set<Bytes>()
        for text in Tokeniser.texts(value) {
            Tokeniser.visit(text) { word in
                guard words.insert(word).inserted else { return true }
                keys.insert(Self.key(of: word))
                return keys.count <= IndexMaintenance.rowCountMax
            }
            if keys.count > IndexMaintenance.rowCountMax { return nil }
        }
        return keys.sorted { Bytes.isOrdered($0, before: $1) }
    }

    /// Words that share their first 240 bytes share a key.
    private static func key(of word: Bytes) -> Bytes {
        var key = Bytes()
        OrderedKey.append(text: word, to: &key)
        return key
    }
}

// Word summary, version 1: the row of an index of long texts.
//
// | bytes | what                                                                        |
// | ----- | --------------------------------------------------------------------------- |
// | 1     | version, 1                                                                  |
// | …     | a Bloom filter: bit n is bit n % 8 of byte n / 8; eight bits for each word, |
// |       | 128 KiBit at most. Each word sets five bits                                 |

/// A row of about a byte for each word, which tells of most words that a text lacks that it lacks
/// them.
///
/// It never denies a word that the text has. Of the words that a text of up to 16,384 different
/// words lacks, it denies about 98 in 100; beyond that, fewer.
package struct WordSummary: Sendable, Hashable {
    package static let sizeMax = 16 << 10
    private static let bitsPerWord = 8
    private static let bitCount = 5

    /// The row, version included.
    package let row: Bytes

    init(of words: Set<Bytes>) {
        let size = min(Self.sizeMax, max(8, (words.count * Self.bitsPerWord + 7) / 8))
        var row = Bytes(repeating: 0, count: 1 + size)
        row[0] = 1
        // The order of a set reaches nothing: every word only sets bits.
        for word in words {
            for bit in SoughtWords.Hash(word).bits(of: size * 8, count: Self.bitCount) {
                row[1 + bit / 8] |= 1 << UInt8(bit % 8)
            }
        }
        self.row = row
    }

    package init(decoding row: Bytes) throws(DecodingError) {
        guard let version = row.first else { throw DecodingError(.malformed, at: 0) }
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        guard row.count > 1, row.count <= 1 + Self.sizeMax else {
            throw DecodingError(.malformed, at: 1)
        }
        self.row = row
    }

    /// Whether the text may have what is sought.
    func mayHold(_ sought: SoughtWords) -> Bool {
        let count = (self.row.count - 1) * 8
        func mayHold(_ word: SoughtWords.Hash) -> Bool {
            word.bits(of: count, count: Self.bitCount).allSatisfy { bit in
                self.row[1 + bit / 8] & 1 << UInt8(bit % 8) != 0
            }
        }
        return sought.all
            ? sought.words.allSatisfy(mayHold) : sought.words.contains(where: mayHold)
    }
}

/// The words that a search asks of a long text.
struct SoughtWords: Sendable, Equatable {
    var words: [Hash]
    /// Whether the text must have every one of them, or any.
    var all: Bool

    init(_ words: some Sequence<Bytes>, all: Bool) {
        self.words = words.map(Hash.init)
        self.all = all
    }

    /// A word as two numbers: FNV-1a, and the same once more mixed. On disk by what it sets.
    struct Hash: Sendable, Equatable {
        private let start: UInt64
        private let step: UInt64

        init(_ word: Bytes) {
            var hash: UInt64 = 0xCBF2_9CE4_8422_2325
            for byte in word { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
            self.start = Self.mixed(hash)
            self.step = Self.mixed(self.start) | 1
        }

        private static func mixed(_ value: UInt64) -> UInt64 {
            var mixed = value
            mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
            return mixed ^ mixed >> 31
        }

        func bits(of bitCount: Int, count: Int) -> some Sequence<Int> {
            (0..<UInt64(count)).lazy.map { number in
                Int((self.start &+ number &* self.step) % UInt64(bitCount))
            }
        }
    }
}
