import Foundation

/// Test vectors that live beside the repository, not in it.
///
/// The tests look in `$STRATUS_SHARED`, then in `shared` one and two levels above the package.
/// Without the vectors they are skipped, visibly.
enum SharedVectors {
    static let root: URL? = {
        let package = URL(filePath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let candidates =
            [ProcessInfo.processInfo.environment["STRATUS_SHARED"].map { URL(filePath: $0) }]
            + [package.appending(path: "../shared"), package.appending(path: "../../shared")]
        return candidates.compactMap(\.self).first { candidate in
            FileManager.default.fileExists(atPath: candidate.appending(path: "vectors").path)
        }
    }()

    static var jsonParsing: URL? { self.root?.appending(path: "vectors/json/test_parsing") }
}
