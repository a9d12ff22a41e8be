import Glibc
import StratusConfiguration
import StratusProcess
import StratusTLS

/// Finds what is wrong with the configured certificates before a node starts with them.
enum CertificateCheck {
    /// Whose certificates a listener takes. Clients show none.
    private static let authorityKeys = [
        "admin": "admin.tls.clientAuthorityFile", "cluster": "cluster.tls.authorityFile",
    ]

    /// One sentence for each certificate and key that a node could not use, with their files.
    static func problems(_ settings: ConfigurationSettings) -> [String] {
        var problems: [String] = []
        for listener in ["client", "admin", "cluster"] {
            guard let certificate = settings.text("\(listener).tls.certificateFile"),
                let key = settings.text("\(listener).tls.keyFile")
            else { continue }
            let authority = Self.authorityKeys[listener].flatMap { settings.text($0) }
            if let problem = Self.problem(certificate, key, authority) {
                problems.append("\(listener).tls: \(problem)")
            }
        }
        return problems
    }

    private static func problem(_ certificate: String, _ key: String, _ authority: String?)
        -> String?
    {
        let identity: CertificateAndKey
        var trusted: [UInt8]?
        do throws(SmallFile.Failure) {
            identity = CertificateAndKey(
                certificatePEM: try SmallFile.read(certificate),
                privateKeyPEM: try SmallFile.read(key))
            if let authority { trusted = try SmallFile.read(authority) }
        } catch { return error.description }
        guard let end = CertificateValidity.end(of: identity.certificatePEM) else {
            return "'\(certificate)' holds no certificate in PEM"
        }
        if end < Int64(time(nil)) {
            return "the certificate in '\(certificate)' has expired: issue another"
        }
        do throws(TLSError) {
            _ = try TLSContextSource(TLSServerConfiguration(identity: identity))
        } catch {
            return "the key in '\(key)' is not that of the certificate in '\(certificate)' "
                + "(\(error))"
        }
        if let authority, let trusted {
            do throws(TLSError) {
                _ = try TLSContextSource(
                    TLSServerConfiguration(
                        identity: identity, clientCertificates: .required(authorityPEM: trusted)))
            } catch { return "'\(authority)' holds no authority's certificate in PEM (\(error))" }
        }
        return nil
    }
}
