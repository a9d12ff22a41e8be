import ChildProcesses
import Foundation
import StratusCommandLine
import StratusNode
import Testing

/// `stratus cluster convert` as a process: every wrong order is refused with what to do next, and
/// changes nothing. `Tests/Stages/61-growing` shows the way that is right.
@Suite struct ConvertCommandTests {
    let directory = try! TemporaryDirectory()

    private var data: String { self.directory.path + "/data" }

    /// - Parameter more: of the `cluster` section.
    private func configuration(
        _ name: String = "a", secret: String = "secret", data: String? = nil, more: String
    ) throws -> String {
        try self.directory.write(
            "\(UUID().uuidString).json5",
            """
            {
              dataDirectory: '\(data ?? self.data)',
              client: {listen: ['127.0.0.1:0']}, admin: {listen: '127.0.0.1:0'},
              cluster: {
                name: '\(name)', secretFile: '\(secret)',
                tls: {certificateFile: '\(name).pem', keyFile: '\(name).key',
                      authorityFile: 'authority.pem'},
                \(more)
              },
            }
            """)
    }

    private func convert(_ path: String) async throws -> ChildProcess.Ended {
        try await Program.run("stratus", ["cluster", "convert", "--config", path])
    }

    private func expect(
        _ path: String, _ code: ExitCode, _ words: String,
        at location: SourceLocation = #_sourceLocation
    ) async throws {
        let ended = try await self.convert(path)
        #expect(ended.code == code.rawValue, "\(ended.errors)", sourceLocation: location)
        #expect(
            (ended.output + ended.errors).contains(words), "\(ended.errors)",
            sourceLocation: location)
    }

    @Test func `a node that served alone is converted, and every wrong order is refused`()
        async throws
    {
        let made = try await Program.run(
            "stratus",
            ["cluster", "certificates", "--directory", self.directory.path, "--nodes", "a,b"])
        #expect(made.code == 0, "\(made.errors)")
        let good = try self.configuration(more: "peers: ['a@127.0.0.1:7400']")
        try await self.expect(good, .missingInput, "is not the data directory of a node")

        let dev = try await NodeProcessTests.Dev(self.data)
        try await self.expect(good, .system, "stop the node first")
        #expect(try await dev.stop() == 0)

        let alone = try self.directory.write(
            "alone.json5", "{dataDirectory: '\(self.data)', client: {listen: ['127.0.0.1:0']}}")
        try await self.expect(alone, .configuration, "names no cluster")
        try await self.expect(
            self.configuration(more: "peers: ['a@127.0.0.1:7400', 'b@127.0.0.1:7401']"),
            .configuration, "list only this node")
        try await self.expect(
            self.configuration(
                more: "join: ['b@127.0.0.1:7401'], joinTokenFile: 'secret', "
                    + "address: '127.0.0.1:7400'"),
            .configuration, "'cluster.join' is for nodes that come later")
        try await self.expect(
            self.configuration(secret: "missing", more: "peers: ['a@127.0.0.1:7400']"),
            .configuration, "cluster.secretFile")
        let starts = try await Program.run("stratus", ["serve", "--config", good])
        #expect(starts.code == ExitCode.configuration.rawValue)
        #expect(starts.errors.contains("stratus cluster convert"), "\(starts.errors)")
        // A token that is none would be every node's.
        let token = self.data + "/admin.token"
        let kept = try String(contentsOfFile: token, encoding: .utf8)
        try "short\n".write(toFile: token, atomically: false, encoding: .utf8)
        try await self.expect(good, .configuration, "the administrators' token")
        try kept.write(toFile: token, atomically: false, encoding: .utf8)
        #expect(!FileManager.default.fileExists(atPath: self.data + "/MASTER"))

        try await self.expect(good, .success, "Converted: this node is 'a'")
        try await self.expect(good, .success, "converted already")
        try await self.expect(
            self.configuration("b", more: "peers: ['b@127.0.0.1:7400']"), .refused,
            "under the name 'a'")
        _ = try self.directory.write("other", "another secret of some length")
        let other = try self.configuration(
            secret: "other", more: "peers: ['a@127.0.0.1:7400']")
        try await self.expect(other, .configuration, "another secret")
        let back = try await Program.run("stratus", ["serve", "--config", alone])
        #expect(back.code == ExitCode.configuration.rawValue)
        #expect(back.errors.contains("'cluster' section"), "\(back.errors)")
        // Without MASTER nobody would find their data.
        try FileManager.default.removeItem(atPath: self.data + "/MASTER")
        let lost = try await Program.run("stratus", ["serve", "--config", good])
        #expect(lost.code == ExitCode.configuration.rawValue)
        #expect(lost.errors.contains("MASTER is missing"), "\(lost.errors)")
    }
}
