package import StratusCoding
package import StratusModel
package import StratusRows

/// Asks for files of a database that are sealed under older keys, in the order of their names. For
/// Stratus itself.
package struct OlderFilesAsk: SingleQuestion, DatabaseQuestion, Equatable {
    package static let number: UInt8 = 27
    package static let bound = WorkBound.single(1_000)
    /// Assets that one question looks at.
    static let rowCountMax = 280

    package var database = DatabaseID()
    /// The last asset that was looked at; nil: from the first.
    package var after: AssetID?
    /// The first version that is not older.
    package var below: UInt32 = 0

    package init() {}

    package var payer: Payer { .jobs(self.database.container) }
    package var need: AccessNeed { .system }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.database)
        try form.lay(&self.after)
        try form.lay(&self.below)
    }

    package func answer(
        in state: inout RecordState, to asker: Principal, _ cost: ReadCost, over view: RowView
    )
        throws(StoreError) -> Result<OlderFiles, RequestRefusal>
    {
        var page = OlderFiles()
        guard let database = try state.cache.database(self.database, over: view) else {
            return .success(page)
        }
        let found = try AssetRows.page(after: self.after, limit: Self.rowCountMax, over: view)
        for (asset, known) in found {
            page.next = asset
            guard known.database == database.number, known.keyVersion < self.below else {
                continue
            }
            var file = OlderFile()
            file.asset = asset
            // The head alone: the row may have thousands of chunks.
            file.isLost = try AssetRows.bodyHead(known.body, over: view)?.isLost ?? true
            page.files.append(file)
        }
        if found.count < Self.rowCountMax { page.next = nil }
        return .success(page)
    }
}

/// A file that is sealed under an older key.
package struct OlderFile: FormValue, Sendable, Hashable {
    package var asset = AssetID()
    /// No node has all of it.
    package var isLost = false

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.asset)
        try form.lay(&self.isLost)
    }
}

/// An answer to an ``OlderFilesAsk``.
package struct OlderFiles: FormValue, Sendable, Equatable {
    package var files: [OlderFile] = []
    /// The last asset that was looked at; nil: the partition has no more.
    package var next: AssetID?

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.files, atMost: OlderFilesAsk.rowCountMax)
        try form.lay(&self.next)
    }
}
