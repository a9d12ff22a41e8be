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

    @Test func `every decision stands in the list of decisions, once`() throws {
        let list = try self.repository.text("Docs/decisions/README.md")
        let pages = try self.pages(under: "Docs/decisions").map { $0.split(separator: "/").last! }
        #expect(pages.count > 60)
        var numbers: Set<Substring> = []
        for page in pages where page != "README.md" {
            #expect(numbers.insert(page.prefix(4)).inserted, "\(page.prefix(4)) is there twice")
            #expect(list.contains("| [\(page.prefix(4))](\(page)) |"), "\(page) is not listed")
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
