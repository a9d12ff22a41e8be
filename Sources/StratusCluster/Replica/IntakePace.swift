package import StratusModel

/// Limits how fast a leader takes commands in while a follower is far behind: the fuller the log's
/// part for followers, the slower. The log then stays within its bound while the follower catches
/// up, so the follower is not given up.
///
/// A value: the time is passed in.
package struct IntakePace: Sendable, Equatable {
    /// Below this share of the bound nothing is slowed.
    package static let slowFrom = 0.5
    /// With the bound reached, in a second: so that nobody is stopped altogether.
    package static let slowest = 256.0 * 1_024

    private var allowance = 1.0
    private var countedAt: MonotonicTime?

    package init() {}

    /// The bytes per second at this share of the bound; nil: no limit.
    ///
    /// Above half the bound the rate is such that the log would take eight seconds to reach it, and
    /// longer the nearer it comes.
    package static func rate(filledTo share: Double, of bound: ByteCount) -> Double? {
        guard share > Self.slowFrom else { return nil }
        let left = max(0, 1 - share) / (1 - Self.slowFrom)
        let fastest = Double(bound.raw) * (1 - Self.slowFrom) / 8
        return max(min(Self.slowest, fastest), fastest * left * left)
    }

    /// Whether a command of `size` is taken in now. One is taken while any of the allowance is
    /// left, however large it is, and later ones wait for the rest.
    package mutating func admits(_ size: Int, at rate: Double, now: MonotonicTime) -> Bool {
        let passed = self.countedAt.map { now - $0 } ?? .zero
        self.countedAt = now
        let gained = rate * Double(max(0, passed.clampedNanoseconds)) / 1e9
        // No more than a tenth of a second is saved up.
        self.allowance = min(self.allowance + gained, rate / 10)
        guard self.allowance > 0 else { return false }
        self.allowance -= Double(size)
        return true
    }
}
