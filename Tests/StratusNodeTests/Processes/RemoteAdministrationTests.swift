import ChildProcesses
import Foundation
import StratusCommandLine
import Testing

/// A node whose administrators' listener other machines could reach, with the certificates that
/// `stratus cluster certificates` makes; and what `stratusctl support` collects from it.
@Suite struct RemoteAdministrationTests {
    let directory = try! TemporaryDirectory()
    private var certificates: String { self.directory.path + "/cluster" }

    /// A cluster of one node, reached at 127.0.0.2, which is what its certificate says.
    private struct Remote {
        let node: ChildProcess
        let url: String
        let certificates: String
        let data: String

        func control(_ arguments: [String], as admin: String? = "mara", token: String? = nil)
            async throws -> ChildProcess.Ended
        {
            var words = ["--node", self.url, "--authority", self.certificates + "/authority.pem"]
            if let admin {
                words += [
                    "--certificate", "\(self.certificates)/admins/\(admin).pem",
                    "--key", "\(self.certificates)/admins/\(admin).key",
                ]
            }
            if let token { words += ["--token-file", token] }
            return try await Program.run("stratusctl", words + arguments)
        }

        func stop() async throws -> Int32 {
            self.node.signal(SIGTERM)
            return try await self.node.end().code
        }
    }

    private func makeCertificates(_ more: [String]) async throws -> ChildProcess.Ended {
        try await Program.run(
            "stratus", ["cluster", "certificates", "--directory", self.certificates] + more)
    }

    private func start() async throws -> Remote {
        let made = try await self.makeCertificates([
            "--nodes", "a", "--hosts", "a=127.0.0.2,a.example.org", "--admin", "mara,ben",
        ])
        #expect(made.code == 0, "\(made.errors)")
        let files = self.certificates
        let data = self.directory.path + "/data"
        let path = try self.directory.write(
            "a.json5",
            """
            {dataDirectory: '\(data)', development: true, developmentSchema: 'justInTime',
             client: {listen: ['127.0.0.1:0']},
             admin: {listen: '127.0.0.2:0', tls: {
                certificateFile: '\(files)/a.pem', keyFile: '\(files)/a.key',
                clientAuthorityFile: '\(files)/admins/authority.pem'}},
             cluster: {
                name: 'a', peers: ['a@127.0.0.1:3'], listen: '127.0.0.1:0', partitionCount: 4,
                secretFile: '\(files)/secret',
                tls: {certificateFile: '\(files)/a.pem', keyFile: '\(files)/a.key',
                      authorityFile: '\(files)/authority.pem'}}}
            """)
        let check = try await Program.run("stratus", ["config", "check", path])
        #expect(check.code == 0, "\(check.errors)")
        let node = try Program.start("stratus", ["serve", "--config", path])
        #expect(await node.waits { node.errors.contains(#""text":"ready""#) }, "\(node.errors)")
        let line = try #require(
            node.errors.split(separator: "\n").first {
                $0.contains(#""text":"administrators""#)
            })
        let fields = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        return Remote(
            node: node, url: try #require(fields?["url"] as? String), certificates: files,
            data: data)
    }

