package import StratusCoding
package import StratusModel
package import StratusRows

/// Asks for an asset of a database, with its body's manifest and key. For Stratus itself.
package struct AssetAsk: SingleQuestion, DatabaseQuestion, Equatable {
    package static let number: UInt8 = 20
    /// Most of it is the row of a body of 64 GiB.
    package static let bound = WorkBound.single(1_000)
    /// Zones with holders that are looked at to find one that is not being purged.
    static let zoneCountMax = 16

    package var database = DatabaseID()
    package var asset = AssetID()

    package init() {}

    package var payer: Payer { .owner(of: self.database) }
    package var need: AccessNeed { .system }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.database)
        try form.lay(&self.asset)
    }

    /// - Returns: nil where the database has no such asset, or only records that are being purged
    ///   hold it.
    package func answer(
        in state: inout RecordState, to asker: Principal, _ cost: ReadCost, over view: RowView
    )
        throws(StoreError) -> Result<StoredAsset?, RequestRefusal>
    {
        guard let row = try AssetRows.asset(self.asset, over: view),
            let key = try AssetRows.key(row.keyVersion, of: row.database, over: view),
            let wrapped = key.key, key.database == self.database,
            try self.isReadable(row, over: view),
            let body = try AssetRows.body(row.body, over: view)
        else { return .success(nil) }
        return .success(
            StoredAsset {
                $0.asset = self.asset
                $0.database = key.database
                $0.fileChecksum = row.fileChecksum
                $0.body = body
                $0.key = wrapped
            })
    }

    /// Whether somebody else holds it than records of zones that are being purged: their links are
    /// dead at once.
    private func isReadable(_ row: AssetRow, over view: RowView) throws(StoreError) -> Bool {
        if row.end != nil || !row.isHeld { return true }
        let prefix = AssetKeys.holders(of: self.asset)
        let end = Keys.end(of: prefix)
        var start = prefix
        for _ in 0..<Self.zoneCountMax {
            guard let key = try view.keys(.asset, from: start, to: end, limit: 1).first else {
                return false
            }
            let zone = try AssetKeys.zone(ofHolder: key)
            if try view.row(.job, Job.purge(zone, hasAssets: true).key) == nil { return true }
            // On to the next zone.
            start = Keys.end(of: prefix + Keys.zoneStart(zone))
        }
        return false
    }
}

/// An asset with everything that is needed to read it.
package struct StoredAsset: FormValue, Sendable, Equatable {
    package var asset = AssetID()
    package var database = DatabaseID()
    package var fileChecksum = ""
    package var body = BodyManifest()
    /// The key that the body is sealed under.
    package var key = WrappedKey()

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.asset)
        try form.lay(&self.database)
        try form.lay(&self.fileChecksum)
        try form.lay(&self.body)
        try form.lay(&self.key)
    }
}
