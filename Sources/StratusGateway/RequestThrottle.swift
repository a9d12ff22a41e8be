import StratusModel
import Synchronization

/// How many requests a second one caller may send to this node: as many on average, twice as many at once.
///
/// One number for each caller, the time until which its share is used up (the generic cell rate algorithm):
/// exact, and nothing to tidy but callers whose time is past.
final class RequestThrottle: Sendable {
    private let interval: Int64
    private let burst: Int64
    private let usedUntil = Mutex<[String: Int64]>([:])
    private let countMax: Int

    /// - Parameter ratePerSecond: more than zero.
    init(ratePerSecond: Int, countMax: Int = 100_000) {
        precondition(ratePerSecond > 0, "no limit is no throttle")
        self.interval = max(1, 1_000_000_000 / Int64(ratePerSecond))
        self.burst = 2_000_000_000
        self.countMax = countMax
    }

    /// Nil: go on. Otherwise how long until the next request of this caller is taken.
    func wait(of caller: String, at time: MonotonicTime) -> Duration? {
        let now = time.nanoseconds
        return self.usedUntil.withLock { callers in
            if callers.count >= self.countMax, callers[caller] == nil {
                callers = callers.filter { $0.value > now }
                // All of them busy: whoever comes now is nobody's neighbour.
                if callers.count >= self.countMax { callers = [:] }
            }
            let next = max(callers[caller] ?? now, now) + self.interval
            guard next - now <= self.burst else {
                return .nanoseconds(next - now - self.burst)
            }
            callers[caller] = next
            return nil
        }
    }
}
