import StratusModel
import StratusRows

/// The rows of one file: the batch in memory, and what SQLite has beneath it.
struct PartitionRows {
    let file: RowDatabase
    let rows: Rows

    /// - Parameter digest: of the rows in the file.
    init(_ file: RowDatabase, digest: StateDigest) {
        self.file = file
        self.rows = Rows(over: file, digest: digest)
    }
}
