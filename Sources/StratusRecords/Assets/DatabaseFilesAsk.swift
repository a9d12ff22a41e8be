package import StratusCoding
package import StratusModel
package import StratusRows

/// Asks for the bodies of one database's files, but for lost ones. For Stratus itself.
package struct DatabaseFilesAsk: SingleQuestion, DatabaseQuestion, Equatable {
    package static let number: UInt8 = 25
    package static let bound = WorkBound.single(1_000)
    /// Assets that one question looks at.
    static let rowCountMax = 280

    package var database = DatabaseID()
    /// The last asset that was looked at; nil: from the first.
    package var after: AssetID?

    package init() {}

    package var payer: Payer { .jobs(self.database.container) }
    package var need: AccessNeed { .system }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.database)
        try form.lay(&self.after)
    }

    package func answer(
        in state: inout RecordState, to asker: Principal, _ cost: ReadCost, over view: RowView
    )
        throws(StoreError) -> Result<DatabaseFiles, RequestRefusal>
    {
        var files = DatabaseFiles()
        guard let database = try state.cache.database(self.database, over: view) else {
            return .success(files)
        }
        let found = try AssetRows.page(after: self.after, limit: Self.rowCountMax, over: view)
        for (asset, row) in found {
            files.next = asset
            guard row.database == database.number,
                let body = try AssetRows.bodyHead(row.body, over: view), !body.isLost
            else { continue }
            files.bodies.append(
                BodyExtent(row.body, chunkCount: UInt32(clamping: body.chunkCount)))
        }
        if found.count < Self.rowCountMax { files.next = nil }
        return .success(files)
    }
}

/// An answer to a ``DatabaseFilesAsk``.
package struct DatabaseFiles: FormValue, Sendable, Equatable {
    package var bodies: [BodyExtent] = []
    /// Where to go on; nil: everything has been looked at.
    package var next: AssetID?

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.bodies, atMost: DatabaseFilesAsk.rowCountMax)
        try form.lay(&self.next)
    }
}
