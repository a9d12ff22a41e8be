import StratusModel
import Synchronization

/// How many requests one caller may send to this node in a span of time: as many on average, twice
/// as many at once.
///
/// One number for each caller, the time until which its share is used up (the generic cell rate
/// algorithm): exact, and nothing to tidy but callers whose time is past.
final class RequestThrottle: Sendable {
    /// The number of one caller. Whoever is asked for it again and again keeps it.
    final class Counter: Sendable {
        fileprivate static let gone = Int64.min
        /// The time until which the share is used up, or ``gone``: the throttle counts by another.
        fileprivate let usedUntil = Atomic(Counter.gone + 1)
    }

    private enum Verdict { case taken, mustWait(Duration), gone }

    private let interval: Int64
    private let burst: Int64
    private let counters = Mutex<[String: Counter]>([:])
    private let countMax: Int

    /// - Parameter ratePerSecond: more than zero.
    convenience init(ratePerSecond: Int, countMax: Int = 100_000) {
        self.init(ratePerSecond, in: .seconds(1), countMax: countMax)
    }

    /// - Parameter rate: requests in `span`; more than zero.
    init(_ rate: Int, in span: Duration, countMax: Int = 100_000) {
        precondition(rate > 0, "no limit is no throttle")
        self.interval = max(1, span.clampedNanoseconds / Int64(rate))
        self.burst = 2 * span.clampedNanoseconds
        self.countMax = countMax
    }

    /// Nil: go on. Otherwise how long until the next request of this caller is taken.
    ///
    /// - Parameters:
    ///   - known: what ``counter(of:at:)`` gave for the caller. It may be evicted since.
    ///   - count: how many requests this one counts as. One that is more than may ever come at once
    ///     is taken from a caller who has sent nothing lately.
    func wait(
        of caller: String, at time: MonotonicTime, count: Int = 1, by known: Counter? = nil
    ) -> Duration? {
        let now = time.nanoseconds
        let cost = Int64(min(count, Int(self.burst / self.interval))) * self.interval
        var counter = known ?? self.counter(of: caller, at: time)
        while true {
            switch self.take(cost, of: counter, at: now) {
            case .taken: return nil
            case .mustWait(let wait): return wait
            case .gone: counter = self.counter(of: caller, at: time)
            }
        }
    }

    private func take(_ cost: Int64, of counter: Counter, at now: Int64) -> Verdict {
        var used = counter.usedUntil.load(ordering: .relaxed)
        while true {
            if used == Counter.gone { return .gone }
            let next = max(used, now) + cost
            guard next - now <= self.burst else {
                return .mustWait(.nanoseconds(next - now - self.burst))
            }
            let (isDone, found) = counter.usedUntil.compareExchange(
                expected: used, desired: next, ordering: .relaxed)
            if isDone { return .taken }
            used = found
        }
    }

    /// The counter of a caller, made where there is none.
    func counter(of caller: String, at time: MonotonicTime) -> Counter {
        self.counters.withLock { counters in
            if let known = counters[caller] { return known }
            if counters.count >= self.countMax {
                counters = counters.filter { !Self.evict($0.value, at: time.nanoseconds) }
                // All of them busy: whoever comes now is nobody's neighbour.
                if counters.count >= self.countMax {
                    for counter in counters.values { _ = Self.evict(counter, at: .max) }
                    counters = [:]
                }
            }
            let counter = Counter()
            counters[caller] = counter
            return counter
        }
    }

    /// - Returns: whether nothing of the share is used, so that nobody counts by it any more.
    private static func evict(_ counter: Counter, at now: Int64) -> Bool {
        var used = counter.usedUntil.load(ordering: .relaxed)
        while used <= now {
            let (isDone, found) = counter.usedUntil.compareExchange(
                expected: used, desired: Counter.gone, ordering: .relaxed)
            if isDone { return true }
            used = found
        }
        return false
    }
}
