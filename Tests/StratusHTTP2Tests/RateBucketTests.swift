import StratusModel
import Testing

@testable import StratusHTTP2

@Suite struct RateBucketTests {
    @Test func `so many at once, then so many a second, whatever the clock does`() {
        var bucket = RateBucket(burst: 3, rate: 2)
        var now = MonotonicTime(nanoseconds: 5_000_000_000)
        func taken(_ count: Int) -> [Bool] { (0..<count).map { _ in bucket.take(at: now) } }
        let atOnce = taken(4)
        #expect(atOnce == [true, true, true, false])
        now = now + .milliseconds(499)
        let soon = taken(1)
        #expect(soon == [false])
        now = now + .milliseconds(1)
        let later = taken(2)
        #expect(later == [true, false])
        // Far beyond what its numbers hold.
        now = MonotonicTime(nanoseconds: .max)
        let muchLater = taken(4)
        #expect(muchLater == [true, true, true, false])
        now = MonotonicTime(nanoseconds: 0)
        let before = taken(1)
        #expect(before == [false])
    }
}
