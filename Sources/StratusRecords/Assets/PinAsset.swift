package import StratusModel

/// Names a body that nodes have stored, as an asset, and holds it for some time so that a record
/// can be saved with it.
///
/// Nothing is done by an entry that is later than ``orphanAfterMilliseconds``: by then nodes may
/// have removed the copies. Where an equal file is known, its asset is answered and the body is not
/// named.
package struct PinAsset: Sendable, Equatable {
    /// Chunks of one body: 64 GiB in chunks of 256 KiB.
    package static let chunkCountMax = 1 << 18
    package static let storerCountMax = 16
    /// Bytes of a checksum's text.
    package static let checksumLengthMax = 64

    package var database: DatabaseID
    /// The ticket that the file was uploaded with.
    package var upload: UploadID
    /// Drawn by the gateway: the asset's name if it is a new one.
    package var asset: AssetID
    package var body: BodyID
    /// What the client knows the file by: 1…64 bytes of text. The state only compares it.
    package var fileChecksum: String
    /// Plain bytes.
    package var size: UInt64
    package var chunkSize: UInt32
    /// The version of the database's key that the body is sealed under; never 0.
    package var keyVersion: UInt32
    package var chunks: [BodyManifest.Chunk]
    /// Equal for equal files of one database. Nil: not shared with others.
    package var digest: AssetDigest?
    /// As it was said to the nodes that stored copies.
    package var orphanAfterMilliseconds: Int64
    /// Nodes that have all of the body. The leader appends the command only if they are enough.
    package var storers: [CopyHolding]
    package var rules: AssetRules

    package init(
        database: DatabaseID, upload: UploadID, asset: AssetID, body: BodyID,
        fileChecksum: String, size: UInt64, chunkSize: UInt32, keyVersion: UInt32,
        chunks: [BodyManifest.Chunk], digest: AssetDigest?, orphanAfterMilliseconds: Int64,
        storers: [CopyHolding], rules: AssetRules = .standard
    ) {
        self.database = database
        self.upload = upload
        self.asset = asset
        self.body = body
        self.fileChecksum = fileChecksum
        self.size = size
        self.chunkSize = chunkSize
        self.keyVersion = keyVersion
        self.chunks = chunks
        self.digest = digest
        self.orphanAfterMilliseconds = orphanAfterMilliseconds
        self.storers = storers
        self.rules = rules
    }

    /// Whether its numbers agree with each other and lie within their bounds.
    package var isConsistent: Bool {
        self.keyVersion > 0 && self.chunks.count <= Self.chunkCountMax
            && self.storers.count <= Self.storerCountMax
            && (1...Self.checksumLengthMax).contains(self.fileChecksum.utf8.count)
            && self.rules.pinMilliseconds >= 0 && self.rules.graceMilliseconds >= 0
            && self.manifest(of: 0, namedAt: .zero).isConsistent
    }

    func manifest(of database: UInt32, namedAt: LogIndex) -> BodyManifest {
        BodyManifest(
            body: self.body, database: database, namedAt: namedAt, size: self.size,
            chunkSize: self.chunkSize, keyVersion: self.keyVersion, chunks: self.chunks)
    }
}

/// A keyed digest of a whole file, of 128 bits.
package struct AssetDigest: Sendable, Hashable {
    package var raw: UInt128
    package init(_ raw: UInt128) { self.raw = raw }
}

/// The answer to a ``PinAsset`` that was carried out.
package struct PinnedAsset: Sendable, Equatable {
    /// The asset that the receipt names: the drawn one, or that of an equal file.
    package var asset: AssetID
    /// The checksum that a save with the receipt must state.
    package var fileChecksum: String
    /// Whether it is that of an equal file: the body was not named, and its copies will go.
    package var isShared: Bool

    package init(asset: AssetID, fileChecksum: String, isShared: Bool) {
        self.asset = asset
        self.fileChecksum = fileChecksum
        self.isShared = isShared
    }
}

/// Pins assets that records hold already, so that others can be saved with them (`rereference`).
/// Whoever sends it has checked that the caller may read the records.
package struct HoldAssets: Sendable, Equatable {
    package static let countMax = RecordState.operationCountMax

    package var database: DatabaseID
    /// 1…200. One may stand there for several receipts.
    package var assets: [AssetID]
    /// The receipt of each, drawn by the gateway. None: no save ends the pins.
    package var pins: [UploadID]
    package var rules: AssetRules

    package init(
        database: DatabaseID, assets: [AssetID], pins: [UploadID] = [],
        rules: AssetRules = .standard
    ) {
        self.database = database
        self.assets = assets
        self.pins = pins
        self.rules = rules
    }
}

/// An asset that ``HoldAssets`` has pinned.
package struct HeldAsset: Sendable, Hashable {
    package var fileChecksum: String
    package var size: UInt64

    package init(fileChecksum: String, size: UInt64) {
        self.fileChecksum = fileChecksum
        self.size = size
    }
}

/// Stratus' own: no member of the group has a sound copy of one of the body's chunks. The row says
/// so, and nobody waits for the body any more.
package struct LoseBody: Sendable, Equatable {
    package var body: BodyID

    package init(body: BodyID) { self.body = body }
}
