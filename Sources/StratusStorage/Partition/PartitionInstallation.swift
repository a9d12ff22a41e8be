import StratusCoding
import StratusModel
import StratusRows
import StratusSQLite

/// Builds a database from a snapshot's frames beside the one in use, one frame a slice, and
/// replaces the old one after the last.
///
/// The bytes of some slices are synced before the next slice begins, so that no sync has to wait
/// for all of them.
final class PartitionInstallation: SnapshotWork {
    private let path: DiskPath
    private let identity: SnapshotIdentity
    private let source: any SnapshotSource
    private let system: FileSystem
    private let fileTag: UInt32
    private let bugs: PlantedBugs
    private let mark: (Rows, AppliedPosition) throws(StoreError) -> ErasureMark?
    private let takeOver: (AppliedPosition) throws(StoreError) -> Void
    /// Nil until the file is made, and when it is whole.
    private var open: PartitionRows?
    private var frameCount: UInt64 = 0
    private var rowCount: UInt64 = 0
    /// Frames since the last sync.
    private var unsyncedCount = 0
    /// The position of the rows, once they are whole and synced.
    private var position: AppliedPosition?
    private var isDone = false

    /// - Parameters:
    ///   - path: the place of the new file. The rest of an earlier one there is discarded.
    ///   - mark: what the new rows owe to erasures.
    ///   - takeOver: the file at `path` is whole, closed and synced: it becomes the partition.
    init(
        _ path: DiskPath, _ identity: SnapshotIdentity, from source: any SnapshotSource,
        in system: FileSystem, fileTag: UInt32, bugs: PlantedBugs,
        mark: @escaping (Rows, AppliedPosition) throws(StoreError) -> ErasureMark?,
        takeOver: @escaping (AppliedPosition) throws(StoreError) -> Void
    ) {
        self.path = path
        self.identity = identity
        self.source = source
        self.system = system
        self.fileTag = fileTag
        self.bugs = bugs
        self.mark = mark
        self.takeOver = takeOver
    }

    /// Everybody on the thread waits for a sync.
    private static let unsyncedCountMax = 8

    func advance() throws(StoreError) -> ByteCount? {
        precondition(!self.isDone, "a snapshot was installed already")
        do throws(StoreError) {
            if let position {
                try self.takeOver(position)
                self.isDone = true
                return nil
            }
            guard let open else {
                self.open = try self.make()
                return ByteCount(Connection.pageSize)
            }
            return try self.takeFrame(into: open)
        } catch {
            self.open = nil
            // Best effort: the next installation does it too.
            try? RowDatabase.throwAway(self.path, in: self.system)
            throw error
        }
    }

    private func make() throws(StoreError) -> PartitionRows {
        try RowDatabase.throwAway(self.path, in: self.system)
        try RowDatabase.make(self.path, in: self.system, fileTag: self.fileTag)
        let file = try RowDatabase(
            self.path, in: self.system,
            Connection.Options(synchronous: .normal, fileTag: self.fileTag))
        return PartitionRows(file, digest: .empty)
    }

    private func takeFrame(into open: PartitionRows) throws(StoreError) -> ByteCount {
        let number = self.frameCount
        guard let bytes = try self.source.next() else {
            throw StoreError(.corrupt, "a snapshot ended after \(number) frames, without its last")
        }
        let frame: SnapshotFrame
        do throws(DecodingError) { frame = try .decode(bytes, number: number) } catch {
            throw StoreError(.corrupt, "frame \(number) of a snapshot: \(error)")
        }
        self.frameCount += 1
        let rows = open.rows
        switch frame {
        case .rows(let new):
            for row in new { try rows.putNew(row.table, row.key, row.row) }
            self.rowCount += UInt64(new.count)
            try rows.commit()
            self.unsyncedCount += 1
            if self.unsyncedCount == Self.unsyncedCountMax { try self.sync(open.file) }
        case .end(let rowCount, let end):
            let position = try self.checked(end, rowCount, rows.digest)
            try position.write(to: rows)
            try self.mark(rows, position)?.write(to: rows)
            try rows.commit()
            try self.sync(open.file)
            self.open = nil
            self.position = position
        }
        return ByteCount(bytes.count)
    }

    private func sync(_ file: RowDatabase) throws(StoreError) {
        self.unsyncedCount = 0
        guard try file.checkpoint().isComplete else {
            throw StoreError(.busy, "somebody reads a database that is being made")
        }
    }

    /// Checks the snapshot's end against the rows. Returns the position that the rows are to
    /// record.
    private func checked(_ end: AppliedPosition, _ rowCount: UInt64, _ digest: StateDigest)
        throws(StoreError) -> AppliedPosition
    {
        var position = end
        // Bugs that mix streams or states or forget rows must not be saved by this check.
        let isUnchecked =
            self.bugs.contains(.mixedSnapshotStreams)
            || self.bugs.contains(.identityForgottenOnSnapshot)
            || self.bugs.contains(.snapshotOfManyStates)
        guard
            (self.rowCount == rowCount && digest == position.digest
                && position.digest == self.identity.digest
                && position.index == self.identity.index)
                || isUnchecked
        else { throw StoreError(.corrupt, "the snapshot is not the one it says it is") }
        if isUnchecked {
            (position.index, position.term) = (self.identity.index, self.identity.term)
            position.digest = digest
        }
        // The sender may go by the configuration its group was made with, which this node may
        // never have been told.
        position.configuration = self.identity.configuration.encoded()
        return position
    }
}
