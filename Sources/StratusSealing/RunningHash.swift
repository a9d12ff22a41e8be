import COpenSSL
package import StratusModel

/// A hash of bytes that come in pieces. One thread at a time.
package final class RunningHash {
    package enum Function: Sendable, Hashable, CaseIterable {
        /// Only for the `fileChecksum` of CloudKit's wire format: it does not resist collisions.
        case sha1
        case sha256

        package var size: Int { self == .sha1 ? 20 : 32 }
    }

    private let context: OpaquePointer
    private let function: Function

    package init(_ function: Function) {
        guard let context = EVP_MD_CTX_new() else { preconditionFailure("OpenSSL has no memory") }
        self.context = context
        self.function = function
        let kind = function == .sha1 ? EVP_sha1() : EVP_sha256()
        precondition(EVP_DigestInit_ex(context, kind, nil) == 1, "a hash is missing")
    }

    deinit { EVP_MD_CTX_free(self.context) }

    package func update(_ bytes: Bytes) {
        precondition(EVP_DigestUpdate(self.context, bytes, bytes.count) == 1, "hashing failed")
    }

    package func update(_ bytes: borrowing RawSpan) {
        bytes.withUnsafeBytes { buffer in
            if buffer.isEmpty { return }
            precondition(
                EVP_DigestUpdate(self.context, buffer.baseAddress, buffer.count) == 1,
                "hashing failed")
        }
    }

    /// The hash of all pieces. To be asked once: the context is used up.
    package func finish() -> Bytes {
        var digest = Bytes(repeating: 0, count: self.function.size)
        var count: UInt32 = 0
        let code = EVP_DigestFinal_ex(self.context, &digest, &count)
        precondition(code == 1 && Int(count) == digest.count, "a hash was asked for twice")
        return digest
    }
}
