import ChildProcesses
import Foundation
import Glibc
import StratusCommandLine
import Testing

/// What an operator meets first: a directory that was tried out and then serves, and a cluster that
/// does not form.
@Suite struct FirstDaysTests {
    let directory = try! TemporaryDirectory()

    /// A port that nobody listens on now.
    private func freePort() throws -> Int {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
            }
        }
        try #require(isBound)
        return Int(UInt16(bigEndian: address.sin_port))
    }

    @Test func `D1 a directory goes from development to production and back with its records`()
        async throws
    {
        let data = self.directory.path + "/data"
        func path(_ dev: NodeProcessTests.Dev, _ operation: String) -> String {
            dev.text("url") + "/database/1/\(dev.text("container"))/development/private/records/"
                + "\(operation)?ckAPIToken=\(dev.text("apiToken"))&ckWebAuthToken=development"
        }
        let first = try await NodeProcessTests.Dev(data)
        let saved = try await NodeProcessTests.get(
            path(first, "modify"),
            body: """
                {"operations": [{"operationType": "create", "record": {"recordType": "Note",
                  "recordName": "kept", "fields": {"text": {"value": "of the first day"}}}}]}
                """)
        #expect(saved.text.contains("recordChangeTag"), "\(saved.text)")
        #expect(try await first.stop() == 0)

        let configuration = try self.directory.write(
            "serve.json5",
            """
            {dataDirectory: '\(data)', client: {listen: ['127.0.0.1:0']},
             admin: {listen: 'unix:\(self.directory.path)/admin'}}
            """)
        let node = try Program.start("stratus", ["serve", "--config", configuration])
        #expect(await node.waits { node.errors.contains(#""text":"ready""#) }, "\(node.errors)")
        let usage = try await Program.run(
            "stratusctl",
            [
                "--node", "unix:\(self.directory.path)/admin", "--token-file",
                data + "/admin.token", "container", "usage", "--container",
                first.text("container"), "--json",
            ])
        #expect(usage.code == 0, "\(usage)")
        node.signal(SIGTERM)
        #expect(try await node.end().code == 0)

        let again = try await NodeProcessTests.Dev(data)
        let found = try await NodeProcessTests.get(
            path(again, "lookup"), body: #"{"records": [{"recordName": "kept"}]}"#)
        #expect(found.text.contains("of the first day"), "\(found.text)")
        #expect(try await again.stop() == 0)
    }

    @Test func `D10 readyz and the doctor say why a cluster does not form`() async throws {
        let certificates = self.directory.path + "/cluster"
        let made = try await Program.run(
            "stratus",
            ["cluster", "certificates", "--directory", certificates, "--nodes", "a,b"])
        #expect(made.code == 0, "\(made.errors)")
        let other = try self.directory.write("secret", "another secret of sixteen\n")
        let ports = [try self.freePort(), try self.freePort()]
        var nodes: [ChildProcess] = []
        for (name, secret) in [("a", certificates + "/secret"), ("b", other)] {
            let path = try self.directory.write(
                "\(name).json5",
                """
                {dataDirectory: '\(self.directory.path)/data-\(name)',
                 client: {listen: ['127.0.0.1:0']},
                 admin: {listen: 'unix:\(self.directory.path)/admin-\(name)'},
                 cluster: {
                    name: '\(name)', partitionCount: 1, secretFile: '\(secret)',
                    peers: ['a@127.0.0.1:\(ports[0])', 'b@127.0.0.1:\(ports[1])'],
                    tls: {certificateFile: '\(certificates)/\(name).pem',
                          keyFile: '\(certificates)/\(name).key',
                          authorityFile: '\(certificates)/authority.pem'}}}
                """)
            nodes.append(try Program.start("stratus", ["serve", "--config", path]))
        }
        func ask(_ words: String...) async throws -> ChildProcess.Ended {
            try await Program.run(
                "stratusctl",
                [
                    "--node", "unix:\(self.directory.path)/admin-a", "--token-file",
                    self.directory.path + "/data-a/admin.token",
                ] + words)
        }
        var said = ""
        for _ in 0..<10 where !said.contains("secrets differ") {
            said = try await ask("doctor").output
            try await Task.sleep(for: .milliseconds(100))
        }
        #expect(said.contains("the cluster is not formed yet"), "\(said)")
        #expect(said.contains("secrets differ"), "\(said)")
        let ready = try await ask("ready")
        #expect(ready.code == ExitCode.temporary.rawValue)
        #expect(ready.errors.contains("secrets differ"), "\(ready)")
        for node in nodes {
            node.signal(SIGTERM)
            #expect(try await node.end().code == 0)
        }
    }
}
