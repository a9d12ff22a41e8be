/// A point on this machine's monotonic clock. Meaningless on any other machine or after a restart.
package struct MonotonicTime: Sendable, Hashable, Comparable {
    package var nanoseconds: Int64

    package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    package static func < (one: Self, other: Self) -> Bool { one.nanoseconds < other.nanoseconds }

    /// Saturates: "a very long time from now" must not trap.
    package static func + (time: Self, duration: Duration) -> Self {
        let (sum, overflow) = time.nanoseconds.addingReportingOverflow(duration.clampedNanoseconds)
        return Self(nanoseconds: overflow ? .max : sum)
    }

    package static func - (later: Self, earlier: Self) -> Duration {
        .nanoseconds(later.nanoseconds - earlier.nanoseconds)
    }
}

extension Duration {
    /// This duration in whole nanoseconds, held within what 64 bits can say (292 years).
    package var clampedNanoseconds: Int64 {
        Int64(clamping: self.attoseconds / 1_000_000_000)
    }
}

/// The time of a log entry: wall milliseconds since 1970 and a counter that breaks ties.
///
/// Within one group an entry's time is never before its predecessor's, whatever the wall clock
/// does.
package struct HybridTime: Sendable, Hashable, Comparable {
    package var milliseconds: Int64
    package var count: UInt16

    package init(milliseconds: Int64, count: UInt16 = 0) {
        self.milliseconds = milliseconds
        self.count = count
    }

    package static let zero = HybridTime(milliseconds: 0)

    package static func < (one: Self, other: Self) -> Bool {
        (one.milliseconds, one.count) < (other.milliseconds, other.count)
    }

    /// The time for the next entry: the wall's, or just after `self` where the wall is behind.
    package func successor(wallMilliseconds: Int64) -> HybridTime {
        if wallMilliseconds > self.milliseconds {
            return HybridTime(milliseconds: wallMilliseconds)
        }
        if self.count < .max {
            return HybridTime(milliseconds: self.milliseconds, count: self.count + 1)
        }
        return HybridTime(milliseconds: self.milliseconds + 1)
    }
}
