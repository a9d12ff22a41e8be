import StratusCommandLine
import StratusConfiguration
import StratusModel
import StratusProcess
import StratusTLS
import Synchronization

/// The certificates of both listeners, and how they are read again.
final class Certificates: Sendable {
    /// Nil where a listener speaks plain HTTP.
    let client: TLSContextSource?
    let admin: TLSContextSource?
    private let ends: Mutex<[String: Int64]>

    /// When the certificate of a listener ends, in seconds since 1970; 0 where it has none.
    func end(of listener: String) -> Int64 { self.ends.withLock { $0[listener] ?? 0 } }

    init(_ settings: ConfigurationSettings) throws(NodeFailure) {
        let client = try Self.clientConfiguration(settings)
        let admin = try Self.adminConfiguration(settings)
        self.client = try Self.source(client)
        self.admin = try Self.source(admin)
        self.ends = Mutex(Self.ends(client, admin))
    }

    private static func ends(_ client: TLSServerConfiguration?, _ admin: TLSServerConfiguration?)
        -> [String: Int64]
    {
        func end(_ configuration: TLSServerConfiguration?) -> Int64 {
            guard let configuration else { return 0 }
            return CertificateValidity.end(of: configuration.identity.certificatePEM) ?? 0
        }
        return ["client": end(client), "admin": end(admin)]
    }

    /// New connections use what the files hold now. Whether there is TLS at all does not change
    /// while the node runs. All or nothing: both are read and understood before either is taken.
    func reload(_ settings: ConfigurationSettings) throws(NodeFailure) {
        let client = try Self.clientConfiguration(settings)
        let admin = try Self.adminConfiguration(settings)
        _ = try Self.source(client)
        _ = try Self.source(admin)
        do throws(TLSError) {
            if let source = self.client, let client { try source.reload(client) }
            if let source = self.admin, let admin { try source.reload(admin) }
            self.ends.withLock { $0 = Self.ends(client, admin) }
        } catch {
            throw Self.failure(error)
        }
    }

    private static func source(_ configuration: TLSServerConfiguration?) throws(NodeFailure)
        -> TLSContextSource?
    {
        guard let configuration else { return nil }
        do throws(TLSError) { return try TLSContextSource(configuration) } catch {
            throw Self.failure(error)
        }
    }

    private static func clientConfiguration(_ settings: ConfigurationSettings)
        throws(NodeFailure) -> TLSServerConfiguration?
    {
        guard let identity = try Self.identity("client", settings) else { return nil }
        let isOld = settings.text("client.tls.minimumVersion") == "1.2"
        var configuration = TLSServerConfiguration(
            identity: identity, minimumVersion: isOld ? .tls12 : .tls13)
        if settings.bool("client.http2") { configuration.protocols = ["h2", "http/1.1"] }
        return configuration
    }

    private static func adminConfiguration(_ settings: ConfigurationSettings)
        throws(NodeFailure) -> TLSServerConfiguration?
    {
        guard let identity = try Self.identity("admin", settings) else { return nil }
        var configuration = TLSServerConfiguration(identity: identity)
        if let path = settings.text("admin.tls.clientAuthorityFile") {
            configuration.clientCertificates = .requested(authorityPEM: try Self.read(path))
        }
        return configuration
    }

    private static func identity(_ listener: String, _ settings: ConfigurationSettings)
        throws(NodeFailure) -> CertificateAndKey?
    {
        guard let certificate = settings.text("\(listener).tls.certificateFile"),
            let key = settings.text("\(listener).tls.keyFile")
        else { return nil }
        return CertificateAndKey(
            certificatePEM: try Self.read(certificate), privateKeyPEM: try Self.read(key))
    }

    private static func read(_ path: String) throws(NodeFailure) -> Bytes {
        do throws(SmallFile.Failure) { return try SmallFile.read(path) } catch {
            throw NodeFailure(.configuration, "TLS: \(error)")
        }
    }

    private static func failure(_ error: TLSError) -> NodeFailure {
        NodeFailure(.configuration, "TLS: \(error)")
    }
}
