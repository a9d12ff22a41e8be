import StratusModel
import StratusRows

/// The rows of one file: those in memory, and what SQLite has beneath them.
struct PartitionRows {
    let file: RowDatabase
    let rows: Rows

    /// - Parameter digest: of the rows in the file.
    init(_ file: RowDatabase, digest: StateDigest, bugs: PlantedBugs = PlantedBugs()) {
        self.file = file
        self.rows = Rows(over: file, digest: digest, bugs: bugs)
    }

    /// Writes everything to the file at once, with the position of these rows.
    func commit(at position: inout AppliedPosition) throws(StoreError) {
        try self.rows.publish()
        precondition(!self.rows.isFlushing, "a commit of all within a flush")
        self.rows.freeze()
        _ = try self.rows.writeFrozen()
        position.digest = self.rows.frozenDigest
        try self.rows.endFlush([position.change])
    }
}

extension AppliedPosition {
    var change: RowChange { RowChange(key: Self.key, row: self.encoded()) }
}
