package import StratusModel
package import StratusSQLite

/// How a database comes to be, and how it goes.
extension RowDatabase {
    static func makeTables(on connection: Connection) throws(SQLiteError) {
        let present = try connection.prepare(
            "SELECT count(*) FROM sqlite_master WHERE type='table'")
        let isComplete = try present.step() && present.integer(in: 0) == Table.all.count
        present.reset()
        if isComplete { return }
        try connection.execute("BEGIN")
        for table in Table.all {
            try connection.execute(
                """
                CREATE TABLE IF NOT EXISTS t\(table.rawValue)
                (k BLOB NOT NULL PRIMARY KEY, r BLOB NOT NULL) WITHOUT ROWID
                """)
        }
        try connection.execute("COMMIT")
    }

    /// Makes an empty database at `path`, durably: after a crash it is there whole or not at all.
    package static func make(_ path: DiskPath, in system: FileSystem, fileTag: UInt32)
        throws(StoreError)
    {
        let unfinished = DiskPath(path.raw + ".new")
        try Self.throwAway(unfinished, in: system)
        // Files beside an absent database belong to one that is gone: they are never merged.
        try Self.discard(path, in: system.files)
        try storing { () throws(SQLiteError) in
            let options = Connection.Options(synchronous: .normal, fileTag: fileTag)
            let connection = try Connection(unfinished, in: system, options)
            try Self.makeTables(on: connection)
            guard try connection.checkpoint().isComplete else {
                preconditionFailure("a checkpoint of a new database has nobody to wait for")
            }
        }
        try onDisk { () throws(DiskError) in
            try system.files.remove(DiskPath(unfinished.raw + "-wal"))
            try system.files.rename(unfinished, to: path)
            try system.files.syncDirectory(path.parent)
        }
    }

    /// Removes a database and what SQLite keeps beside it. Absent files are no error.
    package static func discard(_ path: DiskPath, in files: any Files) throws(StoreError) {
        try onDisk { () throws(DiskError) in
            for suffix in ["", "-wal", "-journal"] {
                let file = DiskPath(path.raw + suffix)
                if try files.exists(file) { try files.remove(file) }
            }
        }
    }

    /// Removes a database that nobody has open and that no longer counts. After a failed sync its
    /// content is unknown, but it is not needed either. The next one under its name is a new file,
    /// which may be synced.
    static func throwAway(_ path: DiskPath, in system: FileSystem) throws(StoreError) {
        try Self.discard(path, in: system.files)
        system.forgetFailedSync(of: path)
    }

    /// Makes the visible content of a database and its WAL durable. Call it before the first open
    /// of a process.
    ///
    /// After a failed sync in an earlier process, the system may show pages as clean that the
    /// medium never got. Commits appended behind them would be lost with them, so the WAL's bytes
    /// are written back over themselves and synced. If an earlier process died between making a
    /// file and syncing its directory, a power cut would take the file. So all directories above
    /// are synced.
    package static func makeDurable(_ path: DiskPath, in files: any Files) throws(StoreError) {
        try onDisk { () throws(DiskError) in
            try files.syncDirectories(upFrom: path.parent)
            let path = DiskPath(path.raw + "-wal")
            guard try files.exists(path) else { return }
            let file = try files.open(path, create: false)
            let length = try file.length
            if length == 0 { return }
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
            defer { buffer.deallocate() }
            var offset: UInt64 = 0
            while offset < length {
                let count = try file.read(buffer, at: offset)
                if count == 0 { break }
                try file.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: offset)
                offset += UInt64(count)
            }
            try file.sync()
        }
    }
}
