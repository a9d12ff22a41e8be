import Foundation
import Testing

/// The changelog begins with the version under way, and its entries are short.
@Suite struct ChangelogTests {
    static let wordsMax = 90

    let repository = Repository()

    @Test func `the changelog begins with the program's version, and versions fall`() throws {
        let versions = try self.sections().map(\.version)
        let program = try self.repository.text("Sources/StratusProcess/Versions.swift")
        let newest = try #require(versions.first)
        #expect(program.contains("stratus = \"\(newest)"), "the changelog begins with \(newest)")
        let falling = versions.sorted { $0.compare($1, options: .numeric) == .orderedDescending }
        #expect(versions == falling)
    }

    @Test func `an entry of the changelog can be read in one breath`() throws {
        for section in try self.sections() {
            #expect(!section.entries.isEmpty, "\(section.version) has no entry")
            for entry in section.entries {
                let words = entry.split { $0 == " " || $0 == "\n" }.count
                #expect(words <= Self.wordsMax, "\(words) words: \(entry.prefix(60))")
            }
        }
    }

    /// What follows each heading `## 1.2.3`, with the items of its lists.
    private func sections() throws -> [(version: String, entries: [Substring])] {
        try self.repository.text("CHANGELOG.md").components(separatedBy: "\n## ").dropFirst().map {
            let version = String($0.prefix { $0.isNumber || $0 == "." })
            let entries = $0.components(separatedBy: "\n- ").dropFirst().map {
                $0.prefix(upTo: $0.range(of: "\n\n")?.lowerBound ?? $0.endIndex)
            }
            return (version, entries)
        }
    }
}
