package import StratusModel
package import StratusRows
package import StratusSQLite

/// Ordered tables of rows in one SQLite file: one `WITHOUT ROWID` table for each
/// ``StratusModel/Table``.
///
/// A row that is expected to be new is not looked for: SQLite says whether it was.
///
/// Not `Sendable`: it belongs to the executor that owns the partition.
package final class RowDatabase: RowFile {
    private enum Kind: Int, CaseIterable {
        case get, put, putNew, remove, ascending, ascendingTo, descending, descendingTo
    }

    /// Reads of the ``reading(_:)`` under way; nil outside of one.
    private var scopedReadCount: Int?

    private let connection: Connection
    private var statements: [Statement?]
    /// Statements in the middle of a scan, by position in `statements`.
    private var isScanning: [Bool]
    private let beginning: Statement
    private let ending: Statement
    private let undoing: Statement

    /// Opens the database at `path`, which ``make(_:in:fileTag:)`` made.
    package init(
        _ path: DiskPath, in system: FileSystem, _ options: Connection.Options
    ) throws(StoreError) {
        let connection = try storing { () throws(SQLiteError) in
            try Connection(path, in: system, options)
        }
        self.connection = connection
        let count = Table.slotCount * Kind.allCases.count
        self.statements = Array(repeating: nil, count: count)
        self.isScanning = Array(repeating: false, count: count)
        (self.beginning, self.ending, self.undoing) = try storing { () throws(SQLiteError) in
            // A table added by a newer version of Stratus to an older file.
            if !options.isReadOnly { try Self.makeTables(on: connection) }
            return (
                try connection.prepare("BEGIN"), try connection.prepare("COMMIT"),
                try connection.prepare("ROLLBACK")
            )
        }
    }

    // MARK: Transactions

    package var isInTransaction: Bool { self.connection.isInTransaction }
    /// Frames in the WAL after the last commit: what the next checkpoint has to copy, at most.
    package var walFrameCount: Int { self.connection.walFrameCount }

    package func begin() throws(StoreError) {
        try storing { () throws(SQLiteError) in try self.beginning.run() }
    }

    package func commit() throws(StoreError) {
        try storing { () throws(SQLiteError) in try self.ending.run() }
    }

    /// As in ``reading(_:)``: from the second read on they share one transaction.
    package func beginReads() {
        guard self.scopedReadCount == nil, !self.connection.isInTransaction else { return }
        self.scopedReadCount = 0
    }

    package func endReads() throws(StoreError) {
        guard self.scopedReadCount != nil else { return }
        self.scopedReadCount = nil
        guard self.connection.isInTransaction else { return }
        try storing { () throws(SQLiteError) in try self.ending.run() }
    }

    package func rollBack() throws(StoreError) {
        guard self.connection.isInTransaction else { return }
        try storing { () throws(SQLiteError) in try self.undoing.run() }
    }

    /// Runs `body`, whose reads share one transaction from the second on: SQLite opens and closes
    /// one for each read otherwise. It ends with `body`, so no checkpoint ever waits for it.
    package func reading<Result>(
        _ body: () throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        // A transaction that somebody else has begun is not ended here.
        guard self.scopedReadCount == nil, !self.connection.isInTransaction else {
            return try body()
        }
        self.scopedReadCount = 0
        let result: Result
        do throws(StoreError) { result = try body() } catch {
            self.scopedReadCount = nil
            try self.rollBack()
            throw error
        }
        self.scopedReadCount = nil
        if self.connection.isInTransaction {
            try storing { () throws(SQLiteError) in try self.ending.run() }
        }
        return result
    }

    private func countRead() throws(SQLiteError) {
        guard let count = self.scopedReadCount else { return }
        self.scopedReadCount = count + 1
        if count == 1 { try self.beginning.run() }
    }

    package func checkpoint() throws(StoreError) -> Connection.CheckpointResult {
        try storing { () throws(SQLiteError) in try self.connection.checkpoint() }
    }

    package func pageCount() throws(StoreError) -> Int {
        try storing { () throws(SQLiteError) in
            Int(try self.connection.text("PRAGMA page_count")) ?? 0
        }
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

    // MARK: Rows

    package func withRow(
        _ table: Table, _ key: borrowing RawSpan, _ body: (_ row: borrowing RawSpan) -> Void
    ) throws(StoreError) {
        try key.withUnsafeBytes { (key) throws(StoreError) in
            try self.withRow(table, key) { row in
                if let row { body(RawSpan(_unsafeBytes: row)) }
            }
        }
    }

    private func withRow<Result>(
        _ table: Table, _ key: UnsafeRawBufferPointer,
        _ body: (UnsafeRawBufferPointer?) -> Result
    ) throws(StoreError) -> Result {
        try storing { () throws(SQLiteError) in
            try self.countRead()
            let statement = try self.statement(.get, table)
            defer { statement.reset() }
            try statement.bind(unownedUntilReset: key, at: 1)
            return try body(statement.step() ? statement.unownedBlob(in: 0) : nil)
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
        try self.countRead()
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

    // MARK: Writing

    package func write(_ changes: ArraySlice<RowChange>, to table: Table) throws(StoreError)
        -> StateDigest
    {
        // Without its transaction each row would stand alone.
        guard self.connection.isInTransaction else {
            throw StoreError(.io, "SQLite has ended the transaction")
        }
        var unexpected = StateDigest.empty
        for change in changes {
            try change.key.span.bytes.withUnsafeBytes { (key) throws(StoreError) in
                guard let row = change.row else { return try self.erase(table, key) }
                try row.span.bytes.withUnsafeBytes { (row) throws(StoreError) in
                    if change.isExpectedNew {
                        if try self.insert(table, key, row) { return }
                        if let old = try self.storedHash(table, key) { unexpected.add(old) }
                    }
                    try self.write(table, key, row)
                }
            }
        }
        return unexpected
    }

    /// - Returns: false: there is a row already, which stays.
    private func insert(
        _ table: Table, _ key: UnsafeRawBufferPointer, _ row: UnsafeRawBufferPointer
    ) throws(StoreError) -> Bool {
        try self.write(table, key, row, .putNew)
        return self.connection.changeCount > 0
    }

    private func write(
        _ table: Table, _ key: UnsafeRawBufferPointer, _ row: UnsafeRawBufferPointer,
        _ kind: Kind = .put
    ) throws(StoreError) {
        try storing { () throws(SQLiteError) in
            let statement = try self.statement(kind, table)
            try statement.bind(unownedUntilReset: key, at: 1)
            try statement.bind(unownedUntilReset: row, at: 2)
            try statement.run()
        }
    }

    private func erase(_ table: Table, _ key: UnsafeRawBufferPointer) throws(StoreError) {
        try storing { () throws(SQLiteError) in
            let statement = try self.statement(.remove, table)
            try statement.bind(unownedUntilReset: key, at: 1)
            try statement.run()
        }
    }

    /// The hash of the row that SQLite has under `key`.
    private func storedHash(_ table: Table, _ key: UnsafeRawBufferPointer) throws(StoreError)
        -> StateDigest?
    {
        try self.withRow(table, key) { row in
            row.map { RowHash.of(table, RawSpan(_unsafeBytes: key), RawSpan(_unsafeBytes: $0)) }
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
        case .putNew: "INSERT OR IGNORE INTO \(name) (k, r) VALUES (?1, ?2)"
        case .remove: "DELETE FROM \(name) WHERE k=?1"
        case .ascending: "SELECT k, r FROM \(name) WHERE k>=?1 ORDER BY k"
        case .ascendingTo: "SELECT k, r FROM \(name) WHERE k>=?1 AND k<?2 ORDER BY k"
        case .descending: "SELECT k, r FROM \(name) WHERE k>=?1 ORDER BY k DESC"
        case .descendingTo: "SELECT k, r FROM \(name) WHERE k>=?1 AND k<?2 ORDER BY k DESC"
        }
    }
}
