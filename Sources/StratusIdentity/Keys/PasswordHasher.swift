package import StratusModel
package import StratusRuntime
package import StratusSealing
import Synchronization

/// Hashes passwords on a thread of its own: each takes tens of milliseconds and megabytes, by
/// design.
///
/// Its queue is bounded: a caller that finds it full is told to come back, and the loops that serve
/// all others never wait.
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

    private let worker = WorkerThread(name: "passwords", yields: true)
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

    /// Reserves room in the queue, or returns nil if it is full. A caller that counts tries
    /// reserves first, so that it counts no try that is not made.
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
            var bytes = Bytes(password.reveal().utf8)
            return PasswordHash(
                hashing: &bytes, salt: salt, memoryKibibytes: cost.memoryKibibytes,
                passes: cost.passes)
        }
    }

    /// Whether the password is the stored one. Without a stored one the same work is done and the
    /// answer is no: time must not tell who exists.
    package func verify(
        _ password: Secret<String>, against stored: PasswordHash?, in room: Room
    ) async -> Bool {
        let cost = self.cost
        return await self.run(in: room) {
            var bytes = Bytes(password.reveal().utf8)
            return PasswordHash.verify(
                &bytes, against: stored, memoryKibibytes: cost.memoryKibibytes,
                passes: cost.passes)
        }
    }

    private func run<Result: Sendable>(
        in room: Room, _ body: @escaping @Sendable () -> Result
    ) async -> Result {
        defer { withExtendedLifetime(room) {} }
        return await self.worker.run(body)
    }
}
