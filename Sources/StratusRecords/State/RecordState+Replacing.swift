import StratusCoding
import StratusModel
import StratusRows

// Files that are sealed anew.
extension RecordState {
    mutating func apply(
        _ replace: ReplaceBody, of command: Command, at position: EntryPosition,
        over rows: Rows
    ) throws(StoreError) -> RecordOutcome {
        guard command.principal.isStratus else { return .refused(RequestRefusal(.accessDenied)) }
        if position.time.milliseconds > replace.orphanAfterMilliseconds {
            return .bodyReplaced(.late)
        }
        guard let database = try self.cache.database(replace.database, over: rows.view),
            let asset = try AssetRows.asset(replace.asset, over: rows.view),
            asset.database == database.number
        else { return .bodyReplaced(.gone) }
        // The same command under another identity.
        if asset.body == replace.body { return .bodyReplaced(.replaced) }
        guard let newest = try AssetRows.newestKey(of: database.number, over: rows.view),
            newest.version == replace.keyVersion, newest.key != nil
        else { return .bodyReplaced(.keyMissing) }
        guard asset.body == replace.old, asset.keyVersion < replace.keyVersion,
            let old = try AssetRows.body(asset.body, over: rows.view)
        else { return .bodyReplaced(.changed) }
        guard try rows.row(.body, BodyCoding.key(of: replace.body)) == nil else {
            return .bodyReplaced(.taken)
        }
        // A reader of the old body goes on with the new one in the middle.
        guard old.size == replace.size, old.chunkSize == replace.chunkSize else {
            return .bodyReplaced(.differs)
        }
        let new = replace.manifest(of: database.number.raw, namedAt: position.index)
        try AssetRows.write(new, into: rows)
        self.bodyChanges.append(.named(new))
        if !self.bugs.contains(.replacedBodyKept) {
            _ = try AssetRows.drop(
                asset.body, at: position.index, changes: &self.bodyChanges, in: rows)
        }
        var changed = asset
        changed.body = replace.body
        if !self.bugs.contains(.replacedKeyKept) { changed.keyVersion = replace.keyVersion }
        try AssetRows.change(replace.asset, from: asset, to: changed, in: rows)
        return .bodyReplaced(.replaced)
    }
}
