import StratusCoding
import StratusModel

// In outcomes. Pin asset: 16 asset, text checksum, flag shared. Hold assets: count, each a flag,
// text checksum and varint size.
//
// In answers. Asset: flag, then 16 asset, database, text checksum, 16 body, count of pages of its
// row, each prefixed, key. Use: varints records,
// bytes and custom zones, then of assets varints count, bytes, unattached count, unattached bytes.
// Lost files: count, each 16 asset, database, text checksum, varint size, flag and texts zone and
// record; then flag and 16 asset.

extension ByteWriter {
    mutating func write(_ pinned: PinnedAsset) {
        self.write(name: pinned.asset.raw)
        self.write(text: pinned.fileChecksum)
        self.write(flag: pinned.isShared)
    }

    mutating func write(_ held: [HeldAsset?]) {
        self.write(count: held.count)
        for asset in held {
            self.write(flag: asset != nil)
            guard let asset else { continue }
            self.write(text: asset.fileChecksum)
            self.write(varint: asset.size)
        }
    }

    mutating func write(_ asset: StoredAsset) {
        self.write(name: asset.asset.raw)
        self.write(asset.database)
        self.write(text: asset.fileChecksum)
        self.write(asset.body)
        self.write(form: asset.key)
    }

    mutating func write(_ manifest: BodyManifest) {
        self.write(body: manifest.body)
        let pages = BodyCoding.pages(of: manifest)
        self.write(count: pages.count)
        for page in pages { self.write(prefixed: page) }
    }

    mutating func write(_ use: AssetUse) {
        self.write(varint: use.count)
        self.write(varint: use.size)
        self.write(varint: use.unattachedCount)
        self.write(varint: use.unattachedSize)
    }
}

extension ByteReader {
    mutating func pinnedAsset() throws(DecodingError) -> PinnedAsset {
        let asset = AssetID(try self.name())
        let checksum = try self.text()
        return PinnedAsset(asset: asset, fileChecksum: checksum, isShared: try self.flag())
    }

    mutating func heldAssets() throws(DecodingError) -> [HeldAsset?] {
        var held: [HeldAsset?] = []
        for _ in 0..<(try self.count()) {
            guard try self.flag() else {
                held.append(nil)
                continue
            }
            let checksum = try self.text()
            held.append(HeldAsset(fileChecksum: checksum, size: try self.varint()))
        }
        return held
    }

    mutating func storedAsset() throws(DecodingError) -> StoredAsset {
        let asset = AssetID(try self.name())
        let database = try self.database()
        let checksum = try self.text()
        let manifest = try self.bodyManifest()
        return StoredAsset(
            asset: asset, database: database, fileChecksum: checksum, body: manifest,
            key: try self.form(WrappedKey.self))
    }

    mutating func bodyManifest() throws(DecodingError) -> BodyManifest {
        let body = try self.body()
        var pages: [Bytes] = []
        for _ in 0..<(try self.count()) { pages.append(try self.prefixed()) }
        return try BodyCoding.manifest(of: body, pages: pages)
    }

    mutating func assetUse() throws(DecodingError) -> AssetUse {
        let count = try self.varint()
        let size = try self.varint()
        let unattachedCount = try self.varint()
        return AssetUse(
            count: count, size: size, unattachedCount: unattachedCount,
            unattachedSize: try self.varint())
    }
}

extension ByteWriter {
    mutating func write(_ lost: LostFiles) {
        self.write(count: lost.files.count)
        for file in lost.files {
            self.write(name: file.asset.raw)
            self.write(file.database)
            self.write(text: file.fileChecksum)
            self.write(varint: file.size)
            self.write(flag: file.holder != nil)
            guard let holder = file.holder else { continue }
            self.write(text: holder.zone)
            self.write(text: holder.record)
        }
        self.write(flag: lost.next != nil)
        if let next = lost.next { self.write(name: next.raw) }
    }
}

extension ByteReader {
    mutating func lostFiles() throws(DecodingError) -> LostFiles {
        var lost = LostFiles(files: [], next: nil)
        for _ in 0..<(try self.count(minimumSize: 20)) {
            let asset = AssetID(try self.name())
            let database = try self.database()
            let checksum = try self.text()
            let size = try self.varint()
            var holder: LostFile.Holder?
            if try self.flag() {
                let zone = try self.text()
                holder = LostFile.Holder(zone: zone, record: try self.text())
            }
            lost.files.append(
                LostFile(
                    asset: asset, database: database, fileChecksum: checksum, size: size,
                    holder: holder))
        }
        if try self.flag() { lost.next = AssetID(try self.name()) }
        return lost
    }
}
