import StratusCommandLine
import StratusModel
import StratusProcess
import StratusRuntime
import StratusTLS

/// Certificates for a development node that speaks HTTPS: an authority made once for a data
/// directory, to be trusted once, and a server certificate made anew at every start, so that it
/// never expires.
struct DevelopmentCertificates {
    /// The file of the authority that clients trust.
    let authorityFile: String
    let certificateFile: String
    let keyFile: String

    private static let authorityLife: Int64 = 3_650 * 86_400
    /// The most that browsers take of a server.
    private static let certificateLife: Int64 = 397 * 86_400

    /// - Parameter host: where the node listens: what else than `localhost` it may be called by.
    init(in directory: String, host: String) throws(NodeFailure) {
        self.authorityFile = directory + "/authority.pem"
        self.certificateFile = directory + "/server.pem"
        self.keyFile = directory + "/server.key"
        do {
            try SmallFile.makeDirectory(directory)
            let now = RealClock.wallMilliseconds / 1_000
            let authority = try Self.authority(
                self.authorityFile, keyFile: directory + "/authority.key", now)
            var names = ["localhost"]
            var addresses = ["127.0.0.1", "::1"]
            if host.contains(":") || host.utf8.allSatisfy({ $0 < 0x3A }) {
                if !addresses.contains(host) { addresses.append(host) }
            } else if !names.contains(host) {
                names.append(host)
            }
            let server = try authority.issue(
                .init(
                    commonName: "localhost", dnsNames: names, addresses: addresses,
                    purpose: .server, now: now, validSeconds: Self.certificateLife))
            try SmallFile.replaceSecret(self.certificateFile, server.certificatePEM)
            try SmallFile.replaceSecret(self.keyFile, server.privateKeyPEM)
        } catch {
            throw NodeFailure(.cannotCreate, "the development certificates: \(error)")
        }
    }

    private static func authority(_ certificateFile: String, keyFile: String, _ now: Int64) throws
        -> CertificateAuthority
    {
        // The certificate is written last: where it stands, its key does.
        if SmallFile.state(certificateFile) != .absent {
            return CertificateAuthority(
                CertificateAndKey(
                    certificatePEM: try SmallFile.read(certificateFile),
                    privateKeyPEM: try SmallFile.read(keyFile)))
        }
        let made = try CertificateAuthority.make(
            commonName: "Stratus development", now: now, validSeconds: Self.authorityLife)
        try SmallFile.replaceSecret(keyFile, made.identity.privateKeyPEM)
        try SmallFile.replaceSecret(certificateFile, made.identity.certificatePEM)
        return made
    }
}
