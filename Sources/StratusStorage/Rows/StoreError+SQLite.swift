package import StratusModel
import StratusSQLite

extension StoreError {
    init(_ error: SQLiteError) {
        let kind: Kind =
            switch error.kind {
            case .busy: .busy
            case .corrupt, .constraintViolated: .corrupt
            case .diskFull: .full
            case .io, .memory, .other: .io
            }
        self.init(kind, error.description)
    }

    package init(_ error: DiskError) {
        let kind: Kind =
            switch error.kind {
            case .full: .full
            case .damaged: .corrupt
            default: .io
            }
        self.init(kind, error.description)
    }
}

/// Runs `body`, turning what SQLite reports into what the owner of rows acts on.
func storing<Result: ~Copyable>(_ body: () throws(SQLiteError) -> Result) throws(StoreError)
    -> Result
{
    do throws(SQLiteError) { return try body() } catch { throw StoreError(error) }
}

/// The same for what the disk reports.
func onDisk<Result: ~Copyable>(_ body: () throws(DiskError) -> Result) throws(StoreError) -> Result
{
    do throws(DiskError) { return try body() } catch { throw StoreError(error) }
}
