package import StratusCoding
package import StratusModel
package import StratusRows

/// Stratus' own: puts a body that is sealed anew, under the newest key of its database, in the
/// place of an asset's body. The asset stays what it is: its holders, its end, its checksum and
/// what equal files share do not change.
///
/// Nothing is done by an entry that is later than the body's end: by then nodes may have removed
/// the copies.
package struct ReplaceBody: DatabaseOperation, Equatable {
    package static let number: UInt8 = 19
    /// Most of it are the rows of two bodies of 64 GiB.
    package static let bound = WorkBound.entry(6_000)

    package var database = DatabaseID()
    package var asset = AssetID()
    /// The body that was read. An asset that has another one by now is left as it is.
    package var old = BodyID()
    /// Drawn for this operation alone. It has the size of the old one, in chunks of equal size.
    package var new = StoredBody()

    package init() {}

    package var payer: Payer { .jobs(self.database.container) }
    package var need: AccessNeed { .system }
    /// What it names is stored already, and the copies of the older body go.
    package var adds: Bool { false }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.asset)
        try form.lay(&self.old)
        try form.lay(&self.new.body)
        try form.require(self.new.body != self.old)
        try self.new.layNumbers(in: &form)
        try self.new.layStorers(in: &form)
        try self.new.layChunks(in: &form)
    }

    package func apply(
        in state: inout RecordState, at entry: borrowing EntryContext, over rows: Rows
    ) throws(StoreError) -> Result<ReplacedBody, RequestRefusal> {
        if entry.time.milliseconds > self.new.orphanAfterMilliseconds { return .success(.late) }
        guard let database = try state.cache.database(self.database, over: rows.view),
            let asset = try AssetRows.asset(self.asset, over: rows.view),
            asset.database == database.number
        else { return .success(.gone) }
        // The same operation under another identity.
        if asset.body == self.new.body { return .success(.replaced) }
        guard let newest = try AssetRows.newestKey(of: database.number, over: rows.view),
            newest.version == self.new.keyVersion, newest.key != nil
        else { return .success(.keyMissing) }
        guard asset.body == self.old, asset.keyVersion < self.new.keyVersion,
            let old = try AssetRows.bodyHead(asset.body, over: rows.view)
        else { return .success(.changed) }
        guard try AssetRows.bodyHead(self.new.body, over: rows.view) == nil else {
            return .success(.taken)
        }
        // A reader of the old body goes on with the new one in the middle.
        guard old.size == self.new.size, old.chunkSize == self.new.chunkSize else {
            return .success(.differs)
        }
        let named = self.new.manifest(of: database.number.raw, namedAt: entry.index)
        try AssetRows.write(named, into: rows)
        state.bodyChanges.append(.named(named))
        if !state.bugs.contains(.replacedBodyKept) {
            _ = try AssetRows.drop(
                asset.body, at: entry.index, changes: &state.bodyChanges, in: rows)
        }
        var changed = asset
        changed.body = self.new.body
        if !state.bugs.contains(.replacedKeyKept) { changed.keyVersion = self.new.keyVersion }
        try AssetRows.change(self.asset, from: asset, to: changed, in: rows)
        return .success(.replaced)
    }
}

extension ReplaceBody: NamesCopies {
    var holdings: [CopyHolding]? { self.new.chunks.isEmpty ? nil : self.new.storers }
}

/// The outcome of a ``ReplaceBody``. All but the first: nothing was changed.
package enum ReplacedBody: UInt8, FormValue, Sendable, Hashable, CaseIterable {
    /// The asset has the new body.
    case replaced = 1
    /// There is no such asset.
    case gone = 2
    /// The asset has another body than the one that was read, or one that is not older.
    case changed = 3
    /// The key is not the newest of the database, or it was destroyed.
    case keyMissing = 4
    /// The entry is later than the time until which the copies were to be kept.
    case late = 5
    /// There is a body of this name.
    case taken = 6
    /// The new body does not have the size of the old one, or is cut into other chunks.
    case differs = 7

    package init() { self = .replaced }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        var number = self.rawValue
        try form.lay(byte: &number)
        guard let known = Self(rawValue: number) else { return try form.require(false) }
        self = known
    }
}
