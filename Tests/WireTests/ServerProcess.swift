import ChildProcesses
import Foundation
import WireScenarios

/// A `stratus dev` for one test: started on free ports over a directory of its own. It is ended and
/// removed with the last reference or with this process.
final class ServerProcess: Sendable {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    let url: URL
    let adminURL: URL?
    let adminTokenFile: String
    private let process: ChildProcess

    /// The program, or nil where it has not been built.
    static var binary: URL? {
        let path =
            ProcessInfo.processInfo.environment["STRATUS_BINARY"]
            ?? URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: ".build/debug/stratus").path
        return FileManager.default.isExecutableFile(atPath: path) ? URL(filePath: path) : nil
    }

    init(schema: String) async throws {
        guard let binary = Self.binary else { throw Failure(description: "no stratus program") }
        // The leash: when this process dies, however it dies, `cat` sees the end of its input, the
        // server is ended and its directory removed.
        self.process = try ChildProcess(
            "/bin/sh",
            [
                "-c",
                """
                directory=$(mktemp -d "$1/stratus-wire-XXXXXX")
                "$0" dev --json --listen 127.0.0.1:0 --admin 127.0.0.1:0 --data "$directory" \
                    --schema "$2" &
                server=$!
                cat > /dev/null
                kill -TERM $server
                wait $server
                rm -rf "$directory"
                """, binary.path, FileManager.default.temporaryDirectory.path, schema,
            ], input: .leash, lifetime: .seconds(1_200))
        guard let line = await self.process.firstLine() else {
            throw Failure(description: "stratus dev did not come up: \(self.process.errors)")
        }
        let welcome = try JSON(parsing: Array(line.utf8))
        guard let url = welcome["url"].text.flatMap({ URL(string: $0) }),
            welcome["container"].text != nil, welcome["environment"] == "development",
            welcome["apiToken"].text?.count == 64, let file = welcome["adminTokenFile"].text
        else { throw Failure(description: "an unexpected first line: \(welcome)") }
        self.url = url
        self.adminURL = welcome["adminURL"].text.flatMap { URL(string: $0) }
        self.adminTokenFile = file
    }
}
