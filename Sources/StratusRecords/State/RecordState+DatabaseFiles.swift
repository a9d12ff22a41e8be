import StratusCoding
import StratusModel
import StratusRows

// The bodies of one database's files.
extension RecordState {
    /// Assets that one question looks at, and bytes of their bodies' rows after which it ends.
    static let databaseFileRowCountMax = 500
    private static let databaseFileSizeMax = 1 << 20
    /// About what a chunk takes in the row of a body.
    private static let bodyChunkSize = 8

    mutating func databaseFiles(
        _ ask: DatabaseFilesAsk, _ principal: Principal, over rows: RowView
    ) throws(StoreError) -> RecordAnswer {
        guard principal.isStratus else { return .refused(RequestRefusal(.accessDenied)) }
        guard let database = try self.cache.database(ask.database, over: rows) else {
            return .databaseFiles(DatabaseFiles())
        }
        let found = try AssetRows.page(
            after: ask.after, limit: Self.databaseFileRowCountMax, over: rows)
        var files = DatabaseFiles()
        var (size, lookedAtCount) = (0, 0)
        for (asset, row) in found {
            files.next = asset
            lookedAtCount += 1
            guard row.database == database.number,
                let body = try AssetRows.body(row.body, over: rows), !body.isLost
            else { continue }
            files.bodies.append(
                BodyExtent(body.body, chunkCount: UInt32(clamping: body.chunks.count)))
            size += body.chunks.count * Self.bodyChunkSize
            if size >= Self.databaseFileSizeMax { break }
        }
        if lookedAtCount == found.count, found.count < Self.databaseFileRowCountMax {
            files.next = nil
        }
        return .databaseFiles(files)
    }
}
