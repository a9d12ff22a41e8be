import Foundation
import StratusHTTP
import StratusModel
import Testing

/// JSONTestSuite: `y_` must be accepted, `n_` must be refused, `i_` may go either way.
@Suite(.enabled(if: SharedVectors.jsonParsing != nil, "needs the shared vectors"))
struct JSONSuiteTests {
    @Test func `G-17: every file of the public parsing suite behaves as labelled`() throws {
        let folder = try #require(SharedVectors.jsonParsing)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        #expect(names.count == 318)
        for name in names {
            let text = Bytes(try Data(contentsOf: folder.appending(path: name)))
            let document = try? JSONDocument(parsing: text)
            if name.hasPrefix("y_") { #expect(document != nil, "\(name)") }
            if name.hasPrefix("n_") { #expect(document == nil, "\(name)") }
        }
    }
}
