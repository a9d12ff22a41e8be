import Foundation
import Testing

/// A view of a request holds places in bytes that lie elsewhere. It is passed on and never kept, and
/// neither is a span of them.
@Suite struct ViewTests {
    let repository = Repository()

    /// What was decided of a head is kept with the connection, which has the bytes too.
    private static let keepers: Set<String> = ["Sources/StratusHTTP/Server/JudgedHead.swift"]

    @Test func `nothing that is stored has a view or a span as a member`() throws {
        var found: Set<String> = []
        for file in try self.repository.swiftFiles(under: "Sources") {
            for (number, line) in file.code {
                // A member stands four spaces in, or more in a nested type, and says its type.
                guard
                    try line.firstMatch(
                        of: Regex(
                            #"^\s+(package |private |fileprivate |private\(set\) )*(let|var) \w+: "#
                                + #"(\[|\()?(RequestView|Span<|RawSpan|PointReader)\b"#)) != nil,
                    !line.contains("{")
                else { continue }
                found.insert(file.path)
                #expect(
                    Self.keepers.contains(file.path), "\(file.path):\(number): \(line)")
            }
        }
        #expect(found == Self.keepers, "the views were not found")
    }
}
