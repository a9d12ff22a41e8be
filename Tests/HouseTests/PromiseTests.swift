import Foundation
import Testing

/// The tables of promises name tests that exist.
@Suite struct PromiseTests {
    private let repository = Repository()

    @Test func `every test that the table of promises names exists`() throws {
        let page = try self.repository.text("Docs/reference/device-storage.md")
        var sources = ""
        for file in try self.repository.swiftFiles(under: "Tests") where file.module != "HouseTests"
        {
            // Names may go on in the next line of a declaration, never within the name.
            sources += file.text
        }
        var suites = 0
        var tests = 0
        for line in page.split(separator: "\n") where line.hasPrefix("| ") {
            for match in line.matches(of: /`([A-Z]\w+Tests)`/) {
                suites += 1
                #expect(
                    sources.has("struct \(match.output.1)"), "there is no \(match.output.1)")
            }
            // The third column says what shows the promise.
            let columns = line.split(separator: "|", omittingEmptySubsequences: false)
            guard columns.count == 6 else { continue }
            for match in columns[3].matches(of: /\*([^*]+)\*/) {
                tests += 1
                #expect(
                    sources.has("func `\(match.output.1)`"),
                    "there is no test '\(match.output.1)'")
            }
            for match in line.matches(of: /`(Tests\/[\w\/.-]+)`/) {
                let path = self.repository.root.appendingPathComponent(String(match.output.1))
                #expect(
                    FileManager.default.fileExists(atPath: path.path),
                    "there is no \(match.output.1)")
            }
        }
        #expect(suites > 40 && tests > 25, "\(suites) suites and \(tests) tests are named")
    }

    @Test(arguments: [
        "Docs/internals/testing.md", "Docs/reference/compatibility.md",
        "Docs/reference/promises.md",
        "Docs/security.md",
    ])
    func `every suite and stage that a page names exists`(path: String) throws {
        let page = try self.repository.text(path)
        let sources = try self.repository.swiftFiles(under: "Tests").map(\.text).joined()
        var names = 0
        for match in page.matches(of: /`([A-Z]\w+Tests)`/) {
            names += 1
            let name = match.output.1
            #expect(
                sources.has("struct \(name)") || sources.has("class \(name)")
                    || FileManager.default.fileExists(
                        atPath: self.repository.root.appendingPathComponent("Tests/\(name)").path),
                "there is no \(name)")
        }
        for match in page.matches(of: /`(?:Tests\/Stages\/)?(\d\d-[a-z-]+)`/) {
            names += 1
            let stage = self.repository.root.appendingPathComponent(
                "Tests/Stages/\(match.output.1)")
            #expect(
                FileManager.default.fileExists(atPath: stage.path),
                "there is no stage \(match.output.1)")
        }
        #expect(names > 5, "\(names) names")
    }

    /// The pages shorten the names of conversations: they name how each begins.
    @Test(arguments: ["Docs/internals/testing.md", "Docs/reference/compatibility.md"])
    func `every conversation that a page names exists`(path: String) throws {
        let page = try self.repository.text(path)
        let sources = try self.repository.swiftFiles(under: "Tests/WireScenarios").map(\.text)
            .joined()
        var names = 0
        for match in page.matches(of: /\*((?:promise|engines|share|rule|check)\b[^*]*)\*/) {
            names += 1
            let name = match.output.1
            #expect(sources.has("\"\(name)"), "no conversation begins with '\(name)'")
        }
        #expect(names > 5, "\(names) names")
    }

    @Test func `every promise of CloudKit's is judged and names tests that exist`() throws {
        let page = try self.repository.text("Docs/reference/promises.md")
        var sources = ""
        for file in try self.repository.swiftFiles(under: "Tests") where file.module != "HouseTests"
        {
            sources += file.text
        }
        var promises = 0
        for line in page.split(separator: "\n") where line.hasPrefix("| ") {
            let columns = line.split(separator: "|", omittingEmptySubsequences: false)
                .map { $0.trimmingCharacters(in: .whitespaces) }
            guard columns.count == 5, columns[1] != "Promise", columns[1] != "---" else { continue }
            promises += 1
            let mark = columns[2].first
            #expect(mark == "●" || mark == "◐" || mark == "○", "\(line)")
            #expect(mark == "●" || columns[2].count > 2, "it must say what is not kept: \(line)")
            var names = 0
            for match in columns[3].matches(of: /`([A-Z]\w+Tests)`/) {
                names += 1
                #expect(
                    sources.has("struct \(match.output.1)"), "there is no \(match.output.1)")
            }
            for match in columns[3].matches(of: /\*([^*]+)\*/) {
                names += 1
                #expect(
                    sources.has("\"\(match.output.1)\"")
                        || sources.has("\"promise: \(match.output.1)\""),
                    "there is no conversation '\(match.output.1)'")
            }
            #expect(names > 0, "nothing shows it: \(line)")
        }
        #expect(promises > 35, "\(promises) promises")
    }
}
