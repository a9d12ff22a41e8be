import StratusCoding
import StratusModel
import StratusRows

/// Contents: what may be stored, and their records.
extension DocumentEdit {
    /// What a row has beside its content, about.
    static let rowSize = 512

    /// Refuses content that is too large, that the quota has no room for, or that is not there.
    ///
    /// - Parameter freed: bytes in rows that go with it.
    mutating func check(
        _ content: DocumentContent, over freed: Int = 0, _ rows: RowView
    ) throws(Stop) {
        let size = content.inlineSize
        switch content {
        case .inline:
            guard size <= self.rules.contentSizeMax else {
                throw .refused(.contentTooLarge, String(self.rules.contentSizeMax))
            }
        case .file(let file): try self.check(file, rows)
        // Its list was measured when it was brought into order.
        case .package(let package):
            for file in package.files { try self.check(file, rows) }
        }
        // A file was counted when it was uploaded.
        let growth = Int64(size) + Int64(Self.rowSize) - Int64(freed)
        if let room, growth > 0, self.zone.grownSize + growth > room {
            throw .refused(.databaseFull, String(self.rules.databaseSizeMax))
        }
    }

    /// Refuses a file that its receipt was not for, and one whose time is over.
    private mutating func check(
        _ file: DocumentFile, _ rows: RowView
    ) throws(Stop) {
        let number = self.zone.database.number
        var isThere = false
        do throws(StoreError) {
            if let row = try self.zone.assets.asset(file.asset, over: rows) {
                // An erasure may have destroyed the key while a receipt was under way.
                let opens = try AssetRows.opens(row.keyVersion, of: number, over: rows)
                isThere =
                    opens && row.database == number && row.fileChecksum == file.checksum
                    && row.size == file.size
            }
        } catch {
            throw .store(error)
        }
        guard isThere else { throw .refused(.assetMissing, "") }
    }

    /// The current content of an item; nil: it has none yet.
    mutating func content(
        of item: DocumentItem, _ rows: RowView
    ) throws(Stop) -> DocumentContent? {
        try self.content(item.contentTag, of: item.id, rows)
    }

    mutating func content(
        _ tag: UInt64, of id: String, _ rows: RowView
    ) throws(Stop) -> DocumentContent? {
        guard tag != 0, let record = try self.record(DocumentVersion.recordName(id, tag), rows)
        else { return nil }
        do throws(StoreError) { return try DocumentVersion.read(record).1 } catch {
            throw .store(error)
        }
    }

    mutating func write(
        _ version: DocumentVersion, _ content: DocumentContent, of item: String,
        _ rows: RowView
    ) throws(Stop) {
        let name = DocumentVersion.recordName(item, version.contentTag)
        // A record is read before it is changed.
        let known = try self.record(name, rows)
        try self.write(
            name, DocumentItem.contentType,
            version.fields(of: item, content, in: self.zone.id), over: known, rows)
    }

    mutating func drop(
        _ contentTag: UInt64, of item: String, _ rows: RowView
    ) throws(Stop) {
        guard contentTag != 0,
            let record = try self.record(DocumentVersion.recordName(item, contentTag), rows)
        else { return }
        do throws(StoreError) { try self.zone.delete(record, over: rows) } catch {
            throw .store(error)
        }
    }

    mutating func version(
        _ tag: UInt64, of item: String, _ rows: RowView
    ) throws(Stop) -> DocumentVersion? {
        guard let record = try self.record(DocumentVersion.recordName(item, tag), rows) else {
            return nil
        }
        do throws(StoreError) { return try DocumentVersion.read(record).0 } catch {
            throw .store(error)
        }
    }
}
