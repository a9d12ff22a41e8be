/// A body and how many chunks it has.
package struct BodyExtent: Sendable, Hashable {
    package var body: BodyID
    package var chunkCount: UInt32

    package init(_ body: BodyID, chunkCount: UInt32) {
        self.body = body
        self.chunkCount = chunkCount
    }
}

/// What reading copies by their names has found on one node.
package struct CopyCheck: Sendable, Equatable {
    package var soundCount = 0
    /// Copies that were not as they were written. They are forgotten, and fetched again.
    package var damagedCount = 0
    /// Copies that are not there and should be.
    package var missingCount = 0
    /// Bytes of the sound ones.
    package var size: UInt64 = 0

    package init() {}

    package mutating func add(_ other: CopyCheck) {
        self.soundCount += other.soundCount
        self.damagedCount += other.damagedCount
        self.missingCount += other.missingCount
        self.size += other.size
    }
}

/// What came of a ``CopyCheck``.
package enum CopyChecking: Sendable, Equatable {
    case checked(CopyCheck)
    /// The node keeps no replica of the partition.
    case elsewhere
    /// The packs of the partition cannot be read.
    case failing
}
