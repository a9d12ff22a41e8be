package import StratusModel

/// So many at once, then so many a second.
package struct RateBucket: Sendable, Equatable {
    private let capacity: Int64
    private let rate: Int64
    /// In billionths.
    private var level: Int64
    private var filledAt: MonotonicTime?

    package init(burst: Int, rate: Int) {
        self.capacity = Int64(burst) * 1_000_000_000
        self.rate = Int64(rate)
        self.level = self.capacity
    }

    /// - Returns: whether there was one left.
    package mutating func take(at now: MonotonicTime) -> Bool {
        if let filledAt = self.filledAt, now > filledAt {
            let elapsed = now.nanoseconds - filledAt.nanoseconds
            let (gain, overflow) = elapsed.multipliedReportingOverflow(by: self.rate)
            self.level =
                overflow
                ? self.capacity : min(self.capacity, self.level &+ min(gain, self.capacity))
        }
        self.filledAt = max(now, self.filledAt ?? now)
        guard self.level >= 1_000_000_000 else { return false }
        self.level -= 1_000_000_000
        return true
    }
}
