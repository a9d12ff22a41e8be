import StratusCoding
package import StratusModel
import StratusSQLite

/// Spools a partition's rows into a file, frame by frame. In the file each frame stands behind its
/// length (4 bytes, little-endian).
final class SnapshotWriter {
    private let file: any File
    private let frameSize: Int
    private let bugs: PlantedBugs
    private var offset: UInt64 = 0
    private var frameCount: UInt64 = 0
    private var rowCount: UInt64 = 0

    init(
        _ path: DiskPath, in files: any Files, frameSize: Int, bugs: PlantedBugs = PlantedBugs()
    ) throws(StoreError) {
        self.frameSize = frameSize
        self.bugs = bugs
        self.file = try onDisk { () throws(DiskError) in
            if try !files.exists(path.parent) { try files.makeDirectory(path.parent) }
            // An earlier one may have kept its name.
            if try files.exists(path) { try files.remove(path) }
            let file = try files.open(path, create: true)
            // Each stream has a file of its own, without a name: two at a time do not mix, and the room
            // comes back when the stream ends.
            try files.remove(path)
            return file
        }
    }

    /// What was written, from the first frame.
    func source() -> any SnapshotSource { SpooledSnapshot(self.file, length: self.offset) }

    func write(_ rows: borrowing some RowReader, _ position: AppliedPosition) throws(StoreError) {
        for table in Table.all where table != .meta {
            if table == .request, self.bugs.contains(.identityForgottenOnSnapshot) { continue }
            try self.write(table, of: rows)
        }
        try self.append(.end(rowCount: self.rowCount, position))
    }

    private func write(_ table: Table, of rows: borrowing some RowReader) throws(StoreError) {
        var pending: [SnapshotFrame.Row] = []
        var size = 0
        var failure: StoreError?
        let all = Bytes()
        try rows.scan(table, from: all.span.bytes, to: all.span.bytes, descending: false) {
            key, row in
            pending.append(
                SnapshotFrame.Row(table: table, key: Bytes(copying: key), row: Bytes(copying: row)))
            size += key.byteCount + row.byteCount + 8
            guard size >= self.frameSize else { return .next }
            do throws(StoreError) {
                try self.append(.rows(pending))
                pending = []
                size = 0
                return .next
            } catch {
                failure = error
                return .stop
            }
        }
        if let failure { throw failure }
        if !pending.isEmpty { try self.append(.rows(pending)) }
    }

    private func append(_ frame: SnapshotFrame) throws(StoreError) {
        if case .rows(let rows) = frame { self.rowCount += UInt64(rows.count) }
        let bytes = frame.encoded(number: self.frameCount)
        var writer = ByteWriter(reserving: bytes.count + 4)
        writer.write(fixed: UInt32(bytes.count))
        writer.write(raw: bytes)
        let offset = self.offset
        try onDisk { () throws(DiskError) in try self.file.write(writer.bytes, at: offset) }
        self.offset += UInt64(writer.bytes.count)
        self.frameCount += 1
    }
}

/// A spooled snapshot, frame by frame. A receiver that has some frames already skips them.
package final class SpooledSnapshot: SnapshotSource {
    private let file: any File
    private var offset: UInt64 = 0
    private let length: UInt64

    init(_ file: any File, length: UInt64) {
        self.file = file
        self.length = length
    }

    package func next() throws(StoreError) -> Bytes? {
        guard let size = try self.frameSize() else { return nil }
        let frame = try onDisk { () throws(DiskError) in
            try self.file.bytes(size, at: self.offset + 4)
        }
        guard frame.count == size else { throw StoreError(.corrupt, "a spooled snapshot is cut") }
        self.offset += 4 + UInt64(size)
        return frame
    }

    /// Passes over the next frame without reading it. Returns whether there was one.
    package func skip() throws(StoreError) -> Bool {
        guard let size = try self.frameSize() else { return false }
        self.offset += 4 + UInt64(size)
        return true
    }

    private func frameSize() throws(StoreError) -> Int? {
        guard self.offset < self.length else { return nil }
        let prefix = try onDisk { () throws(DiskError) in try self.file.bytes(4, at: self.offset) }
        guard prefix.count == 4 else { throw StoreError(.corrupt, "a spooled snapshot is cut") }
        let size = prefix.reversed().reduce(0) { $0 << 8 | Int($1) }
        guard UInt64(size) <= self.length - self.offset else {
            throw StoreError(.corrupt, "a spooled snapshot is cut")
        }
        return size
    }
}

