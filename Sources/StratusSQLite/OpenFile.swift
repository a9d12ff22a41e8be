import CSQLite
import CShims
import StratusModel

/// One file that SQLite has open: the database, its WAL, or the journal a new database begins with.
final class OpenFile {
    enum Kind { case database, wal, journal }

    private static let walHeaderSize = 32
    private static let frameHeaderSize = 24
    private static let frameSize = frameHeaderSize + Connection.pageSize

    private let file: any File
    private let system: FileSystem
    private let path: DiskPath
    private let database: DiskPath
    private let kind: Kind
    private let tag: UInt32
    let shared: SharedDatabase
    /// Its name survives a power cut only once its directory is synced.
    private var needsDirectorySync: Bool
    private let scratch: UnsafeMutableRawBufferPointer
    /// Writes of the WAL that are not in its file yet.
    private var gathered = GatheredWrites()
    /// The frame whose header was written last ends a commit.
    private var isLastOfCommit = false

    init(
        _ path: DiskPath, _ kind: Kind, of database: DiskPath, tag: UInt32, create: Bool,
        in system: FileSystem, _ shared: SharedDatabase
    ) throws(DiskError) {
        // A file that is there may have been made by a process that ended before it synced the
        // directory: its name would go with the power, and every commit in it.
        self.needsDirectorySync = create
        self.file = try system.files.open(path, create: create)
        self.system = system
        self.path = path
        self.database = database
        self.kind = kind
        self.tag = tag
        self.shared = shared
        self.scratch = .allocate(byteCount: Connection.pageSize, alignment: 16)
    }

    deinit {
        if self.kind == .database { self.shared.forget(ObjectIdentifier(self)) }
        self.scratch.deallocate()
    }

    // MARK: Reading

    func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(DiskError) -> Int32
    {
        switch self.kind {
        case .journal: return try self.readPlain(buffer, at: offset)
        case .wal: return try self.readWAL(buffer, at: offset)
        case .database: return try self.readDatabase(buffer, at: offset)
        }
    }

    private func readPlain(_ buffer: UnsafeMutableRawBufferPointer, at offset: UInt64)
        throws(DiskError) -> Int32
    {
        let count = try self.readFully(buffer, at: offset)
        guard count == buffer.count else {
            // SQLite reads the rest as zeros and relies on finding them there.
            UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
                .initializeMemory(as: UInt8.self, repeating: 0)
            return SQLITE_IOERR_SHORT_READ
        }
        return SQLITE_OK
    }

    /// `File.read` may return less than asked only at the end of the file, but may do so twice.
    private func readFully(_ buffer: UnsafeMutableRawBufferPointer, at offset: UInt64)
        throws(DiskError) -> Int
    {
        var count = 0
        while count < buffer.count {
            let part = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
            let read = try self.file.read(part, at: offset + UInt64(count))
            if read == 0 { break }
            count += read
        }
        return count
    }

    private func readWAL(_ buffer: UnsafeMutableRawBufferPointer, at offset: UInt64)
        throws(DiskError) -> Int32
    {
        try self.gathered.end(in: self.file)
        let code = try self.readPlain(buffer, at: offset)
        guard code == SQLITE_OK, offset >= UInt64(Self.walHeaderSize) else { return code }
        let (frame, within) = (Int(offset) - Self.walHeaderSize)
            .quotientAndRemainder(dividingBy: Self.frameSize)
        switch (within, buffer.count) {
        case (0, Self.frameSize):
            // Recovery. SQLite checks its own chain of checksums and uses no frame that fails it.
            let page = UnsafeRawBufferPointer(rebasing: buffer[Self.frameHeaderSize...])
            self.shared.remember(frame: frame, crc: stratus_crc32c(0, page.baseAddress, page.count))
        case (Self.frameHeaderSize, Connection.pageSize):
            // SQLite does not check a frame again after recovery. We do.
            let crc = stratus_crc32c(0, buffer.baseAddress, buffer.count)
            guard self.shared.crc(ofFrame: frame) == crc else { return SQLITE_IOERR_DATA }
        default: break
        }
        return code
    }

