import StratusModel
import Synchronization

/// How many requests one caller may send to this node in a span of time: as many on average, twice
/// as many at once.
///
/// One number for each caller, the time until which its share is used up (the generic cell rate
/// algorithm): exact, and nothing to tidy but callers whose time is past.
final class RequestThrottle: Sendable {
    private let interval: Int64
    private let burst: Int64
    private let usedUntil = Mutex<[String: Int64]>([:])
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
    /// - Parameter count: how many requests this one counts as. One that is more than may ever come
    ///   at once is taken from a caller who has sent nothing lately.
    func wait(of caller: String, at time: MonotonicTime, count: Int = 1) -> Duration? {
        let now = time.nanoseconds
        let cost = Int64(min(count, Int(self.burst / self.interval))) * self.interval
        return self.usedUntil.withLock { callers in
            if callers.count >= self.countMax, callers[caller] == nil {
                callers = callers.filter { $0.value > now }
                // All of them busy: whoever comes now is nobody's neighbour.
                if callers.count >= self.countMax { callers = [:] }
            }
            let next = max(callers[caller] ?? now, now) + cost
            guard next - now <= self.burst else {
                return .nanoseconds(next - now - self.burst)
            }
            callers[caller] = next
            return nil
        }
    }
}
