package import StratusCoding
package import StratusModel
package import StratusRows

/// Stratus' own: puts a key of a database that is wrapped under a newer key of its container in the
/// place of the same key, wrapped under the older one. The key itself stays.
package struct RewrapKey: DatabaseOperation, Equatable {
    package static let number: UInt8 = 21
    package static let bound = WorkBound.entry(20)

    package var database = DatabaseID()
    package var version: UInt32 = 0
    /// The wrapped key as the row had it. A row that has changed since is left as it is.
    package var old = WrappedKey()
    package var new = WrappedKey()

    package init() {}

    package var payer: Payer { .jobs(self.database.container) }
    package var need: AccessNeed { .system }
    package var adds: Bool { false }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.version)
        try form.lay(&self.old)
        try form.lay(&self.new)
    }

    /// - Returns: the key that stands afterwards, or none.
    package func apply(
        in state: inout RecordState, at entry: borrowing EntryContext, over rows: Rows
    ) throws(StoreError) -> Result<DatabaseKey, RequestRefusal> {
        var standing = DatabaseKey { $0.version = self.version }
        guard let database = try state.cache.database(self.database, over: rows.view),
            var row = try AssetRows.key(self.version, of: database.number, over: rows.view)
        else { return .success(standing) }
        // An erasure may have destroyed it, or another run was faster.
        if row.key == self.old {
            row.key = self.new
            try rows.put(
                .key, AssetKeys.databaseKey(database.number, self.version), row.encoded())
        }
        standing.key = row.key
        return .success(standing)
    }
}
