package import StratusAdminModel
import StratusCluster
package import StratusModel
import StratusRuntime
import Synchronization

/// A database whose keys could not be rotated to the end.
package struct FailingDatabase: Sendable, Equatable {
    /// Empty: the public database.
    package var owner: String
    package var reason: String
}

/// A rotation of keys that goes on piece by piece.
package protocol KeyRotating: Sendable {
    mutating func next() async throws -> Bool
    /// The databases that the last piece could not rotate.
    var failing: [FailingDatabase] { get }
    associatedtype Counts: NamedMembers
    /// The counts so far.
    var counts: Counts { get }
}

/// A rotation of keys as it goes on: one line of JSON for each piece, with the counts so far, and
/// one for each database that cannot be rotated to the end. The last line says `done`, or in
/// `stopped` why nothing goes on now.
package final class RotationLines<Rotation: KeyRotating>: ResponseBody {
    private let rotation: Mutex<(walk: Rotation, isDone: Bool)>

    package init(_ rotation: Rotation) { self.rotation = Mutex((rotation, false)) }

    package func next() async throws -> Bytes? {
        // Asked for one piece at a time, so nobody else moves it meanwhile.
        var (walk, isDone) = self.rotation.withLock { $0 }
        if isDone { return nil }
        var stopped: String?
        do { isDone = try await !walk.next() } catch let error as RouteError {
            stopped = error.reason
            isDone = true
        }
        self.rotation.withLock { [walk, isDone] in $0 = (walk, isDone) }
        var lines = Bytes()
        for one in walk.failing {
            lines +=
                FailingDatabaseLine {
                    $0.owner = one.owner
                    $0.failing = one.reason
                }.line
        }
        return lines
            + RotationLine {
                $0.counts = walk.counts
                $0.stopped = stopped
                $0.isDone = stopped == nil && isDone
            }.line
    }
}

extension DatabaseRotation: KeyRotating {
    package var counts: DatabaseRotationCounts {
        DatabaseRotationCounts {
            $0.databases = Int64(self.progress.databaseCount)
            $0.records = Int64(self.progress.recordCount)
            $0.files = Int64(self.progress.fileCount)
            $0.fileBytes = Int64(clamping: self.progress.fileSize)
            $0.keptFiles = Int64(self.progress.keptFileCount)
            $0.olderKeys = Int64(self.progress.olderKeyCount)
            $0.failures = Int64(self.progress.failingCount)
            $0.resumed = self.progress.resumedMilliseconds.map { WallTime.text($0) }
        }
    }
}

extension ContainerRotation: KeyRotating {
    package var counts: ContainerRotationCounts {
        ContainerRotationCounts {
            $0.version = self.progress.version.map { Int64($0) }
            $0.keys = Int64(self.progress.keyCount)
            $0.pushKeys = Int64(self.progress.pushKeyCount)
            $0.partitions = Int64(self.progress.partitionCount)
            $0.failures = Int64(self.progress.failingCount)
            $0.waitsMilliseconds = self.progress.waitsMilliseconds
            $0.isRetired = self.progress.isRetired
            $0.resumed = self.progress.resumedMilliseconds.map { WallTime.text($0) }
        }
    }
}
