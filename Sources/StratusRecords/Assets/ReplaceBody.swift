package import StratusModel

/// Stratus' own: puts a body that is sealed anew, under the newest key of its database, in the
/// place of an asset's body. The asset stays what it is: its holders, its end, its checksum and
/// what equal files share do not change.
///
/// Nothing is done by an entry that is later than ``orphanAfterMilliseconds``: by then nodes may
/// have removed the copies.
package struct ReplaceBody: Sendable, Equatable {
    package var database: DatabaseID
    package var asset: AssetID
    /// The body that was read. An asset that has another one by now is left as it is.
    package var old: BodyID
    /// Drawn for this command alone.
    package var body: BodyID
    /// Plain bytes: as many as the old body has.
    package var size: UInt64
    /// That of the old body.
    package var chunkSize: UInt32
    /// The version of the database's key that the new body is sealed under.
    package var keyVersion: UInt32
    package var chunks: [BodyManifest.Chunk]
    /// As it was said to the nodes that stored copies.
    package var orphanAfterMilliseconds: Int64
    /// Nodes that have all of the new body. The leader appends the command only if they are enough.
    package var storers: [CopyHolding]

    package init(
        database: DatabaseID, asset: AssetID, old: BodyID, body: BodyID, size: UInt64,
        chunkSize: UInt32, keyVersion: UInt32, chunks: [BodyManifest.Chunk],
        orphanAfterMilliseconds: Int64, storers: [CopyHolding]
    ) {
        self.database = database
        self.asset = asset
        self.old = old
        self.body = body
        self.size = size
        self.chunkSize = chunkSize
        self.keyVersion = keyVersion
        self.chunks = chunks
        self.orphanAfterMilliseconds = orphanAfterMilliseconds
        self.storers = storers
    }

    /// Whether its numbers agree with each other and lie within their bounds.
    package var isConsistent: Bool {
        self.keyVersion > 0 && self.body != self.old
            && self.chunks.count <= PinAsset.chunkCountMax
            && self.storers.count <= PinAsset.storerCountMax
            && self.manifest(of: 0, namedAt: .zero).isConsistent
    }

    func manifest(of database: UInt32, namedAt: LogIndex) -> BodyManifest {
        BodyManifest(
            body: self.body, database: database, namedAt: namedAt, size: self.size,
            chunkSize: self.chunkSize, keyVersion: self.keyVersion, chunks: self.chunks)
    }
}

/// The outcome of a ``ReplaceBody``. All but the first: nothing was changed.
package enum ReplacedBody: UInt8, Sendable, Hashable, CaseIterable {
    /// The asset has the new body.
    case replaced = 1
    /// There is no such asset.
    case gone = 2
    /// The asset has another body than the one that was read, or one that is not older.
    case changed = 3
    /// The key is not the newest of the database, or it was destroyed.
    case keyMissing = 4
    /// The entry is later than the time until which the copies were to be kept.
    case late = 5
    /// There is a body of this name.
    case taken = 6
    /// The new body does not have the size of the old one, or is cut into other chunks.
    case differs = 7
}
