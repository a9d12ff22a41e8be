package import StratusCoding
package import StratusModel
package import StratusRows

/// Asks a partition for files of which no node has a sound copy, whatever their database. For
/// Stratus itself.
package struct LostFilesAsk: SingleQuestion, Equatable {
    package static let number: UInt8 = 24
    package static let bound = WorkBound.single(1_000)
    /// Assets that one question looks at.
    static let rowCountMax = 100

    /// Where the last answer ended; nil: from the first.
    package var after: LostFilesPlace?

    package init() {}

    package var payer: Payer { .stratus }
    package var need: AccessNeed { .system }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.after)
    }

    package func answer(
        in state: inout RecordState, to asker: Principal, _ cost: ReadCost, over view: RowView
    )
        throws(StoreError) -> Result<LostFiles, RequestRefusal>
    {
        var (place, lost) = (self.after ?? LostFilesPlace(), LostFiles())
        if place.search?.isOver == false {
            try place.search?.step(over: view)
            lost.next = place
            return .success(lost)
        }
        let found = try AssetRows.page(after: place.asset, limit: Self.rowCountMax, over: view)
        for (asset, row) in found {
            if try AssetRows.bodyHead(row.body, over: view)?.isLost == true,
                let database = try AssetRows.database(of: row.database, over: view)
            {
                var file = LostFile()
                file.asset = asset
                file.database = database
                file.fileChecksum = row.fileChecksum
                file.size = row.size
                if let (zone, record) = try Self.holder(of: asset, over: view) {
                    guard let search = place.search, search.number == zone.raw else {
                        // The name of its zone is to be found first.
                        place.search = ZoneSearch(for: zone)
                        lost.next = place
                        return .success(lost)
                    }
                    if let name = search.zone, !search.isDeleted {
                        file.holder = LostFile.Holder {
                            $0.zone = name
                            $0.record = record
                        }
                    }
                }
                lost.files.append(file)
            }
            place.asset = asset
        }
        if found.count == Self.rowCountMax { lost.next = place }
        return .success(lost)
    }

    /// The first record that holds it.
    private static func holder(of asset: AssetID, over view: RowView)
        throws(StoreError) -> (zone: ZoneNumber, record: String)?
    {
        let start = AssetKeys.holders(of: asset)
        guard
            let key = try view.keys(.asset, from: start, to: Keys.end(of: start), limit: 1).first
        else { return nil }
        let record = String(decoding: key.dropFirst(21), as: UTF8.self)
        return (try AssetKeys.zone(ofHolder: key), record)
    }
}

/// How far a look for lost files has come.
package struct LostFilesPlace: FormValue, Sendable, Equatable {
    /// The last asset that was looked at; nil: from the first.
    var asset: AssetID?
    /// The zone of the last lost file.
    var search: ZoneSearch?

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.asset)
        try form.lay(&self.search)
    }
}

/// A file of which no node has a sound copy.
package struct LostFile: FormValue, Sendable, Equatable {
    /// The first record that holds it.
    package struct Holder: FormValue, Sendable, Equatable {
        package var zone = ""
        package var record = ""

        package init() {}

        package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
            try form.lay(&self.zone)
            try form.lay(&self.record)
        }
    }

    package var asset = AssetID()
    package var database = DatabaseID()
    package var fileChecksum = ""
    package var size: UInt64 = 0
    /// Nil: no record holds it any more, or its zone is being purged.
    package var holder: Holder?

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.asset)
        try form.lay(&self.database)
        try form.lay(&self.fileChecksum)
        try form.lay(&self.size)
        try form.lay(&self.holder)
    }
}

/// An answer to a ``LostFilesAsk``.
package struct LostFiles: FormValue, Sendable, Equatable {
    package var files: [LostFile] = []
    /// Where to go on; nil: there are no more.
    package var next: LostFilesPlace?

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.files, atMost: LostFilesAsk.rowCountMax)
        try form.lay(&self.next)
    }
}
