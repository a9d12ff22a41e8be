package import StratusModel

/// The wanted place of every replica, and the moves that lead there from today's places.
package struct PlacementPlan: Sendable, Equatable {
    /// Epoch as the table planned from.
    package let target: PlacementTable
    /// In an order in which they may be made: what a partition lacks first.
    package let moves: [Move]
    package let shortfalls: [Shortfall]

    /// A change of one replica of one partition.
    package struct Move: Sendable, Hashable {
        package var partition: PartitionID
        /// Nil: a replica is added.
        package var from: NodeID?
        /// Nil: a replica is dropped.
        package var to: NodeID?

        package init(_ partition: PartitionID, from: NodeID?, to: NodeID?) {
            precondition(from != nil || to != nil, "a move of nothing")
            self.partition = partition
            self.from = from
            self.to = to
        }
    }

    /// A request that the plan cannot meet.
    package enum Shortfall: Sendable, Hashable {
        /// Partitions have fewer replicas than wanted: there are not that many nodes.
        case tooFewNodes(wanted: Int, possible: Int)
        /// Some racks hold several replicas of one partition: there are not enough racks, or not
        /// enough nodes in them.
        case tooFewRacks(replicasPerRack: Int)
        /// Moves that would give the node or rack its part were not found: a bug worth reporting,
        /// never met by the property tests.
        case unsettled(replicaCount: Int)
    }
}
