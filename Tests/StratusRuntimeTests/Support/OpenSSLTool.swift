import ChildProcesses
import Foundation
import StratusTLS

@testable import StratusRuntime

/// The `openssl` program: a peer that shares none of our code.
enum OpenSSLTool {
    /// - Returns: what it printed, errors included.
    static func run(_ arguments: [String], input: String = "") async throws -> (
        output: String, status: Int32
    ) {
        let ended = try await ChildProcess.run(
            "/usr/bin/openssl", arguments, input: .bytes(Array(input.utf8)))
        return (ended.output + ended.errors, ended.code)
    }
}

/// An authority with certificates of its own, as files too, for one test.
final class TestCertificates: Sendable {
    let directory: String
    let authority: CertificateAuthority
    let server: CertificateAndKey
    let now = RealClock.wallMilliseconds / 1_000

    init() throws {
        self.directory = makeTemporaryDirectory()
        self.authority = try CertificateAuthority.make(
            commonName: "Test authority", now: self.now, validSeconds: 3_600)
        self.server = try Self.order(self.authority, "localhost", .server, self.now)
        try self.write(self.authority.identity.certificatePEM, "ca.pem")
        try self.write(self.server.certificatePEM, "server.pem")
        try self.write(self.server.privateKeyPEM, "server.key")
    }

    deinit { removeDirectory(self.directory) }

    func path(_ name: String) -> String { "\(self.directory)/\(name)" }

    func write(_ bytes: [UInt8], _ name: String) throws {
        try Data(bytes).write(to: URL(filePath: self.path(name)))
    }

    /// A certificate for a client, in files `NAME.pem` and `NAME.key`.
    func client(_ name: String) throws -> CertificateAndKey {
        let identity = try Self.order(self.authority, name, .client, self.now)
        try self.write(identity.certificatePEM, "\(name).pem")
        try self.write(identity.privateKeyPEM, "\(name).key")
        return identity
    }

    private static func order(
        _ authority: CertificateAuthority, _ name: String, _ purpose: CertificateAuthority.Purpose,
        _ now: Int64
    ) throws -> CertificateAndKey {
        try authority.issue(
            .init(
                commonName: name, dnsNames: ["localhost"], addresses: ["127.0.0.1", "::1"],
                purpose: purpose, now: now, validSeconds: 1_800))
    }

    var clientConfiguration: TLSClientConfiguration {
        TLSClientConfiguration(authorityPEM: self.authority.identity.certificatePEM)
    }
}