    @Test func `D6 stratusctl reaches a node from another machine by certificates alone`()
        async throws
    {
        let remote = try await self.start()
        #expect(remote.url.hasPrefix("https://127.0.0.2:"))
        let status = try await remote.control(["status"])
        #expect(status.code == 0 && status.output.contains("ready"), "\(status)")
        // Waits, and then says what is wrong with a cluster of one.
        let doctor = try await remote.control(["doctor", "--wait", "2s"])
        #expect(doctor.code == ExitCode.refused.rawValue, "\(doctor)")
        #expect(doctor.output.hasPrefix("- partitions have 1 of 3 replicas"), "\(doctor)")
        // Nobody, and a node's certificate, are not administrators.
        let nobody = try await remote.control(["status"], as: nil)
        #expect(nobody.code == ExitCode.denied.rawValue, "\(nobody)")
        #expect(nobody.errors.contains("'--token-file'"))
        let peer = try await Program.run(
            "stratusctl",
            [
                "--node", remote.url, "--authority", self.certificates + "/authority.pem",
                "--certificate", self.certificates + "/a.pem",
                "--key", self.certificates + "/a.key", "status",
            ])
        #expect(peer.code != 0, "a node's certificate is none of an administrator's: \(peer)")
        // The token is good as well, and by another name the node is not who it should be.
        let token = try await remote.control(
            ["status"], as: nil, token: remote.data + "/admin.token")
        #expect(token.code == 0, "\(token)")
        let port = try #require(remote.url.split(separator: ":").last)
        let other = try await Program.run(
            "stratusctl",
            [
                "--node", "https://localhost:\(port)", "--authority",
                self.certificates + "/authority.pem", "status",
            ])
        #expect(other.code != 0)
        // The other scheme is named, and so is a file that is none.
        let plain = try await Program.run(
            "stratusctl", ["--node", "http" + remote.url.dropFirst("https".count), "status"])
        #expect(plain.code == ExitCode.usage.rawValue, "\(plain)")
        #expect(plain.errors.contains("speaks TLS: write https://"), "\(plain)")
        let empty = try self.directory.write("empty.pem", "")
        let nothing = try await Program.run(
            "stratusctl", ["--node", remote.url, "--authority", empty, "status"])
        #expect(nothing.code == ExitCode.malformedInput.rawValue, "\(nothing)")
        #expect(nothing.errors.contains("empty.pem' holds no certificate"), "\(nothing)")
        // The trail has the certificate's name.
        #expect(try await remote.control(["log-level", "set", "info"], as: "ben").code == 0)
        let trail = try await remote.control(["audit"])
        #expect(trail.output.contains("ben") && trail.output.contains("log-level set"), "\(trail)")
        // The variables stand for the options.
        let variables = try await Program.run(
            "stratusctl", ["status"],
            environment: [
                "STRATUSCTL_NODE": remote.url,
                "STRATUSCTL_AUTHORITY": self.certificates + "/authority.pem",
                "STRATUSCTL_CERTIFICATE": self.certificates + "/admins/mara.pem",
                "STRATUSCTL_KEY": self.certificates + "/admins/mara.key",
            ])
        #expect(variables.code == 0, "\(variables)")
        #expect(remote.node.errors.contains(#""text":"the cluster is formed""#))
        #expect(try await remote.stop() == 0)
    }

    /// Every secret of the node: tokens, keys, and the lines of private keys.
    private func secrets(_ remote: Remote, _ more: [String]) throws -> [String] {
        var secrets = more
        for path in [remote.data + "/admin.token", self.certificates + "/secret"] {
            secrets.append(
                try String(contentsOfFile: path, encoding: .utf8)
                    .trimmingCharacters(in: .whitespacesAndNewlines))
        }
        for path in ["a.key", "authority.key", "admins/mara.key", "admins/authority.key"] {
            let text = try String(
                contentsOfFile: "\(self.certificates)/\(path)", encoding: .utf8)
            secrets += text.split(separator: "\n").filter { !$0.hasPrefix("-----") }.map(
                String.init)
        }
        return secrets
    }

