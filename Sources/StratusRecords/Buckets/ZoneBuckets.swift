package import StratusModel

/// The buckets of a private database that hold, or held, custom zones: as its home knows them.
///
/// If a bucket holds a zone, its bit was set here before that zone was made. Bits are never taken
/// away while the counts stay the same, so a gateway may remember them.
package struct ZoneBuckets: Sendable, Hashable {
    /// How many buckets the database has.
    package var count: Int
    package var mask: BucketMask
    /// The layout's tag floor: later layouts of the container have higher ones.
    package var tagFloor: UInt64

    package init(count: Int, mask: BucketMask, tagFloor: UInt64 = 0) {
        self.count = count
        self.mask = mask
        self.tagFloor = tagFloor
    }

    /// Takes in a note. A note of a later layout begins anew; one of an earlier layout, or of
    /// another count, is refused.
    ///
    /// - Returns: false: refused.
    mutating func note(_ other: ZoneBuckets) -> Bool {
        if other.tagFloor > self.tagFloor {
            self = other
            return true
        }
        guard other.tagFloor == self.tagFloor, other.count == self.count else { return false }
        self.mask = self.mask.union(other.mask)
        return true
    }
}

/// The gateway's, before it makes zones in buckets that are not known to be in use: sets their bits
/// at the home.
package struct NoteBuckets: Sendable, Equatable {
    /// The home.
    package var database: DatabaseID
    package var buckets: ZoneBuckets

    package init(database: DatabaseID, buckets: ZoneBuckets) {
        self.database = database
        self.buckets = buckets
    }
}

/// Asks a private database's home which buckets are in use.
package struct BucketsAsk: Sendable, Equatable {
    /// The home.
    package var database: DatabaseID
    /// How many buckets the database has.
    package var count: Int

    package init(database: DatabaseID, count: Int) {
        self.database = database
        self.count = count
    }
}

/// An answer to a ``BucketsAsk``.
package struct BucketsAnswer: Sendable, Equatable {
    package var mask: BucketMask
    /// The default zone; nil: never written.
    package var zone: ZoneSummary?

    package init(mask: BucketMask, zone: ZoneSummary?) {
        self.mask = mask
        self.zone = zone
    }
}
