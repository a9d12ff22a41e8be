package import StratusModel

/// A node as placement knows it: how much it may carry, and the rack with which it would fail.
package struct PlacementNode: Sendable, Hashable {
    package var id: NodeID
    /// Relative to the other nodes' weights; 100 by default. A node of weight 0 gets nothing, and
    /// what it has leaves it.
    package var weight: UInt32
    /// Nodes of one rack are expected to fail together. Empty: the node is a rack of its own.
    package var rack: String

    package static let ordinaryWeight: UInt32 = 100
    package static let weightMax: UInt32 = 100_000

    package init(_ id: NodeID, weight: UInt32 = Self.ordinaryWeight, rack: String = "") {
        precondition(weight <= Self.weightMax, "a weight beyond weightMax")
        self.id = id
        self.weight = weight
        self.rack = rack
    }
}
