import StratusCluster
import StratusModel
import Testing

/// How a leader slows down while a follower is far behind.
@Suite struct IntakePaceTests {
    private let bound = ByteCount(1 << 30)

    @Test func `nothing is slowed below half of the bound, and nobody is stopped at it`() throws {
        #expect(IntakePace.rate(filledTo: 0.4, of: self.bound) == nil)
        var last = Double.infinity
        for share in [0.51, 0.6, 0.8, 0.99, 1.5] {
            let rate = try #require(IntakePace.rate(filledTo: share, of: self.bound))
            #expect(rate <= last && rate >= IntakePace.slowest)
            last = rate
        }
    }

    /// Core audit 1: as long as a transfer takes, the log stays within its bound.
    @Test func `whatever is asked, what is kept stays below the bound for minutes`() {
        var pace = IntakePace()
        var now = MonotonicTime(nanoseconds: 0)
        var held = 0
        for _ in 0..<120_000 {
            now = now + .milliseconds(1)
            // 60 MB in a second.
            for _ in 0..<10 {
                let rate = IntakePace.rate(
                    filledTo: Double(held) / Double(self.bound.raw), of: self.bound)
                if rate.map({ pace.admits(6_000, at: $0, now: now) }) ?? true { held += 6_000 }
            }
        }
        #expect(held > self.bound.raw / 2 && held < self.bound.raw)
    }
}
