import StratusModel

/// A database in several parts, as queries and quotas go over it: a public one in buckets, or a
/// private one with a home and buckets of zones.
///
/// Parts have numbers that stay the same for as long as the container is there. Of a private
/// database the home is 0 and the buckets follow.
struct SpreadParts: Sendable, Hashable {
    let whole: DatabaseID
    let bucketCount: Int

    init(_ whole: DatabaseID, bucketCount: Int) {
        self.whole = whole
        self.bucketCount = bucketCount
    }

    init(_ database: PrivateDatabase) {
        self.init(database.home, bucketCount: database.bucketCount)
    }

    private var hasHome: Bool { self.whole.scope == .private }

    /// One more than the largest number.
    var count: Int { self.bucketCount + (self.hasHome ? 1 : 0) }

    func part(_ number: Int) -> DatabaseID {
        if self.hasHome, number == 0 { return self.whole }
        var part = self.whole
        part.bucket = Bucket(number - (self.hasHome ? 1 : 0), of: self.bucketCount)
        return part
    }

    func number(of part: DatabaseID) -> Int {
        (part.bucket.map { Int($0.number) + 1 } ?? 0) - (self.hasHome ? 0 : 1)
    }

    /// The numbers of the parts that hold anything, if `mask` are the buckets in use.
    func numbers(_ mask: BucketMask) -> [Int] {
        guard self.hasHome else { return Array(0..<self.bucketCount) }
        return [0] + mask.numbers(below: self.bucketCount).map { $0 + 1 }
    }
}
