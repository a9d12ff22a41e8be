import ChildProcesses
import Foundation

/// Runs the programs of this build as real processes.
enum Program {
    /// The path of a program: the build put it beside the running test bundle.
    static func path(_ name: String) -> String {
        let here =
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return URL(filePath: here).deletingLastPathComponent().appending(path: name).path
    }

    /// Runs to the end.
    static func run(
        _ name: String, _ arguments: [String], environment: [String: String] = [:]
    ) async throws -> ChildProcess.Ended {
        try await ChildProcess.run(Self.path(name), arguments, environment: environment)
    }

    /// A process that goes on. Killed when the last reference to it goes.
    static func start(
        _ name: String, _ arguments: [String], environment: [String: String] = [:]
    ) throws -> ChildProcess {
        try ChildProcess(Self.path(name), arguments, environment: environment)
    }
}

/// A directory of its own, removed at the end.
final class TemporaryDirectory: Sendable {
    let path: String

    init() throws {
        self.path =
            FileManager.default.temporaryDirectory
            .appending(path: "stratus-test-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(
            atPath: self.path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: self.path) }

    func write(_ name: String, _ text: String, mode: Int = 0o600) throws -> String {
        try self.write(name, Array(text.utf8), mode: mode)
    }

    func write(_ name: String, _ bytes: [UInt8], mode: Int = 0o600) throws -> String {
        let path = self.path + "/" + name
        try Data(bytes).write(to: URL(filePath: path))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        return path
    }

    func read(_ name: String) throws -> String {
        try String(contentsOfFile: self.path + "/" + name, encoding: .utf8)
    }
}
