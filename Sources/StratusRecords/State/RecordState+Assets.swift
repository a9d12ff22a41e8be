import StratusCoding
import StratusModel
import StratusRows

extension RecordState {
    /// Destroys the keys of a database that is being erased: what was sealed under them cannot be
    /// opened any more. The newest leaves its number, so that no later key has it.
    func destroyKeys(
        of database: DatabaseNumber, _ id: DatabaseID, over rows: Rows
    ) throws(StoreError) {
        let newest = try AssetRows.newestKey(of: database, over: rows.view)
        let start = AssetKeys.databaseKeys(database)
        for key in try rows.view.keys(.key, from: start, to: Keys.end(of: start), limit: .max) {
            try rows.remove(.key, key)
        }
        guard let newest else { return }
        try rows.put(
            .key, AssetKeys.databaseKey(database, newest.version),
            KeyRow(database: id, key: nil).encoded())
    }
}

extension Principal {
    /// Stratus itself, or an administrator of the cluster.
    var isStratus: Bool { self.kind == .system || self.kind == .administrator }
}
