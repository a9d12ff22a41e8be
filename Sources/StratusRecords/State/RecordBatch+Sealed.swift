import StratusCoding
import StratusModel

extension RecordBatch {
    /// Looks for the keys that the operation's encrypted fields are sealed under. An erasure may
    /// have destroyed one while the save was under way, and nobody could ever open the value then.
    mutating func checkFieldKeys(of operation: RecordOperation, over rows: borrowing some RowReader)
        throws(StoreError) -> RecordRefusal?
    {
        for field in operation.fields {
            guard case .sealed(_, let sealed) = field.value else { continue }
            guard let version = try? SealedFieldCoding.keyVersion(of: sealed) else {
                return RecordRefusal(.fieldKeyMissing, field.name)
            }
            if version == self.openingVersion { continue }
            guard try AssetRows.opens(version, of: self.edit.database.number, over: rows) else {
                return RecordRefusal(.fieldKeyMissing, field.name)
            }
            self.openingVersion = version
        }
        return nil
    }
}
