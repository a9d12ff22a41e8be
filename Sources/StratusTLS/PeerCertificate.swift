import COpenSSL

/// The verified certificate of a peer: one of the requested authorities signed it, and the peer
/// holds its key.
package struct PeerCertificate: Sendable, Hashable {
    /// The whole name as RFC 2253 writes it: `CN=…,O=…`.
    package let subject: String
    package let commonName: String?
    /// SHA-256 of the certificate, which names it exactly.
    package let fingerprint: [UInt8]

    package init(subject: String, commonName: String?, fingerprint: [UInt8]) {
        self.subject = subject
        self.commonName = commonName
        self.fingerprint = fingerprint
    }

    init(_ certificate: X509Handle) {
        let name = X509_get_subject_name(certificate.pointer)
        let sink = MemoryBIO()
        stratus_x509_name_print(sink.pointer, name)
        self.subject = String(decoding: sink.contents, as: UTF8.self)
        self.commonName = Self.commonName(in: name)
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        X509_digest(certificate.pointer, EVP_sha256(), &digest, &count)
        self.fingerprint = Array(digest[..<Int(count)])
    }

    private static func commonName(in name: OpaquePointer?) -> String? {
        let index = X509_NAME_get_index_by_NID(name, NID_commonName, -1)
        guard index >= 0 else { return nil }
        let value = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, index))
        var text: UnsafeMutablePointer<UInt8>?
        let count = ASN1_STRING_to_UTF8(&text, value)
        guard count >= 0, let text else { return nil }
        defer { CRYPTO_free(text, nil, 0) }
        // With its length, not to the first zero: `admin\0.example` is not `admin`.
        return String(
            decoding: UnsafeRawBufferPointer(start: text, count: Int(count)), as: UTF8.self)
    }
}
