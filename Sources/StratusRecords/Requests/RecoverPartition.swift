/// A command to a partition that goes on from one replica after its majority was lost.
package enum RecoverPartition: Sendable, Equatable {
    /// Tags, turns and numbers of mail that the partition knows move beyond all that can have been
    /// lost.
    case first
    /// Also turns of databases that it does not know: those that are made later begin beyond all
    /// that was lost. For clusters of feature level 2.
    case second
}
