import ChildProcesses
import Foundation
import WireScenarios

/// A `stratus dev` for one test, or a cluster: started on free ports over a directory of its own.
/// It is ended and removed with the last reference or with this process.
final class ServerProcess: Sendable {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// The address at which each node answers clients.
    let urls: [URL]
    let adminURL: URL?
    let adminTokenFile: String
    private let process: ChildProcess

    var url: URL { self.urls[0] }

    private static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// The program, or nil where it has not been built.
    static var binary: URL? {
        let path =
            ProcessInfo.processInfo.environment["STRATUS_BINARY"]
            ?? Self.root.appending(path: ".build/debug/stratus").path
        return FileManager.default.isExecutableFile(atPath: path) ? URL(filePath: path) : nil
    }

    convenience init(schema: String) async throws {
        let (process, welcome) = try await Self.start(
            """
            "$0" dev --json --listen 127.0.0.1:0 --admin 127.0.0.1:0 --data "$directory" \
                --schema "$2" &
            server=$!
            cat > /dev/null
            kill -TERM $server
            wait $server
            """, [schema])
        guard let url = welcome["url"].text.flatMap({ URL(string: $0) }),
            welcome["container"].text != nil, welcome["environment"] == "development",
            welcome["apiToken"].text?.count == 64, let file = welcome["adminTokenFile"].text
        else { throw Failure(description: "an unexpected first line: \(welcome)") }
        self.init(process, [url], welcome["adminURL"].text.flatMap { URL(string: $0) }, file)
    }

    /// A cluster of three nodes with a few partitions, whose development schemas are closed.
    static func cluster() async throws -> ServerProcess {
        let (process, welcome) = try await Self.start(
            """
            export STRATUS_BINARY="$0" STRATUS_DEVELOPMENT_SCHEMA=strict
            "$2" up --partitions 16 --json --directory "$directory" || exit 1
            cat > /dev/null
            "$2" down --directory "$directory" > /dev/null
            """, [Self.root.appending(path: "Deploy/cluster").path])
        let urls = welcome["urls"].elements.compactMap { $0.text.flatMap { URL(string: $0) } }
        guard urls.count == 3, let directory = welcome["directory"].text,
            let admin = welcome["adminURLs"].elements.first?.text
        else { throw Failure(description: "an unexpected first line: \(welcome)") }
        return ServerProcess(
            process, urls, URL(string: admin), "\(directory)/node-a/data/admin.token")
    }

    private init(
        _ process: ChildProcess, _ urls: [URL], _ adminURL: URL?, _ adminTokenFile: String
    ) {
        self.process = process
        self.urls = urls
        self.adminURL = adminURL
        self.adminTokenFile = adminTokenFile
    }

    /// Runs a script that starts nodes in `$directory`, prints a line about them, and ends them
    /// when its input ends. `$0` is the program, and words follow from `$2` on.
    private static func start(
        _ script: String, _ words: [String]
    ) async throws -> (process: ChildProcess, welcome: JSON) {
        guard let binary = Self.binary else { throw Failure(description: "no stratus program") }
        // The leash: when this process dies, however it dies, `cat` sees the end of its input, the
        // server is ended and its directory removed.
        let process = try ChildProcess(
            "/bin/sh",
            [
                "-c",
                """
                directory=$(mktemp -d "$1/stratus-wire-XXXXXX")
                trap 'rm -rf "$directory"' EXIT
                \(script)
                """, binary.path, FileManager.default.temporaryDirectory.path,
            ] + words, input: .leash, lifetime: .seconds(1_200))
        guard let line = await process.firstLine() else {
            throw Failure(description: "no node came up: \(process.errors)")
        }
        return (process, try JSON(parsing: Array(line.utf8)))
    }
}
