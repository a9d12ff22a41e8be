import StratusConsensus
package import StratusModel
import StratusStorage
import Synchronization

/// C-31: what the log keeps for followers that are behind.
extension NodeReplicas {
    package struct RetentionFigures: Sendable, Equatable {
        /// The size of the log on disk.
        package var logSize = ByteCount(0)
        /// The bytes in memory that wait for the log's disk.
        package var queuedSize = ByteCount(0)
        /// Followers that were given up since the start: they get a snapshot.
        package var givenUpCount: UInt64 = 0
        /// The number of partitions led here that take commands in more slowly, so that a follower
        /// can catch up.
        package var slowedCount = 0
        /// Snapshots spooled for followers and snapshots installed since the start.
        package var spooledCount: UInt64 = 0
        package var installedCount: UInt64 = 0
        /// Snapshots that are being spooled or installed.
        package var snapshotsUnderWayCount = 0
        /// Commands and reads that wait for an answer of a replica here, and their bytes.
        package var waitingCount = 0
        package var waitingSize = 0
        /// Events that wait for the storage thread.
        package var eventCount = 0
    }

    /// The figures as of the last housekeeping of the node.
    package nonisolated var retentionFigures: RetentionFigures { self.retained.withLock { $0 } }

    func lookAtRetention(at now: MonotonicTime) {
        let size = self.log.sizeInUse
        let queued = self.log.queuedSize
        let slowed = self.host.allGroups.count { group in
            self.host.replica(of: group)?.intakeRate(at: now) != nil
        }
        let underWay = self.host.allGroups.count { group in
            guard let replica = self.host.replica(of: group) else { return false }
            return replica.isSpooling || replica.isInstalling
        }
        let eventCount = self.inboxCount
        self.retained.withLock {
            $0.spooledCount = self.snapshotPace.spooledCount
            $0.installedCount = self.snapshotPace.installedCount
            $0.snapshotsUnderWayCount = underWay
            $0.waitingCount = self.waiting.count
            $0.waitingSize = self.waiting.size
            $0.eventCount = eventCount
            $0.logSize = size
            $0.queuedSize = queued
            $0.slowedCount = slowed
        }
    }

    func lacksSnapshotRoom(_ group: GroupID) {
        let now = self.world.now
        defer { self.members[group]?.lackedRoomAt = now }
        // It is tried again within seconds, and said once.
        if let last = self.members[group]?.lackedRoomAt, now < last + .seconds(60) { return }
        guard let problem = self.host.replica(of: group)?.problem else { return }
        self.setup.events.alarm(group, problem)
    }

    /// The report of `doctor` for a while after a follower was given up.
    func problemOfFollower(of member: Member) -> String? {
        guard let gaveUp = member.gaveUp, self.world.now < gaveUp.at + Self.givenUpInterval else {
            return nil
        }
        return
            "\(gaveUp.node) fell behind what the log keeps and gets a snapshot: see 'storage.retainedLogSizeMax'"
    }
}
