import COpenSSL
package import StratusModel

/// AES-128-GCM for contents that others must decrypt: the `aes128gcm` coding of HTTP (RFC 8188).
/// Data that we keep ourselves is sealed by ``AuthenticatedCipher``.
package enum ContentEncryption {
    package static let tagSize = 16

    /// The sealed text and its tag. No key may meet the same nonce twice.
    package static func seal(_ plain: Bytes, key: Bytes, nonce: Bytes) -> Bytes {
        precondition(key.count == 16 && nonce.count == 12, "AES-128-GCM takes 16 and 12 bytes")
        guard let context = EVP_CIPHER_CTX_new() else {
            preconditionFailure("OpenSSL has no memory")
        }
        defer { EVP_CIPHER_CTX_free(context) }
        var sealed = Bytes(repeating: 0, count: plain.count + Self.tagSize)
        var written: Int32 = 0
        var rest: Int32 = 0
        let isDone = sealed.withUnsafeMutableBufferPointer { room -> Bool in
            guard let start = room.baseAddress else { return false }
            return EVP_EncryptInit_ex2(context, EVP_aes_128_gcm(), key, nonce, nil) == 1
                && EVP_EncryptUpdate(context, start, &written, plain, Int32(plain.count)) == 1
                && EVP_EncryptFinal_ex(context, start + Int(written), &rest) == 1
                && EVP_CIPHER_CTX_ctrl(
                    context, EVP_CTRL_GCM_GET_TAG, Int32(Self.tagSize), start + plain.count) == 1
        }
        precondition(isDone && Int(written) == plain.count, "AES-128-GCM failed")
        return sealed
    }
}
