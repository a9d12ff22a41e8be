import Foundation

/// The sentences of a page, without its code, tables and headings.
struct Prose {
    /// Each as its words.
    let sentences: [[Substring]]

    init(_ text: String) {
        var sentences: [[Substring]] = []
        var words: [Substring] = []
        func end() {
            if !words.isEmpty { sentences.append(words) }
            words = []
        }
        var isCode = false
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let trimmed = line.drop { $0 == " " }
            if trimmed.hasPrefix("```") {
                isCode.toggle()
                end()
                continue
            }
            if isCode { continue }
            if trimmed.isEmpty || trimmed.hasPrefix("|") || trimmed.hasPrefix("#") {
                end()
                continue
            }
            var own = trimmed.split(separator: " ")
            if Self.beginsItem(own[0]) {
                end()
                own.removeFirst()
            }
            for word in own {
                if let last = words.last, Self.ends(last), Self.begins(word) { end() }
                words.append(word)
            }
        }
        end()
        self.sentences = sentences
    }

    /// Every page under `Docs` and the front page.
    static func pages(of repository: Repository) throws -> [String] {
        let found =
            FileManager.default.enumerator(
                atPath: repository.root.appendingPathComponent("Docs").path)?
            .compactMap { $0 as? String } ?? []
        return ["README.md"] + found.filter { $0.hasSuffix(".md") }.sorted().map { "Docs/\($0)" }
    }

    private static func beginsItem(_ word: Substring) -> Bool {
        word == "-" || word == "*"
            || (word.hasSuffix(".") && word.count > 1 && word.dropLast().allSatisfy(\.isNumber))
    }

    private static func ends(_ word: Substring) -> Bool {
        word.last.map { ".!?".contains($0) } == true
    }

    private static func begins(_ word: Substring) -> Bool {
        word.first.map { $0.isUppercase || "*`[(".contains($0) } == true
    }
}
