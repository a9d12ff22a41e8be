import Foundation
import StratusAdmin
import StratusCommandLine
import StratusConfiguration
import StratusControl
import StratusLoad
import StratusNode
import Testing

/// The pages in the tree are what the table of keys makes. To rewrite them after a change:
/// `STRATUS_TEST_REWRITE=1 swift test --filter ConfigurationPagesTests`.
@Suite struct ConfigurationPagesTests {
    static let root = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    static let pages: [(path: String, text: String)] = [
        ("Config/stratus.example.json5", ConfigurationPages.example()),
        ("Docs/reference/configuration.md", ConfigurationPages.reference()),
        ("Docs/reference/administrators-api.md", AdminPagesReference.page()),
        (
            "Docs/reference/command-line.md",
            CommandLinePages.reference(of: [
                StratusProgram.definition, ControlProgram.definition, LoadProgram.definition,
            ])
        ),
    ]

    @Test(arguments: pages)
    func `a page is in step with the table of keys`(page: (path: String, text: String)) throws {
        let url = Self.root.appending(path: page.path)
        if ProcessInfo.processInfo.environment["STRATUS_TEST_REWRITE"] != nil {
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(page.text.utf8).write(to: url)
        }
        #expect(try String(contentsOf: url, encoding: .utf8) == page.text)
    }

    /// Pages go by sections: a key of one that nobody describes would be left out.
    @Test func `every section of a key is described`() {
        let sections = Set(ConfigurationKey.sections.map(\.path))
        for key in ConfigurationKey.all {
            guard let end = key.path.lastIndex(of: ".") else { continue }
            #expect(sections.contains(String(key.path[..<end])), "\(key.path)")
        }
    }

    @Test func `the example as it is sets nothing`() {
        let result = ConfigurationReaderTests.read(ConfigurationPages.example())
        #expect(result.problems.isEmpty)
        #expect(result.settings == ConfigurationSettings())
    }

    @Test func `the example with every key uncommented gives the defaults`() {
        let text = ConfigurationPages.example()
            .replacing(/(?m)^( *)\/\/(\S)/) { $0.output.1 + $0.output.2 }
        #expect(text.contains("    loopCount: 0,\n"))
        let result = ConfigurationReaderTests.read(text)
        #expect(result.problems.isEmpty)
        #expect(ConfigurationSettings().changes(to: result.settings).isEmpty)
    }
}
