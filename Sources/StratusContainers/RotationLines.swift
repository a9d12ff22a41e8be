import StratusCluster
import StratusHTTP
package import StratusModel
import StratusRuntime
import Synchronization

/// A rotation of databases' keys as it goes on: one line of JSON for each piece, with the counts so
/// far, and one for each database that cannot be rotated to the end. The last line says `done`, or
/// in `stopped` why nothing goes on now.
package final class RotationLines: ResponseBody {
    private let rotation: Mutex<(walk: DatabaseRotation, isDone: Bool)>

    package init(_ rotation: DatabaseRotation) { self.rotation = Mutex((rotation, false)) }

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
        let progress = walk.progress
        return lines
            + JSONWriter.line {
                $0.member("databases", Int64(progress.databaseCount))
                $0.member("records", Int64(progress.recordCount))
                $0.member("olderKeys", Int64(progress.olderKeyCount))
                $0.member("failures", Int64(progress.failingCount))
                if let time = progress.resumedMilliseconds {
                    $0.member("resumed", WallTime.text(time))
                }
                if let stopped {
                    $0.member("stopped", stopped)
                } else if isDone {
                    $0.member("done", true)
                }
            }
    }
}
