import StratusCluster
package import StratusHTTP
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
    /// The counts so far.
    func write(to json: inout JSONWriter)
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
            lines += JSONWriter.line {
                $0.member("owner", one.owner)
                $0.member("failing", one.reason)
            }
        }
        return lines
            + JSONWriter.line {
                walk.write(to: &$0)
                if let stopped {
                    $0.member("stopped", stopped)
                } else if isDone {
                    $0.member("done", true)
                }
            }
    }
}

extension DatabaseRotation: KeyRotating {
    package func write(to json: inout JSONWriter) {
        json.member("databases", Int64(self.progress.databaseCount))
        json.member("records", Int64(self.progress.recordCount))
        json.member("files", Int64(self.progress.fileCount))
        json.member("fileBytes", Int64(clamping: self.progress.fileSize))
        json.member("keptFiles", Int64(self.progress.keptFileCount))
        json.member("olderKeys", Int64(self.progress.olderKeyCount))
        json.member("failures", Int64(self.progress.failingCount))
        if let time = self.progress.resumedMilliseconds {
            json.member("resumed", WallTime.text(time))
        }
    }
}

extension ContainerRotation: KeyRotating {
    package func write(to json: inout JSONWriter) {
        if let version = self.progress.version { json.member("version", Int64(version)) }
        json.member("keys", Int64(self.progress.keyCount))
        json.member("pushKeys", Int64(self.progress.pushKeyCount))
        json.member("partitions", Int64(self.progress.partitionCount))
        json.member("failures", Int64(self.progress.failingCount))
        json.member("waitsMilliseconds", self.progress.waitsMilliseconds)
        json.member("retired", self.progress.isRetired)
        if let time = self.progress.resumedMilliseconds {
            json.member("resumed", WallTime.text(time))
        }
    }
}
