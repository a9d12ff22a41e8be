import Foundation
import Glibc
import Synchronization

/// Runs the programs of this build as real processes.
enum Program {
    /// Where the build put them: beside the test bundle that is running.
    static func url(_ name: String) -> URL {
        let here =
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return URL(filePath: here).deletingLastPathComponent().appending(path: name)
    }

    struct Ended: Sendable {
        var code: Int32
        var output: String
        var errors: String
    }

    /// Runs to the end.
    static func run(
        _ name: String, _ arguments: [String], environment: [String: String] = [:]
    ) throws -> Ended {
        let running = try Running(name, arguments, environment: environment)
        let code = running.waitForEnd()
        return Ended(code: code, output: running.output, errors: running.errors)
    }

    /// A process that goes on. Killed when the last reference to it goes.
    final class Running: Sendable {
        private let process: Process
        private let text = Mutex((output: Data(), errors: Data()))
        private let readers = DispatchGroup()

        init(_ name: String, _ arguments: [String], environment: [String: String] = [:]) throws {
            let process = Process()
            process.executableURL = Program.url(name)
            process.arguments = arguments
            var all = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("STRATUS") }
            all.merge(environment) { $1 }
            process.environment = all
            let output = Pipe()
            let errors = Pipe()
            process.standardInput = FileHandle.nullDevice
            process.standardOutput = output
            process.standardError = errors
            self.process = process
            try process.run()
            self.read(output) { text, data in text.output += data }
            self.read(errors) { text, data in text.errors += data }
        }

        deinit { if self.process.isRunning { kill(self.process.processIdentifier, SIGKILL) } }

        private func read(
            _ pipe: Pipe,
            _ take: @escaping @Sendable (inout (output: Data, errors: Data), Data) -> Void
        ) {
            let descriptor = dup(pipe.fileHandleForReading.fileDescriptor)
            self.readers.enter()
            let readers = self.readers
            // Not `self`: the reader must not keep the process alive.
            let sink = WeakSink { [weak self] data in self?.text.withLock { take(&$0, data) } }
            Thread.detachNewThread {
                var buffer = [UInt8](repeating: 0, count: 1 << 14)
                while true {
                    let count = Glibc.read(descriptor, &buffer, buffer.count)
                    if count <= 0 { break }
                    sink.take(Data(buffer[..<count]))
                }
                close(descriptor)
                readers.leave()
            }
        }

        private struct WeakSink: Sendable {
            let take: @Sendable (Data) -> Void
        }

        var identifier: Int32 { self.process.processIdentifier }
        var output: String { self.text.withLock { String(decoding: $0.output, as: UTF8.self) } }
        var errors: String { self.text.withLock { String(decoding: $0.errors, as: UTF8.self) } }
        var isRunning: Bool { self.process.isRunning }

        func signal(_ number: Int32) { kill(self.process.processIdentifier, number) }

        func waitForEnd() -> Int32 {
            self.process.waitUntilExit()
            self.readers.wait()
            return self.process.terminationStatus
        }

        /// The first line of output, once it is there; nil when the process ended without one.
        func firstLine() -> String? {
            for _ in 0..<2_000 {
                if let end = self.output.firstIndex(of: "\n") { return String(self.output[..<end]) }
                if !self.isRunning { break }
                usleep(5_000)
            }
            let text = self.output
            return text.firstIndex(of: "\n").map { String(text[..<$0]) }
        }

        /// Waits until `condition` holds, ten seconds at most.
        func waits(until condition: () -> Bool) -> Bool {
            for _ in 0..<2_000 {
                if condition() { return true }
                usleep(5_000)
            }
            return condition()
        }
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
        let path = self.path + "/" + name
        try Data(text.utf8).write(to: URL(filePath: path))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        return path
    }

    func read(_ name: String) throws -> String {
        try String(contentsOfFile: self.path + "/" + name, encoding: .utf8)
    }
}
