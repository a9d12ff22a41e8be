import StratusCoding
import StratusModel
import StratusRows

// Files that are sealed anew, and the keys that nothing needs any more.
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

    mutating func apply(
        _ retire: RetireKeys, of command: Command, over rows: Rows
    ) throws(StoreError) -> RecordOutcome {
        guard command.principal.isStratus else { return .refused(RequestRefusal(.accessDenied)) }
        guard let database = try self.cache.database(retire.database, over: rows.view),
            let newest = try AssetRows.newestKey(of: database.number, over: rows.view)
        else { return .resealed(ResealedFields(count: 0, olderKeyCount: 0)) }
        // Version 0 is the secret of equal files, and no key of a file.
        func older(than version: UInt32) throws(StoreError) -> [Bytes] {
            try rows.view.keys(
                .key, from: AssetKeys.databaseKey(database.number, 1),
                to: AssetKeys.databaseKey(database.number, version), limit: .max)
        }
        if retire.below > 1, retire.below <= newest.version {
            for key in try older(than: retire.below) { try rows.remove(.key, key) }
        }
        let left = newest.version > 1 ? try older(than: newest.version).count : 0
        return .resealed(ResealedFields(count: 0, olderKeyCount: UInt64(left)))
    }

    /// Assets that one question looks at.
    private static let olderFileRowCountMax = 500

    mutating func olderFiles(
        _ ask: OlderFilesAsk, _ principal: Principal, over rows: RowView
    ) throws(StoreError) -> RecordAnswer {
        guard principal.isStratus else { return .refused(RequestRefusal(.accessDenied)) }
        var page = OlderFiles(files: [], next: nil)
        guard let database = try self.cache.database(ask.database, over: rows) else {
            return .olderFiles(page)
        }
        let found = try AssetRows.page(
            after: ask.after, limit: Self.olderFileRowCountMax, over: rows)
        for (asset, known) in found {
            page.next = asset
            guard known.database == database.number, known.keyVersion < ask.below else { continue }
            let first = try rows.row(.body, BodyCoding.key(of: known.body))
            let isLost = try decodingRow("body") { () throws(DecodingError) in
                try first.map { first throws(DecodingError) in
                    try BodyCoding.isLost(firstPage: first)
                } ?? true
            }
            page.files.append(OlderFile(asset: asset, isLost: isLost))
        }
        if found.count < Self.olderFileRowCountMax { page.next = nil }
        return .olderFiles(page)
    }
}
