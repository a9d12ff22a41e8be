import COpenSSL
import Glibc

/// When a certificate stops being good.
package enum CertificateValidity {
    /// - Returns: seconds since 1970; nil if there is no certificate in `pem`.
    package static func end(of pem: [UInt8]) -> Int64? {
        guard let certificate = try? X509Handle.all(inPEM: pem).first else { return nil }
        var time = tm()
        guard ASN1_TIME_to_tm(X509_get0_notAfter(certificate.pointer), &time) == 1 else {
            return nil
        }
        return Int64(timegm(&time))
    }
}
