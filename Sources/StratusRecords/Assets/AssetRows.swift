import StratusCoding
import StratusModel
import StratusRows

/// Reads and writes the rows of assets, bodies and keys, so that what depends on each other changes
/// together.
enum AssetRows {
    // MARK: Assets

    static func asset(_ asset: AssetID, over rows: RowView) throws(StoreError)
        -> AssetRow?
    {
        guard let row = try rows.row(.asset, AssetKeys.asset(asset)) else { return nil }
        return try decodingRow("asset") { () throws(DecodingError) in
            try AssetRow(decoding: row)
        }
    }

    /// Assets of all databases of the partition, by their names, behind one of them; nil: from the
    /// first.
    static func page(after last: AssetID?, limit: Int, over rows: RowView)
        throws(StoreError) -> [(asset: AssetID, row: AssetRow)]
    {
        var page: [(asset: AssetID, row: AssetRow)] = []
        for (key, row) in try rows.rows(
            .asset, from: last.map { AssetKeys.asset($0) + [0] } ?? AssetKeys.assets,
            to: Keys.end(of: AssetKeys.assets), limit: limit)
        {
            let decoded = try decodingRow("asset") { () throws(DecodingError) in
                try AssetRow(decoding: row)
            }
            page.append((try AssetKeys.asset(decoding: key), decoded))
        }
        return page
    }

    /// Writes an asset's row, and the row of its end and its database's use where they change.
    static func change(
        _ asset: AssetID, from old: AssetRow?, to new: AssetRow?, in rows: Rows
    ) throws(StoreError) {
        if old == new { return }
        let key = AssetKeys.asset(asset)
        if let new {
            try rows.put(.asset, key, new.encoded())
        } else {
            try rows.remove(.asset, key)
        }
        if old?.end != new?.end {
            if let end = old?.end { try rows.remove(.asset, AssetKeys.end(end, of: asset)) }
            if let end = new?.end {
                try rows.put(.asset, AssetKeys.end(end, of: asset), AssetKeys.mark)
            }
        }
        guard let database = (new ?? old)?.database else { return }
        let before = old?.use ?? .none
        let after = new?.use ?? .none
        if before == after { return }
        let use = try Self.use(of: database, over: rows.view) - before + after
        if use.isEmpty {
            try rows.remove(.asset, AssetKeys.use(database))
        } else {
            try rows.put(.asset, AssetKeys.use(database), use.encoded())
        }
    }

    /// Takes an asset out with its share and its body.
    ///
    /// - Returns: the rows that were removed, about.
    static func end(
        _ asset: AssetID, _ row: AssetRow, at index: LogIndex, changes: inout BodyChanges,
        in rows: Rows
    ) throws(StoreError) -> Int {
        try Self.change(asset, from: row, to: nil, in: rows)
        if let digest = row.digest,
            try Self.shared(by: digest, in: row.database, over: rows.view) == asset
        {
            try rows.remove(.asset, AssetKeys.share(row.database, digest))
        }
        return 4 + (try Self.drop(row.body, at: index, changes: &changes, in: rows))
    }

    /// Takes a body out of the rows.
    ///
    /// - Returns: the rows that were removed.
    static func drop(
        _ name: BodyID, at index: LogIndex, changes: inout BodyChanges,
        in rows: Rows
    ) throws(StoreError) -> Int {
        let start = BodyCoding.key(of: name)
        let pages = try rows.view.keys(.body, from: start, to: Keys.end(of: start), limit: .max)
        guard let body = try Self.bodyHead(name, over: rows.view) else { return 0 }
        for page in pages { try rows.remove(.body, page) }
        changes.append(.dropped(name, chunkCount: UInt32(body.chunkCount), at: index))
        return pages.count
    }

    static func use(of database: DatabaseNumber, over rows: RowView)
        throws(StoreError) -> AssetUse
    {
        guard let row = try rows.row(.asset, AssetKeys.use(database)) else { return .none }
        return try decodingRow("use of assets") { () throws(DecodingError) in
            try AssetUse(decoding: row)
        }
    }

    static func shared(
        by digest: AssetDigest, in database: DatabaseNumber, over rows: RowView
    ) throws(StoreError) -> AssetID? {
        guard let row = try rows.row(.asset, AssetKeys.share(database, digest)) else { return nil }
        return try decodingRow("shared asset") { () throws(DecodingError) in
            var reader = ByteReader(row)
            try reader.format(1)
            let asset = AssetID(try reader.name())
            try reader.finish()
            return asset
        }
    }

    static func share(
        _ asset: AssetID, by digest: AssetDigest, in database: DatabaseNumber,
        into rows: Rows
    ) throws(StoreError) {
        var writer = ByteWriter(reserving: 17)
        writer.write(1 as UInt8)
        writer.write(name: asset.raw)
        try rows.put(.asset, AssetKeys.share(database, digest), writer.bytes)
    }

