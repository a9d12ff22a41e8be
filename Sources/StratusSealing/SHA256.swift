import COpenSSL
package import StratusModel

/// SHA-256 of bytes that are all there. For a few hashes; a hot path keeps a context.
package enum SHA256 {
    package static func hash(_ bytes: Bytes) -> Bytes {
        var digest = Bytes(repeating: 0, count: 32)
        var count: UInt32 = 0
        let code = EVP_Digest(bytes, bytes.count, &digest, &count, EVP_sha256(), nil)
        precondition(code == 1 && count == 32, "SHA-256 is always there")
        return digest
    }

    /// Compares without telling by time where the first difference is.
    package static func areEqual(_ one: Bytes, _ other: Bytes) -> Bool {
        one.count == other.count && CRYPTO_memcmp(one, other, one.count) == 0
    }
}
