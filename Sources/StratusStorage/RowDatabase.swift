package import StratusModel
package import StratusSQLite

/// Ordered tables of rows in one SQLite file: one `WITHOUT ROWID` table for each
/// ``StratusModel/Table``.
///
/// The digest follows every put and remove, which therefore read the row they replace. A row that
/// is expected to be new is not looked for: SQLite says whether it was. The digest leaves out rows
/// of `Table.meta`.
///
/// Within a transaction rows are kept back until the commit, or until their table is scanned. If a
/// batch of commands writes a row again and again, SQLite sees only the last write. Every read here
/// sees the kept rows too.
///
/// Not `Sendable`: it belongs to the executor that owns the partition.
package final class RowDatabase: RowStore {
    private enum Kind: Int, CaseIterable {
        case get, put, putNew, remove, ascending, ascendingTo, descending, descendingTo
    }

    /// The digest of all rows but those of `Table.meta`. A commit stores it; a rollback restores
    /// it.
    package var digest: StateDigest
    /// Rows put and removed so far: what bounds a commit.
    package private(set) var writeCount = 0
    /// The number of rows put into `Table.mail`: the mail carrier looks only if this has changed.
    package private(set) var mailCount = 0
    /// The number of rows put into `Table.event`: the same for whoever sends pushes.
    package private(set) var eventCount = 0

    /// Bytes kept back in one table before they are written after all.
    private static let pendingSizeMax = 1 << 20
    private static let pendingCountMax = 4_096

    /// The rows kept back, by the number of the table.
    private var pending = Array(repeating: PendingRows(), count: Table.slotCount)
    private var isKeepingBack = false
    /// The row that was last read in each table, as SQLite has it: what is read is often replaced
    /// next. Only while rows are kept back; nil once the table is written to.
    private var lastReads: [LastRead?] = Array(repeating: nil, count: Table.slotCount)

    private struct LastRead {
        let key: Bytes
        let row: Bytes?
    }

    /// Reads of the ``reading(_:)`` under way; nil outside of one.
    private var scopedReadCount: Int?

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
        let count = Table.slotCount * Kind.allCases.count
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

    // MARK: Transactions

    package var isInTransaction: Bool { self.connection.isInTransaction }
    /// Frames in the WAL after the last commit: what the next checkpoint has to copy, at most.
    package var walFrameCount: Int { self.connection.walFrameCount }

    package func beginTransaction() throws(StoreError) {
        try storing { () throws(SQLiteError) in try self.begin.run() }
        self.isKeepingBack = true
    }

    package func commitTransaction() throws(StoreError) {
        try self.writePending()
        self.stopKeepingBack()
        try storing { () throws(SQLiteError) in try self.end.run() }
    }

    /// Gives SQLite all rows that were kept back. A commit does that too; doing it earlier holds no
    /// lock meanwhile.
    package func writePending() throws(StoreError) {
        for table in Table.all { try self.writePending(table) }
    }

    private func stopKeepingBack() {
        self.isKeepingBack = false
        for position in self.lastReads.indices { self.lastReads[position] = nil }
    }

    private func writePending(_ table: Table) throws(StoreError) {
        guard !self.pending[Int(table.rawValue)].isEmpty else { return }
        // Without its transaction each row would stand alone.
        guard self.connection.isInTransaction else {
            throw StoreError(.io, "SQLite has ended the transaction")
        }
        let (changes, order) = self.pending[Int(table.rawValue)].take()
        for place in order {
            let change = changes[place]
            try change.key.span.bytes.withUnsafeBytes { (key) throws(StoreError) in
                guard let row = change.row else { return try self.erase(table, key) }
                try row.span.bytes.withUnsafeBytes { (row) throws(StoreError) in
                    if change.isExpectedNew, try self.writeNew(table, key, row) { return }
                    try self.write(table, key, row)
                }
            }
        }
    }

    /// - Returns: false: there is a row, which the digest does not hold any more.
    private func writeNew(
        _ table: Table, _ key: UnsafeRawBufferPointer, _ row: UnsafeRawBufferPointer
    ) throws(StoreError) -> Bool {
        try self.write(table, key, row, .putNew)
        if self.connection.changeCount > 0 { return true }
        if let old = try self.storedHash(table, key) { self.digest.subtract(old) }
        return false
    }

    /// Ends the transaction, if SQLite has not done so by itself after an error.
    package func rollBack() throws(StoreError) {
        self.stopKeepingBack()
        for position in self.pending.indices { self.pending[position].removeAll() }
        guard self.connection.isInTransaction else { return }
        try storing { () throws(SQLiteError) in try self.undo.run() }
    }

    /// Runs `body`, whose reads share one transaction from the second on: SQLite opens and closes
    /// one for each read otherwise. It ends with `body`, so no checkpoint ever waits for it.
    package func reading<Result>(
        _ body: () throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        // Rows that are kept back are somebody's who has not ended its transaction, even where
        // SQLite has ended it: nothing here may throw them away.
        guard self.scopedReadCount == nil, !self.isKeepingBack, !self.connection.isInTransaction
        else {
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
            try storing { () throws(SQLiteError) in try self.end.run() }
        }
        return result
    }

    private func countRead() throws(SQLiteError) {
        guard let count = self.scopedReadCount else { return }
        self.scopedReadCount = count + 1
        if count == 1 { try self.begin.run() }
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
        if !self.pending[Int(table.rawValue)].isEmpty,
            let change = self.pending[Int(table.rawValue)][Bytes(copying: key)]
        {
            return change.row
        }
        return try key.withUnsafeBytes { (key) throws(StoreError) in
            let row = try self.withRow(table, key) { row in row.map { Bytes($0) } }
            if self.isKeepingBack {
                self.lastReads[Int(table.rawValue)] = LastRead(key: Bytes(key), row: row)
            }
            return row
        }
    }

    package func put(_ table: Table, _ key: borrowing RawSpan, _ row: borrowing RawSpan)
        throws(StoreError)
    {
        try self.put(table, key, row, isExpectedNew: false)
    }

    package func putNew(_ table: Table, _ key: borrowing RawSpan, _ row: borrowing RawSpan)
        throws(StoreError)
    {
        try self.put(table, key, row, isExpectedNew: true)
    }

    private func put(
        _ table: Table, _ key: borrowing RawSpan, _ row: borrowing RawSpan, isExpectedNew: Bool
    ) throws(StoreError) {
        try key.withUnsafeBytes { (key) throws(StoreError) in
            try row.withUnsafeBytes { (row) throws(StoreError) in
                try self.put(table, key, row, isExpectedNew)
            }
        }
        self.writeCount += 1
        if table == .mail { self.mailCount += 1 }
        if table == .event { self.eventCount += 1 }
    }

    private func put(
        _ table: Table, _ key: UnsafeRawBufferPointer, _ row: UnsafeRawBufferPointer,
        _ isExpectedNew: Bool
    ) throws(StoreError) {
        if table == .meta { return try self.write(table, key, row) }
        let hash = RowHash.of(table, key, row)
        if self.isKeepingBack {
            try self.keepBack(table, key, Bytes(row), hash, isExpectedNew)
        } else {
            if let old = try self.storedHash(table, key) { self.digest.subtract(old) }
            try self.write(table, key, row)
        }
        self.digest.add(hash)
    }

    package func remove(
        _ table: Table, _ key: borrowing RawSpan, holding row: borrowing RawSpan
    ) throws(StoreError) {
        if self.isKeepingBack, table != .meta {
            // What ``keepBack`` finds out by reading otherwise: whether there is a row, and its
            // hash.
            let found = LastRead(key: Bytes(copying: key), row: Bytes(copying: row))
            assert(self.isStored(found, in: table), "a wrong claim goes into the digest")
            self.lastReads[Int(table.rawValue)] = found
        }
        try self.remove(table, key)
    }

    /// Whether SQLite has this row, as far as it can say.
    private func isStored(_ found: LastRead, in table: Table) -> Bool {
        if self.pending[Int(table.rawValue)][found.key] != nil { return true }
        let key = found.key
        do throws(StoreError) {
            return try key.span.bytes.withUnsafeBytes { (key) throws(StoreError) in
                try self.withRow(table, key) { $0.map { Bytes($0) } == found.row }
            }
        } catch { return true }
    }

    package func remove(_ table: Table, _ key: borrowing RawSpan) throws(StoreError) {
        try key.withUnsafeBytes { (key) throws(StoreError) in
            if self.isKeepingBack, table != .meta {
                guard try self.keepBack(table, key, nil, nil) else { return }
            } else {
                if table != .meta {
                    guard let old = try self.storedHash(table, key) else { return }
                    self.digest.subtract(old)
                }
                try self.erase(table, key)
            }
            self.writeCount += 1
        }
    }

    /// - Returns: whether there was a row.
    @discardableResult
    private func keepBack(
        _ table: Table, _ key: UnsafeRawBufferPointer, _ row: Bytes?, _ hash: StateDigest?,
        _ isExpectedNew: Bool = false
    ) throws(StoreError) -> Bool {
        let place = Int(table.rawValue)
        let old = try self.pending[place].set(
            Bytes(key), to: row, hash: hash, isExpectedNew: isExpectedNew
        ) { () throws(StoreError) in
            if let last = self.lastReads[place], last.key.elementsEqual(key) {
                return last.row?.withUnsafeBytes { RowHash.of(table, key, $0) }
            }
            return try self.storedHash(table, key)
        }
        if let old { self.digest.subtract(old) }
        if self.pending[place].size > Self.pendingSizeMax
            || self.pending[place].count > Self.pendingCountMax
        {
            try self.writePending(table)
        }
        return old != nil
    }

    package func scan(
        _ table: Table, from: borrowing RawSpan, to: borrowing RawSpan, descending: Bool,
        _ body: (_ key: borrowing RawSpan, _ row: borrowing RawSpan) -> ScanStep
    ) throws(StoreError) {
        try self.writePending(table)
        try from.withUnsafeBytes { (from) throws(StoreError) in
            try to.withUnsafeBytes { (to) throws(StoreError) in
                try storing { () throws(SQLiteError) in
                    try self.scan(table, from, to, descending: descending, body)
                }
            }
        }
    }

    private func write(
        _ table: Table, _ key: UnsafeRawBufferPointer, _ row: UnsafeRawBufferPointer,
        _ kind: Kind = .put
    ) throws(StoreError) {
        self.lastReads[Int(table.rawValue)] = nil
        try storing { () throws(SQLiteError) in
            let statement = try self.statement(kind, table)
            try statement.bind(unownedUntilReset: key, at: 1)
            try statement.bind(unownedUntilReset: row, at: 2)
            try statement.run()
        }
    }

    private func erase(_ table: Table, _ key: UnsafeRawBufferPointer) throws(StoreError) {
        self.lastReads[Int(table.rawValue)] = nil
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
        try self.withRow(table, key) { row in row.map { RowHash.of(table, key, $0) } }
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
