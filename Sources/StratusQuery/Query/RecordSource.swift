package import StratusCoding
package import StratusModel

/// Reads record rows for queries: their format belongs to the records' state.
package protocol RecordSource: Sendable {
    /// Returns the record's type and creator, which decide who may read it, without its fields; nil
    /// for a tombstone. The first ``VisibleRecords/headSizeMax`` bytes of a row are enough.
    func typeAndCreator(of row: Bytes) throws(StoreError) -> (type: String, creator: String)?

    /// The record in a row of ``Table/record``; nil for a tombstone. Of its parts the `wanted`
    /// ones are enough.
    func record(_ row: Bytes, name: String, zone: ZoneID, wanted: WantedParts)
        throws(StoreError) -> Record?
}
