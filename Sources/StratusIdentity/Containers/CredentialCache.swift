package import StratusModel
import Synchronization

/// A cache of recent lookups of credentials.
///
/// A revoked credential is refused everywhere after one second, since nothing is believed longer
/// without asking again. While its partition cannot be asked, the last answer holds for ten
/// seconds; then the answer is "not now". An answer is never a guess.
///
/// In the last quarter of that second one request asks again, and the others go on with what is
/// known. If the second ends before it is answered, or nothing is known, one more request asks, and
/// the others wait for its answer. Otherwise all requests under way would ask at once, every
/// second.
package final class CredentialCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Entry {
        var value: Value
        var readAt: MonotonicTime
        /// A request asks again already.
        var isRead = false
    }

    private struct Reads {
        var count = 0
        /// The last time that the key was forgotten while somebody read it.
        var forgottenAt: UInt64 = 0
        /// The read that others wait for.
        var awaited: Awaited?
    }

    /// A value, and when the read that brought it began.
    package struct Dated: Sendable {
        package let value: Value
        package let readAt: MonotonicTime
    }

    private struct Awaited {
        let begunAt: UInt64
        let startedAt: MonotonicTime
        /// At most as many as there are requests.
        var waiters: [CheckedContinuation<Dated?, Never>] = []
    }

    /// What a request does about a key.
    private enum Step {
        case believe(Dated)
        case wait
        /// - Parameter isAwaited: others may wait for the answer.
        case read(known: Entry?, begunAt: UInt64, isAwaited: Bool)
    }

    private struct State {
        var entries: [Key: Entry] = [:]
        /// The reads under way, by key: at most as many as there are requests.
        var reads: [Key: Reads] = [:]
        /// Counts what is forgotten.
        var forgetCount: UInt64 = 0

        mutating func begin(_ key: Key) -> UInt64 {
            self.reads[key, default: Reads()].count += 1
            return self.forgetCount
        }

        /// - Returns: whether what a read has found may be believed by others.
        mutating func end(_ key: Key, begunAt begun: UInt64) -> Bool {
            guard var reads = self.reads[key] else { return true }
            reads.count -= 1
            self.reads[key] = reads.count > 0 ? reads : nil
            return reads.forgottenAt <= begun
        }

        /// Whether a read is under way whose answer is good for a request that begins now.
        func isAwaited(_ key: Key, at now: MonotonicTime, _ lifetime: Duration) -> Bool {
            guard let reads = self.reads[key], let awaited = reads.awaited else { return false }
            return reads.forgottenAt <= awaited.begunAt && now < awaited.startedAt + lifetime
        }

        /// Ends the read that others wait for.
        mutating func takeWaiters(_ key: Key) -> [CheckedContinuation<Dated?, Never>] {
            defer { self.reads[key]?.awaited = nil }
            return self.reads[key]?.awaited?.waiters ?? []
        }
    }

    private let state = Mutex(State())
    private let world: any World
    private let countMax: Int
    package let lifetime: Duration
    /// The age from which one request asks again.
    private let renewalAge: Duration
    private let grace: Duration
    private let epoch: CredentialEpoch?

    /// - Parameter epoch: rises with everything that is forgotten.
    package init(
        world: any World, countMax: Int = 65_536, lifetime: Duration = .seconds(1),
        grace: Duration = .seconds(10), epoch: CredentialEpoch? = nil
    ) {
        self.epoch = epoch
        self.world = world
        self.countMax = countMax
        self.lifetime = lifetime
        self.renewalAge = lifetime * 3 / 4
        self.grace = grace
    }

    package func value(
        _ key: Key, orRead read: () async throws(RouteError) -> Value
    ) async throws(RouteError) -> Value {
        try await self.dated(key, orRead: read).value
    }

    package func dated(
        _ key: Key, orRead read: () async throws(RouteError) -> Value
    ) async throws(RouteError) -> Dated {
        // Before the read: what is learnt is at least as new as this.
        var now = self.world.now
        var step = self.step(key, at: now)
        if case .wait = step {
            if let value = await self.awaited(key, at: now) { return value }
            // It failed, or was changed meanwhile.
            now = self.world.now
            step = self.state.withLock { state in
                .read(known: state.entries[key], begunAt: state.begin(key), isAwaited: false)
            }
        }
        switch step {
        case .believe(let value): return value
        case .read(let known, let begun, let isAwaited):
            return try await self.value(
                key, at: now, known, begunAt: begun, isAwaited: isAwaited, orRead: read)
        case .wait: preconditionFailure("a request waits once")
        }
    }

    private func step(_ key: Key, at now: MonotonicTime) -> Step {
        self.state.withLock { state in
            let known = state.entries[key]
            if let known {
                let isDue = now >= known.readAt + self.renewalAge && !known.isRead
                if isDue {
                    state.entries[key]?.isRead = true
                    return .read(known: known, begunAt: state.begin(key), isAwaited: false)
                }
                if now < known.readAt + self.lifetime {
                    return .believe(Dated(value: known.value, readAt: known.readAt))
                }
            }
            if state.isAwaited(key, at: now, self.lifetime) { return .wait }
            let begun = state.begin(key)
            // A read that takes too long keeps those who wait for it.
            let isAwaited = state.reads[key]?.awaited == nil
            if isAwaited {
                state.reads[key]?.awaited = Awaited(begunAt: begun, startedAt: now)
            }
            return .read(known: known, begunAt: begun, isAwaited: isAwaited)
        }
    }

    /// What the read under way has found; nil where it cannot be believed.
    private func awaited(_ key: Key, at now: MonotonicTime) async -> Dated? {
        await withCheckedContinuation { continuation in
            let isWaiting = self.state.withLock { state in
                // It may have ended since.
                guard state.isAwaited(key, at: now, self.lifetime) else { return false }
                state.reads[key]?.awaited?.waiters.append(continuation)
                return true
            }
            if !isWaiting { continuation.resume(returning: nil) }
        }
    }

    private func value(
        _ key: Key, at now: MonotonicTime, _ known: Entry?, begunAt started: UInt64,
        isAwaited: Bool, orRead read: () async throws(RouteError) -> Value
    ) async throws(RouteError) -> Dated {
        var waiters: [CheckedContinuation<Dated?, Never>] = []
        do throws(RouteError) {
            let value = try await read()
            var isGood = false
            self.state.withLock { state in
                if isAwaited { waiters = state.takeWaiters(key) }
                // It was changed while it was read: what was read may be what was before.
                guard state.end(key, begunAt: started) else { return }
                isGood = true
                // Full is rare, and everything is read again within a second anyway.
                if state.entries.count >= self.countMax, state.entries[key] == nil {
                    state.entries = [:]
                }
                // Somebody who asked later knows better.
                if let known = state.entries[key], known.readAt > now { return }
                state.entries[key] = Entry(value: value, readAt: now)
            }
            let dated = Dated(value: value, readAt: now)
            for waiter in waiters { waiter.resume(returning: isGood ? dated : nil) }
            return dated
        } catch {
            let mayBelieve = self.state.withLock { state in
                if isAwaited { waiters = state.takeWaiters(key) }
                // The next one may ask.
                state.entries[key]?.isRead = false
                return state.end(key, begunAt: started)
            }
            // Each asks for itself: this one may only have lost its own connection.
            for waiter in waiters { waiter.resume(returning: nil) }
            if case .refused = error { throw error }
            guard let known, mayBelieve, now < known.readAt + self.grace else { throw error }
            return Dated(value: known.value, readAt: known.readAt)
        }
    }

    /// Drops an entry that this node itself has just changed.
    package func forget(_ key: Key) {
        self.state.withLock { state in
            state.entries[key] = nil
            state.forgetCount += 1
            state.reads[key]?.forgottenAt = state.forgetCount
        }
        self.epoch?.rise()
    }

    package func forgetAll() {
        self.state.withLock { state in
            state.entries = [:]
            state.forgetCount += 1
            for key in state.reads.keys { state.reads[key]?.forgottenAt = state.forgetCount }
        }
        self.epoch?.rise()
    }
}
