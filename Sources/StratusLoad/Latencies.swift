/// How long things took: counts in buckets, each less than a hundredth wide.
package struct Latencies: Sendable, Equatable {
    private var counts: [UInt32] = []
    package private(set) var count = 0
    /// The largest of all latencies, exact.
    package private(set) var largestMicroseconds: UInt64 = 0
    private var sumMicroseconds: UInt64 = 0

    package init() {}

    package mutating func record(microseconds: UInt64) {
        let bucket = Self.bucket(of: microseconds)
        if bucket >= self.counts.count {
            self.counts.append(
                contentsOf: repeatElement(0, count: bucket + 1 - self.counts.count))
        }
        self.counts[bucket] += 1
        self.count += 1
        self.sumMicroseconds += microseconds
        self.largestMicroseconds = max(self.largestMicroseconds, microseconds)
    }

    package mutating func merge(_ other: Latencies) {
        if other.counts.count > self.counts.count {
            self.counts.append(
                contentsOf: repeatElement(0, count: other.counts.count - self.counts.count))
        }
        for (bucket, count) in other.counts.enumerated() { self.counts[bucket] += count }
        self.count += other.count
        self.sumMicroseconds += other.sumMicroseconds
        self.largestMicroseconds = max(self.largestMicroseconds, other.largestMicroseconds)
    }

    /// The time that the part `quantile` of all did not pass; 0 when there are none.
    package func microseconds(at quantile: Double) -> UInt64 {
        let rank = max(1, Int((quantile * Double(self.count)).rounded(.up)))
        var seen = 0
        for (bucket, count) in self.counts.enumerated() {
            seen += Int(count)
            if seen >= rank { return min(Self.last(in: bucket), self.largestMicroseconds) }
        }
        return self.largestMicroseconds
    }

    package var meanMicroseconds: Double {
        self.count == 0 ? 0 : Double(self.sumMicroseconds) / Double(self.count)
    }

    /// Up to 255 each its own; from there on 128 to each power of two.
    private static func bucket(of microseconds: UInt64) -> Int {
        let value = min(microseconds, 1 << 40)
        if value < 256 { return Int(value) }
        let shift = 63 - value.leadingZeroBitCount - 7
        return 128 * shift + Int(value >> UInt64(shift))
    }

    /// The largest value that falls into the bucket.
    private static func last(in bucket: Int) -> UInt64 {
        if bucket < 256 { return UInt64(bucket) }
        let shift = UInt64(bucket / 128 - 1)
        return (UInt64(bucket - 128 * Int(shift)) + 1) << shift - 1
    }
}
