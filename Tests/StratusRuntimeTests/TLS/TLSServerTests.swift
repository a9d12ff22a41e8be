import StratusHTTP
import StratusModel
import StratusTLS
import Testing

@testable import StratusRuntime

/// G-22, G-23: against the `openssl` program, which shares none of our code but its library's.
@Suite struct TLSServerTests {
    /// Says who asks and how.
    private static let handler = ClosureHandler { request in
        .text("secure=\(request.isSecure) subject=\(request.certificate?.subject ?? "none")")
    }

    private static func client(
        _ address: SocketAddress, _ certificates: TestCertificates, _ more: [String] = [],
        input: String = "GET / HTTP/1.0\r\nhost: x\r\n\r\n"
    ) async throws -> String {
        try await OpenSSLTool.run(
            [
                "s_client", "-connect", "\(address)", "-CAfile", certificates.path("ca.pem"),
                "-verify_return_error", "-ign_eof", "-servername", "localhost",
            ] + more, input: input
        ).output
    }

    @Test func `G-22: TLS 1.3 by default, 1.2 only by option, nothing older`() async throws {
        let certificates = try TestCertificates()
        let strict = try TLSContextSource(.init(identity: certificates.server))
        try await withServer(Self.handler, tls: strict) { _, address in
            let modern = try await Self.client(address, certificates)
            #expect(modern.contains("TLSv1.3") && modern.contains("Verify return code: 0 (ok)"))
            #expect(modern.contains("secure=true subject=none"))
            for old in ["-tls1_2", "-tls1_1", "-tls1"] {
                let output = try await Self.client(address, certificates, [old])
                #expect(!output.contains("secure=true"), "\(old)")
            }
        }
        let lenient = try TLSContextSource(
            .init(identity: certificates.server, minimumVersion: .tls12))
        try await withServer(Self.handler, tls: lenient) { _, address in
            let output = try await Self.client(address, certificates, ["-tls1_2"])
            #expect(output.contains("secure=true"))
            #expect(output.contains("ECDHE-ECDSA-AES256-GCM-SHA384"))
            for weak in ["AES128-SHA", "ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA384"] {
                let output = try await Self.client(
                    address, certificates, ["-tls1_2", "-cipher", weak])
                #expect(!output.contains("secure=true"), "\(weak)")
            }
        }
    }

    @Test func `http/1.1 is agreed on, and a client that wants only another is told so`()
        async throws
    {
        let certificates = try TestCertificates()
        let tls = try TLSContextSource(.init(identity: certificates.server))
        try await withServer(Self.handler, tls: tls) { _, address in
            let both = try await Self.client(address, certificates, ["-alpn", "h2,http/1.1"])
            #expect(both.contains("ALPN protocol: http/1.1") && both.contains("secure=true"))
            let none = try await Self.client(address, certificates)
            #expect(none.contains("secure=true"))
            let other = try await Self.client(address, certificates, ["-alpn", "h2"])
            #expect(other.contains("no application protocol") && !other.contains("secure=true"))
        }
    }

    @Test func `G-22: a session is resumed, and after a reload it is not`() async throws {
        let certificates = try TestCertificates()
        let tls = try TLSContextSource(.init(identity: certificates.server))
        try await withServer(Self.handler, tls: tls) { _, address in
            let session = certificates.path("session")
            let first = try await Self.client(address, certificates, ["-sess_out", session])
            #expect(first.contains("New, TLSv1.3"))
            let second = try await Self.client(address, certificates, ["-sess_in", session])
            #expect(second.contains("Reused, TLSv1.3") && second.contains("secure=true"))
            try tls.reload(.init(identity: certificates.server))
            let third = try await Self.client(address, certificates, ["-sess_in", session])
            #expect(third.contains("New, TLSv1.3") && third.contains("secure=true"))
        }
    }

