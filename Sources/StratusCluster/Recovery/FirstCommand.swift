package import StratusModel

/// What a partition applies before anything else when it goes on from one replica, and how its outcome is checked.
package struct FirstCommand {
    /// The command of a group for an entry at this time; nil where there is none. Its deadline must be later than that
    /// time: the partition's clock may be far ahead of this node's.
    package var make: (GroupID, HybridTime) -> Command?
    /// The group's rows, to apply its entries to. Closed afterwards.
    package var open: (GroupID) throws(StoreError) -> any NodePartition
    /// Whether the command has done what it is for.
    package var isDone: (Outcome) -> Bool

    package init(
        make: @escaping (GroupID, HybridTime) -> Command?,
        open: @escaping (GroupID) throws(StoreError) -> any NodePartition,
        isDone: @escaping (Outcome) -> Bool
    ) {
        self.make = make
        self.open = open
        self.isDone = isDone
    }
}
