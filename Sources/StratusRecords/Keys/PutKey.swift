package import StratusCoding
package import StratusModel
package import StratusRows

/// Stratus' own: gives a database a key, unless it has one of that version.
///
/// Version 0 is the secret that digests of equal files are made with; bodies are sealed under the
/// others. A version that an erasure has destroyed never comes back: the next key has a higher one.
package struct PutKey: DatabaseOperation, Equatable {
    package static let number: UInt8 = 20
    package static let bound = WorkBound.entry(30)

    package var database = DatabaseID()
    package var version: UInt32 = 0
    package var key = WrappedKey()

    package init() {}

    package var payer: Payer { .owner(of: self.database) }
    package var need: AccessNeed { .system }
    /// Without its key nothing could be read that a database holds already.
    package var adds: Bool { false }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.version)
        try form.lay(&self.key)
    }

    /// - Returns: the key that stands afterwards.
    package func apply(
        in state: inout RecordState, at entry: borrowing EntryContext, over rows: Rows
    ) throws(StoreError) -> Result<DatabaseKey, RequestRefusal> {
        var numbers = NumberDraw()
        let database: DatabaseRow
        if let known = try state.cache.database(self.database, over: rows.view) {
            database = known
        } else {
            database = try numbers.database(over: rows.view)
        }
        let number = database.number
        if let known = try AssetRows.key(self.version, of: number, over: rows.view) {
            return .success(self.standing(known.key))
        }
        let newest = try AssetRows.newestKey(of: number, over: rows.view)?.version ?? 0
        // A version that was destroyed, or one that leaves a gap.
        guard self.version == 0 || newest < .max && self.version == newest + 1 else {
            return .failure(RequestRefusal(.keyMissing))
        }
        if numbers.isDrawn {
            try numbers.write(into: rows)
            try rows.put(.database, Keys.database(self.database), database.encoded())
            state.cache.remember(database, of: self.database)
        }
        try rows.put(
            .key, AssetKeys.databaseKey(number, self.version),
            KeyRow(database: self.database, key: self.key).encoded())
        return .success(self.standing(self.key))
    }

    private func standing(_ key: WrappedKey?) -> DatabaseKey {
        DatabaseKey {
            $0.version = self.version
            $0.key = key
        }
    }
}
