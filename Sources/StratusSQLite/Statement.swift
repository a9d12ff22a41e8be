import CSQLite
package import StratusModel

/// One prepared statement, kept for as long as its owner wants to run it again.
///
/// A class because the connection's cache and the caller both hold it. Not `Sendable`: it belongs
/// to the thread that uses its connection.
package final class Statement {
    let handle: OpaquePointer
    private let sql: String
    /// The connection outlives its statements.
    private let connection: Connection

    init(_ sql: String, on connection: Connection) throws(SQLiteError) {
        var handle: OpaquePointer?
        let code = sqlite3_prepare_v3(
            connection.handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &handle, nil)
        guard code == SQLITE_OK, let handle else {
            throw SQLiteError(code: code, reportedBy: connection.handle, during: sql)
        }
        self.handle = handle
        self.sql = sql
        self.connection = connection
    }

    deinit {
        // Repeats the error `step` already threw, so there is nothing new to report here.
        sqlite3_finalize(self.handle)
    }

    /// Binds a copy of `bytes` to the parameter at `position`, counting from 1 as SQLite does.
    package func bind(_ bytes: borrowing RawSpan, at position: Int32) throws(SQLiteError) {
        let code = bytes.withUnsafeBytes { buffer in
            // An empty span may have no base address, and SQLite reads a null pointer as NULL.
            buffer.isEmpty
                ? sqlite3_bind_zeroblob(self.handle, position, 0)
                : sqlite3_bind_blob64(
                    self.handle, position, buffer.baseAddress, UInt64(buffer.count),
                    stratus_sqlite_transient())
        }
        try self.check(code)
    }

    /// Binds `bytes` without copying: they must stay where they are until ``reset()``.
    package func bind(unownedUntilReset bytes: UnsafeRawBufferPointer, at position: Int32)
        throws(SQLiteError)
    {
        try self.check(
            bytes.isEmpty
                ? sqlite3_bind_zeroblob(self.handle, position, 0)
                : sqlite3_bind_blob64(
                    self.handle, position, bytes.baseAddress, UInt64(bytes.count),
                    stratus_sqlite_static()))
    }

    package func bind(_ value: Int64, at position: Int32) throws(SQLiteError) {
        try self.check(sqlite3_bind_int64(self.handle, position, value))
    }

    /// Advances to the next row. Returns `false` once there are no more.
    package func step() throws(SQLiteError) -> Bool {
        switch sqlite3_step(self.handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let code:
            throw SQLiteError(
                code: code, reportedBy: self.connection.handle, during: self.sql)
        }
    }

    /// Runs a statement that returns no rows, and makes it ready to run again.
    package func run() throws(SQLiteError) {
        defer { self.reset() }
        while try self.step() {}
    }

    /// Ends the statement, releasing its read on the database and the bytes it was lent.
    package func reset() {
        // Both repeat the error `step` already threw.
        sqlite3_reset(self.handle)
        sqlite3_clear_bindings(self.handle)
    }

    /// The blob in `column` of the current row, valid until the next step. NULL reads as empty.
    package func unownedBlob(in column: Int32) -> UnsafeRawBufferPointer {
        // Ask for the pointer before the length: the call may convert the value in place.
        let start = sqlite3_column_blob(self.handle, column)
        let count = Int(sqlite3_column_bytes(self.handle, column))
        return UnsafeRawBufferPointer(start: start, count: count)
    }

    /// A copy of the blob in `column` of the current row.
    package func blob(in column: Int32) -> Bytes { Bytes(self.unownedBlob(in: column)) }

    package func integer(in column: Int32) -> Int64 { sqlite3_column_int64(self.handle, column) }

    package func text(in column: Int32) -> String {
        sqlite3_column_text(self.handle, column).map { String(cString: $0) } ?? ""
    }

    private func check(_ code: Int32) throws(SQLiteError) {
        guard code == SQLITE_OK else {
            throw SQLiteError(code: code, reportedBy: self.connection.handle, during: self.sql)
        }
    }
}
