import StratusCoding
import StratusModel
import StratusRows

/// Who holds which assets in one zone, as it will be once a command's changes are written.
///
/// A record's holding follows from its fields alone: what it names afterwards less what it named
/// before. So saves, deletions, cascades, jobs and mail all go through here.
struct AssetEdits {
    /// Assets that one record may hold.
    static let recordCountMax = 2_000
    /// Changes of holders in one entry.
    static let changeCountMax = 5_000
    /// Once so many are done, the next record is left to another entry: it may change twice what a
    /// record may hold.
    static let startCountMax = Self.changeCountMax - 2 * Self.recordCountMax

    let zone: ZoneNumber
    private let bugs: PlantedBugs
    private var known: [AssetID: AssetRow?] = [:]
    /// The records whose holding changes: whether they hold it afterwards.
    private var changes: [AssetID: [String: Bool]] = [:]
    private(set) var changeCount = 0
    /// The receipts that saves have used.
    private var used: [AssetID: Set<UploadID>] = [:]

    init(zone: ZoneNumber, bugs: PlantedBugs) {
        self.zone = zone
        self.bugs = bugs
    }

    var isFull: Bool { self.changeCount >= Self.startCountMax }

    mutating func asset(_ asset: AssetID, over rows: RowView)
        throws(StoreError) -> AssetRow?
    {
        if let known = self.known[asset] { return known }
        let row = try AssetRows.asset(asset, over: rows)
        self.known[asset] = row
        return row
    }

    /// Notes that a record goes over from `before` to `after`; both ascending.
    mutating func change(_ name: String, from before: [AssetID], to after: [AssetID]) {
        if before.isEmpty && after.isEmpty { return }
        let old = Set(before)
        let new = Set(after)
        for asset in after where !old.contains(asset) { self.note(asset, name, isHeld: true) }
        for asset in before where !new.contains(asset) {
            if self.bugs.contains(.holderKeptOnReplace), !after.isEmpty { continue }
            self.note(asset, name, isHeld: false)
        }
    }

    mutating func release(_ asset: AssetID, by name: String) {
        self.note(asset, name, isHeld: false)
    }

    /// Notes that a record was saved with a receipt.
    mutating func use(_ receipt: UploadID, of asset: AssetID) {
        self.used[asset, default: []].insert(receipt)
    }

    private mutating func note(_ asset: AssetID, _ name: String, isHeld: Bool) {
        self.changes[asset, default: [:]][name] = isHeld
        self.changeCount += 1
    }

    /// Writes the holders, and what follows for their assets.
    ///
    /// - Parameter grace: whether an asset that nobody holds any more stays for its grace. If not,
    ///   it ends with the next slice of jobs.
    func flush(
        at milliseconds: Int64, withGrace grace: Bool = true, into rows: Rows
    ) throws(StoreError) {
        for asset in Set(self.changes.keys).union(self.used.keys).sorted() {
            let holders = self.changes[asset] ?? [:]
            var isGained = false
            for name in holders.keys.sorted() {
                let key = AssetKeys.holder(of: asset, self.zone, name)
                if holders[name] == true {
                    isGained = true
                    try rows.put(.asset, key, AssetKeys.mark)
                } else {
                    try rows.remove(.asset, key)
                }
            }
            guard let old = try AssetRows.asset(asset, over: rows.view) else { continue }
            var new = old
            if isGained {
                new.isHeld = true
            } else if old.isHeld {
                let prefix = AssetKeys.holders(of: asset)
                let rest = try rows.view.keys(
                    .asset, from: prefix, to: Keys.end(of: prefix), limit: 1)
                new.isHeld = !rest.isEmpty
            }
            if isGained, !self.bugs.contains(.condemnedNotTakenBack) { new.condemnedUntil = nil }
            try self.endPins(of: &new, named: asset, isGained: isGained, in: rows)
            // A pin that is over and that no slice of jobs has seen to counts no more.
            let isPinned = new.pinnedUntil.map { $0 > milliseconds } ?? false
            // A record that was saved and taken away by one entry has used its receipt.
            if !new.isHeld, !isPinned, old.isHeld || new.end == nil {
                new.pins = []
                new.commonEnd = nil
                let grace = grace && !self.bugs.contains(.graceIgnored) ? new.graceMilliseconds : 0
                new.condemnedUntil = milliseconds + grace
            } else if old.isHeld, !new.isHeld, let end = new.pinnedUntil, grace {
                // A short pin of somebody else takes nothing from the grace.
                let graceEnd = milliseconds + new.graceMilliseconds
                if graceEnd > end { new.pin(nil, until: graceEnd, at: milliseconds) }
            }
            try AssetRows.change(asset, from: old, to: new, in: rows)
        }
    }

    /// Ends the pins whose receipts were used: a record speaks for the file from now on. Where a
    /// record came by the file without a receipt, it ends the only pin there is.
    private func endPins(
        of row: inout AssetRow, named asset: AssetID, isGained: Bool, in rows: Rows
    ) throws(StoreError) {
        var ended = self.used[asset] ?? []
        if ended.isEmpty, isGained, row.pins.count == 1, row.commonEnd == nil {
            ended = [row.pins[0].upload]
        }
        if ended.isEmpty || self.bugs.contains(.usedPinKept) { return }
        row.pins.removeAll { ended.contains($0.upload) }
        for upload in ended.sorted() {
            let old = try AssetRows.upload(upload, in: row.database, over: rows.view)
            guard var new = old, new.asset == asset else { continue }
            new.isAttached = true
            try AssetRows.change(upload, in: row.database, from: old, to: new, in: rows)
        }
    }
}
