import COpenSSL
package import StratusModel

/// HMAC-SHA256: the hashes that tables hold instead of tokens, and the derivation of keys.
package enum KeyedHash {
    package static func hmac(key: Bytes, parts: [Bytes]) -> Bytes {
        let context = Self.makeContext(key: key)
        defer { EVP_MAC_CTX_free(context) }
        var result = Bytes(repeating: 0, count: 32)
        var written = 0
        var done = context != nil
        for part in parts where done { done = EVP_MAC_update(context, part, part.count) == 1 }
        done = done && EVP_MAC_final(context, &result, &written, result.count) == 1
        precondition(done && written == 32, "HMAC-SHA256 failed")
        return result
    }

    /// A context with the key, which the caller frees. Nil: OpenSSL gives none.
    static func makeContext(key: Bytes) -> OpaquePointer? {
        let context = EVP_MAC_CTX_new(Algorithms.shared.mac)
        // Parameters keep pointers to the texts: both texts must outlive the call that reads them,
        // and a literal passed to C does not.
        let isKeyed = Algorithms.shared.parameterName.withUnsafeBufferPointer { parameter in
            Algorithms.shared.digestName.withUnsafeBufferPointer { digest in
                var parameters = [
                    OSSL_PARAM_construct_utf8_string(
                        parameter.baseAddress, UnsafeMutablePointer(mutating: digest.baseAddress), 0
                    ),
                    OSSL_PARAM_construct_end(),
                ]
                return EVP_MAC_init(context, key, key.count, &parameters) == 1
            }
        }
        if isKeyed { return context }
        EVP_MAC_CTX_free(context)
        return nil
    }

    /// A key of its own for every purpose.
    package static func derive(_ key: Bytes, _ purpose: String, _ parts: Bytes...) -> Bytes {
        var message = Bytes(purpose.utf8)
        for part in parts {
            // Lengths keep the parts apart: ("ab", "c") is not ("a", "bc").
            message.append(0)
            withUnsafeBytes(of: UInt64(part.count).bigEndian) { message.append(contentsOf: $0) }
            message.append(contentsOf: part)
        }
        return Self.hmac(key: key, parts: [message])
    }

    /// Fetched once, because a fetch costs more than the use itself.
    ///
    /// Unchecked, since the compiler knows nothing of C: OpenSSL's algorithm objects are immutable
    /// and counted atomically, and this is never freed.
    private struct Algorithms: @unchecked Sendable {
        static let shared = Algorithms()
        let mac: OpaquePointer
        let parameterName: [CChar] = Array("digest".utf8CString)
        let digestName: [CChar] = Array("SHA256".utf8CString)

        init() {
            guard let mac = EVP_MAC_fetch(nil, "HMAC", nil) else {
                preconditionFailure("OpenSSL lacks HMAC")
            }
            self.mac = mac
        }
    }
}
