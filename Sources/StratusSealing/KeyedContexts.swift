import COpenSSL
import StratusModel
import Synchronization

/// HMAC-SHA256 and AES-256-CTR under two keys that stay: keying OpenSSL costs more than a short
/// text.
///
/// Contexts are lent to one caller at a time and come back. A few are kept, as many as threads use
/// them at once.
final class KeyedContexts: Sendable {
    private static let keptCountMax = 16

    private let mac: Bytes
    private let cipher: Bytes
    private let kept = Mutex<[Context]>([])

    init(mac: Bytes, cipher: Bytes) {
        precondition(mac.count == 32 && cipher.count == 32, "a key has 32 bytes")
        self.mac = mac
        self.cipher = cipher
    }

    func withContext<Result>(_ body: (Context) -> Result) -> Result {
        let context =
            self.kept.withLock { $0.popLast() } ?? Context(mac: self.mac, cipher: self.cipher)
        defer {
            self.kept.withLock { if $0.count < Self.keptCountMax { $0.append(context) } }
        }
        return body(context)
    }

    /// One context of each kind, keyed.
    ///
    /// Unchecked, since the compiler knows nothing of C: only one caller has it at a time.
    final class Context: @unchecked Sendable {
        private let mac: OpaquePointer
        private let cipher: OpaquePointer

        fileprivate init(mac macKey: Bytes, cipher cipherKey: Bytes) {
            guard let mac = KeyedHash.makeContext(key: macKey),
                let cipher = EVP_CIPHER_CTX_new(),
                EVP_EncryptInit_ex2(cipher, Algorithms.shared.counter, cipherKey, nil, nil) == 1
            else { preconditionFailure("OpenSSL gives no context") }
            self.mac = mac
            self.cipher = cipher
        }

        deinit {
            EVP_MAC_CTX_free(self.mac)
            EVP_CIPHER_CTX_free(self.cipher)
        }

        /// HMAC-SHA256 of the parts, one after the other.
        func tag(_ parts: UnsafeRawBufferPointer..., into tag: UnsafeMutablePointer<UInt8>) {
            // Without a key: begins anew with the one it has.
            var done = EVP_MAC_init(self.mac, nil, 0, nil) == 1
            for part in parts where done && !part.isEmpty {
                done =
                    EVP_MAC_update(
                        self.mac, part.baseAddress?.assumingMemoryBound(to: UInt8.self), part.count)
                    == 1
            }
            var written = 0
            done = done && EVP_MAC_final(self.mac, tag, &written, 32) == 1
            precondition(done && written == 32, "HMAC-SHA256 failed")
        }

        /// AES-256-CTR of `text`, whose counter begins with 16 bytes.
        func encrypt(
            _ text: UnsafeRawBufferPointer, counter: UnsafePointer<UInt8>,
            into output: UnsafeMutablePointer<UInt8>
        ) {
            if text.isEmpty { return }
            var written: Int32 = 0
            let done =
                EVP_EncryptInit_ex2(self.cipher, nil, nil, counter, nil) == 1
                && EVP_EncryptUpdate(
                    self.cipher, output, &written,
                    text.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32(text.count)) == 1
            precondition(done && Int(written) == text.count, "AES-CTR failed on \(text.count)")
        }
    }

    /// Fetched once, because a fetch costs more than the use itself.
    ///
    /// Unchecked, since the compiler knows nothing of C: OpenSSL's algorithm objects are immutable
    /// and counted atomically, and this is never freed.
    private struct Algorithms: @unchecked Sendable {
        static let shared = Algorithms()
        let counter: OpaquePointer

        init() {
            guard let counter = EVP_CIPHER_fetch(nil, "AES-256-CTR", nil) else {
                preconditionFailure("OpenSSL lacks AES-256-CTR")
            }
            self.counter = counter
        }
    }
}
