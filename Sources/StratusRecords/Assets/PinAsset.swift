package import StratusCoding
package import StratusModel
package import StratusRows

/// Names a body that nodes have stored, as an asset, and holds it for some time so that a record
/// can be saved with it.
///
/// Nothing is done by an entry that is later than the body's end: by then nodes may have removed
/// the copies. Where an equal file is known, its asset is answered and the body is not named.
package struct PinAsset: DatabaseOperation, Equatable {
    package static let number: UInt8 = 15
    /// Most of it is the row of a body of 64 GiB.
    package static let bound = WorkBound.entry(6_000)
    /// Bytes of a checksum's text.
    package static let checksumLengthMax = 64

    package var database = DatabaseID()
    /// The ticket that the file was uploaded with.
    package var upload = UploadID()
    /// Drawn by the gateway: the asset's name if it is a new one.
    package var asset = AssetID()
    package var stored = StoredBody()
    /// What the client knows the file by: 1…64 bytes of text. The state only compares it.
    package var fileChecksum = ""
    /// Equal for equal files of one database. Nil: not shared with others.
    package var digest: AssetDigest?
    package var rules = AssetRules.standard

    package init() {}

    package var payer: Payer { .owner(of: self.database) }
    package var need: AccessNeed { .owner }
    package var adds: Bool { true }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.upload)
        try form.lay(&self.asset)
        try form.lay(&self.stored.body)
        try form.lay(&self.fileChecksum)
        try form.require((1...Self.checksumLengthMax).contains(self.fileChecksum.utf8.count))
        try self.stored.layNumbers(in: &form)
        try form.lay(&self.digest)
        try self.stored.layStorers(in: &form)
        try form.lay(&self.rules)
        try self.stored.layChunks(in: &form)
    }

    package func apply(
        in state: inout RecordState, at entry: borrowing EntryContext, over rows: Rows
    ) throws(StoreError) -> Result<PinnedAsset, RequestRefusal> {
        let now = entry.time.milliseconds
        if now > self.stored.orphanAfterMilliseconds, !state.bugs.contains(.latePinTaken) {
            return .failure(RequestRefusal(.pinTooLate))
        }
        // What a rotation has passed stays sealed under the newest key.
        guard let database = try state.cache.database(self.database, over: rows.view),
            let newest = try AssetRows.newestKey(of: database.number, over: rows.view),
            newest.version == self.stored.keyVersion, newest.key != nil
        else { return .failure(RequestRefusal(.keyMissing)) }
        let namesake = try AssetRows.asset(self.asset, over: rows.view)
        let body = try AssetRows.bodyHead(self.stored.body, over: rows.view)
        guard namesake == nil, body == nil else {
            return .failure(RequestRefusal(.assetTaken))
        }
        let known = try AssetRows.upload(self.upload, in: database.number, over: rows.view)
        if known?.isAttached == true { return .failure(RequestRefusal(.uploadAttached)) }
        let until = now + self.rules.pinMilliseconds
        let end = max(until, self.stored.orphanAfterMilliseconds)

        let equal = try self.equalAsset(in: database.number, over: rows.view)
        // A second file under one ticket takes the first one's place, if nobody else has it.
        var replaced: (asset: AssetID, row: AssetRow)?
        if let first = known?.asset, first != equal?.asset,
            let row = try AssetRows.asset(first, over: rows.view),
            row.isKept(onlyBy: self.upload, at: now)
        {
            replaced = (first, row)
        }
        if equal == nil,
            let refusal = try self.checkRoom(
                in: database, without: replaced?.row, of: &state, over: rows.view)
        {
            return .failure(refusal)
        }
        if let replaced {
            _ = try AssetRows.end(
                replaced.asset, replaced.row, at: entry.index, changes: &state.bodyChanges,
                in: rows)
        }
        let asset = equal?.asset ?? self.asset
        try AssetRows.change(
            self.upload, in: database.number, from: known, to: UploadRow(asset: asset, end: end),
            in: rows)
        if let equal {
            var row = equal.row
            if !state.bugs.contains(.shareNotTakenBack) {
                row.pin(self.upload, until: until, at: now)
            }
            try AssetRows.change(asset, from: equal.row, to: row, in: rows)
            return .success(self.pinned(asset, row.fileChecksum, isShared: true))
        }
        let row = AssetRow(self, in: database.number, until: until)
        let named = self.stored.manifest(of: database.number.raw, namedAt: entry.index)
        try AssetRows.change(asset, from: nil, to: row, in: rows)
        try AssetRows.write(named, into: rows)
        if let digest = self.digest {
            try AssetRows.share(asset, by: digest, in: database.number, into: rows)
        }
        state.bodyChanges.append(.named(named))
        return .success(self.pinned(asset, self.fileChecksum, isShared: false))
    }

    private func pinned(_ asset: AssetID, _ checksum: String, isShared: Bool) -> PinnedAsset {
        PinnedAsset {
            $0.asset = asset
            $0.fileChecksum = checksum
            $0.isShared = isShared
        }
    }

    /// An asset of the same database with the same content, that can be read.
    private func equalAsset(
        in database: DatabaseNumber, over rows: RowView
    ) throws(StoreError) -> (asset: AssetID, row: AssetRow)? {
        guard let digest = self.digest,
            let asset = try AssetRows.shared(by: digest, in: database, over: rows),
            let row = try AssetRows.asset(asset, over: rows), row.size == self.stored.size,
            try AssetRows.opens(row.keyVersion, of: database, over: rows),
            let body = try AssetRows.bodyHead(row.body, over: rows), !body.isLost
        else { return nil }
        return (asset, row)
    }

    private func checkRoom(
        in database: DatabaseRow, without replaced: AssetRow?, of state: inout RecordState,
        over rows: RowView
    ) throws(StoreError) -> RequestRefusal? {
        let use = try AssetRows.use(of: database.number, over: rows) - (replaced?.use ?? .none)
        let (rules, size) = (self.rules, self.stored.size)
        if use.unattachedSize + size > rules.unattachedSizeMax
            || use.unattachedCount >= rules.unattachedCountMax
        {
            return RequestRefusal(.tooMuchUnattached, String(rules.unattachedSizeMax))
        }
        if rules.databaseSizeMax == 0 { return nil }
        let held = try state.held(by: database, over: rows)
        return held.size + use.size + size > rules.databaseSizeMax
            ? RequestRefusal(.databaseFull, String(rules.databaseSizeMax)) : nil
    }
}

extension PinAsset: NamesCopies {
    /// An empty file has no copies.
    var holdings: [CopyHolding]? { self.stored.chunks.isEmpty ? nil : self.stored.storers }
}

/// A keyed digest of a whole file, of 128 bits.
package struct AssetDigest: FormValue, Sendable, Hashable {
    package var raw: UInt128

    package init() { self.raw = 0 }
    package init(_ raw: UInt128) { self.raw = raw }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(name: &self.raw)
    }
}

/// The outcome of a ``PinAsset`` that was carried out.
package struct PinnedAsset: FormValue, Sendable, Equatable {
    /// The asset that the receipt names: the drawn one, or that of an equal file.
    package var asset = AssetID()
    /// The checksum that a save with the receipt must state.
    package var fileChecksum = ""
    /// Whether it is that of an equal file: the body was not named, and its copies will go.
    package var isShared = false

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.asset)
        try form.lay(&self.fileChecksum)
        try form.lay(&self.isShared)
    }
}
