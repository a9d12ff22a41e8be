package import StratusModel

/// The command that a partition applies before anything else when it continues from one replica,
/// and the check of its outcome.
package struct FirstCommand {
    /// Makes the command of a group for an entry at this time; nil if there is none. Its deadline
    /// must not be earlier than that time: the partition's clock may be far ahead of this node's.
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
