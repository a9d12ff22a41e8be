import ChildProcesses
import Foundation
import Glibc
import StratusCommandLine
import StratusTLS
import Testing

/// The signals of a running node: stop, stop at once, reload.
@Suite struct SignalProcessTests {
    let directory = try! TemporaryDirectory()

    /// A save whose body stops in the middle.
    private static func halfASave(_ node: NodeProcessTests.Dev) throws -> (
        connection: RawConnection, rest: String
    ) {
        let body =
            #"{"operations":[{"operationType":"forceUpdate","record":{"recordType":"Note","#
            + #""recordName":"late","fields":{"text":{"value":"words"}}}}]}"#
        let connection = try RawConnection(node.text("url"))
        let path = "/database/1/iCloud.x/development/private/records/modify"
        connection.send(
            "POST \(path)?ckAPIToken=\(node.text("apiToken"))&ckWebAuthToken=me HTTP/1.1\r\n"
                + "host: x\r\ncontent-length: \(body.utf8.count)\r\n\r\n" + body.prefix(20))
        return (connection, String(body.dropFirst(20)))
    }

    /// Until the node counts the request as one in flight.
    private static func inFlight(_ node: NodeProcessTests.Dev) throws -> Bool {
        let token = try String(contentsOfFile: node.text("adminTokenFile"), encoding: .utf8)
            .trimmingCharacters(in: .newlines)
        return try Self.waits {
            let admin = try RawConnection(node.text("adminURL"))
            admin.send(
                "GET /v1/status HTTP/1.0\r\nhost: x\r\nauthorization: Bearer \(token)\r\n\r\n")
            return admin.receiveAll().contains(#""requestsInFlight":1"#)
        }
    }

    /// Runs on a thread of its own: a request that is held open has a deadline in the node, and
    /// must not wait behind other tests.
    private static func waits(until condition: () throws -> Bool) rethrows -> Bool {
        for _ in 0..<2_000 {
            if try condition() { return true }
            usleep(5_000)
        }
        return false
    }

    private static func isStopping(_ node: NodeProcessTests.Dev) -> Bool {
        Self.waits { node.running.errors.contains(#""text":"stopping""#) }
    }

    private static func onOwnThread<Value: Sendable>(
        _ body: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
        }
    }

    @Test func `G-38 SIGTERM lets the request in flight end, and its record is kept`() async throws
    {
        let node = try await NodeProcessTests.Dev(self.directory.path + "/a")
        let answer = try await Self.onOwnThread {
            let (connection, rest) = try Self.halfASave(node)
            #expect(try Self.inFlight(node))
            node.running.signal(SIGTERM)
            #expect(Self.isStopping(node))
            connection.send(rest)
            return connection.receiveAll()
        }
        #expect(answer.hasPrefix("HTTP/1.1 200 ") && answer.contains("\r\nconnection: close\r\n"))
        #expect(answer.contains("words"))
        #expect(try await node.running.end().code == 0)

        let again = try await NodeProcessTests.Dev(self.directory.path + "/a")
        let found = try await NodeProcessTests.get(
            again.text("url") + "/database/1/iCloud.x/development/private/records/lookup"
                + "?ckAPIToken=\(again.text("apiToken"))&ckWebAuthToken=me",
            body: #"{"records":[{"recordName":"late"}]}"#)
        #expect(found.text.contains("words"))
        #expect(try await again.stop() == 0)
    }

    @Test func `two stop signals at once are one, a later one ends the node`() async throws {
        let node = try await NodeProcessTests.Dev(self.directory.path + "/b")
        try await Self.onOwnThread {
            let (connection, _) = try Self.halfASave(node)
            #expect(try Self.inFlight(node))
            node.running.signal(SIGTERM)
            #expect(Self.isStopping(node))
            node.running.signal(SIGINT)
            // Heard within the second, and passed over.
            usleep(1_500_000)
            #expect(node.running.isRunning)
            node.running.signal(SIGTERM)
            #expect(Self.waits { !node.running.isRunning })
            #expect(connection.receiveAll().isEmpty)
        }
        let ended = try await node.running.end()
        #expect(ended.code == ExitCode.interrupted.rawValue)
        #expect(ended.errors.contains("stratus: stopped at once\n"))
    }

    @Test func `SIGHUP takes other limits: a connection too many is refused from then on`()
        async throws
    {
        func configuration(_ limits: String) -> String {
            """
            {dataDirectory: '\(self.directory.path)/c', development: true,
             client: {listen: ['127.0.0.1:0']}, admin: {listen: '127.0.0.1:0'}, \(limits)}
            """
        }
        let path = try self.directory.write("c.json5", configuration(""))
        let node = try await Serve(path)
        let held = try RawConnection(node.clientURL)
        held.send("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        let before = try await NodeProcessTests.get(node.clientURL + "/healthz")
        #expect(before.status == 200)
        _ = try self.directory.write(
            "c.json5",
            configuration("limits: {connectionCountMax: 1, headDeadline: '100ms'}"))
        node.running.signal(SIGHUP)
        #expect(
            await node.running.waits { node.running.errors.contains("configuration read again") })
        // The connection that Foundation keeps may count for a moment; ours does for sure.
        let refused = try RawConnection(node.clientURL)
        #expect(refused.receiveAll().hasPrefix("HTTP/1.1 503 "))
        #expect(!node.running.errors.contains("waits for a restart"))
        node.running.signal(SIGTERM)
        #expect(try await node.running.end().code == 0)
    }

    @Test
    func `G-23 SIGHUP takes a new certificate, and one that does not fit its key changes nothing`()
        async throws
    {
        let authority = try CertificateAuthority.make(
            commonName: "authority", now: Self.now, validSeconds: 3_600)
        func install(_ name: String) throws {
            let identity = try Self.issue(authority, name, .server)
            _ = try self.directory.write("server.pem", identity.certificatePEM)
            _ = try self.directory.write("server.key", identity.privateKeyPEM)
        }
        try install("first")
        let path = try self.directory.write(
            "d.json5",
            """
            {dataDirectory: '\(self.directory.path)/d', development: true, client: {listen: ['127.0.0.1:0'],
             tls: {certificateFile: 'server.pem', keyFile: 'server.key'}},
             admin: {listen: '127.0.0.1:0'}}
            """)
        let node = try await Serve(path)
        #expect(node.clientURL.hasPrefix("https://"))
        #expect(try await Self.subject(node.clientURL).contains("CN = first"))
        try install("second")
        node.running.signal(SIGHUP)
        #expect(
            await node.running.waits { node.running.errors.contains("configuration read again") })
        #expect(try await Self.subject(node.clientURL).contains("CN = second"))
        let stranger = try Self.issue(authority, "third", .server)
        _ = try self.directory.write("server.pem", stranger.certificatePEM)
        node.running.signal(SIGHUP)
        #expect(
            await node.running.waits { node.running.errors.contains("configuration not taken") })
        #expect(try await Self.subject(node.clientURL).contains("CN = second"))
        node.running.signal(SIGTERM)
        #expect(try await node.running.end().code == 0)
    }

    @Test func `an administrator's certificate needs no token, a stranger's is turned away`()
        async throws
    {
        let authority = try CertificateAuthority.make(
            commonName: "authority", now: Self.now, validSeconds: 3_600)
        let strangers = try CertificateAuthority.make(
            commonName: "strangers", now: Self.now, validSeconds: 3_600)
        _ = try self.directory.write("ca.pem", authority.identity.certificatePEM)
        for (name, identity) in [
            ("server", try Self.issue(authority, "localhost", .server)),
            ("admin", try Self.issue(authority, "admin", .client)),
            ("stranger", try Self.issue(strangers, "admin", .client)),
        ] {
            _ = try self.directory.write("\(name).pem", identity.certificatePEM)
            _ = try self.directory.write("\(name).key", identity.privateKeyPEM)
        }
        let path = try self.directory.write(
            "e.json5",
            """
            {dataDirectory: '\(self.directory.path)/e', development: true,
             client: {listen: ['127.0.0.1:0']}, admin: {listen: '127.0.0.1:0',
             tls: {certificateFile: 'server.pem', keyFile: 'server.key', clientAuthorityFile: 'ca.pem'}}}
            """)
        let node = try await Serve(path)
        func status(_ name: String?) async throws -> String {
            let arguments = name.map {
                [
                    "-cert", self.directory.path + "/\($0).pem", "-key",
                    self.directory.path + "/\($0).key",
                ]
            }
            return try await Self.openSSL(
                node.adminURL, arguments ?? [],
                "GET /v1/status HTTP/1.0\r\nhost: x\r\n\r\n")
        }
        #expect(try await status("admin").contains("HTTP/1.1 200 OK"))
        #expect(try await status(nil).contains("HTTP/1.1 401 "))
        #expect(try await !status("stranger").contains("HTTP/1.1"))
        node.running.signal(SIGTERM)
        #expect(try await node.running.end().code == 0)
    }

    // MARK: Support

    /// A `stratus serve` that is up, and where.
    struct Serve {
        let running: ChildProcess
        let clientURL: String
        let adminURL: String

        init(_ path: String) async throws {
            self.running = try Program.start("stratus", ["serve", "--config", path])
            let running = self.running
            let isUp = await running.waits {
                running.errors.contains(#""text":"administrators""#) || !running.isRunning
            }
            #expect(isUp, "\(running.errors)")
            func url(_ text: String) throws -> String {
                let line = try #require(
                    running.errors.split(separator: "\n").first {
                        $0.contains("\"text\":\"\(text)\"")
                    },
                    "\(running.errors)")
                let object =
                    try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
                return try #require(object?["url"] as? String)
            }
            self.clientURL = try url("clients")
            self.adminURL = try url("administrators")
        }
    }

    private static var now: Int64 { Int64(Date().timeIntervalSince1970) }

    private static func issue(
        _ authority: CertificateAuthority, _ name: String, _ purpose: CertificateAuthority.Purpose
    ) throws -> CertificateAndKey {
        try authority.issue(
            .init(
                commonName: name, dnsNames: ["localhost"], addresses: ["127.0.0.1"],
                purpose: purpose, now: Self.now, validSeconds: 1_800))
    }

    /// The `openssl` program as the client.
    private static func openSSL(_ url: String, _ more: [String], _ input: String) async throws
        -> String
    {
        let address = try #require(url.split(separator: "/").last)
        let ended = try await ChildProcess.run(
            "/usr/bin/openssl", ["s_client", "-connect", String(address), "-ign_eof"] + more,
            input: .bytes(Array(input.utf8)))
        return ended.output + ended.errors
    }

    private static func subject(_ url: String) async throws -> String {
        let output = try await Self.openSSL(url, [], "GET /healthz HTTP/1.0\r\nhost: x\r\n\r\n")
        #expect(output.contains("alive"))
        return output.split(separator: "\n").first { $0.hasPrefix("subject=") }.map(String.init)
            ?? ""
    }
}
