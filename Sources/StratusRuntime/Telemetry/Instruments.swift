import Glibc
import StratusModel
import Synchronization

/// Counts things that happen. Never goes down while the process lives.
package final class Counter: Sendable {
    private let stripes = Stripes(width: 1)

    package init() {}

    package func add(_ count: Int = 1) {
        self.stripes.add(UInt64(truncatingIfNeeded: count), at: 0, on: Stripes.mine())
    }

    package var value: UInt64 { self.stripes.sum(at: 0) }
}

/// A level that goes up and down.
package final class Gauge: Sendable {
    private let level = Atomic<Int>(0)

    package init() {}

    package func set(_ value: Int) { self.level.store(value, ordering: .relaxed) }
    package func add(_ difference: Int) { self.level.add(difference, ordering: .relaxed) }
    package var value: Int { self.level.load(ordering: .relaxed) }
}

/// How long things took, in log-linear buckets.
///
/// Four buckets cover every doubling from one microsecond to over an hour: a quantile read from it
/// is at most 19 % too high, in any range, and no range has to be chosen beforehand. Prometheus
/// sees one bucket per doubling, which keeps a series at thirty lines.
package final class LatencyHistogram: Sendable {
    /// Doublings covered: the last bucket begins at 2^32 µs, about 71 minutes.
    private static let octaveCount = 32
    private static let bucketCount = octaveCount * 4 + 1
    private let stripes = Stripes(width: LatencyHistogram.bucketCount + 1)

    package init() {}

    package func record(_ duration: Duration) {
        self.record(nanoseconds: duration.clampedNanoseconds)
    }

    /// A negative duration counts as nothing.
    package func record(nanoseconds: Int64) {
        let held = UInt64(clamping: nanoseconds)
        let stripe = Stripes.mine()
        self.stripes.add(1, at: Self.bucket(of: held / 1_000), on: stripe)
        self.stripes.add(held, at: Self.bucketCount, on: stripe)
    }

    /// Bucket 0 holds [0, 1) µs; then four to each doubling, the first of an octave [2^k, 1.25 ×
    /// 2^k).
    static func bucket(of microseconds: UInt64) -> Int {
        if microseconds == 0 { return 0 }
        let octave = 63 - microseconds.leadingZeroBitCount
        if octave >= Self.octaveCount { return Self.bucketCount - 1 }
        // The two bits after the leading one.
        let quarter = Int(
            (octave >= 2 ? microseconds >> (octave - 2) : microseconds << (2 - octave)) & 3)
        return 1 + octave * 4 + quarter
    }

    /// The first whole or fractional microsecond that is not in the bucket.
    static func upperMicroseconds(of bucket: Int) -> Double {
        if bucket == 0 { return 1 }
        let octave = (bucket - 1) / 4
        return Double(UInt64(1) << octave) * (1.25 + 0.25 * Double((bucket - 1) % 4))
    }

    package struct Snapshot: Sendable {
        package var count: UInt64
        package var sumSeconds: Double
        /// At each doubling, how many were faster.
        package var cumulative: [(seconds: Double, count: UInt64)]
        fileprivate var buckets: [UInt64]

        /// The duration that `fraction` of all stayed below; nil when nothing was recorded.
        package func quantile(_ fraction: Double) -> Duration? {
            if self.count == 0 { return nil }
            let rank = max(1, UInt64((Double(self.count) * fraction).rounded(.up)))
            var seen: UInt64 = 0
            for (bucket, count) in self.buckets.enumerated() {
                seen += count
                if seen >= rank {
                    let upper = LatencyHistogram.upperMicroseconds(of: bucket)
                    return .nanoseconds(Int64(upper * 1_000))
                }
            }
            return nil
        }
    }

    /// Not one instant: additions go on meanwhile, and each is either in it or not.
    package func snapshot() -> Snapshot {
        let buckets = (0..<Self.bucketCount).map { self.stripes.sum(at: $0) }
        var cumulative: [(seconds: Double, count: UInt64)] = []
        var seen = buckets[0]
        for octave in 0..<Self.octaveCount {
            // 64 µs to 134 s: below and above, one more line tells nobody anything.
            if (6...27).contains(octave) {
                cumulative.append((Double(UInt64(1) << octave) / 1e6, seen))
            }
            for quarter in 0..<4 { seen += buckets[1 + octave * 4 + quarter] }
        }
        return Snapshot(
            count: buckets.reduce(0, +),
            sumSeconds: Double(self.stripes.sum(at: Self.bucketCount)) / 1e9,
            cumulative: cumulative, buckets: buckets)
    }
}

/// A few copies of the same row of numbers. Each thread adds to one of them, a reader sums them
/// all.
///
/// `@unchecked`: the pointer is set once and what it points to is only touched by atomic
/// operations; the compiler cannot see that of memory allocated by hand. A `[Atomic]` would let us
/// drop it, but arrays cannot hold values that do not copy.
final class Stripes: @unchecked Sendable {
    /// A power of two. More than four loops on one machine share, and still mostly miss each other.
    static let count = 4
    private let numbers: UnsafeMutablePointer<Atomic<UInt64>>
    private let stride: Int

    init(width: Int) {
        // Whole cache lines, and one to spare: neighbours in memory stay out of each other's way.
        self.stride = (width + 7) / 8 * 8 + 8
        let total = self.stride * Self.count
        self.numbers = .allocate(capacity: total)
        for place in 0..<total { (self.numbers + place).initialize(to: Atomic(0)) }
    }

    deinit {
        self.numbers.deinitialize(count: self.stride * Self.count)
        self.numbers.deallocate()
    }

    func add(_ amount: UInt64, at place: Int, on stripe: Int) {
        self.numbers[stripe * self.stride + place].wrappingAdd(amount, ordering: .relaxed)
    }

    func sum(at place: Int) -> UInt64 {
        var sum: UInt64 = 0
        for stripe in 0..<Self.count {
            sum &+= self.numbers[stripe * self.stride + place].load(ordering: .relaxed)
        }
        return sum
    }

    /// The stripe of the running thread. A thread's descriptor is a page-aligned address, and
    /// nearby threads differ above the low bits, so a multiplication spreads them.
    static func mine() -> Int {
        let word = UInt64(pthread_self())
        return Int((word &* 0x9E37_79B9_7F4A_7C15) >> 62)
    }
}
