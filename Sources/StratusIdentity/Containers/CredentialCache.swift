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

    private let entries = Mutex<[Key: Entry]>([:])
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
        let (known, isDue) = self.entries.withLock { entries -> (Entry?, Bool) in
            guard let known = entries[key] else { return (nil, true) }
            let isDue = now >= known.readAt + self.renewalAge && !known.isRead
            if isDue { entries[key]?.isRead = true }
            return (known, isDue)
        }
        if let known, !isDue, now < known.readAt + self.lifetime { return known.value }
        do throws(RouteError) {
            let value = try await read()
            self.entries.withLock { entries in
                // Full is rare, and everything is read again within a second anyway.
                if entries.count >= self.countMax, entries[key] == nil { entries = [:] }
                // Somebody who asked later knows better.
                if let known = entries[key], known.readAt > now { return }
                entries[key] = Entry(value: value, readAt: now)
            }
            return value
        } catch {
            // The next one may ask.
            self.entries.withLock { $0[key]?.isRead = false }
            if case .refused = error { throw error }
            guard let known, now < known.readAt + self.grace else { throw error }
            return known.value
        }
    }

    /// Drops an entry that this node itself has just changed.
    package func forget(_ key: Key) { self.entries.withLock { $0[key] = nil } }
    package func forgetAll() { self.entries.withLock { $0 = [:] } }
}
