import CArgon2
import COpenSSL
package import StratusModel

/// A password in its stored form: argon2id (RFC 9106) with the parameters it was hashed with, so
/// that later hashes may use larger ones.
///
/// Each hash takes tens of milliseconds and megabytes, by design: call it from a thread that may
/// block.
package struct PasswordHash: Sendable, Equatable {
    package var memoryKibibytes: UInt32
    package var passes: UInt32
    package var salt: Bytes
    package var hash: Bytes

    package init(memoryKibibytes: UInt32, passes: UInt32, salt: Bytes, hash: Bytes) {
        self.memoryKibibytes = memoryKibibytes
        self.passes = passes
        self.salt = salt
        self.hash = hash
    }

    /// Hashes a new password. Wipes `password`.
    package init(
        hashing password: inout Bytes, salt: Bytes, memoryKibibytes: UInt32, passes: UInt32
    ) {
        self.init(
            memoryKibibytes: memoryKibibytes, passes: passes, salt: salt,
            hash: Self.argon2id(
                &password, salt: salt, memoryKibibytes: memoryKibibytes, passes: passes))
    }

    /// Whether the password is the stored one. Without a stored one the same work is done, with the
    /// parameters given, and the answer is no: time must not tell who exists. Wipes `password`.
    package static func verify(
        _ password: inout Bytes, against stored: PasswordHash?, memoryKibibytes: UInt32,
        passes: UInt32
    ) -> Bool {
        let hash = Self.argon2id(
            &password, salt: stored?.salt ?? Bytes(repeating: 0, count: 16),
            memoryKibibytes: stored?.memoryKibibytes ?? memoryKibibytes,
            passes: stored?.passes ?? passes)
        guard let stored, stored.hash.count == hash.count else { return false }
        return CRYPTO_memcmp(hash, stored.hash, hash.count) == 0
    }

    private static func argon2id(
        _ password: inout Bytes, salt: Bytes, memoryKibibytes: UInt32, passes: UInt32
    ) -> Bytes {
        defer { OPENSSL_cleanse(&password, password.count) }
        var hash = Bytes(repeating: 0, count: 32)
        let code = argon2id_hash_raw(
            passes, memoryKibibytes, 1, password, password.count, salt, salt.count, &hash,
            hash.count)
        precondition(code == 0, "argon2id failed (\(code))")
        return hash
    }
}
