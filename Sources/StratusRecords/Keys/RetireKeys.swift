package import StratusCoding
package import StratusModel
package import StratusRows

/// Stratus' own: destroys the keys of a database before a version. Whoever sends it has seen,
/// since there is that version, that no record and no file is sealed under them.
package struct RetireKeys: DatabaseOperation, Equatable {
    package static let number: UInt8 = 22
    package static let bound = WorkBound.entry(3_000)
    /// Keys that one command destroys, the oldest first. A database has one for each rotation.
    static let keyCountMax = 1_000

    package var database = DatabaseID()
    /// The first version that stays. One that is not there yet destroys nothing.
    package var below: UInt32 = 0

    package init() {}

    package var payer: Payer { .jobs(self.database.container) }
    package var need: AccessNeed { .system }
    package var adds: Bool { false }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.below)
    }

    package func apply(
        in state: inout RecordState, at entry: borrowing EntryContext, over rows: Rows
    ) throws(StoreError) -> Result<ResealedFields, RequestRefusal> {
        guard let database = try state.cache.database(self.database, over: rows.view),
            let newest = try AssetRows.newestKey(of: database.number, over: rows.view)
        else { return .success(ResealedFields()) }
        if self.below > 1, self.below <= newest.version {
            let older = try AssetRows.keys(
                before: self.below, of: database.number, limit: Self.keyCountMax, over: rows.view)
            for key in older { try rows.remove(.key, key) }
        }
        let left = try AssetRows.keys(
            before: newest.version, of: database.number, limit: Self.keyCountMax, over: rows.view)
        return .success(ResealedFields { $0.olderKeyCount = UInt64(left.count) })
    }
}
