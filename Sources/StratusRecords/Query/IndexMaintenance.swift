package import StratusModel

/// Keeps the index rows of one record in step with the record, in the same commit.
package enum IndexMaintenance {
    /// Called once for every record that a command changed, with what it was and what it is: nil for
    /// a record that did not exist before, or does not exist any more.
    ///
    /// Every key written in ``Table/index`` starts with the zone's number (four bytes, big-endian):
    /// that is how a deleted zone's index rows are purged.
    package static func update(
        _ zone: ZoneNumber, name: String, old: Record?, new: Record?, schema: Schema?,
        in rows: inout some RowStore
    ) throws(StoreError) {}
}
