import COpenSSL
package import StratusModel

/// A server-to-server key's public half: ECDSA over P-256, and nothing else.
///
/// Unchecked, since the compiler knows nothing of C: OpenSSL's keys are counted atomically and may
/// be read by many threads; this one is never changed.
package final class ServerPublicKey: @unchecked Sendable {
    private let key: OpaquePointer

    /// Takes SPKI, DER. Nil for another curve, another kind of key, or bytes behind it.
    package init?(der: Bytes) {
        ERR_clear_error()
        defer { ERR_clear_error() }
        let key = der.withUnsafeBufferPointer { bytes -> OpaquePointer? in
            var start = bytes.baseAddress
            let key = d2i_PUBKEY(nil, &start, bytes.count)
            guard let end = start, let base = bytes.baseAddress, end - base == bytes.count else {
                EVP_PKEY_free(key)
                return nil
            }
            return key
        }
        guard let key else { return nil }
        self.key = key
        var name = [CChar](repeating: 0, count: 64)
        var count = 0
        guard EVP_PKEY_is_a(key, "EC") == 1,
            EVP_PKEY_get_group_name(key, &name, name.count, &count) == 1,
            String(decoding: name.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
                == "prime256v1"
        else { return nil }
    }

    /// Takes PEM, as `openssl ec -pubout` writes it.
    package convenience init?(pem: Bytes) {
        let text = String(decoding: pem, as: UTF8.self)
        guard let begin = text.firstRange(of: "-----BEGIN PUBLIC KEY-----"),
            let end = text.firstRange(of: "-----END PUBLIC KEY-----"),
            begin.upperBound <= end.lowerBound
        else { return nil }
        let body = Bytes(
            text[begin.upperBound..<end.lowerBound].utf8.filter { $0 > 0x20 })
        guard let der = ServerSignature.base64(body) else { return nil }
        self.init(der: der)
    }

    deinit { EVP_PKEY_free(self.key) }

    /// SPKI, DER: how it is stored.
    package var der: Bytes {
        var bytes: UnsafeMutablePointer<UInt8>?
        let count = i2d_PUBKEY(self.key, &bytes)
        guard count > 0, let bytes else { return [] }
        defer { CRYPTO_free(bytes, #file, #line) }
        return Bytes(UnsafeBufferPointer(start: bytes, count: Int(count)))
    }

    /// Whether `signature` is one of this key over a message with that SHA-256.
    package func verifies(_ signature: Bytes, digest: Bytes) -> Bool {
        guard !signature.isEmpty, digest.count == 32,
            let context = EVP_PKEY_CTX_new(self.key, nil)
        else { return false }
        defer {
            EVP_PKEY_CTX_free(context)
            ERR_clear_error()
        }
        return EVP_PKEY_verify_init(context) == 1
            && EVP_PKEY_verify(context, signature, signature.count, digest, digest.count) == 1
    }
}

/// A signature as a request carries it, and what it names.
package enum ServerSignature {
    /// Strict base64; nil otherwise.
    package static func base64(_ text: Bytes) -> Bytes? {
        guard text.count % 4 == 0, !text.isEmpty, text.count <= 4_096 else { return nil }
        var result = Bytes(repeating: 0, count: text.count / 4 * 3)
        let count = EVP_DecodeBlock(&result, text, Int32(text.count))
        guard count >= 0 else { return nil }
        let padding = text.suffix(2).count { $0 == UInt8(ascii: "=") }
        return Bytes(result.prefix(Int(count) - padding))
    }

    /// The identity of a signed request. It is equal for a replay, and for the twin that anybody
    /// can make of a signature without the key, with n − s for s.
    ///
    /// Nil if the bytes are not a P-256 signature.
    package static func identity(of signature: Bytes) -> Bytes? {
        let order = Self.order
        let parsed = signature.withUnsafeBufferPointer { bytes -> OpaquePointer? in
            var start = bytes.baseAddress
            return d2i_ECDSA_SIG(nil, &start, bytes.count)
        }
        guard let parsed else {
            ERR_clear_error()
            return nil
        }
        defer { ECDSA_SIG_free(parsed) }
        guard let r = ECDSA_SIG_get0_r(parsed), let s = ECDSA_SIG_get0_s(parsed),
            let twin = BN_new()
        else { return nil }
        defer { BN_free(twin) }
        guard BN_is_negative(r) == 0, BN_is_negative(s) == 0, BN_cmp(r, order.number) < 0,
            BN_cmp(s, order.number) < 0, BN_sub(twin, order.number, s) == 1
        else { return nil }
        let lower = BN_cmp(s, twin) <= 0 ? s : twin
        var bytes = Bytes(repeating: 0, count: 64)
        let isWritten = bytes.withUnsafeMutableBufferPointer { room in
            BN_bn2binpad(r, room.baseAddress, 32) == 32
                && BN_bn2binpad(lower, room.baseAddress.map { $0 + 32 }, 32) == 32
        }
        return isWritten ? SHA256.hash(bytes) : nil
    }

    /// Unchecked: written once, read by all.
    private struct Order: @unchecked Sendable { let number: OpaquePointer }

    private static let order: Order = {
        var number: OpaquePointer? = nil
        let digits = "FFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551"
        guard BN_hex2bn(&number, digits) == 64, let number else {
            preconditionFailure("OpenSSL cannot read a number")
        }
        return Order(number: number)
    }()
}
