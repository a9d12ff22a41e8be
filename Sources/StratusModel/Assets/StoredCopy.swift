/// A copy on its way to a disk.
package struct StoredCopy: Sendable, Hashable {
    package var name: CopyName
    /// A time of the partition's log. If the log has passed it and no row names the body, the copy
    /// is an orphan.
    package var orphanAfterMilliseconds: Int64
    package var bytes: Bytes

    package init(name: CopyName, orphanAfterMilliseconds: Int64, bytes: Bytes) {
        self.name = name
        self.orphanAfterMilliseconds = orphanAfterMilliseconds
        self.bytes = bytes
    }
}

/// A copy that a node has, without its bytes.
package struct HeldCopy: Sendable, Hashable {
    package var name: CopyName
    package var orphanAfterMilliseconds: Int64
    package var storedSize: UInt32
    package var crc: UInt32

    package init(
        name: CopyName, orphanAfterMilliseconds: Int64, storedSize: UInt32, crc: UInt32
    ) {
        self.name = name
        self.orphanAfterMilliseconds = orphanAfterMilliseconds
        self.storedSize = storedSize
        self.crc = crc
    }
}

/// A node that stored all of a body, with the index its replica had applied when the last copy was
/// synced.
///
/// The leader counts it if the node has been a member in every configuration since.
package struct CopyHolding: Sendable, Hashable {
    package var node: NodeID
    package var at: LogIndex

    package init(node: NodeID, at: LogIndex) {
        self.node = node
        self.at = at
    }
}

/// A node's answer to a copy that was sent to it.
package enum CopyAnswer: Sendable, Hashable {
    /// It is synced; so much was applied when the sync returned.
    case stored(at: LogIndex)
    case refused(CopyRefusal)
    /// No answer within the deadline. The copy may be there or not.
    case silent
}

package enum CopyRefusal: UInt8, Sendable, Hashable, CaseIterable {
    /// The node keeps no replica of that group.
    case noReplica = 1
    /// The disk is near its reserve.
    case nearlyFull = 2
    /// The queue of copies is full.
    case busy = 3
    /// Asked to confirm, and not all of the body is there.
    case incomplete = 4
    /// The disk failed.
    case failed = 5
    /// Larger than a copy can be.
    case tooLarge = 6
}

/// A copy of a chunk that rows and index do not agree on.
package struct CopyDifference: Sendable, Equatable {
    package var group: GroupID
    package var name: CopyName
    /// Rows name it, and it is not here. Otherwise it is here, no row names it, and it should have
    /// gone.
    package var isMissing: Bool

    package init(group: GroupID, name: CopyName, isMissing: Bool) {
        self.group = group
        self.name = name
        self.isMissing = isMissing
    }
}
