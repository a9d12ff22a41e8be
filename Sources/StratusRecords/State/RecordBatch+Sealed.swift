import StratusCoding
import StratusModel
import StratusRows

extension RecordBatch {
    /// Looks whether the operation's encrypted fields are sealed under the newest key of the
    /// database. An erasure may have destroyed that key while the save was under way, and nobody
    /// could ever open the value then. Or a rotation has made a newer one: what is saved under an
    /// old one after that would keep it alive.
    mutating func checkFieldKeys(of operation: RecordOperation, over rows: RowView)
        throws(StoreError) -> RecordRefusal?
    {
        for field in operation.fields {
            guard case .sealed(_, let sealed) = field.value else { continue }
            guard let version = try? SealedFieldCoding.keyVersion(of: sealed) else {
                return RecordRefusal(.fieldKeyMissing, field.name)
            }
            if version == self.openingVersion { continue }
            let newest = try AssetRows.newestKey(of: self.edit.database.number, over: rows)
            guard newest?.version == version, newest?.key != nil else {
                return RecordRefusal(.fieldKeyMissing, field.name)
            }
            self.openingVersion = version
        }
        return nil
    }
}
