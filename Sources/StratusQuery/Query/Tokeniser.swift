import StratusCoding
package import StratusModel

/// Cuts text into the words that token search compares.
///
/// A word is a run of letters and digits with their marks, folded for search. In scripts written
/// without spaces (Han, Hiragana, Thai, Lao, Khmer, Myanmar, …), every letter is a word.
/// Apostrophes, hyphens, underscores and symbols separate. CloudKit's English stop words are no
/// words.
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
        Self.words(of: CollectionOfOne(text))
    }

    /// The words of several texts, as those of one.
    package static func words(of texts: some Sequence<String>) -> [Bytes] {
        var all: [Bytes] = []
        for text in texts {
            Self.visit(
                text,
                { word in
                    all.append(word)
                    return true
                })
        }
        // Sorted first: a set would hash every byte of every word.
        all.sort { Bytes.isOrdered($0, before: $1) }
        var words: [Bytes] = []
        words.reserveCapacity(all.count)
        for word in all where words.last != word { words.append(word) }
        return words
    }

    /// Whether the text of a search has more than `limit` words, each as often as it stands there.
    /// Cuts no further than it takes to tell.
    package static func hasWords(_ operand: FieldValue, moreThan limit: Int) -> Bool {
        var count = 0
        for text in Self.texts(operand) where count <= limit {
            Self.visit(
                text,
                { _ in
                    count += 1
                    return count <= limit
                })
        }
        return count > limit
    }

    /// The words of a text, each as often as it stands there, stop words too. Folds nothing, so
    /// that counting costs far less than cutting.
    package static func wordCount(of text: String) -> Int {
        var count = 0
        var last = TextFolding.WordClass.separator
        for scalar in text.unicodeScalars {
            let next = TextFolding.wordClass(of: scalar)
            switch next {
            case .separator: break
            case .word: if last != .word { count += 1 }
            case .single: count += 1
            case .mark:
                // It continues what stands before it.
                guard last == .separator else { continue }
                count += 1
            }
            last = next == .mark ? .word : next
        }
        return count
    }

    /// The texts of a value of one string or of several.
    static func texts(_ value: FieldValue?) -> [String] {
        switch value {
        case .scalar(.string(let text))?: [text]
        case .list(.string, let elements)?:
            elements.compactMap { if case .string(let text) = $0 { text } else { nil } }
        case .scalar?, .list?, .sealed?, nil: []
        }
    }

    /// Calls `body` with each word in the order of the text, until it returns false. The bytes are
    /// the same buffer each time, so that a long text costs no allocation for a word.
    static func visit(_ text: String, _ body: (Bytes) -> Bool) {
        let bytes = Bytes(text.utf8)
        if bytes.allSatisfy({ $0 < 0x80 }) {
            Self.visit(ascii: bytes, while: body)
        } else {
            Self.visit(scalars: text.unicodeScalars, while: body)
        }
    }

    private static func visit(ascii bytes: Bytes, while body: (Bytes) -> Bool) {
        var word = Bytes()
        for byte in bytes {
            if TextFolding.isWordCharacter(byte) {
                word.append(TextFolding.lowercased(byte))
            } else if !word.isEmpty {
                if !Self.isStopWord(word), !body(word) { return }
                word.removeAll(keepingCapacity: true)
            }
        }
        if !word.isEmpty, !Self.isStopWord(word) { _ = body(word) }
    }

    private static func isStopWord(_ word: Bytes) -> Bool {
        word.count <= Self.stopWordLengthMax && Self.stopWordBytes.contains(word)
    }

    private static func visit(scalars: String.UnicodeScalarView, while body: (Bytes) -> Bool) {
        var word = Bytes()
        var isSingle = false
        var goesOn = true
        func finish() {
            if goesOn, !word.isEmpty, !Self.isStopWord(word) { goesOn = body(word) }
            word.removeAll(keepingCapacity: true)
            isSingle = false
        }
        for scalar in scalars {
            if !goesOn { return }
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
