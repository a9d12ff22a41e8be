import CArgon2
import COpenSSL
package import StratusModel
package import StratusRuntime
import Synchronization

/// A password as it is stored: argon2id (RFC 9106) with the parameters it was hashed with, so that they
/// may grow.
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
}

/// Hashes passwords on a thread of its own: each takes tens of milliseconds and megabytes, by design.
///
/// Bounded: who finds the line full is told to come back, and the loops that serve everybody else never
/// wait.
package final class PasswordHasher: Sendable {
    package struct Cost: Sendable, Equatable {
        /// OWASP's first choice for argon2id: 19 MiB, two passes, one lane.
        package var memoryKibibytes: UInt32 = 19 * 1_024
        package var passes: UInt32 = 2

        package init() {}
        package init(memoryKibibytes: UInt32, passes: UInt32) {
            self.memoryKibibytes = memoryKibibytes
            self.passes = passes
        }
    }

    private let worker = WorkerThread(name: "passwords")
    private let waitingCount = Atomic(0)
    private let waitingCountMax: Int
    package let cost: Cost

    package init(cost: Cost = Cost(), waitingCountMax: Int = 32) {
        self.cost = cost
        self.waitingCountMax = waitingCountMax
    }

    deinit { self.worker.stop() }

    /// Room for one password, held until nobody refers to it any more.
    package final class Room: Sendable {
        private let hasher: PasswordHasher

        fileprivate init(of hasher: PasswordHasher) { self.hasher = hasher }

        deinit { self.hasher.waitingCount.subtract(1, ordering: .relaxed) }
    }

    /// Nil: too many wait already. Whoever counts tries asks for room first, so that a try that is not made is not
    /// counted.
    package func reserve() -> Room? {
        guard
            self.waitingCount.add(1, ordering: .relaxed).newValue <= self.waitingCountMax
        else {
            self.waitingCount.subtract(1, ordering: .relaxed)
            return nil
        }
        return Room(of: self)
    }

    /// Nil: too many wait already.
    package func hash(_ password: Secret<String>, salt: Bytes) async -> PasswordHash? {
        guard let room = self.reserve() else { return nil }
        return await self.hash(password, salt: salt, in: room)
    }

    package func hash(_ password: Secret<String>, salt: Bytes, in room: Room) async -> PasswordHash
    {
        let cost = self.cost
        return await self.run(in: room) {
            PasswordHash(
                memoryKibibytes: cost.memoryKibibytes, passes: cost.passes, salt: salt,
                hash: Self.argon2id(
                    password, salt: salt, memory: cost.memoryKibibytes, passes: cost.passes))
        }
    }

    /// Whether the password is the stored one. Without a stored one the same work is done and the
    /// answer is no: time must not tell who exists.
    package func verify(
        _ password: Secret<String>, against stored: PasswordHash?, in room: Room
    ) async -> Bool {
        let cost = self.cost
        return await self.run(in: room) {
            let hash = Self.argon2id(
                password, salt: stored?.salt ?? Bytes(repeating: 0, count: 16),
                memory: stored?.memoryKibibytes ?? cost.memoryKibibytes,
                passes: stored?.passes ?? cost.passes)
            guard let stored, stored.hash.count == hash.count else { return false }
            return CRYPTO_memcmp(hash, stored.hash, hash.count) == 0
        }
    }

    private func run<Result: Sendable>(
        in room: Room, _ body: @escaping @Sendable () -> Result
    ) async -> Result {
        defer { withExtendedLifetime(room) {} }
        return await self.worker.run(body)
    }

    private static func argon2id(
        _ password: Secret<String>, salt: Bytes, memory: UInt32, passes: UInt32
    ) -> Bytes {
        var text = Bytes(password.reveal().utf8)
        defer { OPENSSL_cleanse(&text, text.count) }
        var hash = Bytes(repeating: 0, count: 32)
        let code = argon2id_hash_raw(
            passes, memory, 1, text, text.count, salt, salt.count, &hash, hash.count)
        precondition(code == 0, "argon2id failed (\(code))")
        return hash
    }
}
