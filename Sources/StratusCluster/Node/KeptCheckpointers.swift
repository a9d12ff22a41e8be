import StratusModel
import StratusStorage

/// The checkpointers of the partitions that were checkpointed last, each with an open connection.
///
/// To open one, SQLite reads the whole schema and a dozen settings: half a million instructions,
/// for every 4 MiB that are written. A kept one costs memory and descriptors, so there are few.
///
/// Not thread-safe: whoever takes a checkpointer out of here lets nobody else use it until its run
/// has ended.
struct KeptCheckpointers {
    /// Partitions that are written to all the time are fewer, or their checkpoints are rare.
    static let countMax = 8

    /// The one that was used longest ago comes first.
    private var kept: [(group: GroupID, checkpointer: PartitionCheckpointer)] = []

    var count: Int { self.kept.count }

    /// Returns the partition's checkpointer: the kept one if it is of the file in use, or else one
    /// that is made now, and kept. Nil while there is no file.
    mutating func checkpointer(
        of group: GroupID, _ partition: any NodePartition
    ) throws(StoreError) -> PartitionCheckpointer? {
        let last = self.remove(group)
        let checkpointer: PartitionCheckpointer
        if let last, partition.isCurrent(last) {
            checkpointer = last
        } else {
            guard let made = try partition.makeCheckpointer() else { return nil }
            checkpointer = made
        }
        if self.kept.count == Self.countMax { self.kept.removeFirst() }
        self.kept.append((group, checkpointer))
        return checkpointer
    }

    /// Lets go of a checkpointer: its partition was closed, or it has failed.
    @discardableResult
    mutating func remove(_ group: GroupID) -> PartitionCheckpointer? {
        guard let position = self.kept.firstIndex(where: { $0.group == group }) else { return nil }
        return self.kept.remove(at: position).checkpointer
    }

    /// Lets go of those of files that a snapshot has replaced, so that the disk gets the room back.
    mutating func keepOnly(_ isCurrent: (GroupID, PartitionCheckpointer) -> Bool) {
        self.kept.removeAll { !isCurrent($0.group, $0.checkpointer) }
    }

    mutating func removeAll() { self.kept.removeAll() }
}
