import ChildProcesses
import Foundation
import StratusCommandLine
import Testing

/// `stratus data-directory seal` and `unseal` as processes: every wrong order is refused with what
/// to do next, and changes nothing. `Tests/Stages/66-sealed` shows that data survive, and kills.
@Suite struct SealCommandTests {
    let directory = try! TemporaryDirectory()

    private var data: String { self.directory.path + "/data" }

    private func configuration(_ isSealed: Bool, more: String = "") throws -> String {
        try self.directory.write(
            "\(UUID().uuidString).json5",
            """
            {
              dataDirectory: '\(self.data)', client: {listen: ['127.0.0.1:0']},
              storage: {atRest: \(isSealed)}, \(more)
            }
            """)
    }

    private func expect(
        _ words: [String], _ code: ExitCode, _ text: String,
        at location: SourceLocation = #_sourceLocation
    ) async throws {
        let ended = try await Program.run("stratus", ["data-directory"] + words)
        #expect(ended.code == code.rawValue, "\(ended.errors)", sourceLocation: location)
        #expect(
            (ended.output + ended.errors).contains(text), "\(ended.output)\(ended.errors)",
            sourceLocation: location)
    }

    private func state() throws -> [String: Data] {
        var files: [String: Data] = [:]
        let all = FileManager.default.enumerator(atPath: self.data)
        while let name = all?.nextObject() as? String {
            files[name] = FileManager.default.contents(atPath: self.data + "/" + name)
        }
        return files
    }

    @Test func `a stopped directory is sealed and unsealed, and every wrong order is refused`()
        async throws
    {
        let (sealed, clear) = (try self.configuration(true), try self.configuration(false))
        try await self.expect(["seal", "--config", sealed], .missingInput, "has served")
        #expect(!FileManager.default.fileExists(atPath: self.data))

        let dev = try await NodeProcessTests.Dev(self.data)
        try await self.expect(["seal", "--config", sealed], .system, "stop the node first")
        #expect(try await dev.stop() == 0)
        let before = try self.state()
        try await self.expect(
            ["seal", "--config", clear], .configuration, "set 'storage.atRest' to true")
        try await self.expect(["unseal", "--config", clear], .success, "is not sealed already")
        try await self.expect(
            [
                "seal", "--config",
                self.configuration(true, more: "keys: {sealingMaster: 3}"),
            ], .configuration, "'keys.sealingMaster' is 3")
        // Another key than the directory was used with would seal what nobody can open later.
        let key = self.data + "/token.key"
        try Data(repeating: 7, count: 32).write(to: URL(fileURLWithPath: key))
        try await self.expect(
            ["seal", "--config", sealed], .configuration, "restore 'token.key'")
        try #require(before["token.key"]).write(to: URL(fileURLWithPath: key))
        #expect(try self.state() == before)

        try await self.expect(["seal", "--config", sealed], .success, "before-sealing")
        try await self.expect(["seal", "--config", sealed], .success, "is sealed already")
        let refused = try await Program.run(
            "stratus", NodeProcessTests.Dev.arguments(self.data))
        #expect(refused.errors.contains("stratus data-directory unseal"), "\(refused.errors)")
        let next = try await NodeProcessTests.Dev(
            self.data, environment: ["STRATUS_STORAGE_AT_REST": "true"])
        // Its key lies beside what it seals.
        let doctor = try await next.control("doctor", "--wait", "20s")
        #expect(doctor.output.contains("whoever copies this directory can read it"), "\(doctor)")
        #expect(doctor.output.contains("openssl rand -hex 32"), "\(doctor)")
        #expect(try await next.stop() == 0)
        #expect(next.running.errors.contains("name a master key outside it"))
        #expect(next.running.errors.contains("before-sealing"), "the start names what is left")

        try await self.expect(
            ["unseal", "--config", clear, "--remove-old"], .success, "before-sealing")
        #expect(!FileManager.default.fileExists(atPath: self.data + "/before-unsealing"))
        try await self.expect(["seal", "--config", sealed], .refused, "an earlier conversion")
        try FileManager.default.removeItem(atPath: self.data + "/before-sealing")
        try await self.expect(["seal", "--config", sealed, "--remove-old"], .success, "removed")
        #expect(!FileManager.default.fileExists(atPath: self.data + "/before-sealing"))
    }
}
