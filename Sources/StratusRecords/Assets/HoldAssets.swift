package import StratusCoding
package import StratusModel
package import StratusRows

/// Pins assets that records hold already, so that others can be saved with them (`rereference`).
/// Whoever sends it has checked that the caller may read the records.
package struct HoldAssets: DatabaseOperation, Equatable {
    package static let number: UInt8 = 16
    package static let bound = WorkBound.entry(4_000)
    package static let countMax = RecordState.operationCountMax

    package var database = DatabaseID()
    package var rules = AssetRules.standard
    /// 1…200. One may stand there for several receipts.
    package var assets: [AssetID] = []
    /// The receipt of each, drawn by the gateway. None: no save ends the pins.
    package var pins: [UploadID] = []

    package init() {}

    package var payer: Payer { .owner(of: self.database) }
    package var need: AccessNeed { .owner }
    package var adds: Bool { true }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.rules)
        // One more than it takes is told so.
        try form.lay(&self.assets, atMost: Self.countMax + 1)
        try form.lay(&self.pins, atMost: Self.countMax + 1)
        try form.require(self.pins.isEmpty || self.pins.count == self.assets.count)
    }

    package func apply(
        in state: inout RecordState, at entry: borrowing EntryContext, over rows: Rows
    ) throws(StoreError) -> Result<HeldAssets, RequestRefusal> {
        if self.assets.isEmpty { return .failure(RequestRefusal(.empty)) }
        if self.assets.count > Self.countMax {
            return .failure(RequestRefusal(.tooManyItems, String(Self.countMax)))
        }
        var held = HeldAssets()
        guard let database = try state.cache.database(self.database, over: rows.view) else {
            held.assets = self.assets.map { _ in nil }
            return .success(held)
        }
        let now = entry.time.milliseconds
        let until = now + self.rules.pinMilliseconds
        for (place, asset) in self.assets.enumerated() {
            guard let old = try AssetRows.asset(asset, over: rows.view),
                old.database == database.number,
                try AssetRows.opens(old.keyVersion, of: database.number, over: rows.view)
            else {
                held.assets.append(nil)
                continue
            }
            var new = old
            if !state.bugs.contains(.rereferenceNotPinned) {
                new.pin(self.pins.isEmpty ? nil : self.pins[place], until: until, at: now)
            }
            try AssetRows.change(asset, from: old, to: new, in: rows)
            held.assets.append(
                HeldAsset {
                    $0.fileChecksum = new.fileChecksum
                    $0.size = new.size
                })
        }
        return .success(held)
    }
}

/// An asset that ``HoldAssets`` has pinned.
package struct HeldAsset: FormValue, Sendable, Hashable {
    package var fileChecksum = ""
    package var size: UInt64 = 0

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.fileChecksum)
        try form.lay(&self.size)
    }
}

/// The outcome of a ``HoldAssets``.
package struct HeldAssets: FormValue, Sendable, Equatable {
    /// Each asset in the order asked; nil: it is not there.
    package var assets: [HeldAsset?] = []

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.assets, atMost: HoldAssets.countMax)
    }
}
