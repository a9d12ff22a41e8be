/// All of one user's private database: its home, and the buckets that its custom zones lie in.
///
/// A database that is not spread has a home and nothing else. The home holds the default zone, and
/// knows which buckets are in use (``ZoneBuckets``).
package struct PrivateDatabase: Sendable, Hashable {
    package let home: DatabaseID
    /// 1: the database is whole.
    package let bucketCount: Int

    package init(of owner: String, in container: ContainerReference, bucketCount: Int = 1) {
        precondition(bucketCount == 1 || Bucket.isBucket(0, of: bucketCount), "no buckets")
        self.home = DatabaseID(container: container, scope: .private, owner: owner)
        self.bucketCount = bucketCount
    }

    package var isSpread: Bool { self.bucketCount > 1 }

    /// The number of the bucket that a zone is in; nil: it is at the home.
    package func number(of zone: String) -> Int? {
        guard self.isSpread, zone != ZoneID.defaultName, !ZoneID.isReserved(zone) else {
            return nil
        }
        return Int(Bucket(0, of: self.bucketCount).sibling(of: zone).number)
    }

    /// The part that a zone is in.
    package func part(of zone: String) -> DatabaseID { self.part(self.number(of: zone)) }

    /// One bucket; nil: the home.
    package func part(_ number: Int?) -> DatabaseID {
        guard let number else { return self.home }
        var part = self.home
        part.bucket = Bucket(number, of: self.bucketCount)
        return part
    }

    /// The home, then the buckets that `mask` has, in the order of their numbers.
    package func parts(_ mask: BucketMask) -> [DatabaseID] {
        [self.home] + (self.isSpread ? mask.numbers(below: self.bucketCount) : []).map(self.part)
    }

    /// The home and every bucket.
    package var parts: [DatabaseID] { self.parts(.all) }
}

/// A set of buckets.
package struct BucketMask: Sendable, Hashable {
    package var raw: UInt64

    package init(_ raw: UInt64 = 0) { self.raw = raw }

    package init(of numbers: some Sequence<Int>) {
        self.raw = numbers.reduce(0) { $0 | 1 << UInt64($1) }
    }

    package static let all = BucketMask(.max)

    package var isEmpty: Bool { self.raw == 0 }

    package func contains(_ number: Int) -> Bool { self.raw & 1 << UInt64(number) != 0 }

    package func contains(_ other: BucketMask) -> Bool { other.raw & ~self.raw == 0 }

    package func union(_ other: BucketMask) -> BucketMask { BucketMask(self.raw | other.raw) }

    package func subtracting(_ other: BucketMask) -> BucketMask {
        BucketMask(self.raw & ~other.raw)
    }

    package func numbers(below count: Int) -> [Int] { (0..<count).filter(self.contains) }
}
