import StratusModel
import StratusRecords
import Synchronization

/// The buckets of private databases that this gateway knows to be in use. A bit is never taken back
/// under one layout of a container, so what is known stays true.
final class ZoneBucketCache: Sendable {
    private struct Key: Hashable {
        var database: PrivateDatabase
        var tagFloor: UInt64
    }

    private let masks = Mutex<[Key: BucketMask]>([:])
    private let countMax: Int

    init(countMax: Int = 16_384) { self.countMax = countMax }

    func mask(of database: PrivateDatabase, above tagFloor: UInt64) -> BucketMask {
        self.masks.withLock {
            $0[Key(database: database, tagFloor: tagFloor)] ?? BucketMask()
        }
    }

    func note(_ mask: BucketMask, of database: PrivateDatabase, above tagFloor: UInt64) {
        if mask.isEmpty { return }
        let key = Key(database: database, tagFloor: tagFloor)
        self.masks.withLock { masks in
            if masks.count >= self.countMax, masks[key] == nil { masks = [:] }
            masks[key] = (masks[key] ?? BucketMask()).union(mask)
        }
    }
}
