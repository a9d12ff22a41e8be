import COpenSSL
package import StratusModel

/// A private key of ours on P-256: signs as ES256 wants it, and agrees on secrets.
///
/// `@unchecked`: OpenSSL counts references to its keys atomically and lets many threads read one.
/// This key never changes.
package final class SigningKey: @unchecked Sendable, CustomStringConvertible {
    private let key: OpaquePointer

    private init(taking key: OpaquePointer) { self.key = key }

    /// A fresh key.
    package static func make() -> SigningKey {
        guard let key = stratus_evp_generate_p256() else {
            preconditionFailure("OpenSSL cannot make a key")
        }
        return SigningKey(taking: key)
    }

    /// Reads a PKCS #8 key in PEM form, as Apple's `.p8` files hold. Nil for another curve, another
    /// kind of key, or a key that is encrypted with a password.
    package convenience init?(pem: Bytes) {
        ERR_clear_error()
        defer { ERR_clear_error() }
        guard !pem.isEmpty, pem.count <= 16_384, let bio = BIO_new_mem_buf(pem, Int32(pem.count))
        else { return nil }
        defer { BIO_free(bio) }
        // Whoever would be asked for a password gives an empty one.
        var none: [CChar] = [0]
        let key = none.withUnsafeMutableBytes {
            PEM_read_bio_PrivateKey(bio, nil, nil, $0.baseAddress)
        }
        guard let key else { return nil }
        guard Self.isP256(key) else {
            EVP_PKEY_free(key)
            return nil
        }
        self.init(taking: key)
    }

    /// Takes the private number, 32 bytes, and the public point, 65.
    package convenience init?(scalar: Bytes, point: Bytes) {
        ERR_clear_error()
        defer { ERR_clear_error() }
        guard scalar.count == 32, point.count == 65,
            let key = stratus_evp_p256_from(scalar, scalar.count, point, point.count)
        else { return nil }
        self.init(taking: key)
    }

    deinit { EVP_PKEY_free(self.key) }

    package var description: String { "<private key>" }

    /// The point, uncompressed: 65 bytes.
    package var publicPoint: Bytes {
        var point = Bytes(repeating: 0, count: 65)
        var count = 0
        let isWritten =
            EVP_PKEY_get_octet_string_param(
                self.key, "encoded-pub-key", &point, point.count, &count) == 1
        precondition(isWritten && count == 65, "a key of P-256 has a point of 65 bytes")
        return point
    }

    /// PKCS #8, PEM: how it is kept. Sealed by whoever keeps it.
    package var pem: Bytes {
        guard let bio = BIO_new(BIO_s_mem()) else { preconditionFailure("OpenSSL has no memory") }
        defer { BIO_free(bio) }
        let isWritten = PEM_write_bio_PKCS8PrivateKey(bio, self.key, nil, nil, 0, nil, nil) == 1
        precondition(isWritten, "OpenSSL cannot write a key")
        var start: UnsafeMutablePointer<CChar>?
        let count = stratus_bio_bytes(bio, &start)
        guard let start else { return [] }
        return UnsafeRawBufferPointer(start: start, count: count).map { $0 }
    }

    /// ES256 (RFC 7518 §3.4): ECDSA over SHA-256 of `message`, both numbers with 32 bytes each.
    package func sign(_ message: Bytes) -> Bytes {
        guard let context = EVP_MD_CTX_new() else { preconditionFailure("OpenSSL has no memory") }
        defer { EVP_MD_CTX_free(context) }
        var der = Bytes(repeating: 0, count: 80)
        var count = der.count
        let isSigned =
            EVP_DigestSignInit(context, nil, EVP_sha256(), nil, self.key) == 1
            && EVP_DigestSign(context, &der, &count, message, message.count) == 1
        precondition(isSigned, "a key of P-256 cannot sign")
        let parsed = der.withUnsafeBufferPointer { bytes -> OpaquePointer? in
            var start = bytes.baseAddress
            return d2i_ECDSA_SIG(nil, &start, count)
        }
        guard let parsed, let r = ECDSA_SIG_get0_r(parsed), let s = ECDSA_SIG_get0_s(parsed) else {
            preconditionFailure("OpenSSL cannot read its own signature")
        }
        defer { ECDSA_SIG_free(parsed) }
        var raw = Bytes(repeating: 0, count: 64)
        raw.withUnsafeMutableBufferPointer { room in
            _ = BN_bn2binpad(r, room.baseAddress, 32)
            _ = BN_bn2binpad(s, room.baseAddress.map { $0 + 32 }, 32)
        }
        return raw
    }

    /// The 32-byte secret that this key and another's public point agree on (RFC 5903 §9). Nil when
    /// the point is not on the curve.
    package func agree(with point: Bytes) -> SecretBytes? {
        ERR_clear_error()
        defer { ERR_clear_error() }
        guard point.count == 65, point[0] == 4,
            let peer = stratus_evp_p256_public(point, point.count)
        else { return nil }
        defer { EVP_PKEY_free(peer) }
        guard let context = EVP_PKEY_CTX_new(self.key, nil) else {
            preconditionFailure("OpenSSL has no memory")
        }
        defer { EVP_PKEY_CTX_free(context) }
        var secret = Bytes(repeating: 0, count: 32)
        var count = secret.count
        guard EVP_PKEY_derive_init(context) == 1,
            EVP_PKEY_derive_set_peer_ex(context, peer, 1) == 1,
            EVP_PKEY_derive(context, &secret, &count) == 1, count == 32
        else { return nil }
        return SecretBytes(taking: &secret)
    }

    private static func isP256(_ key: OpaquePointer) -> Bool {
        var name = [CChar](repeating: 0, count: 64)
        var count = 0
        return EVP_PKEY_is_a(key, "EC") == 1
            && EVP_PKEY_get_group_name(key, &name, name.count, &count) == 1
            && String(decoding: name.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
                == "prime256v1"
    }
}
