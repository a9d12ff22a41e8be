import CSQLite

/// A failure reported by SQLite.
package struct SQLiteError: Error, Sendable, CustomStringConvertible {
    /// The kind of an error that the caller can act on. Everything else is for people.
    package enum Kind: Sendable, Equatable {
        case busy, constraintViolated, corrupt, diskFull, io, memory, other
    }

    package let kind: Kind
    /// The extended result code, for logs and for looking up in SQLite's documentation.
    package let extendedCode: Int32
    package let message: String
    package let operation: String

    init(code: Int32, reportedBy connection: OpaquePointer?, during operation: String) {
        self.kind =
            switch code & 0xFF {
            case SQLITE_BUSY, SQLITE_LOCKED: .busy
            case SQLITE_CONSTRAINT: .constraintViolated
            case SQLITE_CORRUPT, SQLITE_NOTADB: .corrupt
            case SQLITE_FULL: .diskFull
            // The checksum our VFS keeps did not match, which is damage, not a failed read.
            case SQLITE_IOERR: code == SQLITE_IOERR_DATA ? .corrupt : .io
            case SQLITE_CANTOPEN: .io
            case SQLITE_NOMEM: .memory
            default: .other
            }
        self.extendedCode = code
        // The message lives in the connection and the next call overwrites it: copy it now.
        let message = connection.map { sqlite3_errmsg($0) } ?? sqlite3_errstr(code)
        self.message = message.map { String(cString: $0) } ?? "no message"
        self.operation = operation
    }

    package var description: String {
        "SQLite \(self.kind) (\(self.extendedCode)) in '\(self.operation)': \(self.message)"
    }
}
