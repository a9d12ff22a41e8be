/// One slice of a database, in a container that asked for more than one: records of a public
/// database's default zone, or custom zones of a private database.
///
/// To the partition that holds it a bucket is a database of its own. Two buckets of one database
/// may lie in one partition and know nothing of each other.
package struct Bucket: Sendable, Hashable {
    package static let countMax = 64

    package let number: UInt8
    package let count: UInt8

    /// Bucket `number` of `count`, which is two at least: a whole database is no bucket.
    package init(_ number: Int, of count: Int) {
        precondition(Self.isBucket(number, of: count), "no bucket: \(number) of \(count)")
        self.number = UInt8(number)
        self.count = UInt8(count)
    }

    /// Whether a database may be given this many buckets: 1 (not split) or a power of two. A later
    /// release can then split each bucket in two without moving anything between the others.
    package static func isOffered(_ count: Int) -> Bool {
        count >= 1 && count <= Self.countMax && count & (count - 1) == 0
    }

    package static func isBucket(_ number: Int, of count: Int) -> Bool {
        count >= 2 && count <= Self.countMax && number >= 0 && number < count
    }

    /// The bucket that a record, or a custom zone, of this name is in. It says where records are,
    /// so it never changes.
    package func sibling(of name: String) -> Bucket {
        // FNV-1a, and a finish that makes every bit of the name count in every bit of the number.
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in name.utf8 {
            hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
        }
        hash ^= hash >> 33
        hash = hash &* 0xFF51_AFD7_ED55_8CCD
        hash ^= hash >> 33
        return Bucket(Int(hash % UInt64(self.count)), of: Int(self.count))
    }

    package func holds(_ name: String) -> Bool { self.sibling(of: name) == self }
}
