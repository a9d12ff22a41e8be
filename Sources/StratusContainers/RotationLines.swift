import StratusHTTP
package import StratusModel
import StratusRuntime
import Synchronization

/// A rotation of databases' keys as it goes on: one line of JSON for each piece, with the counts so
/// far. The last line says that it is done.
package final class RotationLines: ResponseBody {
    private let rotation: Mutex<(walk: DatabaseRotation, isDone: Bool)>

    package init(_ rotation: DatabaseRotation) { self.rotation = Mutex((rotation, false)) }

    package func next() async throws -> Bytes? {
        // Asked for one piece at a time, so nobody else moves it meanwhile.
        var (walk, isDone) = self.rotation.withLock { $0 }
        if isDone { return nil }
        isDone = try await !walk.next()
        self.rotation.withLock { [walk, isDone] in $0 = (walk, isDone) }
        let progress = walk.progress
        var json = JSONWriter()
        json.object {
            $0.member("databases", Int64(progress.databaseCount))
            $0.member("records", Int64(progress.recordCount))
            $0.member("olderKeys", Int64(progress.olderKeyCount))
            if isDone {
                $0.key("failing")
                $0.array { array in
                    for one in progress.failing {
                        array.object {
                            $0.member("owner", one.owner)
                            $0.member("reason", one.reason)
                        }
                    }
                }
                $0.member("done", true)
            }
        }
        return json.finish() + [0x0A]
    }
}
