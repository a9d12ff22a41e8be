import ChildProcesses
import Foundation
import StratusCommandLine
import StratusConfiguration
import StratusNode
import Testing

/// `stratus config …` as a process: exit codes and what is printed.
@Suite struct ConfigCommandTests {
    let directory = try! TemporaryDirectory()

    @Test func `a good file is called good`() async throws {
        let path = try self.directory.write("a.json5", ConfigurationPages.example())
        let ended = try await Program.run("stratus", ["config", "check", path])
        #expect(ended.code == ExitCode.success.rawValue)
        #expect(ended.output == "\(path): good\n")
        #expect(ended.errors.isEmpty)
    }

    @Test func `O-06 a bad file is refused with file, line, key and suggestion`() async throws {
        let path = try self.directory.write(
            "a.json5", "{\n  log: {\n    levle: 'info',\n  },\n  loopCount: 'many',\n}\n")
        let ended = try await Program.run(
            "stratus", ["config", "check", path], environment: ["STRATUS_LOG_LEVLE": "info"])
        #expect(ended.code == ExitCode.configuration.rawValue)
        #expect(ended.output.isEmpty)
        #expect(
            ended.errors == """
                ignored: STRATUS_LOG_LEVLE: there is no such key; did you mean 'STRATUS_LOG_LEVEL'?
                \(path):3:5: log.levle: there is no such key; did you mean 'log.level'?
                \(path):5:14: loopCount: must be a whole number from 0 to 256, not a string

                """)
    }

    @Test func `a key beside the data is told`() async throws {
        let inside = self.directory.path + "/data"
        let outside = try self.directory.write("7.key", String(repeating: "0a", count: 32))
        for (more, isTold) in [
            ("", true), ("keys: {sealingMaster: 7, masterFiles: ['7=\(outside)']}", false),
            ("keys: {sealingMaster: 7, masterFiles: ['7=\(inside)/7.key']}", true),
        ] {
            let path = try self.directory.write(
                "sealed.json5", "{dataDirectory: '\(inside)', storage: {atRest: true}, \(more)}")
            let ended = try await Program.run("stratus", ["config", "check", path])
            #expect(ended.code == ExitCode.success.rawValue, "\(ended.errors)")
            #expect(ended.output == "\(path): good\n")
            #expect(
                ended.errors.contains("name a master key outside it") == isTold, "\(ended.errors)")
            if isTold { #expect(ended.errors.contains("'\(inside)/")) }
            let json = try await Program.run("stratus", ["config", "check", "--json", path]).output
            #expect(json.contains("whoever copies this directory") == isTold, "\(json)")
        }
        let clear = try self.directory.write("clear.json5", "{dataDirectory: '\(inside)'}")
        #expect(try await Program.run("stratus", ["config", "check", clear]).errors.isEmpty)
    }

    @Test func `the problems come as JSON for a script`() async throws {
        let path = try self.directory.write("a.json5", "{loopCount: -1}")
        let ended = try await Program.run("stratus", ["config", "check", "--json", path])
        #expect(ended.code == ExitCode.configuration.rawValue)
        #expect(
            ended.output == #"{"good":false,"problems":[{"at":"\#(path):1:13","file":"\#(path)","#
                + #""line":1,"column":13,"key":"loopCount","#
                + #""text":"must be a whole number from 0 to 256, not -1.0"}],"warnings":[]}"#
                + "\n")
    }

    @Test func `operator review D13: a key that is not the certificate's is named by its file`()
        async throws
    {
        let made = try await Program.run(
            "stratus",
            ["cluster", "certificates", "--directory", self.directory.path, "--nodes", "a,b"])
        #expect(made.code == ExitCode.success.rawValue, "\(made.errors)")
        for (key, isGood) in [("a", true), ("b", false)] {
            let path = try self.directory.write(
                "\(key).json5",
                "{client: {tls: {certificateFile: 'a.pem', keyFile: '\(key).key'}}}")
            let ended = try await Program.run("stratus", ["config", "check", path])
            #expect((ended.code == ExitCode.success.rawValue) == isGood, "\(ended.errors)")
            if !isGood {
                #expect(ended.code == ExitCode.configuration.rawValue)
                #expect(ended.errors.contains("b.key' is not that of the certificate in"))
            }
        }
    }

    @Test func `operator review D15: certificates are made for all nodes or for none`() async throws
    {
        func make(_ nodes: String, _ more: [String] = []) async throws -> ChildProcess.Ended {
            try await Program.run(
                "stratus",
                ["cluster", "certificates", "--directory", self.directory.path, "--nodes", nodes]
                    + more)
        }
        #expect(try await make("c").code == ExitCode.success.rawValue)
        let refused = try await make("b,c")
        #expect(refused.code == ExitCode.cannotCreate.rawValue)
        #expect(refused.errors.contains("nothing was made"))
        #expect(
            !FileManager.default.fileExists(atPath: self.directory.path + "/b.pem"))
        let rest = try await make("b,c", ["--missing"])
        #expect(rest.code == ExitCode.success.rawValue)
        #expect(FileManager.default.fileExists(atPath: self.directory.path + "/b.pem"))
    }

    @Test func `a secret that others can read is refused`() async throws {
        let certificate = try self.directory.write("c.pem", "")
        let key = try self.directory.write("k.pem", "", mode: 0o644)
        let path = try self.directory.write(
            "a.json5", "{client: {tls: {certificateFile: 'c.pem', keyFile: 'k.pem'}}}")
        #expect(certificate.hasSuffix("c.pem"))
        let ended = try await Program.run("stratus", ["config", "check", path])
        #expect(ended.code == ExitCode.configuration.rawValue)
        #expect(ended.errors.contains("'\(key)' holds a secret and its mode 644"))
        #expect(ended.errors.contains("chmod 600 \(key)"))
    }

    @Test func `every value is printed with where it comes from`() async throws {
        let path = try self.directory.write("a.json5", "{\n  loopCount: 2,\n}")
        let ended = try await Program.run(
            "stratus", ["config", "print", "--config", path, "--changed"],
            environment: ["STRATUS_LOG_LEVEL": "debug"])
        #expect(ended.code == 0)
        #expect(
            ended.output == """
                KEY        VALUE    FROM
                loopCount  2        \(path):2:14
                log.level  "debug"  STRATUS_LOG_LEVEL

                """)
        let json = try await Program.run(
            "stratus", ["config", "print", "--config", path, "--json"])
        let rows = try #require(
            try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [[String: Any]])
        #expect(rows.count == ConfigurationKey.all.count)
    }

    static let wrong: [(name: String, arguments: [String], code: ExitCode, says: String)] = [
        ("no such file", ["config", "check", "/nowhere/a"], .missingInput, "No such file"),
        ("a directory", ["config", "check", "/"], .missingInput, "Is a directory"),
        ("no such command", ["confg"], .usage, "Did you mean 'stratus config'?"),
        ("no such option", ["config", "print", "--changd"], .usage, "Did you mean '--changed'?"),
        (
            "a container with a space", ["dev", "--container", "a b"], .usage,
            "'a b' cannot name a container"
        ),
    ]

    @Test(arguments: wrong)
    func `what cannot be done has its exit code and says why`(
        row: (name: String, arguments: [String], code: ExitCode, says: String)
    ) async throws {
        let ended = try await Program.run("stratus", row.arguments)
        #expect(ended.code == row.code.rawValue, "\(row.name)")
        #expect(ended.errors.contains(row.says), "\(row.name): \(ended.errors)")
        #expect(ended.output.isEmpty, "\(row.name)")
    }

    @Test func `X-36 the version shows what is linked and the flaws worked around`() async throws {
        let text = try await Program.run("stratus", ["--version"])
        #expect(text.code == 0)
        for name in ["Stratus ", "SQLite ", "OpenSSL ", "zlib ", "zstd "] {
            #expect(text.output.contains(name), "\(name)")
        }
        let json = try await Program.run("stratus", ["--version", "--json"])
        let object = try #require(
            try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any])
        let libraries = try #require(object["libraries"] as? [String: String])
        let flaws = try #require(object["workedAround"] as? [[String: String]])
        if libraries["SQLite"]?.hasPrefix("3.40.") == true {
            #expect(flaws.contains { $0["flaw"]?.contains("WAL-reset") == true })
        }
    }
}
