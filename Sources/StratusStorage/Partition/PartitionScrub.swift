package import StratusModel
import StratusSQLite

/// Reads a partition's file of rows back from the disk, a piece at a time, beside its owner.
///
/// Owned by the thread that checkpoints: not `Sendable`.
package final class PartitionScrub {
    package enum Step: Sendable, Equatable {
        case more
        case whole
        /// Not as it was written: the first of its pages.
        case damaged(page: UInt32)
        /// A reader holds back the checkpoint that has to go before. Another time.
        case busy
    }

    /// Also tells ``PartitionStore/isCurrent(_:)`` whether the file is still that of the partition.
    package let checkpointer: PartitionCheckpointer
    private let makeAudit: () throws(DiskError) -> PageAudit
    private let discardAside: () throws(DiskError) -> Void
    private var audit: PageAudit?

    init(
        _ partition: PartitionFiles, number: Int, in system: FileSystem, _ gate: CommitGate
    ) throws(StoreError) {
        let path = partition.rows(number)
        self.checkpointer = try PartitionCheckpointer(
            path, in: system, fileTag: partition.tag, gate)
        let files = system.files
        self.makeAudit = { () throws(DiskError) in
            try PageAudit(path, in: files, fileTag: partition.tag)
        }
        self.discardAside = { () throws(DiskError) in try partition.discardAside(in: files) }
    }

    /// Checks about so many bytes more.
    package func next(_ size: ByteCount) throws(StoreError) -> Step {
        if self.audit == nil {
            // An earlier process may have ended in the middle of a checkpoint.
            guard try self.checkpointer.run() != nil else { return .busy }
        }
        return try onDisk { () throws(DiskError) in
            if self.audit == nil { self.audit = try self.makeAudit() }
            let countMax = max(1, size.raw / Connection.pageSize)
            let (count, damaged) = try self.audit!.next(countMax)
            if let page = damaged.first { return .damaged(page: page) }
            if count == countMax { return .more }
            // Rows set aside earlier are not needed beside rows that are whole.
            try self.discardAside()
            return .whole
        }
    }
}
