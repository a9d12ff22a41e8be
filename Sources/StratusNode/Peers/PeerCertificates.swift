import StratusCluster
import StratusCommandLine
import StratusConfiguration
import StratusModel
import StratusProcess
import StratusTLS
import Synchronization

/// The node's certificate among its peers, both ways, and how it is read again.
final class PeerCertificates: Sendable {
    private let server: TLSContextSource
    private let client: Mutex<TLSContext>
    private let ends: Mutex<Int64>

    /// Nil for a node alone.
    static func make(_ settings: ConfigurationSettings) throws(NodeFailure) -> PeerCertificates? {
        guard ClusterPeers.isClustered(settings) else { return nil }
        return try PeerCertificates(settings)
    }

    private init(_ settings: ConfigurationSettings) throws(NodeFailure) {
        let (server, client) = try Self.read(settings)
        do throws(TLSError) {
            self.server = try TLSContextSource(server)
            self.client = Mutex(try TLSContext(client: client))
            self.ends = Mutex(Self.end(of: client))
        } catch { throw NodeFailure(.configuration, "TLS between peers: \(error)") }
    }

    var forLinks: SocketLinks.Certificates {
        SocketLinks.Certificates(server: self.server) { self.client.withLock { $0 } }
    }

    /// When the node's certificate ends, in seconds since 1970; 0 if that cannot be read.
    var end: Int64 { self.ends.withLock { $0 } }

    private static func end(of configuration: TLSClientConfiguration) -> Int64 {
        configuration.identity.flatMap { CertificateValidity.end(of: $0.certificatePEM) } ?? 0
    }

    /// Links opened from now on use what the files hold now.
    func reload(_ settings: ConfigurationSettings) throws(NodeFailure) {
        let (server, client) = try Self.read(settings)
        do throws(TLSError) {
            let context = try TLSContext(client: client)
            try self.server.reload(server)
            self.client.withLock { $0 = context }
            self.ends.withLock { $0 = Self.end(of: client) }
        } catch { throw NodeFailure(.configuration, "TLS between peers: \(error)") }
    }

    private static func read(_ settings: ConfigurationSettings) throws(NodeFailure) -> (
        TLSServerConfiguration, TLSClientConfiguration
    ) {
        let authority = try Self.file("cluster.tls.authorityFile", settings)
        let identity = CertificateAndKey(
            certificatePEM: try Self.file("cluster.tls.certificateFile", settings),
            privateKeyPEM: try Self.file("cluster.tls.keyFile", settings))
        return (
            TLSServerConfiguration(
                identity: identity, clientCertificates: .required(authorityPEM: authority)),
            TLSClientConfiguration(
                authorityPEM: authority, identity: identity, minimumVersion: .tls13)
        )
    }

    /// The secret that tells this cluster from any other; nil for a node alone. White space around
    /// it does not count.
    static func secret(_ settings: ConfigurationSettings) throws(NodeFailure) -> Bytes? {
        guard ClusterPeers.isClustered(settings) else { return nil }
        var bytes = try Self.file("cluster.secretFile", settings)
        while let last = bytes.last, last <= 0x20 { bytes.removeLast() }
        let start = bytes.firstIndex { $0 > 0x20 } ?? bytes.endIndex
        bytes.removeFirst(start)
        guard bytes.count >= 16 else {
            throw NodeFailure(
                .configuration, "'cluster.secretFile': the secret needs at least 16 characters")
        }
        return bytes
    }

    private static func file(_ key: String, _ settings: ConfigurationSettings) throws(NodeFailure)
        -> Bytes
    {
        guard let path = settings.text(key) else {
            preconditionFailure("'\(key)' was checked with the configuration")
        }
        do throws(SmallFile.Failure) { return try SmallFile.read(path) } catch {
            throw NodeFailure(.configuration, "'\(key)': \(error)")
        }
    }
}
