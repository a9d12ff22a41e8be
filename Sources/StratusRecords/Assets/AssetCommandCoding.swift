import StratusCoding
import StratusModel

// Commands about assets: what follows the head of a record command
//
// | command     | what                                                                     |
// | ----------- | ------------------------------------------------------------------------ |
// | pin asset   | 16 upload, 16 asset, 16 body, text checksum, varint size, varint chunk     |
// |             | size, varint key version, signed orphan after, flag and 16 digest, count   |
// |             | of storers (varint node, 8 index), rules, count of chunks (varint stored   |
// |             | size, 4 CRC)                                                             |
// | hold assets | rules, count of assets, each 16, count of pins, each 16                   |
// | lose body   | 16 body                                                                   |
// | find body   | 16 body, signed orphan after, count of storers as in pin asset             |
//
// Rules: varint pin, varint grace (milliseconds), varints unattached bytes, unattached count,
// database size.

extension PinAsset {
    func write(to writer: inout ByteWriter) {
        writer.write(name: self.upload.raw)
        writer.write(name: self.asset.raw)
        writer.write(body: self.body)
        writer.write(text: self.fileChecksum)
        writer.write(varint: self.size)
        writer.write(varint: UInt64(self.chunkSize))
        writer.write(varint: UInt64(self.keyVersion))
        writer.write(signed: self.orphanAfterMilliseconds)
        writer.write(flag: self.digest != nil)
        if let digest = self.digest { writer.write(name: digest.raw) }
        writer.write(self.storers)
        writer.write(self.rules)
        writer.write(self.chunks)
    }

    init(from reader: inout ByteReader, in database: DatabaseID) throws(DecodingError) {
        let start = reader.offset
        let upload = UploadID(try reader.name())
        let asset = AssetID(try reader.name())
        let body = try reader.body()
        let checksum = try reader.text()
        let size = try reader.varint()
        let chunkSize = try reader.number32()
        let keyVersion = try reader.number32()
        let orphanAfter = try reader.signed()
        let digest = try reader.flag() ? AssetDigest(try reader.name()) : nil
        let storers = try reader.storers()
        let rules = try reader.assetRules()
        let chunks = try reader.bodyChunks()
        self.init(
            database: database, upload: upload, asset: asset, body: body, fileChecksum: checksum,
            size: size, chunkSize: chunkSize, keyVersion: keyVersion, chunks: chunks,
            digest: digest, orphanAfterMilliseconds: orphanAfter, storers: storers, rules: rules)
        guard self.isConsistent else { throw DecodingError(.malformed, at: start) }
    }
}

extension HoldAssets {
    func write(to writer: inout ByteWriter) {
        writer.write(self.rules)
        writer.write(count: self.assets.count)
        for asset in self.assets { writer.write(name: asset.raw) }
        writer.write(count: self.pins.count)
        for pin in self.pins { writer.write(name: pin.raw) }
    }

    init(from reader: inout ByteReader, in database: DatabaseID) throws(DecodingError) {
        let rules = try reader.assetRules()
        var assets: [AssetID] = []
        for _ in 0..<(try reader.count(minimumSize: 16)) {
            assets.append(AssetID(try reader.name()))
        }
        let start = reader.offset
        var pins: [UploadID] = []
        for _ in 0..<(try reader.count(minimumSize: 16)) {
            pins.append(UploadID(try reader.name()))
        }
        guard pins.isEmpty || pins.count == assets.count else {
            throw DecodingError(.malformed, at: start)
        }
        self.init(database: database, assets: assets, pins: pins, rules: rules)
    }
}

extension ByteWriter {
    mutating func write(_ storers: [CopyHolding]) {
        self.write(count: storers.count)
        for storer in storers {
            self.write(varint: UInt64(storer.node.raw))
            self.write(fixed: storer.at.raw)
        }
    }

    mutating func write(_ chunks: [BodyManifest.Chunk]) {
        self.write(count: chunks.count)
        for chunk in chunks {
            self.write(varint: UInt64(chunk.storedSize))
            self.write(fixed: chunk.crc)
        }
    }

    mutating func write(_ rules: AssetRules) {
        self.write(varint: UInt64(max(0, rules.pinMilliseconds)))
        self.write(varint: UInt64(max(0, rules.graceMilliseconds)))
        self.write(varint: rules.unattachedSizeMax)
        self.write(varint: rules.unattachedCountMax)
        self.write(varint: rules.databaseSizeMax)
    }

}

extension ByteReader {
    mutating func storers() throws(DecodingError) -> [CopyHolding] {
        var storers: [CopyHolding] = []
        for _ in 0..<(try self.count(minimumSize: 9)) {
            let node = NodeID(try self.number32())
            storers.append(CopyHolding(node: node, at: LogIndex(try self.fixed64())))
        }
        return storers
    }

    mutating func bodyChunks() throws(DecodingError) -> [BodyManifest.Chunk] {
        var chunks: [BodyManifest.Chunk] = []
        let count = try self.count(minimumSize: 5)
        chunks.reserveCapacity(min(count, PinAsset.chunkCountMax))
        for _ in 0..<count {
            let storedSize = try self.number32()
            chunks.append(BodyManifest.Chunk(storedSize: storedSize, crc: try self.fixed32()))
        }
        return chunks
    }

    mutating func assetRules() throws(DecodingError) -> AssetRules {
        var rules = AssetRules()
        rules.pinMilliseconds = try self.span()
        rules.graceMilliseconds = try self.span()
        rules.unattachedSizeMax = try self.varint()
        rules.unattachedCountMax = try self.varint()
        rules.databaseSizeMax = try self.varint()
        return rules
    }

    /// Milliseconds: a thousand years at most, so that they can be added to any time there is.
    private mutating func span() throws(DecodingError) -> Int64 {
        let start = self.offset
        let raw = try self.varint()
        guard raw <= 1_000 * 366 * 86_400_000 else { throw DecodingError(.malformed, at: start) }
        return Int64(raw)
    }
}
