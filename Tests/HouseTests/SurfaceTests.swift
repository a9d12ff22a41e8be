import Foundation
import Testing

/// A path prefix stands in one surface, and only a surface's plan looks at the path.
@Suite struct SurfaceTests {
    private let repository = Repository()

    private func files() throws -> [SourceFile] {
        try self.repository.swiftFiles(under: "Sources").filter {
            $0.module == "StratusGateway" || $0.module == "StratusNode"
        }
    }

    @Test func `only the plan of a surface asks for the path of a request`() throws {
        var plans = 0
        for file in try self.files() where file.text.range(of: "head.path") != nil {
            let lines = file.text.split(separator: "\n", omittingEmptySubsequences: false)
            for (index, line) in lines.enumerated() where line.contains("head.path") {
                let function = lines[...index].last { $0.contains("func ") } ?? ""
                #expect(
                    function.contains("func plan("),
                    "\(file.path):\(index + 1) asks for the path outside of a plan")
                plans += 1
            }
        }
        #expect(plans >= 6, "the surfaces were not found")
    }

    private static let roots = [
        "/database/1/", "/device/1/", "/kvs/1/", "/documents/1/", "/ubiquity/1/", "/dav/",
        "/published/", "/assets/", "/aps", "/signin", "/signup", "/password", "/reset", "/forgot",
        "/app-passwords",
    ]

    @Test func `a path prefix is written in one folder`() throws {
        var folders: [String: Set<String>] = [:]
        for file in try self.files() {
            let folder = file.path.split(separator: "/").dropLast().joined(separator: "/")
            for piece in file.text.components(separatedBy: "\"/").dropFirst() {
                for root in Self.roots where piece.hasPrefix(root.dropFirst()) {
                    folders[root, default: []].insert(folder)
                }
            }
        }
        for root in Self.roots {
            #expect(folders[root]?.count == 1, "\(root) stands in \(folders[root] ?? [])")
        }
    }
}
