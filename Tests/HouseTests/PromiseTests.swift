import Foundation
import Testing

/// The table of promises to apps names tests that exist.
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
                    sources.contains("struct \(match.output.1)"), "there is no \(match.output.1)")
            }
            // The third column says what shows the promise.
            let columns = line.split(separator: "|", omittingEmptySubsequences: false)
            guard columns.count == 6 else { continue }
            for match in columns[3].matches(of: /\*([^*]+)\*/) {
                tests += 1
                #expect(
                    sources.contains("func `\(match.output.1)`"),
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
}
