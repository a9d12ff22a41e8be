import StratusCoding
import StratusModel
import StratusSQLite

/// Writes a partition's rows as they were at one moment into a file, one frame a slice. In the file
/// each frame stands behind its length (4 bytes, little-endian).
///
/// It has a connection of its own beside the owner's, with a read transaction open, so it does not
/// see commands applied between two slices. Meanwhile no checkpoint is complete and the WAL only
/// grows, which ``PartitionStore`` bounds.
final class PartitionSpooling: SnapshotSpooling {
    private let file: any File
    private let frameSize: Int
    private let bugs: PlantedBugs
    /// The position of the spooled rows.
    private let position: AppliedPosition
    /// Nil when all of it is spooled.
    private var view: RowDatabase?
    /// The tables whose rows are not all spooled.
    private var tables: ArraySlice<Table>
    /// The key where the first of them continues.
    private var nextKey = Bytes()
    private var length: UInt64 = 0
    private var frameCount: UInt64 = 0
    private var rowCount: UInt64 = 0
    private var isWhole = false
    private var failure: StoreError?

    var isUrgent = false
    /// Checkpoints are incomplete as long as this is so.
    var holdsView: Bool { self.view != nil }

    /// - Parameter view: in a transaction that has read already; nil where there are no rows.
    init(
        _ view: RowDatabase?, at position: AppliedPosition, into path: DiskPath,
        in files: any Files, frameSize: Int, bugs: PlantedBugs
    ) throws(StoreError) {
        self.view = view
        self.position = position
        self.frameSize = frameSize
        self.bugs = bugs
        let tables = Table.all.filter { table in
            table != .meta
                && !(table == .request && bugs.contains(.identityForgottenOnSnapshot))
        }
        self.tables = view == nil ? [] : tables[...]
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
        precondition(self.isWhole, "a snapshot is sent before it is whole")
        return SpooledSnapshot(self.file, length: self.length)
    }

    /// One frame more.
    func advance() throws(StoreError) -> ByteCount? {
        if let failure { throw failure }
        if self.isWhole { return nil }
        do throws(StoreError) {
            let rows = try self.nextRows()
            let size = try self.append(
                rows.isEmpty ? .end(rowCount: self.rowCount, self.position) : .rows(rows))
            guard rows.isEmpty else { return size }
            self.isWhole = true
            self.view = nil
            return nil
        } catch {
            self.giveUp(error)
            throw error
        }
    }

    /// Writes all remaining rows at once. The next call for a slice reports a failure.
    func hurry() { try? self.finish() }

    /// Closes its view of the rows, which nobody may hold any longer.
    func giveUp(_ why: StoreError = StoreError(.busy, "another snapshot has taken its place")) {
        if !self.isWhole { self.failure = self.failure ?? why }
        self.view = nil
    }

    /// Empty when there are no more.
    private func nextRows() throws(StoreError) -> [SnapshotFrame.Row] {
        var rows: [SnapshotFrame.Row] = []
        let end = Bytes()
        while let table = self.tables.first, let view {
            let from = self.nextKey
            var size = 0
            try view.scan(table, from: from.span.bytes, to: end.span.bytes, descending: false) {
                key, row in
                rows.append(
                    SnapshotFrame.Row(
                        table: table, key: Bytes(copying: key), row: Bytes(copying: row)))
                size += key.byteCount + row.byteCount + 8
                return size >= self.frameSize ? .stop : .next
            }
            if size >= self.frameSize, let last = rows.last {
                // The first key there can be behind it.
                self.nextKey = last.key + [0]
                return rows
            }
            self.tables.removeFirst()
            self.nextKey = []
            if !rows.isEmpty { return rows }
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
        try onDisk { () throws(DiskError) in try self.file.write(writer.bytes, at: offset) }
        self.length += UInt64(writer.bytes.count)
        self.frameCount += 1
        return ByteCount(writer.bytes.count)
    }
}
