package import StratusModel

/// When a connection that failed may be tried again: after a second, then twice as long each time,
/// up to five minutes, with a third of it drawn so that many clients do not come back together.
package struct ReconnectPace: Sendable, Equatable {
    package var restMin: Duration = .seconds(1)
    package var restMax: Duration = .seconds(300)
    private var failureCount = 0
    /// Nil: at once.
    package private(set) var restsUntil: MonotonicTime?

    package init(restMin: Duration = .seconds(1), restMax: Duration = .seconds(300)) {
        self.restMin = restMin
        self.restMax = restMax
    }

    package func mayTry(at now: MonotonicTime) -> Bool {
        self.restsUntil.map { now >= $0 } ?? true
    }

    /// - Parameter draw: any number; decides the drawn third.
    package mutating func failed(at now: MonotonicTime, draw: UInt64) {
        let base = self.restMin.clampedNanoseconds
        let longest = self.restMax.clampedNanoseconds
        var rest = base
        for _ in 0..<min(self.failureCount, 40) where rest < longest {
            rest = min(rest * 2, longest)
        }
        self.failureCount += 1
        let drawn = Int64(draw % UInt64(max(1, rest / 3)))
        self.restsUntil = now + .nanoseconds(rest - rest / 3 + drawn)
    }

    package mutating func succeeded() {
        self.failureCount = 0
        self.restsUntil = nil
    }
}
