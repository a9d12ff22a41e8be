package import StratusModel

/// One of the fixed hash slots: the unit of replication and movement.
package struct PartitionID: Sendable, Hashable, Comparable, CustomStringConvertible {
    package var raw: UInt16
    package init(_ raw: UInt16) { self.raw = raw }

    /// The partition whose replicas are `group`; nil for the system group, which is no partition.
    package init?(group: GroupID) {
        guard group != .system else { return nil }
        self.raw = group.raw - 1
    }

    /// Group 0 is the system partition's, so partition p is replicated by group p + 1.
    package var group: GroupID { GroupID(self.raw + 1) }

    package static func < (one: Self, other: Self) -> Bool { one.raw < other.raw }
    package var description: String { "p\(self.raw)" }
}
