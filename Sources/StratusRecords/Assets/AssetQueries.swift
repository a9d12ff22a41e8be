package import StratusModel

/// An asset with everything that is needed to read it.
package struct StoredAsset: Sendable, Equatable {
    package var asset: AssetID
    package var database: DatabaseID
    package var fileChecksum: String
    package var body: BodyManifest
    /// The key that the body is sealed under.
    package var key: WrappedKey

    package init(
        asset: AssetID, database: DatabaseID, fileChecksum: String, body: BodyManifest,
        key: WrappedKey
    ) {
        self.asset = asset
        self.database = database
        self.fileChecksum = fileChecksum
        self.body = body
        self.key = key
    }
}

/// The assets of a database: each counts once, with its plain size, from its pin to its end.
package struct AssetUse: Sendable, Hashable {
    package var count: UInt64
    package var size: UInt64
    /// Those of them that are pinned and that no record holds.
    package var unattachedCount: UInt64
    package var unattachedSize: UInt64

    package init(
        count: UInt64 = 0, size: UInt64 = 0, unattachedCount: UInt64 = 0,
        unattachedSize: UInt64 = 0
    ) {
        self.count = count
        self.size = size
        self.unattachedCount = unattachedCount
        self.unattachedSize = unattachedSize
    }

    package static let none = AssetUse()
}
