import CSQLite
package import StratusModel
import Synchronization

/// SQLite's access to a node's disk: a VFS built on ``StratusModel/Files`` and on nothing else.
///
/// There is one for each life of a node. It assumes what ``StratusModel/Files/lock(_:)`` of the
/// data directory grants: no other process has these files open. So the WAL's index lives in the
/// heap and locks are counters.
///
/// `@unchecked Sendable`: `vfs` is written once, before any other thread can see it; SQLite reads
/// it.
package final class FileSystem: @unchecked Sendable {
    private struct Weak { weak var database: SharedDatabase? }

    package let files: any Files
    let bugs: PlantedBugs
    let name: String
    private let vfs: UnsafeMutablePointer<sqlite3_vfs>
    private let databases = Mutex<[DiskPath: Weak]>([:])
    private let failedSyncs = Mutex<Set<DiskPath>>([])

    private static let count = Atomic<Int>(0)
    /// SQLite reads its settings once: no mutexes inside, since no connection is ever shared.
    private static let isConfigured: Bool = {
        _ = stratus_sqlite_config_multithread()
        _ = stratus_sqlite_config_no_memory_counts()
        precondition(sqlite3_initialize() == SQLITE_OK, "SQLite does not start")
        precondition(
            sqlite3_libversion_number() >= 3_040_000, "SQLite 3.40 or newer is needed")
        return true
    }()

    package init(_ files: any Files, bugs: PlantedBugs = PlantedBugs()) {
        precondition(Self.isConfigured)
        self.files = files
        self.bugs = bugs
        let number = Self.count.wrappingAdd(1, ordering: .relaxed).newValue
        self.name = "stratus-\(number)"
        self.vfs = .allocate(capacity: 1)
        self.vfs.initialize(to: sqlite3_vfs())
        self.vfs.pointee.iVersion = 2
        self.vfs.pointee.szOsFile = Int32(MemoryLayout<FileRecord>.size)
        self.vfs.pointee.mxPathname = 512
        // Lives as long as the VFS is registered: freed in `deinit`.
        let name = self.name.utf8CString
        let copy = UnsafeMutablePointer<CChar>.allocate(capacity: name.count)
        name.withUnsafeBufferPointer { copy.initialize(from: $0.baseAddress!, count: $0.count) }
        self.vfs.pointee.zName = UnsafePointer(copy)
        self.vfs.pointee.pAppData = Unmanaged.passUnretained(self).toOpaque()
        self.vfs.pointee.xOpen = Self.xOpen
        self.vfs.pointee.xDelete = Self.xDelete
        self.vfs.pointee.xAccess = Self.xAccess
        self.vfs.pointee.xFullPathname = Self.xFullPathname
        self.vfs.pointee.xRandomness = { _, count, into in
            // Only salts and temporary names; SQLite seeds its generator once per process anyway.
            for position in 0..<Int(count) { into![position] = CChar(truncatingIfNeeded: position) }
            return count
        }
        self.vfs.pointee.xSleep = { _, _ in 0 }
        self.vfs.pointee.xCurrentTime = { _, time in
            time!.pointee = 2_440_587.5
            return SQLITE_OK
        }
        self.vfs.pointee.xCurrentTimeInt64 = { _, time in
            time!.pointee = 210_866_760_000_000
            return SQLITE_OK
        }
        self.vfs.pointee.xGetLastError = { _, _, _ in 0 }
        precondition(sqlite3_vfs_register(self.vfs, 0) == SQLITE_OK, "no memory for a VFS")
    }

    deinit {
        sqlite3_vfs_unregister(self.vfs)
        self.vfs.pointee.zName.deallocate()
        self.vfs.deallocate()
    }

    /// Whether a sync of the database or its WAL ever failed. Then the medium may lack data that
    /// this process believes is there, and no second try would prove otherwise. Only a new process
    /// may go on.
    package func hasFailedSync(_ path: DiskPath) -> Bool {
        self.failedSyncs.withLock { $0.contains(path) }
    }
    /// Whether a sync of any database failed. The process then has to end, since those databases
    /// will not work again in it.
    package var hasFailedSync: Bool { self.failedSyncs.withLock { !$0.isEmpty } }
    package func noteFailedSync(_ path: DiskPath) {
        self.failedSyncs.withLock { _ = $0.insert(path) }
    }
    /// Forgets a deleted database: files made under its name from here on are other files. After a
    /// failed sync of its directory this forgets nothing, since the deletion may not have lasted.
    package func forgetFailedSync(of path: DiskPath) {
        self.failedSyncs.withLock { failed in
            if !failed.contains(path.parent) { failed.remove(path) }
        }
    }

    fileprivate func shared(_ path: DiskPath) -> SharedDatabase {
        self.databases.withLock { databases in
            if let database = databases[path]?.database { return database }
            databases = databases.filter { $0.value.database != nil }
            let database = SharedDatabase()
            databases[path] = Weak(database: database)
            return database
        }
    }

    // MARK: SQLite's calls

    private static func system(_ vfs: UnsafeMutablePointer<sqlite3_vfs>?) -> FileSystem {
        Unmanaged<FileSystem>.fromOpaque(vfs!.pointee.pAppData).takeUnretainedValue()
    }

    private static let xOpen:
        @convention(c) (
            UnsafeMutablePointer<sqlite3_vfs>?, sqlite3_filename?,
            UnsafeMutablePointer<sqlite3_file>?, Int32, UnsafeMutablePointer<Int32>?
        ) -> Int32 = { vfs, name, record, flags, flagsOut in
            record!.pointee.pMethods = nil
            let system = FileSystem.system(vfs)
            // No name is a temporary file, and temporary things live in memory here.
            guard let name else { return SQLITE_CANTOPEN }
            let path = DiskPath(String(cString: name))
            let kind: OpenFile.Kind
            let database: DiskPath
            switch flags & 0x0FFF00 {
            case SQLITE_OPEN_MAIN_DB: (kind, database) = (.database, path)
            case SQLITE_OPEN_WAL: (kind, database) = (.wal, DiskPath(String(path.raw.dropLast(4))))
            case SQLITE_OPEN_MAIN_JOURNAL:
                (kind, database) = (.journal, DiskPath(String(path.raw.dropLast(8))))
            default: return SQLITE_CANTOPEN
            }
            let tag = UInt32(truncatingIfNeeded: sqlite3_uri_int64(name, "tag", 0))
            do throws(DiskError) {
                let file = try OpenFile(
                    path, kind, of: database, tag: tag, create: flags & SQLITE_OPEN_CREATE != 0,
                    in: system, system.shared(database))
                FileRecord.install(file, in: record!)
            } catch {
                switch error.kind {
                case .full: return SQLITE_FULL
                // Damage like that of a page: what it held has to come from elsewhere.
                case .damaged: return SQLITE_IOERR_DATA
                default: return SQLITE_CANTOPEN
                }
            }
            flagsOut?.pointee = flags
            return SQLITE_OK
        }

    private static let xDelete:
        @convention(c) (UnsafeMutablePointer<sqlite3_vfs>?, UnsafePointer<CChar>?, Int32) -> Int32 =
            { vfs, name, syncDirectory in
                let system = FileSystem.system(vfs)
                let path = DiskPath(String(cString: name!))
                do throws(DiskError) {
                    try system.files.remove(path)
                    if syncDirectory != 0 { try system.files.syncDirectory(path.parent) }
                    return SQLITE_OK
                } catch {
                    return error.kind == .notFound ? SQLITE_IOERR_DELETE_NOENT : SQLITE_IOERR_DELETE
                }
            }

    private static let xAccess:
        @convention(c) (
            UnsafeMutablePointer<sqlite3_vfs>?, UnsafePointer<CChar>?, Int32,
            UnsafeMutablePointer<Int32>?
        ) -> Int32 = { vfs, name, flags, result in
            let files = FileSystem.system(vfs).files
            let path = DiskPath(String(cString: name!))
            do throws(DiskError) {
                var answer = try files.exists(path)
                // An empty file is no journal and no WAL: SQLite's own VFS says the same.
                if answer, flags == SQLITE_ACCESS_EXISTS {
                    answer = try files.open(path, create: false).length > 0
                }
                result!.pointee = answer ? 1 : 0
                return SQLITE_OK
            } catch { return SQLITE_IOERR_ACCESS }
        }

    private static let xFullPathname:
        @convention(c) (
            UnsafeMutablePointer<sqlite3_vfs>?, UnsafePointer<CChar>?, Int32,
            UnsafeMutablePointer<CChar>?
        ) -> Int32 = { _, name, capacity, out in
            // Paths are relative to the data directory already, and that is all the path they have.
            var position = 0
            while position < Int(capacity) {
                out![position] = name![position]
                if name![position] == 0 { return SQLITE_OK }
                position += 1
            }
            return SQLITE_CANTOPEN
        }
}

