package import StratusModel

/// Tells one bucket to compare what it knows of references between buckets with what their other
/// ends know.
///
/// What it finds is mended by mail: the target's bucket hears of every reference that is held, and
/// drops those that are not. No record is changed by it.
package struct AuditLinks: Sendable, Equatable {
    /// The database, with its bucket.
    package var database: DatabaseID

    package init(database: DatabaseID) { self.database = database }
}
