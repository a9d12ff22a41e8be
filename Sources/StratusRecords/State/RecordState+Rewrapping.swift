import StratusCoding
import StratusModel
import StratusRows

// Keys of databases that are wrapped anew under a newer key of their container.
extension RecordState {
    /// - Returns: the key that stands afterwards, or none.
    mutating func apply(_ rewrap: RewrapKey, of command: Command, over rows: Rows)
        throws(StoreError) -> RecordOutcome
    {
        guard command.principal.isStratus, rewrap.new.isBounded else {
            return .refused(RequestRefusal(.accessDenied))
        }
        guard let database = try self.cache.database(rewrap.database, over: rows.view),
            var row = try AssetRows.key(rewrap.version, of: database.number, over: rows.view)
        else { return .key(DatabaseKey(version: rewrap.version, key: nil)) }
        // An erasure may have destroyed it, or another run was faster.
        if row.key == rewrap.old {
            row.key = rewrap.new
            try rows.put(
                .key, AssetKeys.databaseKey(database.number, rewrap.version), row.encoded())
        }
        return .key(DatabaseKey(version: rewrap.version, key: row.key))
    }

    /// Rows that one question looks at, and keys that one answer has.
    static let wrappedRowCountMax = 500
    static let wrappedKeyCountMax = 100

    func wrappedKeys(
        _ ask: WrappedKeysAsk, _ principal: Principal, over rows: RowView
    ) throws(StoreError) -> RecordAnswer {
        guard principal.isStratus else { return .refused(RequestRefusal(.accessDenied)) }
        let found = try rows.rows(
            .key, from: ask.after.map { $0 + [0] } ?? [], to: [], limit: Self.wrappedRowCountMax)
        var page = WrappedKeysPage(items: [], next: nil)
        for (key, bytes) in found {
            let row = try decodingRow("key") { () throws(DecodingError) in
                try KeyRow(decoding: bytes)
            }
            page.next = key
            guard row.database.container == ask.container, let wrapped = row.key,
                wrapped.check == ask.check
            else { continue }
            page.items.append(
                WrappedKeysPage.Item(
                    database: row.database, version: try AssetKeys.version(ofKey: key),
                    key: wrapped))
            if page.items.count == Self.wrappedKeyCountMax { return .wrappedKeys(page) }
        }
        if found.count < Self.wrappedRowCountMax { page.next = nil }
        return .wrappedKeys(page)
    }
}
