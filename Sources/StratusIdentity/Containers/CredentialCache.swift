package import StratusCluster
package import StratusModel
import Synchronization

/// A cache of recent lookups of credentials.
///
/// A revoked credential is refused everywhere after one second, since nothing is believed longer
/// without asking again. While its partition cannot be asked, the last answer holds for ten
/// seconds; then the answer is "not now". An answer is never a guess.
///
/// In the last quarter of that second one request asks again, and the others go on with what is
/// known. Otherwise all requests under way would ask at once, every second.
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
    }

    private let state = Mutex(State())
    private let world: any World
    private let countMax: Int
    private let lifetime: Duration
    /// The age from which one request asks again.
    private let renewalAge: Duration
    private let grace: Duration

    package init(
        world: any World, countMax: Int = 65_536, lifetime: Duration = .seconds(1),
        grace: Duration = .seconds(10)
    ) {
        self.world = world
        self.countMax = countMax
        self.lifetime = lifetime
        self.renewalAge = lifetime * 3 / 4
        self.grace = grace
    }

    package func value(
        _ key: Key, orRead read: () async throws(RouteError) -> Value
    ) async throws(RouteError) -> Value {
        // Before the read: what is learnt is at least as new as this.
        let now = self.world.now
        let (known, begun) = self.state.withLock { state -> (Entry?, begun: UInt64?) in
            guard let known = state.entries[key] else { return (nil, state.begin(key)) }
            let isDue = now >= known.readAt + self.renewalAge && !known.isRead
            if isDue { state.entries[key]?.isRead = true }
            if !isDue, now < known.readAt + self.lifetime { return (known, nil) }
            return (known, state.begin(key))
        }
        if begun == nil, let known { return known.value }
        let started = begun ?? 0
        do throws(RouteError) {
            let value = try await read()
            self.state.withLock { state in
                // It was changed while it was read: what was read may be what was before.
                guard state.end(key, begunAt: started) else { return }
                // Full is rare, and everything is read again within a second anyway.
                if state.entries.count >= self.countMax, state.entries[key] == nil {
                    state.entries = [:]
                }
                // Somebody who asked later knows better.
                if let known = state.entries[key], known.readAt > now { return }
                state.entries[key] = Entry(value: value, readAt: now)
            }
            return value
        } catch {
            let mayBelieve = self.state.withLock { state in
                // The next one may ask.
                state.entries[key]?.isRead = false
                return state.end(key, begunAt: started)
            }
            if case .refused = error { throw error }
            guard let known, mayBelieve, now < known.readAt + self.grace else { throw error }
            return known.value
        }
    }

    /// Drops an entry that this node itself has just changed.
    package func forget(_ key: Key) {
        self.state.withLock { state in
            state.entries[key] = nil
            state.forgetCount += 1
            state.reads[key]?.forgottenAt = state.forgetCount
        }
    }

    package func forgetAll() {
        self.state.withLock { state in
            state.entries = [:]
            state.forgetCount += 1
            for key in state.reads.keys { state.reads[key]?.forgottenAt = state.forgetCount }
        }
    }
}
