import StratusCoding
import StratusModel
import StratusSQLite

/// Writes a partition's rows as they were at one moment into a file, one frame a slice. In the file
/// each frame stands behind its length (4 bytes, little-endian). Without a file it only reads them.
///
/// The digest of the rows is added up meanwhile. Rows that are not what was applied are sent to
/// nobody: they are damaged.
///
/// It has a connection of its own beside the owner's, with a read transaction open, so it does not
/// see commands applied between two slices. Meanwhile no checkpoint is complete and the WAL only
/// grows, which ``PartitionStore`` bounds.
final class PartitionSpooling: SnapshotSpooling {
    /// Nil: the rows are only checked.
    private let file: (any File)?
    private let frameSize: Int
    private let bugs: PlantedBugs
    /// The position of the spooled rows.
    private let position: AppliedPosition
    private var walk: RowWalk
    private var length: UInt64 = 0
    private var frameCount: UInt64 = 0
    private var rowCount: UInt64 = 0
    private var isWhole = false
    private var failure: StoreError?

    var isUrgent = false
    /// Checkpoints are incomplete as long as this is so.
    var holdsView: Bool { self.walk.view != nil }

    /// - Parameters:
    ///   - view: in a transaction that has read already; nil where there are no rows.
    ///   - path: the place of the file; nil: the rows are only checked.
    init(
        _ view: RowDatabase?, at position: AppliedPosition, into path: DiskPath?,
        in files: any Files, frameSize: Int, bugs: PlantedBugs
    ) throws(StoreError) {
        self.walk = RowWalk(
            view, leavingOut: bugs.contains(.identityForgottenOnSnapshot) ? .request : nil)
        self.position = position
        self.frameSize = frameSize
        self.bugs = bugs
        guard let path else {
            self.file = nil
            return
        }
        self.file = try onDisk { () throws(DiskError) in
            if try !files.exists(path.parent) { try files.makeDirectory(path.parent) }
            // An earlier one may have kept its name.
            if try files.exists(path) { try files.remove(path) }
            let file = try files.open(path, create: true)
            // Each stream has a file of its own, without a name: two at a time do not mix, and the
            // space is freed when the stream ends.
            try files.remove(path)
            return file
        }
    }

    func source() -> any SnapshotSource {
        guard self.isWhole, let file else { preconditionFailure("a snapshot is sent unspooled") }
        return SpooledSnapshot(file, length: self.length)
    }

    /// One frame more.
    func advance() throws(StoreError) -> ByteCount? {
        if let failure { throw failure }
        if self.isWhole { return nil }
        do throws(StoreError) {
            if self.file == nil {
                let size = try self.walk.next(self.frameSize) { _, _, _ in }
                if size > 0 { return ByteCount(size) }
                try self.checkDigest()
            } else {
                let rows = try self.nextRows()
                if rows.isEmpty { try self.checkDigest() }
                let size = try self.append(
                    rows.isEmpty ? .end(rowCount: self.rowCount, self.position) : .rows(rows))
                guard rows.isEmpty else { return size }
            }
            self.isWhole = true
            self.walk.close()
            return nil
        } catch {
            self.giveUp(error)
            throw error
        }
    }

    /// The digest was carried forward from write to write. A page that is old but sound changes the
    /// sum of the rows, and not what was carried.
    private func checkDigest() throws(StoreError) {
        // Rows of many states, or without some, have another sum: those bugs are to be found by
        // what becomes of them.
        if self.bugs.contains(.snapshotOfManyStates) { return }
        if self.bugs.contains(.identityForgottenOnSnapshot) { return }
        if self.bugs.contains(self.file == nil ? .rowsNotChecked : .spoolUnchecked) { return }
        guard self.walk.digest == self.position.digest else {
            throw StoreError(
                .corrupt,
                "the digest of the rows is \(self.walk.digest), and \(self.position.digest) was applied"
            )
        }
    }

    /// Writes all remaining rows at once. The next call for a slice reports a failure. A check ends
    /// instead: it is made again another time.
    func hurry() {
        guard self.file != nil else {
            return self.giveUp(StoreError(.busy, "the WAL has no room for a check of the rows"))
        }
        try? self.finish()
    }

    /// Closes its view of the rows, which nobody may hold any longer.
    func giveUp(_ why: StoreError = StoreError(.busy, "another snapshot has taken its place")) {
        if !self.isWhole { self.failure = self.failure ?? why }
        self.walk.close()
    }

    /// Empty when there are no more.
    private func nextRows() throws(StoreError) -> [SnapshotFrame.Row] {
        var rows: [SnapshotFrame.Row] = []
        _ = try self.walk.next(self.frameSize) { table, key, row in
            rows.append(
                SnapshotFrame.Row(
                    table: table, key: Bytes(copying: key), row: Bytes(copying: row)))
        }
        return rows
    }

    private func append(_ frame: SnapshotFrame) throws(StoreError) -> ByteCount {
        if case .rows(let rows) = frame { self.rowCount += UInt64(rows.count) }
        let bytes = frame.encoded(number: self.frameCount)
        var writer = ByteWriter(reserving: bytes.count + 4)
        writer.write(fixed: UInt32(bytes.count))
        writer.write(raw: bytes)
        let offset = self.length
        try onDisk { () throws(DiskError) in try self.file?.write(writer.bytes, at: offset) }
        self.length += UInt64(writer.bytes.count)
        self.frameCount += 1
        return ByteCount(writer.bytes.count)
    }
}