/// Builds a database from a snapshot's frames beside the one in use.
enum SnapshotInstaller {
    /// At `path` in the end; until it is whole and synced, at `path` with ".new".
    static func build(
        _ path: DiskPath, _ identity: SnapshotIdentity, from source: any SnapshotSource,
        in system: FileSystem, fileTag: UInt32, bugs: PlantedBugs = PlantedBugs()
    ) throws(StoreError) -> AppliedPosition {
        let unfinished = DiskPath(path.raw + ".new")
        try RowDatabase.make(unfinished, in: system, fileTag: fileTag)
        let position = try Self.fill(
            unfinished, identity, from: source, in: system, fileTag, bugs)
        try onDisk { () throws(DiskError) in
            let wal = DiskPath(unfinished.raw + "-wal")
            if try system.files.exists(wal) { try system.files.remove(wal) }
            try system.files.rename(unfinished, to: path)
        }
        do throws(DiskError) { try system.files.syncDirectory(path.parent) } catch {
            // The new file may count after the next start, or may not: nothing that is done to the old one
            // now is sure to last. As final as a failed sync, and for the same reason.
            system.noteFailedSync(path)
            throw StoreError(error)
        }
        return position
    }

    private static func fill(
        _ path: DiskPath, _ identity: SnapshotIdentity, from source: any SnapshotSource,
        in system: FileSystem, _ fileTag: UInt32, _ bugs: PlantedBugs
    ) throws(StoreError) -> AppliedPosition {
        var rows = try RowDatabase(
            path, in: system, Connection.Options(synchronous: .normal, fileTag: fileTag))
        var number: UInt64 = 0
        var rowCount: UInt64 = 0
        while let bytes = try source.next() {
            let frame: SnapshotFrame
            do throws(DecodingError) { frame = try .decode(bytes, number: number) } catch {
                throw StoreError(.corrupt, "frame \(number) of a snapshot: \(error)")
            }
            number += 1
            switch frame {
            case .rows(let new):
                try rows.beginTransaction()
                for row in new {
                    try rows.put(row.table, row.key.span.bytes, row.row.span.bytes)
                }
                try rows.commitTransaction()
                rowCount += UInt64(new.count)
                guard try rows.checkpoint().isComplete else {
                    throw StoreError(.busy, "somebody reads a database that is being made")
                }
            case .end(let expected, var position):
                // Bugs that mix streams or forget rows must not be saved by this check.
                let isUnchecked =
                    bugs.contains(.mixedSnapshotStreams)
                    || bugs.contains(.identityForgottenOnSnapshot)
                guard
                    (rowCount == expected && rows.digest == position.digest
                        && position.digest == identity.digest && position.index == identity.index)
                        || isUnchecked
                else { throw StoreError(.corrupt, "the snapshot is not the one it says it is") }
                if isUnchecked {
                    (position.index, position.term) = (identity.index, identity.term)
                    position.digest = rows.digest
                }
                // The sender may go by the configuration its group was made with, which this node may
                // never have been told.
                position.configuration = identity.configuration.encoded()
                try rows.beginTransaction()
                try position.write(to: &rows)
                try rows.commitTransaction()
                guard try rows.checkpoint().isComplete else {
                    throw StoreError(.busy, "somebody reads a database that is being made")
                }
                return position
            }
        }
        throw StoreError(.corrupt, "a snapshot ended after \(number) frames, without its last")
    }
}
