import Foundation
import Testing

/// Style that a formatter does not know.
@Suite struct TidyTests {
    let repository = Repository()

    @Test func `the top level holds what the house lists and nothing else`() throws {
        let listed: Set = [
            "Package.swift", "Package.resolved", "Sources", "Tests", "Deploy", "Config", "Docs",
            "README.md", "LICENSE", "CHANGELOG.md",
        ]
        let found = try FileManager.default.contentsOfDirectory(atPath: self.repository.root.path)
        let strangers = found.filter { !$0.hasPrefix(".") && !listed.contains($0) }
        #expect(strangers.isEmpty)
    }

    @Test func `nothing is left unfinished by its own words`() throws {
        let words = ["TODO", "FIXME", "XXX:", "HACK:", "fatalError()", "not yet implemented"]
        for folder in ["Sources", "Tests"] {
            for file in try self.repository.swiftFiles(under: folder)
            where file.module != "HouseTests" {
                for (index, line) in file.text.split(
                    separator: "\n", omittingEmptySubsequences: false
                )
                .enumerated() {
                    #expect(
                        !words.contains { line.contains($0) }, "\(file.path):\(index + 1): \(line)")
                }
            }
        }
    }

    @Test func `every unchecked promise to the compiler is explained`() throws {
        for file in try self.repository.swiftFiles(under: "Sources") {
            let lines = file.text.split(separator: "\n", omittingEmptySubsequences: false)
            for (index, line) in lines.enumerated() where line.contains("@unchecked Sendable") {
                let before = lines[max(0, index - 12)...index]
                #expect(
                    before.contains { $0.contains("//") && $0.lowercased().contains("unchecked") }
                        || before.contains { $0.contains("Sendable because") },
                    "\(file.path):\(index + 1) does not say what guards it ('Sendable because …')")
            }
        }
    }

    @Test func `links between the pages lead somewhere`() throws {
        let base = self.repository.root
        let pages =
            FileManager.default.enumerator(atPath: base.appendingPathComponent("Docs").path)?
            .compactMap { $0 as? String }.filter { $0.hasSuffix(".md") }.map { "Docs/\($0)" } ?? []
        for page in pages.sorted() + ["README.md", "CHANGELOG.md"] {
            let text = try self.repository.text(page)
            for match in text.matches(of: /\]\(([^)#\s]+)[^)]*\)/)
            where !match.output.1.contains("://") && !match.output.1.hasPrefix("mailto:") {
                let target = base.appendingPathComponent(page).deletingLastPathComponent()
                    .appendingPathComponent(String(match.output.1))
                #expect(
                    FileManager.default.fileExists(atPath: target.path),
                    "\(page) links to \(match.output.1)")
            }
        }
    }
}