/// The memory SQLite allocates for each file: its own part first, then our object.
private struct FileRecord {
    var base: sqlite3_file
    var object: Unmanaged<OpenFile>

    static func install(_ file: OpenFile, in record: UnsafeMutablePointer<sqlite3_file>) {
        UnsafeMutableRawPointer(record).initializeMemory(
            as: FileRecord.self,
            to: FileRecord(
                base: sqlite3_file(pMethods: UnsafePointer(Self.methods)),
                object: .passRetained(file)))
    }

    static func object(_ record: UnsafeMutablePointer<sqlite3_file>?) -> OpenFile {
        UnsafeRawPointer(record!).assumingMemoryBound(to: FileRecord.self)
            .pointee.object.takeUnretainedValue()
    }

    static func code(_ error: DiskError, _ otherwise: Int32) -> Int32 {
        error.kind == .full ? SQLITE_FULL : otherwise
    }

    /// Written once, then only read: by SQLite, on any thread.
    nonisolated(unsafe) static let methods: UnsafeMutablePointer<sqlite3_io_methods> = {
        let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        methods.initialize(to: sqlite3_io_methods())
        methods.pointee.iVersion = 2
        methods.pointee.xClose = { record in
            UnsafeRawPointer(record!).assumingMemoryBound(to: FileRecord.self)
                .pointee.object.release()
            record!.pointee.pMethods = nil
            return SQLITE_OK
        }
        methods.pointee.xRead = { record, into, count, offset in
            let buffer = UnsafeMutableRawBufferPointer(start: into, count: Int(count))
            do throws(DiskError) {
                return try FileRecord.object(record).read(buffer, at: UInt64(offset))
            } catch { return SQLITE_IOERR_READ }
        }
        methods.pointee.xWrite = { record, from, count, offset in
            let bytes = UnsafeRawBufferPointer(start: from, count: Int(count))
            do throws(DiskError) {
                try FileRecord.object(record).write(bytes, at: UInt64(offset))
                return SQLITE_OK
            } catch { return FileRecord.code(error, SQLITE_IOERR_WRITE) }
        }
        methods.pointee.xTruncate = { record, length in
            do throws(DiskError) {
                try FileRecord.object(record).resize(UInt64(length))
                return SQLITE_OK
            } catch { return FileRecord.code(error, SQLITE_IOERR_TRUNCATE) }
        }
        methods.pointee.xSync = { record, _ in
            do throws(DiskError) {
                try FileRecord.object(record).sync()
                return SQLITE_OK
            } catch { return SQLITE_IOERR_FSYNC }
        }
        methods.pointee.xFileSize = { record, size in
            do throws(DiskError) {
                size!.pointee = Int64(try FileRecord.object(record).length)
                return SQLITE_OK
            } catch { return SQLITE_IOERR_FSTAT }
        }
        methods.pointee.xLock = { record, level in
            let file = FileRecord.object(record)
            return file.shared.lock(level, by: ObjectIdentifier(file))
        }
        methods.pointee.xUnlock = { record, level in
            let file = FileRecord.object(record)
            file.shared.unlock(level, by: ObjectIdentifier(file))
            return SQLITE_OK
        }
        methods.pointee.xCheckReservedLock = { record, result in
            result!.pointee = FileRecord.object(record).shared.isReserved ? 1 : 0
            return SQLITE_OK
        }
        methods.pointee.xFileControl = { record, operation, _ in
            let shared = FileRecord.object(record).shared
            switch operation {
            case SQLITE_FCNTL_CKPT_START: shared.noteCheckpoint(isRunning: true)
            case SQLITE_FCNTL_CKPT_DONE: shared.noteCheckpoint(isRunning: false)
            default: return SQLITE_NOTFOUND
            }
            return SQLITE_OK
        }
        methods.pointee.xSectorSize = { _ in 4096 }
        methods.pointee.xDeviceCharacteristics = { _ in
            // Writing some bytes of a sector harms no others: true of every disk since 2010, and it
            // keeps SQLite from padding each commit.
            SQLITE_IOCAP_POWERSAFE_OVERWRITE
        }
        methods.pointee.xShmMap = { record, number, size, extend, out in
            let shared = FileRecord.object(record).shared
            out.unsafelyUnwrapped.pointee = shared.region(
                Int(number), size: Int(size), extend: extend != 0)
            return SQLITE_OK
        }
        methods.pointee.xShmLock = { record, first, count, flags in
            let file = FileRecord.object(record)
            return file.shared.sharedMemoryLock(
                Int(first)..<Int(first + count), flags, by: ObjectIdentifier(file))
        }
        methods.pointee.xShmBarrier = { _ in
            atomicMemoryFence(ordering: .sequentiallyConsistent)
        }
        methods.pointee.xShmUnmap = { _, _ in SQLITE_OK }
        return methods
    }()
}
