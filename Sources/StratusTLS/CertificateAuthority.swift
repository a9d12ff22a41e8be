import COpenSSL

/// A certificate with its private key, both as PEM.
package struct CertificateAndKey: Sendable, Equatable {
    /// The certificate, followed by those between it and its authority.
    package var certificatePEM: [UInt8]
    package var privateKeyPEM: [UInt8]

    package init(certificatePEM: [UInt8], privateKeyPEM: [UInt8]) {
        self.certificatePEM = certificatePEM
        self.privateKeyPEM = privateKeyPEM
    }
}

/// A small certificate authority: for development, tests, and the nodes of a cluster.
///
/// Keys are ECDSA P-256, signatures SHA-256, serial numbers random. The authority may issue end
/// certificates only (path length 0).
package struct CertificateAuthority: Sendable {
    package enum Purpose: Sendable { case server, client, both }

    /// The content of a new certificate.
    package struct Order: Sendable {
        package var commonName: String
        package var dnsNames: [String]
        /// Numeric, version 4 or 6.
        package var addresses: [String]
        package var purpose: Purpose
        /// Seconds since 1970. Certificates begin an hour earlier, for clocks that are behind.
        package var now: Int64
        package var validSeconds: Int64

        package init(
            commonName: String, dnsNames: [String] = [], addresses: [String] = [],
            purpose: Purpose, now: Int64, validSeconds: Int64
        ) {
            self.commonName = commonName
            self.dnsNames = dnsNames
            self.addresses = addresses
            self.purpose = purpose
            self.now = now
            self.validSeconds = validSeconds
        }
    }

    package let identity: CertificateAndKey

    /// Takes up an authority made before.
    package init(_ identity: CertificateAndKey) { self.identity = identity }

    /// Makes a new authority, signed by itself.
    package static func make(
        commonName: String, now: Int64, validSeconds: Int64
    ) throws(TLSError) -> CertificateAuthority {
        let key = try KeyHandle.newP256()
        let certificate = try Self.blank(
            subject: commonName, key: key, now: now, validSeconds: validSeconds)
        X509_set_issuer_name(certificate.pointer, X509_get_subject_name(certificate.pointer))
        try Self.extend(
            certificate, issuer: certificate,
            [
                (NID_basic_constraints, "critical,CA:TRUE,pathlen:0"),
                (NID_key_usage, "critical,keyCertSign,cRLSign"),
                (NID_subject_key_identifier, "hash"),
            ])
        try Self.sign(certificate, with: key)
        return CertificateAuthority(
            CertificateAndKey(certificatePEM: certificate.pem, privateKeyPEM: key.pem))
    }

    package func issue(_ order: Order) throws(TLSError) -> CertificateAndKey {
        let issuer = try X509Handle.all(inPEM: self.identity.certificatePEM)[0]
        let issuerKey = try KeyHandle(pem: self.identity.privateKeyPEM)
        let key = try KeyHandle.newP256()
        let certificate = try Self.blank(
            subject: order.commonName, key: key, now: order.now, validSeconds: order.validSeconds)
        X509_set_issuer_name(certificate.pointer, X509_get_subject_name(issuer.pointer))
        let usage =
            switch order.purpose {
            case .server: "serverAuth"
            case .client: "clientAuth"
            case .both: "serverAuth,clientAuth"
            }
        var extensions: [(Int32, String)] = [
            (NID_basic_constraints, "critical,CA:FALSE"),
            (NID_key_usage, "critical,digitalSignature"),
            (NID_ext_key_usage, usage),
            (NID_subject_key_identifier, "hash"),
            (NID_authority_key_identifier, "keyid"),
        ]
        let names = order.dnsNames.map { "DNS:\($0)" } + order.addresses.map { "IP:\($0)" }
        // The notation is a list: a name with a comma in it would smuggle in another.
        guard (order.dnsNames + order.addresses).allSatisfy(Self.isPlain) else {
            throw TLSError(.badCertificate, during: "issue", message: "a name holds a separator")
        }
        if !names.isEmpty {
            extensions.append((NID_subject_alt_name, names.joined(separator: ",")))
        }
        try Self.extend(certificate, issuer: issuer, extensions)
        try Self.sign(certificate, with: issuerKey)
        return CertificateAndKey(certificatePEM: certificate.pem, privateKeyPEM: key.pem)
    }

    private static func isPlain(_ name: String) -> Bool {
        !name.isEmpty
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"),
                    UInt8(ascii: ":"), UInt8(ascii: "*"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }

    private static func blank(
        subject: String, key: KeyHandle, now: Int64, validSeconds: Int64
    ) throws(TLSError) -> X509Handle {
        let certificate = X509Handle(takingOwnershipOf: X509_new())
        let pointer = certificate.pointer
        X509_set_version(pointer, 2)
        var serial = [UInt8](repeating: 0, count: 16)
        guard RAND_bytes(&serial, Int32(serial.count)) == 1 else {
            throw TLSError.taken(.other, during: "draw serial number")
        }
        // Positive and of full length, as RFC 5280 wants it.
        serial[0] = serial[0] & 0x7F | 0x40
        let number = BN_bin2bn(serial, Int32(serial.count), nil)
        BN_to_ASN1_INTEGER(number, X509_get_serialNumber(pointer))
        BN_free(number)
        var start = time_t(now - 3_600)
        var end = time_t(now + validSeconds)
        X509_time_adj_ex(X509_getm_notBefore(pointer), 0, 0, &start)
        X509_time_adj_ex(X509_getm_notAfter(pointer), 0, 0, &end)
        ERR_clear_error()
        let name = X509_get_subject_name(pointer)
        let bytes = Array(subject.utf8)
        guard
            X509_NAME_add_entry_by_NID(
                name, NID_commonName, MBSTRING_UTF8, bytes, Int32(bytes.count), -1, 0) == 1,
            X509_set_pubkey(pointer, key.pointer) == 1
        else { throw TLSError.taken(.badCertificate, during: "name certificate") }
        return certificate
    }

    // Not inlined: across the module's border Swift 6.3.1's optimiser crashes on the loop.
    @inline(never)
    private static func extend(
        _ certificate: X509Handle, issuer: X509Handle, _ extensions: [(Int32, String)]
    ) throws(TLSError) {
        ERR_clear_error()
        for (identifier, value) in extensions {
            guard
                stratus_x509_add_extension(certificate.pointer, issuer.pointer, identifier, value)
                    == 1
            else { throw TLSError.taken(.badCertificate, during: "extend certificate") }
        }
    }

    private static func sign(
        _ certificate: X509Handle, with key: KeyHandle
    ) throws(TLSError) {
        ERR_clear_error()
        guard X509_sign(certificate.pointer, key.pointer, EVP_sha256()) > 0 else {
            throw TLSError.taken(.badCertificate, during: "sign certificate")
        }
    }
}
