package import StratusModel

/// Receives the chunks of an arriving snapshot, until all are there. Deleted with its last
/// reference.
package protocol SnapshotSpool: AnyObject {
    func append(_ chunk: Bytes) throws(StoreError)
    /// The chunks from the first, as far as they have come.
    func source() throws(StoreError) -> any SnapshotSource
}

/// A spool on disk, in a file without a name: the system frees its space once nobody has it open,
/// even if the process crashes.
///
/// Not synced: the bytes read back are checked frame by frame, and a restarted process begins
/// again.
final class FileSpool: SnapshotSpool {
    private let file: any File
    private var length: UInt64 = 0

    init(_ path: DiskPath, in files: any Files) throws(StoreError) {
        self.file = try onDisk { () throws(DiskError) in
            try files.makeDirectory(path.parent)
            // An earlier one may have kept its name.
            if try files.exists(path) { try files.remove(path) }
            let file = try files.open(path, create: true)
            try files.remove(path)
            return file
        }
    }

    func append(_ chunk: Bytes) throws(StoreError) {
        var count = UInt32(chunk.count).littleEndian
        let prefix = withUnsafeBytes(of: &count) { Bytes($0) }
        let offset = self.length
        try onDisk { () throws(DiskError) in try self.file.write(prefix + chunk, at: offset) }
        self.length += UInt64(prefix.count + chunk.count)
    }

    func source() -> any SnapshotSource { SpooledSnapshot(self.file, length: self.length) }
}

/// In memory, for states that have no disk.
package final class MemorySpool: SnapshotSpool {
    private var chunks: [Bytes] = []

    private final class Source: SnapshotSource {
        private var chunks: ArraySlice<Bytes>
        init(_ chunks: [Bytes]) { self.chunks = chunks[...] }
        func next() -> Bytes? { self.chunks.popFirst() }
    }

    package init() {}
    package func append(_ chunk: Bytes) { self.chunks.append(chunk) }
    package func source() -> any SnapshotSource { Source(self.chunks) }
}

extension PartitionState {
    package func makeSpool() throws(StoreError) -> any SnapshotSpool { MemorySpool() }
    package var snapshotSize: ByteCount { get throws(StoreError) { ByteCount(0) } }
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
