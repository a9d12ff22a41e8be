import Foundation
import Testing

/// A view of a request holds places in bytes that lie elsewhere. It is passed on and never kept, and
/// neither is a span of them.
@Suite struct ViewTests {
    let repository = Repository()

    /// What was decided of a head is kept with the connection, which has the bytes too.
    private static let keepers: Set<String> = ["Sources/StratusHTTP/Server/JudgedHead.swift"]

    @Test func `nothing that is stored has a view or a span as a member`() throws {
        // A member stands four spaces in, or more in a nested type, and says its type.
        let member =
            #/^\s+(package |private |fileprivate |private\(set\) )*(let|var) \w+: (\[|\()?(RequestView|Span<|RawSpan|PointReader)\b/#
        var found: Set<String> = []
        for file in try self.repository.swiftFiles(under: "Sources")
        where ["RequestView", "Span", "PointReader"].contains(where: { file.has($0) }) {
            for (number, line) in file.code where line.hasPrefix(" ") {
                guard line.contains(member), !line.contains("{") else { continue }
                found.insert(file.path)
                #expect(
                    Self.keepers.contains(file.path), "\(file.path):\(number): \(line)")
            }
        }
        #expect(found == Self.keepers, "the views were not found")
    }
}
