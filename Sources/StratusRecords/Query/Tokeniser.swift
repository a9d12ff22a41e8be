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
        var word = Bytes()
        var isSingle = false
        func finish() {
            if !word.isEmpty, !Self.stopWordBytes.contains(word) { body(word) }
            word.removeAll(keepingCapacity: true)
            isSingle = false
        }
        for scalar in text.unicodeScalars {
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
