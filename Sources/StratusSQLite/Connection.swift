import CSQLite
package import StratusModel

/// One open SQLite database, all of whose I/O goes through a ``StratusModel/Files``.
///
/// A class because its statements keep it alive. Not `Sendable`, so no two threads can use it at
/// the same time, and we may open it with `SQLITE_OPEN_NOMUTEX` and skip SQLite's own locking.
///
/// Every connection: WAL, `wal_autocheckpoint=0`, no checkpoint on close, `mmap_size=0`,
/// `temp_store=MEMORY`, `cache_spill=OFF`, a checksum in every page. See
/// `Docs/internals/data-files.md`.
package final class Connection {
    package struct Options: Sendable, Equatable {
        package enum Synchronous: String, Sendable, Equatable {
            /// A COMMIT syncs nothing, a checkpoint syncs twice.
            case normal = "NORMAL"
            /// A COMMIT syncs the WAL before it returns.
            case full = "FULL"
        }
        package var synchronous: Synchronous
        /// Which file this is, inside every page's checksum: a page of another file is damage here.
        package var fileTag: UInt32
        package var cacheSize: ByteCount
        package var isReadOnly: Bool

        package init(
            synchronous: Synchronous, fileTag: UInt32, cacheSize: ByteCount = .mebibytes(2),
            isReadOnly: Bool = false
        ) {
            self.synchronous = synchronous
            self.fileTag = fileTag
            self.cacheSize = cacheSize
            self.isReadOnly = isReadOnly
        }
    }

    package static let pageSize = 4096

    let handle: OpaquePointer
    /// Frames in the WAL after this connection's last commit.
    package private(set) var walFrameCount = 0
    /// Registered while any connection uses it.
    private let system: FileSystem

    /// Opens the database at `path`, creating it if absent. The caller syncs the directory that
    /// holds it.
    package init(_ path: DiskPath, in system: FileSystem, _ options: Options) throws(SQLiteError) {
        var handle: OpaquePointer?
        let flags =
            (options.isReadOnly
                ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
            | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_URI
            | SQLITE_OPEN_PRIVATECACHE
        // The name is ours: it holds no character that means something in a URI.
        let code = sqlite3_open_v2(
            "file:\(path.raw)?tag=\(options.fileTag)", &handle, flags, system.name)
        guard code == SQLITE_OK, let handle else {
            let error = SQLiteError(code: code, reportedBy: handle, during: "open \(path)")
            // A failed open still allocates a handle, except when memory ran out.
            sqlite3_close(handle)
            throw error
        }
        self.handle = handle
        self.system = system
        try self.configure(options)
        // Called after each commit. `self` closes the handle before it goes.
        sqlite3_wal_hook(
            handle,
            { connection, _, _, frames in
                Unmanaged<Connection>.fromOpaque(connection!).takeUnretainedValue()
                    .walFrameCount = Int(frames)
                return SQLITE_OK
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit {
        let code = sqlite3_close(self.handle)
        precondition(code == SQLITE_OK, "a statement outlived its connection")
    }

    private func configure(_ options: Options) throws(SQLiteError) {
        _ = stratus_sqlite_db_config(self.handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        _ = stratus_sqlite_db_config(self.handle, SQLITE_DBCONFIG_DEFENSIVE, 1)
        // Only a database that has no page yet takes these two.
        var reserved = Int32(PageChecksum.size)
        sqlite3_file_control(self.handle, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved)
        try self.execute("PRAGMA page_size=\(Self.pageSize)")
        if !options.isReadOnly {
            let mode = try self.text("PRAGMA journal_mode=WAL")
            guard mode == "wal" else {
                throw SQLiteError(
                    code: SQLITE_ERROR, reportedBy: nil, during: "journal_mode=WAL gave \(mode)")
            }
        }
        for pragma in [
            "wal_autocheckpoint=0", "mmap_size=0", "temp_store=MEMORY", "cache_spill=OFF",
            "secure_delete=OFF", "synchronous=\(options.synchronous.rawValue)",
            "cache_size=-\(options.cacheSize.raw >> 10)", "trusted_schema=OFF",
        ] { try self.execute("PRAGMA \(pragma)") }
        let page = try self.prepare("PRAGMA page_size")
        defer { page.reset() }
        guard try page.step(), page.integer(in: 0) == Int64(Self.pageSize) else {
            throw SQLiteError(
                code: SQLITE_NOTADB, reportedBy: nil, during: "a page size that is not ours")
        }
    }

    package func prepare(_ sql: String) throws(SQLiteError) -> Statement {
        try Statement(sql, on: self)
    }

    /// Runs `sql` once, ignoring any rows.
    package func execute(_ sql: String) throws(SQLiteError) { try self.prepare(sql).run() }

    /// The first column of the first row, as text.
    package func text(_ sql: String) throws(SQLiteError) -> String {
        let statement = try self.prepare(sql)
        defer { statement.reset() }
        return try statement.step() ? statement.text(in: 0) : ""
    }

    /// Whether a transaction is open. SQLite ends one by itself after some errors.
    package var isInTransaction: Bool { sqlite3_get_autocommit(self.handle) == 0 }

    /// Rows changed by the last statement that changed any.
    package var changeCount: Int { Int(sqlite3_changes(self.handle)) }

    package struct CheckpointResult: Sendable, Equatable {
        /// Frames in the WAL, and how many of them are in the database now.
        package var frameCount: Int
        package var copiedFrameCount: Int
        package var isComplete: Bool { self.frameCount == self.copiedFrameCount }
    }

    /// Copies what it can of the WAL into the database and syncs both, disturbing nobody (PASSIVE).
    package func checkpoint() throws(SQLiteError) -> CheckpointResult {
        var frames: Int32 = 0
        var copied: Int32 = 0
        let code = sqlite3_wal_checkpoint_v2(
            self.handle, "main", SQLITE_CHECKPOINT_PASSIVE, &frames, &copied)
        guard code == SQLITE_OK else {
            throw SQLiteError(code: code, reportedBy: self.handle, during: "checkpoint")
        }
        return CheckpointResult(frameCount: Int(frames), copiedFrameCount: Int(copied))
    }

    /// Every fault SQLite finds in the file; empty when it is sound. Reads all of it.
    package func findDamage() throws(SQLiteError) -> [String] {
        let statement = try self.prepare("PRAGMA integrity_check(20)")
        defer { statement.reset() }
        var faults: [String] = []
        while try statement.step() {
            let line = statement.text(in: 0)
            if line != "ok" { faults.append(line) }
        }
        return faults
    }
}
