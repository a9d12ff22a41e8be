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
            where file.module != "HouseTests" && words.contains(where: { file.has($0) }) {
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
        for file in try self.repository.swiftFiles(under: "Sources")
        where file.has("@unchecked Sendable") {
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

    /// Release builds of Swift 6.3.1 lose the other parts of such a tuple: the receiver reads
    /// memory that was never written. Debug builds do not.
    @Test func `no child task returns a tuple with a Result`() throws {
        for file in try self.repository.swiftFiles(under: "Sources") where file.has("TaskGroup(") {
            #expect(
                file.text.firstMatch(of: #/TaskGroup\(\s*of: \([^)]*[^\[]Result</#) == nil,
                "\(file.path): return an array of results beside the other parts")
        }
    }

    @Test func `every stage says what it shows and how long it may take`() throws {
        let folder = self.repository.root.appendingPathComponent("Tests/Stages")
        var (budget, alone) = (0, 0)
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        where FileManager.default.isExecutableFile(
            atPath: folder.appendingPathComponent(name).path)
        {
            let lines = try self.repository.text("Tests/Stages/\(name)").split(
                separator: "\n", maxSplits: 3, omittingEmptySubsequences: false)
            #expect(lines[1].hasPrefix("# "), "\(name) has no title on its second line")
            let line = lines[2].wholeMatch(of: /# budget: (\d+) s(, alone)?/)
            let seconds = line.flatMap { Int($0.output.1) }
            #expect(seconds != nil, "\(name) has no budget on its third line")
            if line?.output.2 == nil { budget += seconds ?? 0 } else { alone += seconds ?? 0 }
        }
        // CI has 45 minutes; the build and the tests in process take some 12 of them.
        let all = alone + budget / 2
        #expect(all <= 25 * 60, "the stages may take \(all) s, of which \(alone) s alone")
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
