import CSQLite

/// The SQLite that this process is linked with: what it is, and what to know about it.
package enum SQLiteLibrary {
    package static var version: String { String(cString: sqlite3_libversion()) }

    /// Flaws of this version that Stratus works around, one sentence each.
    package static var knownFlaws: [String] {
        // sqlite.org/wal.html#walresetbug: in every version from 3.7.0 on, fixed in 3.51.3.
        guard sqlite3_libversion_number() < 3_051_003 else { return [] }
        return [
            "the WAL-reset race (before 3.51.3): a checkpoint beside a commit can lose committed "
                + "rows; commits and checkpoints of a database never run at the same time here"
        ]
    }

    /// Why this library cannot be used; empty when it can.
    package static var problems: [String] {
        var problems: [String] = []
        if sqlite3_libversion_number() < 3_040_000 {
            problems.append("SQLite \(Self.version) is older than 3.40.0")
        }
        if sqlite3_threadsafe() == 0 {
            problems.append("SQLite was built without thread safety (SQLITE_THREADSAFE=0)")
        }
        if sqlite3_compileoption_used("OMIT_WAL") != 0 {
            problems.append("SQLite was built without its write-ahead log (SQLITE_OMIT_WAL)")
        }
        return problems
    }
}