    private func readDatabase(_ buffer: UnsafeMutableRawBufferPointer, at offset: UInt64)
        throws(DiskError) -> Int32
    {
        let (number, within) = offset.quotientAndRemainder(
            dividingBy: UInt64(Connection.pageSize))
        if within == 0, buffer.count == Connection.pageSize {
            return try self.readPage(UInt32(number + 1), into: buffer)
        }
        // The header, as a first hint: a checkpoint cut short may have torn it, and the WAL then
        // holds the page. SQLite reads every part that it uses again with the whole page.
        guard offset + UInt64(buffer.count) <= 100 else { return SQLITE_IOERR_DATA }
        return try self.readPlain(buffer, at: offset)
    }

    private func readPage(_ number: UInt32, into page: UnsafeMutableRawBufferPointer)
        throws(DiskError) -> Int32
    {
        let offset = UInt64(number - 1) * UInt64(Connection.pageSize)
        let code = try self.readPlain(page, at: offset)
        if code == SQLITE_IOERR_SHORT_READ {
            // SQLite would take the missing page for zeros. Only a new database may be short.
            let isNew = try self.file.length == 0
            return isNew && number == 1 ? code : SQLITE_IOERR_DATA
        }
        return PageChecksum.isSound(UnsafeRawBufferPointer(page), number: number, tag: self.tag)
            ? code : SQLITE_IOERR_DATA
    }

    // MARK: Writing

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(DiskError) {
        guard !self.system.hasFailedSync(self.database) else {
            throw DiskError(.syncFailed, during: "write after a failed sync", path: self.path)
        }
        switch self.kind {
        case .journal: try self.file.write(bytes, at: offset)
        case .wal: try self.writeWAL(bytes, at: offset)
        case .database:
            precondition(
                bytes.count == Connection.pageSize && offset % UInt64(Connection.pageSize) == 0,
                "SQLite writes whole pages")
            self.scratch.copyMemory(from: bytes)
            let number = UInt32(offset / UInt64(Connection.pageSize)) + 1
            PageChecksum.seal(self.scratch, number: number, tag: self.tag)
            try self.file.write(UnsafeRawBufferPointer(self.scratch), at: offset)
        }
    }

    /// Gathers the frames of a commit. They are in the file when SQLite has written the last one:
    /// from then on it shows them to other connections. A barrier comes after that, but it can
    /// report no error.
    private func writeWAL(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(DiskError) {
        self.shared.assertNoCheckpoint()
        try self.gathered.add(bytes, at: offset, to: self.file)
        // A sync follows the header: an error of the write is not to be one of the sync.
        guard offset >= UInt64(Self.walHeaderSize) else {
            return try self.gathered.end(in: self.file)
        }
        let (frame, within) = (Int(offset) - Self.walHeaderSize)
            .quotientAndRemainder(dividingBy: Self.frameSize)
        if within == Self.frameHeaderSize, bytes.count == Connection.pageSize {
            let crc = stratus_crc32c(0, bytes.baseAddress, bytes.count)
            self.shared.remember(frame: frame, crc: crc)
            if self.isLastOfCommit, !self.system.bugs.contains(.walBehindBarrier) {
                try self.gathered.end(in: self.file)
            }
        } else if within + bytes.count > Self.frameHeaderSize {
            self.shared.remember(frame: frame, crc: nil)
            try self.gathered.end(in: self.file)
        } else if within == 0, bytes.count == Self.frameHeaderSize {
            // The size of the database after a commit, and zero in all frames but its last.
            self.isLastOfCommit = bytes[4..<8].contains { $0 != 0 }
        }
    }

    func resize(_ length: UInt64) throws(DiskError) {
        try self.gathered.end(in: self.file)
        // A checkpoint cuts the database to its size; most often it has it already.
        guard try self.file.length != length else { return }
        try self.file.resize(length)
    }

    func sync() throws(DiskError) {
        guard !self.system.hasFailedSync(self.database) else {
            throw DiskError(.syncFailed, during: "sync after a failed sync", path: self.path)
        }
        try self.gathered.end(in: self.file)
        do throws(DiskError) { try self.file.sync() } catch {
            self.system.noteFailedSync(self.database)
            throw error
        }
        guard self.needsDirectorySync else { return }
        do throws(DiskError) { try self.system.files.syncDirectory(self.path.parent) } catch {
            self.system.noteFailedSync(self.path.parent)
            self.system.noteFailedSync(self.database)
            throw error
        }
        self.needsDirectorySync = false
    }

    var length: UInt64 {
        get throws(DiskError) {
            try self.gathered.end(in: self.file)
            return try self.file.length
        }
    }
}
