import StratusModel

/// Failures of one kind that came close after each other. What is tried again waits longer after
/// each of them, up to a bound.
struct RepeatedFailures: Sendable {
    static let pauseMax = Duration.seconds(60)

    private var count = 0
    private var last: MonotonicTime?

    /// Counts one more.
    ///
    /// - Returns: how long to wait: a second, and twice as long after each that follows within two
    ///   minutes.
    mutating func add(at now: MonotonicTime) -> Duration {
        if let last = self.last, now >= last + Self.pauseMax + Self.pauseMax { self.count = 0 }
        self.last = now
        defer { self.count = min(self.count + 1, 6) }
        return min(.seconds(1 << self.count), Self.pauseMax)
    }
}
