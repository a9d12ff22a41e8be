package import StratusModel
package import StratusSQLite

/// Ordered tables of rows in one SQLite file: one `WITHOUT ROWID` table for each ``StratusModel/Table``.
///
/// The digest follows every put and remove, which therefore read the row they replace. Rows of
/// `Table.meta` are not in it.
///
/// Not `Sendable`: it belongs to the executor that owns the partition.
package final class RowDatabase: RowStore {
    private enum Kind: Int, CaseIterable {
        case get, put, remove, ascending, ascendingTo, descending, descendingTo
    }

    /// Of all rows but those of `Table.meta`. Whoever commits stores it; whoever rolls back restores it.
    package var digest: StateDigest
    /// Rows put and removed so far: what bounds a commit.
    package private(set) var writeCount = 0
    /// Of them, rows put into `Table.mail`: whoever carries mail looks only where this has moved.
    package private(set) var mailCount = 0

    private let connection: Connection
    private var statements: [Statement?]
    /// Statements in the middle of a scan, by position in `statements`.
    private var isScanning: [Bool]
    private let begin: Statement
    private let end: Statement
    private let undo: Statement

    /// Opens the database at `path`, which ``make(_:in:fileTag:)`` made.
    package init(
        _ path: DiskPath, in system: FileSystem, _ options: Connection.Options,
        digest: StateDigest = .empty
    ) throws(StoreError) {
        let connection = try storing { () throws(SQLiteError) in
            try Connection(path, in: system, options)
        }
        self.connection = connection
        self.digest = digest
        let count = Table.all.count * Kind.allCases.count
        self.statements = Array(repeating: nil, count: count)
        self.isScanning = Array(repeating: false, count: count)
        (self.begin, self.end, self.undo) = try storing { () throws(SQLiteError) in
            // A table added by a newer version of Stratus to an older file.
            if !options.isReadOnly { try Self.makeTables(on: connection) }
            return (
                try connection.prepare("BEGIN"), try connection.prepare("COMMIT"),
                try connection.prepare("ROLLBACK")
            )
        }
    }

    private static func makeTables(on connection: Connection) throws(SQLiteError) {
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
        try Self.discard(unfinished, in: system.files)
        // What lies beside an absent database belongs to one that is gone: never merged.
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

    /// Makes what a database and its WAL show durable. To be done before the first open of a process.
    ///
    /// If a sync failed in an earlier one, the system may show pages as clean that the medium never got,
    /// and commits appended behind them would be lost with them: the WAL's bytes are written back over
    /// themselves and synced. If an earlier one died between making a file and syncing its directory, a
    /// power cut would take the file: all directories above are synced.
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

    // MARK: Transactions

    package var isInTransaction: Bool { self.connection.isInTransaction }
    /// Frames in the WAL after the last commit: what the next checkpoint has to copy, at most.
    package var walFrameCount: Int { self.connection.walFrameCount }

    package func beginTransaction() throws(StoreError) {
        try storing { () throws(SQLiteError) in try self.begin.run() }
    }

    package func commitTransaction() throws(StoreError) {
        try storing { () throws(SQLiteError) in try self.end.run() }
    }

    /// Ends the transaction, if SQLite has not done so by itself after an error.
    package func rollBack() throws(StoreError) {
        guard self.connection.isInTransaction else { return }
        try storing { () throws(SQLiteError) in try self.undo.run() }
    }

    package func checkpoint() throws(StoreError) -> Connection.CheckpointResult {
        try storing { () throws(SQLiteError) in try self.connection.checkpoint() }
    }

    /// Pages of the file that hold nothing any more.
    package func sparePageCount() throws(StoreError) -> Int {
        try storing { () throws(SQLiteError) in
            Int(try self.connection.text("PRAGMA freelist_count")) ?? 0
        }
    }

    package func findDamage() throws(StoreError) -> [String] {
        try storing { () throws(SQLiteError) in try self.connection.findDamage() }
    }

    /// The digest of every row, computed anew.
    package func computeDigest() throws(StoreError) -> StateDigest {
        var digest = StateDigest.empty
        let all = Bytes()
        for table in Table.all where table != .meta {
            try self.scan(table, from: all.span.bytes, to: all.span.bytes, descending: false) {
                key, row in
                key.withUnsafeBytes { key in
                    row.withUnsafeBytes { row in digest.add(RowHash.of(table, key, row)) }
                }
                return .next
            }
        }
        return digest
    }

    // MARK: Rows

    package func row(_ table: Table, _ key: borrowing RawSpan) throws(StoreError) -> Bytes? {
        try key.withUnsafeBytes { (key) throws(StoreError) in
            try self.withRow(table, key) { row in row.map { Bytes($0) } }
        }
    }

    package func put(_ table: Table, _ key: borrowing RawSpan, _ row: borrowing RawSpan)
        throws(StoreError)
    {
        try key.withUnsafeBytes { (key) throws(StoreError) in
            try row.withUnsafeBytes { (row) throws(StoreError) in
                try self.put(table, key, row)
            }
        }
        if table == .mail { self.mailCount += 1 }
    }

    package func remove(_ table: Table, _ key: borrowing RawSpan) throws(StoreError) {
        try key.withUnsafeBytes { (key) throws(StoreError) in
            guard try self.subtractOld(table, key) else { return }
            try storing { () throws(SQLiteError) in
                let statement = try self.statement(.remove, table)
                try statement.bind(unownedUntilReset: key, at: 1)
                try statement.run()
            }
            self.writeCount += 1
        }
    }

    package func scan(
        _ table: Table, from: borrowing RawSpan, to: borrowing RawSpan, descending: Bool,
        _ body: (_ key: borrowing RawSpan, _ row: borrowing RawSpan) -> ScanStep
    ) throws(StoreError) {
        try from.withUnsafeBytes { (from) throws(StoreError) in
            try to.withUnsafeBytes { (to) throws(StoreError) in
                try storing { () throws(SQLiteError) in
                    try self.scan(table, from, to, descending: descending, body)
                }
            }
        }
    }

    private func put(
        _ table: Table, _ key: UnsafeRawBufferPointer, _ row: UnsafeRawBufferPointer
    ) throws(StoreError) {
        _ = try self.subtractOld(table, key)
        try storing { () throws(SQLiteError) in
            let statement = try self.statement(.put, table)
            try statement.bind(unownedUntilReset: key, at: 1)
            try statement.bind(unownedUntilReset: row, at: 2)
            try statement.run()
        }
        if table != .meta { self.digest.add(RowHash.of(table, key, row)) }
        self.writeCount += 1
    }

    /// Takes the row under `key` out of the digest. Returns whether there is one.
    private func subtractOld(_ table: Table, _ key: UnsafeRawBufferPointer) throws(StoreError)
        -> Bool
    {
        if table == .meta { return true }
        let old = try self.withRow(table, key) { row in row.map { RowHash.of(table, key, $0) } }
        if let old { self.digest.subtract(old) }
        return old != nil
    }

    private func withRow<Result>(
        _ table: Table, _ key: UnsafeRawBufferPointer,
        _ body: (UnsafeRawBufferPointer?) -> Result
    ) throws(StoreError) -> Result {
        try storing { () throws(SQLiteError) in
            let statement = try self.statement(.get, table)
            defer { statement.reset() }
            try statement.bind(unownedUntilReset: key, at: 1)
            return try body(statement.step() ? statement.unownedBlob(in: 0) : nil)
        }
    }

    private func scan(
        _ table: Table, _ from: UnsafeRawBufferPointer, _ to: UnsafeRawBufferPointer,
        descending: Bool, _ body: (borrowing RawSpan, borrowing RawSpan) -> ScanStep
    ) throws(SQLiteError) {
        let kind: Kind =
            switch (descending, to.isEmpty) {
            case (false, true): .ascending
            case (false, false): .ascendingTo
            case (true, true): .descending
            case (true, false): .descendingTo
            }
        let position = self.position(kind, table)
        // A scan inside the body of a scan of the same table runs on a statement of its own.
        let isNested = self.isScanning[position]
        let statement =
            isNested
            ? try self.connection.prepare(Self.sql(kind, table))
            : try self.statement(kind, table)
        self.isScanning[position] = true
        defer {
            statement.reset()
            if !isNested { self.isScanning[position] = false }
        }
        try statement.bind(unownedUntilReset: from, at: 1)
        if !to.isEmpty { try statement.bind(unownedUntilReset: to, at: 2) }
        while try statement.step() {
            let key = statement.unownedBlob(in: 0)
            let row = statement.unownedBlob(in: 1)
            if body(RawSpan(_unsafeBytes: key), RawSpan(_unsafeBytes: row)) == .stop { return }
        }
    }

    private func position(_ kind: Kind, _ table: Table) -> Int {
        Int(table.rawValue) * Kind.allCases.count + kind.rawValue
    }

    private func statement(_ kind: Kind, _ table: Table) throws(SQLiteError) -> Statement {
        let position = self.position(kind, table)
        if let statement = self.statements[position] { return statement }
        let statement = try self.connection.prepare(Self.sql(kind, table))
        self.statements[position] = statement
        return statement
    }

    private static func sql(_ kind: Kind, _ table: Table) -> String {
        let name = "t\(table.rawValue)"
        return switch kind {
        case .get: "SELECT r FROM \(name) WHERE k=?1"
        case .put: "INSERT OR REPLACE INTO \(name) (k, r) VALUES (?1, ?2)"
        case .remove: "DELETE FROM \(name) WHERE k=?1"
        case .ascending: "SELECT k, r FROM \(name) WHERE k>=?1 ORDER BY k"
        case .ascendingTo: "SELECT k, r FROM \(name) WHERE k>=?1 AND k<?2 ORDER BY k"
        case .descending: "SELECT k, r FROM \(name) WHERE k>=?1 ORDER BY k DESC"
        case .descendingTo: "SELECT k, r FROM \(name) WHERE k>=?1 AND k<?2 ORDER BY k DESC"
        }
    }
}
