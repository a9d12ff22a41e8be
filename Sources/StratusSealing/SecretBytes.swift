import COpenSSL
package import StratusModel
import Synchronization

/// A key in memory: kept out of the swap file and of core dumps where the system allows it, and
/// wiped when the last reference goes.
///
/// `@unchecked Sendable`, since the compiler cannot see that the memory behind the pointer is
/// written once, before the initialiser returns, and freed with the last reference.
package final class SecretBytes: @unchecked Sendable, CustomStringConvertible,
    CustomDebugStringConvertible, CustomReflectable
{
    /// The locked memory of this process, for about 32,000 keys. Further keys lie in ordinary
    /// memory, and are wiped too.
    package static let poolSize = ByteCount.mebibytes(1)

    private let start: UnsafeMutableRawPointer
    package let count: Int

    /// Copies `bytes`; the caller's own copy is the caller's to wipe: see ``init(taking:)``.
    package init(copying bytes: Bytes) {
        precondition(!bytes.isEmpty, "a key has at least one byte")
        _ = Self.pool
        // Falls back to ordinary memory once the pool is used up.
        let room =
            CRYPTO_secure_malloc(bytes.count, #fileID, #line)
            ?? CRYPTO_malloc(bytes.count, #fileID, #line)
        guard let room else { preconditionFailure("no memory for a key") }
        room.copyMemory(from: bytes, byteCount: bytes.count)
        self.start = room
        self.count = bytes.count
    }

    /// Copies `bytes`, then wipes them.
    package convenience init(taking bytes: inout Bytes) {
        self.init(copying: bytes)
        OPENSSL_cleanse(&bytes, bytes.count)
    }

    deinit {
        // Frees what came from the pool, and what did not; both are wiped first.
        CRYPTO_secure_clear_free(self.start, self.count, #fileID, #line)
    }

    /// Lends the bytes to `body`, which must not keep them.
    package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        body(UnsafeRawBufferPointer(start: self.start, count: self.count))
    }

    /// Compares without telling by time where the first difference is.
    package func isEqual(to other: SecretBytes) -> Bool {
        self.count == other.count && CRYPTO_memcmp(self.start, other.start, self.count) == 0
    }

    /// Whether the system keeps this key out of the swap file.
    package var isLocked: Bool {
        Self.pool == .locked && CRYPTO_secure_allocated(self.start) == 1
    }

    package var description: String { "<secret>" }
    package var debugDescription: String { "<secret>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }

    private enum Pool { case locked, unlocked, missing }

    /// Made for the first key. The system may refuse to lock so much (`RLIMIT_MEMLOCK`); keys are
    /// wiped all the same.
    private static let pool: Pool =
        switch CRYPTO_secure_malloc_init(SecretBytes.poolSize.raw, 32) {
        case 1: .locked
        case 2: .unlocked
        default: .missing
        }
}