    @Test func `support collects the nodes in one file without a secret`() async throws {
        let remote = try await self.start()
        let container = ["--container", "iCloud.org.example.support"]
        let token = try await remote.control(["token", "create", "--name", "t"] + container)
        let join = try await remote.control(["cluster", "join-token"])
        let link = try await remote.control(["user", "add", "--email", "mara@example.org"])
        #expect(token.code == 0 && join.code == 0 && link.code == 0, "\(token) \(join) \(link)")
        let session = try await remote.control(
            ["user", "sign-in", "--email", "mara@example.org"] + container)
        #expect(session.code == 0, "\(session)")
        let words = [token, join, session].map {
            $0.output.trimmingCharacters(in: .whitespacesAndNewlines)
        }
        // A request whose URL holds two of them: it is a line of the log.
        let clients = try #require(
            remote.node.errors.matches(of: /"text":"clients","url":"([^"]+)"/).first?.output.1)
        let saved = try await NodeProcessTests.get(
            "\(clients)/database/1/iCloud.org.example.support/development/private/records/modify"
                + "?ckAPIToken=\(words[0])&ckWebAuthToken=\(words[2])",
            body: """
                {"operations": [{"operationType": "forceUpdate", "record": {"recordType": "Note",
                  "recordName": "hidden-name", "fields": {"text": {"value": "hidden-contents"}}}}]}
                """)
        #expect(saved.status == 200, "\(saved.text)")
        let path = self.directory.path + "/problem.tar"
        let support = try await remote.control(["support", "--output", path])
        #expect(support.code == 0 && support.output.hasPrefix("wrote \(path): "), "\(support)")

        let bytes = try Data(contentsOf: URL(filePath: path))
        #expect((10_000...4_000_000).contains(bytes.count))
        let text = String(decoding: bytes, as: UTF8.self)
        for secret in try self.secrets(remote, words + ["hidden-name", "hidden-contents"]) {
            #expect(secret.utf8.count >= 8, "'\(secret)' proves nothing")
            #expect(!text.contains(secret), "a secret is in the file: \(secret)")
        }
        let folder = self.directory.path + "/unpacked"
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        let unpacked = try await ChildProcess.run(
            "/usr/bin/tar", ["-xf", path, "-C", folder, "--strip-components=1"])
        #expect(unpacked.code == 0, "\(unpacked.errors)")
        func read(_ name: String) throws -> String {
            try String(contentsOfFile: folder + "/" + name, encoding: .utf8)
        }
        #expect(try read("doctor.txt").hasPrefix("- partitions have 1 of 3 replicas"))
        #expect(try read("cluster.json").contains(#""partitionCount":4"#))
        #expect(try read("health.json").contains(#""reachable":true"#))
        #expect(try read("collected.txt").contains(remote.url))
        #expect(try read("node-a/status.json").contains(#""ready":true"#))
        #expect(try read("node-a/config.json").contains(#""cluster.secretFile""#))
        #expect(try read("node-a/versions.txt").contains("SQLite"))
        #expect(try read("node-a/metrics.txt").contains("stratus_ready 1"))
        #expect(try read("node-a/log.txt").contains(#""text":"the cluster is formed""#))
        #expect(try read("node-a/log-warnings.txt").contains("changed by an administrator"))
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
        #expect(mode as? Int == 0o600)

        // Nothing is overwritten, and nothing is made where nobody answers.
        let again = try await remote.control(["support", "--output", path])
        #expect(again.code == ExitCode.cannotCreate.rawValue)
        #expect(try await remote.stop() == 0)
        let late = try await remote.control(["support", "--output", path + ".late"])
        #expect(late.code == ExitCode.unavailable.rawValue)
        #expect(!FileManager.default.fileExists(atPath: path + ".late"))
    }

    static let refused: [(arguments: [String], says: String)] = [
        ([], "give '--nodes', '--admin' or both"),
        (["--nodes", "authority"], "'authority' in '--nodes'"),
        (["--nodes", "a", "--hosts", "b=10.0.0.1"], "'b' is not in '--nodes'"),
        (["--nodes", "a", "--hosts", "10.0.0.1"], "wants NODE=HOST,HOST"),
        (["--nodes", "a", "--hosts", "a=no host"], "neither the name nor the address"),
        (["--admin", "Mara"], "'Mara' in '--admin'"),
    ]

    @Test(arguments: refused)
    func `what certificates cannot be made of is refused`(
        row: (arguments: [String], says: String)
    ) async throws {
        let ended = try await self.makeCertificates(row.arguments)
        #expect(ended.code == ExitCode.usage.rawValue, "\(ended)")
        #expect(ended.errors.contains(row.says), "\(ended)")
        #expect(!FileManager.default.fileExists(atPath: self.certificates))
    }
}
