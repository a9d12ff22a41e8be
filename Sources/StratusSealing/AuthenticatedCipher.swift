import COpenSSL
package import StratusModel

/// AES-256-GCM (NIST SP 800-38D) with a nonce of 12 bytes and a tag of 16.
///
/// The caller makes sure that no key meets the same nonce twice: one repetition reveals both texts,
/// and lets an attacker forge others.
package enum AuthenticatedCipher {
    package static let keySize = 32
    package static let nonceSize = 12
    package static let tagSize = 16

    /// - Returns: `prefix`, the sealed text, and the tag. The prefix is not authenticated: put it
    ///   into `associated`.
    package static func seal(
        _ plain: Bytes, key: SecretBytes, nonce: Bytes, associated: Bytes, prefix: Bytes = []
    ) -> Bytes {
        let context = Self.context(key, nonce, isSealing: true)
        defer { EVP_CIPHER_CTX_free(context) }
        var done = Self.add(associated, to: context)
        let size = prefix.count + plain.count + Self.tagSize
        let sealed = Bytes(unsafeUninitializedCapacity: size) { room, initialized in
            guard let start = room.baseAddress else { preconditionFailure("no room for a tag") }
            start.initialize(from: prefix, count: prefix.count)
            let text = start + prefix.count
            var written: Int32 = 0
            done =
                done
                && EVP_EncryptUpdate(context, text, &written, plain, Int32(plain.count)) == 1
                && Int(written) == plain.count
            var rest: Int32 = 0
            done =
                done && EVP_EncryptFinal_ex(context, text + plain.count, &rest) == 1
                && rest == 0
                && EVP_CIPHER_CTX_ctrl(
                    context, EVP_CTRL_GCM_GET_TAG, Int32(Self.tagSize), text + plain.count) == 1
            initialized = done ? size : 0
        }
        precondition(done, "AES-GCM failed on \(plain.count) bytes")
        return sealed
    }

    /// Opens the text after the first `prefixSize` bytes of `sealed`. Nil: altered, cut, or sealed
    /// otherwise.
    package static func open(
        _ sealed: Bytes, key: SecretBytes, nonce: Bytes, associated: Bytes, prefixSize: Int = 0
    ) -> Bytes? {
        let size = sealed.count - prefixSize - Self.tagSize
        guard size >= 0 else { return nil }
        let context = Self.context(key, nonce, isSealing: false)
        defer { EVP_CIPHER_CTX_free(context) }
        var done = Self.add(associated, to: context)
        let plain = sealed.withUnsafeBufferPointer { sealed -> Bytes in
            guard let text = sealed.baseAddress.map({ $0 + prefixSize }) else { return [] }
            // OpenSSL only reads the tag; its control function takes it without `const`.
            done =
                done
                && EVP_CIPHER_CTX_ctrl(
                    context, EVP_CTRL_GCM_SET_TAG, Int32(Self.tagSize),
                    UnsafeMutableRawPointer(mutating: text + size)) == 1
            return Bytes(unsafeUninitializedCapacity: max(size, 1)) { room, initialized in
                var written: Int32 = 0
                done =
                    done
                    && EVP_DecryptUpdate(context, room.baseAddress, &written, text, Int32(size))
                        == 1
                    && Int(written) == size
                var rest: Int32 = 0
                var end: UInt8 = 0
                done = done && EVP_DecryptFinal_ex(context, &end, &rest) == 1
                // A text that does not authenticate is never seen.
                if !done, let start = room.baseAddress { OPENSSL_cleanse(start, size) }
                initialized = done ? size : 0
            }
        }
        if !done { ERR_clear_error() }
        return done ? plain : nil
    }

    private static func context(_ key: SecretBytes, _ nonce: Bytes, isSealing: Bool)
        -> OpaquePointer
    {
        precondition(
            key.count == Self.keySize && nonce.count == Self.nonceSize,
            "AES-256-GCM takes a key of 32 bytes and a nonce of 12")
        guard let context = EVP_CIPHER_CTX_new() else {
            preconditionFailure("OpenSSL has no memory")
        }
        let cipher = Algorithms.shared.cipher
        let isReady = key.withBytes { key in
            let start = key.bindMemory(to: UInt8.self).baseAddress
            return isSealing
                ? EVP_EncryptInit_ex2(context, cipher, start, nonce, nil) == 1
                : EVP_DecryptInit_ex2(context, cipher, start, nonce, nil) == 1
        }
        precondition(isReady, "AES-256-GCM could not be set up")
        return context
    }

    private static func add(_ associated: Bytes, to context: OpaquePointer) -> Bool {
        if associated.isEmpty { return true }
        var written: Int32 = 0
        return EVP_CipherUpdate(context, nil, &written, associated, Int32(associated.count)) == 1
    }

    /// Fetched once, because a fetch costs more than the use itself.
    ///
    /// Unchecked, since the compiler knows nothing of C: OpenSSL's algorithm objects are immutable
    /// and counted atomically, and this is never freed.
    private struct Algorithms: @unchecked Sendable {
        static let shared = Algorithms()
        let cipher: OpaquePointer

        init() {
            guard let cipher = EVP_CIPHER_fetch(nil, "AES-256-GCM", nil) else {
                preconditionFailure("OpenSSL lacks AES-256-GCM")
            }
            self.cipher = cipher
        }
    }
}
