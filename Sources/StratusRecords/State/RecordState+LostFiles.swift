import StratusCoding
import StratusModel
import StratusRows

// Files of which no node has a sound copy.
extension RecordState {
    /// Assets that one question looks at, and zones that it looks through for the name of one.
    static let lostFileRowCountMax = 500
    private static let lostZoneCountMax = 10_000

    func lostFiles(
        _ ask: LostFilesAsk, _ principal: Principal, over rows: RowView
    ) throws(StoreError) -> RecordAnswer {
        guard principal.isStratus else { return .refused(RequestRefusal(.accessDenied)) }
        let found = try AssetRows.page(
            after: ask.after, limit: Self.lostFileRowCountMax, over: rows)
        var lost = LostFiles(files: [], next: nil)
        for (asset, decoded) in found {
            lost.next = asset
            guard let page = try rows.row(.body, BodyCoding.key(of: decoded.body)) else { continue }
            let isLost = try decodingRow("body") { () throws(DecodingError) in
                try BodyCoding.isLost(firstPage: page)
            }
            guard isLost,
                let key = try AssetRows.key(decoded.keyVersion, of: decoded.database, over: rows)
            else { continue }
            lost.files.append(
                LostFile(
                    asset: asset, database: key.database, fileChecksum: decoded.fileChecksum,
                    size: decoded.size,
                    holder: try Self.holder(of: asset, in: decoded.database, over: rows)))
        }
        if found.count < Self.lostFileRowCountMax { lost.next = nil }
        return .lostFiles(lost)
    }

    private static func holder(
        of asset: AssetID, in database: DatabaseNumber, over rows: RowView
    ) throws(StoreError) -> LostFile.Holder? {
        let start = AssetKeys.holders(of: asset)
        guard
            let key = try rows.keys(.asset, from: start, to: Keys.end(of: start), limit: 1).first
        else { return nil }
        let number = try AssetKeys.zone(ofHolder: key)
        let prefix = Keys.zonePrefix(database)
        let zones = try rows.rows(
            .zone, from: prefix, to: Keys.end(of: prefix), limit: Self.lostZoneCountMax)
        for (name, row) in zones {
            let zone = try StoredRows.zone(decoding: row)
            guard zone.number == number, !zone.isDeleted else { continue }
            return LostFile.Holder(
                zone: String(decoding: name.dropFirst(prefix.count), as: UTF8.self),
                record: String(decoding: key.dropFirst(21), as: UTF8.self))
        }
        return nil
    }
}