    // MARK: Uploads

    static func upload(
        _ upload: UploadID, in database: DatabaseNumber, over rows: RowView
    ) throws(StoreError) -> UploadRow? {
        guard let row = try rows.row(.asset, AssetKeys.upload(database, upload)) else { return nil }
        return try decodingRow("upload") { () throws(DecodingError) in
            try UploadRow(decoding: row)
        }
    }

    /// Writes an upload's row, and the row of its end where it changes.
    static func change(
        _ upload: UploadID, in database: DatabaseNumber, from old: UploadRow?, to new: UploadRow?,
        in rows: Rows
    ) throws(StoreError) {
        if old == new { return }
        let key = AssetKeys.upload(database, upload)
        if let new {
            try rows.put(.asset, key, new.encoded())
        } else {
            try rows.remove(.asset, key)
        }
        if old?.end == new?.end { return }
        if let end = old?.end { try rows.remove(.asset, AssetKeys.end(end, of: upload, database)) }
        if let end = new?.end {
            try rows.put(.asset, AssetKeys.end(end, of: upload, database), AssetKeys.mark)
        }
    }

    // MARK: Bodies

    static func body(_ body: BodyID, over rows: RowView) throws(StoreError)
        -> BodyManifest?
    {
        let start = BodyCoding.key(of: body)
        let pages = try rows.rows(.body, from: start, to: Keys.end(of: start), limit: .max)
        if pages.isEmpty { return nil }
        return try decodingRow("body") { () throws(DecodingError) in
            try BodyCoding.manifest(of: body, pages: pages.map(\.row))
        }
    }

    /// What a body's row says beside its chunks.
    static func bodyHead(_ body: BodyID, over rows: RowView) throws(StoreError)
        -> BodyCoding.Head?
    {
        let head = try rows.head(
            .body, BodyCoding.key(of: body), sizeMax: BodyCoding.headSize)
        guard let head else { return nil }
        return try decodingRow("body") { () throws(DecodingError) in
            try BodyCoding.Head(firstPage: head)
        }
    }

    static func write(_ body: BodyManifest, into rows: Rows) throws(StoreError) {
        for (page, row) in BodyCoding.pages(of: body).enumerated() {
            try rows.put(.body, BodyCoding.key(of: body.body, page: UInt32(page)), row)
        }
    }

    // MARK: Keys

    static func key(
        _ version: UInt32, of database: DatabaseNumber, over rows: RowView
    ) throws(StoreError) -> KeyRow? {
        guard let row = try rows.row(.key, AssetKeys.databaseKey(database, version)) else {
            return nil
        }
        return try Self.key(decoding: row)
    }

    static func key(decoding row: Bytes) throws(StoreError) -> KeyRow {
        try decodingRow("key") { () throws(DecodingError) in try KeyRow(decoding: row) }
    }

    /// The name of a database that has files, as the rows of its keys say it.
    static func database(of number: DatabaseNumber, over rows: RowView)
        throws(StoreError) -> DatabaseID?
    {
        let start = AssetKeys.databaseKeys(number)
        let first = try rows.rows(.key, from: start, to: Keys.end(of: start), limit: 1).first
        return try first.map { found throws(StoreError) in
            try Self.key(decoding: found.row).database
        }
    }

    /// The rows' keys of the database's own keys before a version, the oldest first. Version 0 is
    /// the secret of equal files, and no key of a file.
    static func keys(
        before version: UInt32, of database: DatabaseNumber, limit: Int, over rows: RowView
    ) throws(StoreError) -> [Bytes] {
        if version <= 1 { return [] }
        return try rows.keys(
            .key, from: AssetKeys.databaseKey(database, 1),
            to: AssetKeys.databaseKey(database, version), limit: limit)
    }

    /// The newest key that seals, though it may be destroyed. Never version 0.
    static func newestKey(of database: DatabaseNumber, over rows: RowView)
        throws(StoreError) -> DatabaseKey?
    {
        let start = AssetKeys.databaseKeys(database)
        return try Self.newestKey(
            rows.rows(.key, from: start, to: Keys.end(of: start), descending: true, limit: 1).first)
    }

    /// - Parameter last: the last key row of the database.
    static func newestKey(_ last: (key: Bytes, row: Bytes)?) throws(StoreError) -> DatabaseKey? {
        guard let (key, row) = last else { return nil }
        let version = try AssetKeys.version(ofKey: key)
        if version == 0 { return nil }
        let found = try Self.key(decoding: row).key
        return DatabaseKey {
            $0.version = version
            $0.key = found
        }
    }

    /// Whether what is sealed under this key can be opened.
    static func opens(
        _ version: UInt32, of database: DatabaseNumber, over rows: RowView
    ) throws(StoreError) -> Bool {
        try Self.key(version, of: database, over: rows)?.key != nil
    }
}