    @Test func `X-17 a client's certificate is demanded, verified and shown to the handler`()
        async throws
    {
        let certificates = try TestCertificates()
        let strangers = try TestCertificates()
        _ = try certificates.client("device 7")
        _ = try strangers.client("stranger")
        let authority = certificates.authority.identity.certificatePEM
        let with = { (certificates: TestCertificates, name: String) in
            ["-cert", certificates.path("\(name).pem"), "-key", certificates.path("\(name).key")]
        }
        let required = try TLSContextSource(
            .init(
                identity: certificates.server,
                clientCertificates: .required(authorityPEM: authority)))
        try await withServer(Self.handler, tls: required) { _, address in
            let known = try await Self.client(address, certificates, with(certificates, "device 7"))
            #expect(known.contains("subject=CN=device 7"))
            #expect(try await !Self.client(address, certificates).contains("secure=true"))
            let unknown = try await Self.client(address, certificates, with(strangers, "stranger"))
            #expect(!unknown.contains("secure=true"))
            // Resuming keeps who the client is.
            let session = certificates.path("session")
            _ = try await Self.client(
                address, certificates, with(certificates, "device 7") + ["-sess_out", session])
            let resumed = try await Self.client(
                address, certificates, with(certificates, "device 7") + ["-sess_in", session])
            #expect(resumed.contains("Reused") && resumed.contains("subject=CN=device 7"))
        }
        let requested = try TLSContextSource(
            .init(
                identity: certificates.server,
                clientCertificates: .requested(authorityPEM: authority)))
        try await withServer(Self.handler, tls: requested) { _, address in
            #expect(try await Self.client(address, certificates).contains("subject=none"))
            let unknown = try await Self.client(address, certificates, with(strangers, "stranger"))
            #expect(!unknown.contains("secure=true"))
        }
    }

    @Test func `G-23: new connections use the reloaded certificate, old ones live on`() async throws
    {
        let certificates = try TestCertificates()
        let tls = try TLSContextSource(.init(identity: certificates.server))
        // Made first, because an idle connection is closed after a while, and keys take their time
        // beside other tests.
        let renewed = try certificates.authority.issue(
            .init(
                commonName: "renewed", dnsNames: ["localhost"], addresses: ["127.0.0.1"],
                purpose: .server, now: certificates.now, validSeconds: 600))
        let loop = EventLoop(name: "client")
        defer { loop.stop() }
        try await withServer(Self.handler, tls: tls) { _, address in
            let client = try HTTPClient.overTLS(to: address, certificates, loop)
            let before = try await client.open(.init(target: "/"), deadline: .seconds(120))
            _ = try await before.drain()
            try tls.reload(.init(identity: renewed))
            // The connection that exists is used again.
            let kept = try await client.open(.init(target: "/"), deadline: .seconds(120))
            _ = try await kept.drain()
            #expect(kept.certificate == before.certificate)
            let fresh = try HTTPClient.overTLS(to: address, certificates, loop)
            let after = try await fresh.open(.init(target: "/"), deadline: .seconds(120))
            _ = try await after.drain()
            #expect(after.certificate?.commonName == "renewed")
            // A bad file is refused and the good one stays.
            var broken = renewed
            broken.privateKeyPEM = certificates.server.privateKeyPEM
            #expect(throws: TLSError.self) { try tls.reload(.init(identity: broken)) }
            let still = try HTTPClient.overTLS(to: address, certificates, loop)
            let answer = try await still.open(.init(target: "/"), deadline: .seconds(120))
            _ = try await answer.drain()
            #expect(answer.certificate?.commonName == "renewed")
        }
    }

    @Test func `large bodies pass through TLS in both directions under back-pressure`() async throws
    {
        let certificates = try TestCertificates()
        let tls = try TLSContextSource(.init(identity: certificates.server))
        var limits = HTTPServerLimits.forTests
        limits.bodyBufferSizeMax = ByteCount(20_000)
        limits.outputBufferSizeMax = ByteCount(20_000)
        let loop = EventLoop(name: "client")
        defer { loop.stop() }
        try await withServer(echo, tls: tls, limits: limits) { _, address in
            let client = try HTTPClient.overTLS(to: address, certificates, loop)
            let body = Bytes((0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) })
            let answer = try await client.send(
                .init(method: "POST", target: "/", body: .bytes(body)), deadline: .seconds(120))
            #expect(answer.body == body)
        }
    }

    @Test func `G-15: a handshake that never comes is cut`() async throws {
        let certificates = try TestCertificates()
        let tls = try TLSContextSource(.init(identity: certificates.server))
        var limits = HTTPServerLimits.forTests
        limits.handshakeDeadline = .milliseconds(30)
        try await withServer(Self.handler, tls: tls, limits: limits) { server, address in
            let client = try RawClient(address)
            #expect(client.isClosedByServer())
            let plain = try RawClient(address)
            plain.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            #expect(plain.isClosedByServer())
            try await eventually { server.connectionCount == 0 }
        }
    }
}

extension HTTPClient {
    static func overTLS(
        to address: SocketAddress, _ certificates: TestCertificates, _ loop: EventLoop,
        name: String = "localhost"
    ) throws -> HTTPClient {
        let context = try TLSContext(client: certificates.clientConfiguration)
        return HTTPClient(
            HTTPEndpoint([address], host: "localhost", tls: .init(context, name: name)), loop: loop)
    }
}

extension HTTPClientResponse {
    func drain() async throws -> Bytes {
        var body: Bytes = []
        while let piece = try await self.next() { body += piece }
        return body
    }
}
