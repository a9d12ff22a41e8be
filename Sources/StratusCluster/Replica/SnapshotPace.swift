package import StratusModel
import StratusStorage

/// The time a replica waits before it spools, receives or installs another snapshot after failures.
/// The disk may refuse the next one too, and each is sent anew.
struct SnapshotPause: Sendable {
    private static let shortest = Duration.milliseconds(500)
    private static let longest = Duration.seconds(8)

    private var last: Duration?
    /// Nil when the last one did not fail.
    private(set) var endsAt: MonotonicTime?

    func isOver(at now: MonotonicTime) -> Bool { self.endsAt.map { now >= $0 } ?? true }

    mutating func fail(at now: MonotonicTime) {
        let length = min(self.last.map { $0 * 2 } ?? Self.shortest, Self.longest)
        self.last = length
        self.endsAt = now + length
    }
}

/// Limits how fast a node spools and installs snapshots, all of its replicas together. Sending
/// needs no limit of its own: the receiver asks for each chunk when it has the one before.
///
/// Owned by the executor that owns the replicas.
package final class SnapshotPace {
    /// Bytes in a second; 0: as fast as the turns come.
    package var rate: ByteCount
    /// Bytes of rows that a check reads in a second; 0: as fast as the turns come.
    package var checkRate = ByteCount(0)
    /// The bytes that may still be written before the disk is down to its reserve; nil: unknown.
    package var room: (() -> ByteCount?)?
    /// The snapshot being spooled; gone once nobody wants it.
    weak var spooling: (any SnapshotSpooling)?
    /// Snapshots spooled for followers and snapshots installed since the start.
    private(set) var spooledCount: UInt64 = 0
    private(set) var installedCount: UInt64 = 0

    func noteSpooled() { self.spooledCount += 1 }
    func noteInstalled() { self.installedCount += 1 }

    /// Before this no slice is due; nil before the first.
    private(set) var opensAt: MonotonicTime?

    /// A turn that comes late is made up for, up to this.
    private static let slack = Duration.milliseconds(50)

    package init(rate: ByteCount) { self.rate = rate }

    /// A slice of `size` was done.
    func spend(_ size: ByteCount, at now: MonotonicTime) {
        guard self.rate.raw > 0 else {
            self.opensAt = nil
            return
        }
        let start = max(self.opensAt ?? now, now + Self.slack * -1)
        self.opensAt = start + .nanoseconds(Int64(size.raw) * 1_000_000_000 / Int64(self.rate.raw))
    }
}
