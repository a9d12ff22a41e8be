import StratusTLS
import Testing

@testable import StratusRuntime

@Suite struct CertificateTests {
    @Test func `openssl verifies what our authority issues, for its purpose and names alone`()
        async throws
    {
        let certificates = try TestCertificates()
        _ = try certificates.client("device")
        let rows: [(name: String, arguments: [String], isGood: Bool)] = [
            (
                "server by name",
                ["-purpose", "sslserver", "-verify_hostname", "localhost", "server"], true
            ),
            ("server by address", ["-purpose", "sslserver", "-verify_ip", "::1", "server"], true),
            (
                "another name", ["-purpose", "sslserver", "-verify_hostname", "other", "server"],
                false
            ),
            ("server as client", ["-purpose", "sslclient", "server"], false),
            ("client", ["-purpose", "sslclient", "device"], true),
            ("client as server", ["-purpose", "sslserver", "device"], false),
        ]
        for row in rows {
            let (output, status) = try await OpenSSLTool.run(
                ["verify", "-x509_strict", "-CAfile", certificates.path("ca.pem")]
                    + row.arguments.dropLast() + [certificates.path(row.arguments.last! + ".pem")])
            #expect((status == 0) == row.isGood, "\(row.name): \(output)")
        }
    }

    @Test func `an authority made before issues on`() async throws {
        let certificates = try TestCertificates()
        let again = CertificateAuthority(certificates.authority.identity)
        let issued = try again.issue(
            .init(commonName: "later", purpose: .both, now: certificates.now, validSeconds: 60))
        try certificates.write(issued.certificatePEM, "later.pem")
        let (output, status) = try await OpenSSLTool.run([
            "verify", "-x509_strict", "-CAfile", certificates.path("ca.pem"),
            certificates.path("later.pem"),
        ])
        #expect(status == 0, "\(output)")
    }

    @Test func `a name that would smuggle in another is refused`() throws {
        let certificates = try TestCertificates()
        for name in ["a,DNS:evil", "a\nb", "", "a b"] {
            #expect(throws: TLSError.self, "\(name)") {
                try certificates.authority.issue(
                    .init(
                        commonName: "x", dnsNames: [name], purpose: .server, now: certificates.now,
                        validSeconds: 60))
            }
        }
    }

    @Test func `a certificate and a key that do not belong together are refused`() throws {
        let certificates = try TestCertificates()
        let other = try certificates.client("other")
        var mixed = certificates.server
        mixed.privateKeyPEM = other.privateKeyPEM
        #expect(throws: TLSError.self) { try TLSContext(server: .init(identity: mixed)) }
        mixed.privateKeyPEM = Array("not a key".utf8)
        #expect(throws: TLSError.self) { try TLSContext(server: .init(identity: mixed)) }
        mixed = certificates.server
        mixed.certificatePEM = []
        #expect(throws: TLSError.self) { try TLSContext(server: .init(identity: mixed)) }
    }
}
