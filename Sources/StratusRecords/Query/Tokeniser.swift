import StratusCoding
package import StratusModel

/// Cuts text into the words that token search compares.
///
/// A word is a run of letters and digits with their marks, folded for search; in scripts written
/// without spaces (Han, Hiragana, Thai, Lao, Khmer, Myanmar, …) every letter is a word. Apostrophes,
/// hyphens, underscores and symbols separate. CloudKit's English stop words are no words.
package enum Tokeniser {
    /// Sorted, folded for search as everything else here.
    static let stopWords: [String] = [
        "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is",
        "it", "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there",
        "these", "they", "this", "to", "was", "will", "with",
    ]
    private static let stopWordBytes: Set<Bytes> = Set(Self.stopWords.map { Bytes($0.utf8) })
    private static let stopWordLengthMax = Self.stopWords.reduce(0) { max($0, $1.utf8.count) }

    /// The words of `text`, folded, sorted, each once.
    package static func words(of text: String) -> [Bytes] {
        var words = Set<Bytes>()
        Self.visit(text) { words.insert($0) }
        return words.sorted { Bytes.isOrdered($0, before: $1) }
    }

    /// The words of several texts, as those of one.
    package static func words(of texts: some Sequence<String>) -> [Bytes] {
        var words = Set<Bytes>()
        for text in texts { Self.visit(text) { words.insert($0) } }
        return words.sorted { Bytes.isOrdered($0, before: $1) }
    }

    private static func visit(_ text: String, _ body: (Bytes) -> Void) {
        let bytes = Bytes(text.utf8)
        if bytes.allSatisfy({ $0 < 0x80 }) {
            Self.visit(ascii: bytes, body)
        } else {
            Self.visit(scalars: text.unicodeScalars, body)
        }
    }

    private static func visit(ascii bytes: Bytes, _ body: (Bytes) -> Void) {
        var start = 0
        while start < bytes.count {
            guard TextFolding.isWordCharacter(bytes[start]) else {
                start += 1
                continue
            }
            var end = start + 1
            while end < bytes.count, TextFolding.isWordCharacter(bytes[end]) { end += 1 }
            let word = bytes[start..<end].map { TextFolding.lowercased($0) }
            if !Self.isStopWord(word) { body(word) }
            start = end
        }
    }

    private static func isStopWord(_ word: Bytes) -> Bool {
        word.count <= Self.stopWordLengthMax && Self.stopWordBytes.contains(word)
    }

    private static func visit(scalars: String.UnicodeScalarView, _ body: (Bytes) -> Void) {
        var word = Bytes()
        var isSingle = false
        func finish() {
            if !word.isEmpty, !Self.isStopWord(word) { body(word) }
            word.removeAll(keepingCapacity: true)
            isSingle = false
        }
        for scalar in scalars {
            switch TextFolding.wordClass(of: scalar) {
            case .separator:
                finish()
            case .word:
                if isSingle { finish() }
                TextFolding.appendSearchFolded(scalar, to: &word)
            case .single:
                finish()
                TextFolding.appendSearchFolded(scalar, to: &word)
                isSingle = true
            case .mark:
                TextFolding.appendSearchFolded(scalar, to: &word)
            }
        }
        finish()
    }
}
