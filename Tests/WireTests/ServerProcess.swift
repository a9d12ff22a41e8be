import Foundation
import Synchronization
import WireScenarios

/// A `stratus dev` of one's own: started on ports of its choice over a directory of its own, ended and
/// swept away with the last reference or with this process.
final class ServerProcess: Sendable {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    let url: URL
    let adminURL: URL?
    let adminTokenFile: String
    private let process: Mutex<ProcessBox>
    private let directory: URL

    private struct ProcessBox: @unchecked Sendable {
        // Guarded by the mutex around it; Foundation does not say what it allows.
        let process: Process
        let leash: Pipe
    }

    /// The program, or nil where it has not been built.
    static var binary: URL? {
        let path =
            ProcessInfo.processInfo.environment["STRATUS_BINARY"]
            ?? URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: ".build/debug/stratus").path
        return FileManager.default.isExecutableFile(atPath: path) ? URL(filePath: path) : nil
    }

    init(schema: String) throws {
        guard let binary = Self.binary else { throw Failure(description: "no stratus program") }
        self.directory = FileManager.default.temporaryDirectory
            .appending(path: "stratus-wire-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: self.directory, withIntermediateDirectories: true)
        let process = Process()
        // The leash: when this process dies, however it dies, `cat` sees the end of its input and the
        // server is ended.
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments = [
            "-c",
            """
            "$0" dev --json --listen 127.0.0.1:0 --admin 127.0.0.1:0 --data "$1" --schema "$2" \
                2> "$1/log" &
            server=$!
            cat > /dev/null
            kill -TERM $server
            wait $server
            """, binary.path, self.directory.path, schema,
        ]
        let output = Pipe()
        let leash = Pipe()
        process.standardOutput = output
        process.standardInput = leash
        try process.run()
        self.process = Mutex(ProcessBox(process: process, leash: leash))

        var line = Data()
        while !line.contains(0x0A) {
            let more = output.fileHandleForReading.availableData
            guard !more.isEmpty else {
                let log = try? String(
                    contentsOf: self.directory.appending(path: "log"), encoding: .utf8)
                throw Failure(description: "stratus dev ended: \(log ?? "")")
            }
            line += more
        }
        let welcome = try JSON(parsing: Array(line.prefix { $0 != 0x0A }))
        guard let url = welcome["url"].text.flatMap({ URL(string: $0) }),
            welcome["container"].text != nil, welcome["environment"] == "development",
            welcome["apiToken"].text?.count == 64, let file = welcome["adminTokenFile"].text
        else { throw Failure(description: "an unexpected first line: \(welcome)") }
        self.url = url
        self.adminURL = welcome["adminURL"].text.flatMap { URL(string: $0) }
        self.adminTokenFile = file
    }

    deinit {
        self.process.withLock { box in
            try? box.leash.fileHandleForWriting.close()
            box.process.waitUntilExit()
        }
        try? FileManager.default.removeItem(at: self.directory)
    }
}
