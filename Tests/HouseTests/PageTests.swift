import Foundation
import Testing

/// Pages speak of what is there.
@Suite struct PageTests {
    let repository = Repository()

    /// Names of other houses' types, which no source of ours spells.
    private static let foreign: Set<String> = []

    @Test func `every type that a page under internals names is in the sources`() throws {
        let known = try self.identifiers()
        for page in try self.pages(under: "Docs/internals") + ["Docs/contributing.md"] {
            var names: Set<String> = []
            let spans = try self.repository.text(page).matches(of: /```[^`]*```|`[^`\n]+`/)
            for span in spans {
                // A slash or a hyphen makes a path or a header field of a word.
                for word in span.output.matches(of: /[\w\/-]+/) where Self.isType(word.output) {
                    names.insert(String(word.output))
                }
            }
            for name in names.sorted() where !known.contains(name) && !Self.foreign.contains(name) {
                Issue.record("\(page) names `\(name)`, which no source does")
            }
        }
    }

    @Test func `the index of decisions lists every hard choice, once`() throws {
        let index = try self.repository.text("Docs/decisions.md")
        let listed = index.matches(of: /- \[[^\]]+\]\(internals\/[^)]+\)/).map { String($0.output) }
        var choices: Set<String> = []
        for page in try self.pages(under: "Docs/internals") {
            let name = page.split(separator: "/").last!
            for choice in try self.choices(of: page) {
                choices.insert("- [\(choice)](internals/\(name)#\(Self.anchor(of: choice)))")
            }
        }
        #expect(choices.count > 100)
        #expect(listed.count == Set(listed).count)
        #expect(choices.subtracting(listed).sorted() == [], "the index lacks them")
        #expect(Set(listed).subtracting(choices).sorted() == [], "no page has them")
    }

    @Test func `links between the pages name headings that are there`() throws {
        var anchors: [String: Set<String>] = [:]
        for page in try Prose.pages(of: self.repository) {
            anchors[page] = Self.anchors(in: try self.repository.text(page))
        }
        for page in anchors.keys.sorted() {
            let folder = self.repository.root.appendingPathComponent(page)
                .deletingLastPathComponent()
            let text = try self.repository.text(page)
            for match in text.matches(of: /\]\(([^)#\s:]*)#([^)\s]+)\)/) {
                let target =
                    match.output.1.isEmpty
                    ? page
                    : String(
                        folder.appendingPathComponent(String(match.output.1)).standardized.path
                            .dropFirst(self.repository.root.standardized.path.count + 1))
                guard let there = anchors[target] else { continue }
                #expect(
                    there.contains(String(match.output.2)),
                    "\(page) links to \(target)#\(match.output.2)")
            }
        }
    }

    /// Long sentences are read twice. A few cannot be helped; most can be two.
    @Test func `hardly a sentence of the pages has more than thirty words`() throws {
        var all = 0
        var long: [(count: Int, text: String)] = []
        for page in try Prose.pages(of: self.repository) {
            for sentence in Prose(try self.repository.text(page)).sentences {
                all += 1
                if sentence.count > 30 {
                    long.append((sentence.count, "\(page): \(sentence.joined(separator: " "))"))
                }
            }
        }
        long.sort { ($0.count, $0.text) > ($1.count, $1.text) }
        let worst = long.prefix(10).map { "\($0.count) words, \($0.text)" }
        #expect(all > 2_000)
        #expect(long.count * 25 <= all, "\(long.count) of \(all): \(worst.joined(separator: "\n"))")
    }

    @Test func `a sentence is counted without tables, code and headings`() {
        let text = """
            # Five words are no sentence

            One sentence. And `code.py. is` another
            over two lines.

            - An item. Its second sentence (2.5 of it).
            | a | table. Row |
            ```sh
            code. Here
            ```
            """
        #expect(Prose(text).sentences.map(\.count) == [2, 7, 2, 6])
    }

    /// Whether a word is written like a type's name of two words at least, such as `RecordState`.
    private static func isType(_ word: Substring) -> Bool {
        word.wholeMatch(of: /(?:[A-Z]+[a-z0-9]+){2,}/) != nil
    }

    /// The headings below a page's *Why not the obvious way*.
    private func choices(of page: String) throws -> [Substring] {
        var choices: [Substring] = []
        var isThere = false
        for line in try self.repository.text(page).split(separator: "\n") {
            if line.hasPrefix("## ") { isThere = line == "## Why not the obvious way" }
            if isThere, line.hasPrefix("### ") { choices.append(line.dropFirst(4)) }
        }
        return choices
    }

    /// Where links to each heading of a page lead. The second of two equal headings has a number.
    private static func anchors(in text: String) -> Set<String> {
        var anchors: Set<String> = []
        var isCode = false
        for line in text.split(separator: "\n") {
            if line.hasPrefix("```") { isCode.toggle() }
            guard !isCode, let heading = line.wholeMatch(of: /#+ (.*)/) else { continue }
            let anchor = Self.anchor(of: heading.output.1)
            var (name, count) = (anchor, 0)
            while !anchors.insert(name).inserted {
                count += 1
                name = "\(anchor)-\(count)"
            }
        }
        return anchors
    }

    /// As GitHub makes it: lower case, without punctuation, hyphens for spaces.
    private static func anchor(of heading: Substring) -> String {
        String(
            heading.lowercased().filter { $0.isLetter || $0.isNumber || " -_".contains($0) }
                .map { $0 == " " ? "-" : $0 })
    }

    private func pages(under folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(
            atPath: self.repository.root.appendingPathComponent(folder).path
        ).filter { $0.hasSuffix(".md") }.sorted().map { "\(folder)/\($0)" }
    }

    /// Every identifier of the project's code that begins with a capital letter, and every folder
    /// and file.
    private func identifiers() throws -> Set<String> {
        var known: Set<String> = []
        for folder in ["Sources", "Tests"] {
            for file in try self.repository.swiftFiles(under: folder) {
                known.formUnion(
                    file.path.split { "/+.".contains($0) }.map(String.init))
                for line in file.text.split(separator: "\n") {
                    let code = line.drop { $0 == " " }
                    guard !code.hasPrefix("//") else { continue }
                    for word in code.utf8.split(whereSeparator: { !Self.isOfIdentifier($0) })
                    where word.first! >= UInt8(ascii: "A") && word.first! <= UInt8(ascii: "Z") {
                        known.insert(String(Substring(word)))
                    }
                }
            }
        }
        return known
    }

    private static func isOfIdentifier(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
            || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
            || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || byte == UInt8(ascii: "_")
    }
}
