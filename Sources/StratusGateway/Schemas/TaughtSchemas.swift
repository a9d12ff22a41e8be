import StratusModel
import Synchronization

/// Which version of its container's schema the partition of a database has, at least, as far as
/// this gateway knows. It never goes back.
final class TaughtSchemas: Sendable {
    private let versions = Mutex<[DatabaseID: UInt64]>([:])
    private let countMax: Int

    init(countMax: Int = 16_384) { self.countMax = countMax }

    func holds(_ version: UInt64, at database: DatabaseID) -> Bool {
        self.versions.withLock { $0[database] ?? 0 >= version }
    }

    func note(_ version: UInt64, at database: DatabaseID) {
        self.versions.withLock { versions in
            if versions.count >= self.countMax, versions[database] == nil { versions = [:] }
            versions[database] = max(version, versions[database] ?? 0)
        }
    }
}
