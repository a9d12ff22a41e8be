package import StratusModel

/// Asks a partition for files of which no node has a sound copy, whatever their database.
package struct LostFilesAsk: Sendable, Equatable {
    /// The last asset that was looked at; nil: from the first.
    package var after: AssetID?

    package init(after: AssetID? = nil) { self.after = after }
}

/// A file of which no node has a sound copy.
package struct LostFile: Sendable, Equatable {
    /// The first record that holds it.
    package struct Holder: Sendable, Equatable {
        package var zone: String
        package var record: String

        package init(zone: String, record: String) {
            self.zone = zone
            self.record = record
        }
    }

    package var asset: AssetID
    package var database: DatabaseID
    package var fileChecksum: String
    package var size: UInt64
    /// Nil: no record holds it any more, or its zone is being purged.
    package var holder: Holder?

    package init(
        asset: AssetID, database: DatabaseID, fileChecksum: String, size: UInt64, holder: Holder?
    ) {
        self.asset = asset
        self.database = database
        self.fileChecksum = fileChecksum
        self.size = size
        self.holder = holder
    }
}

/// An answer to a ``LostFilesAsk``.
package struct LostFiles: Sendable, Equatable {
    package var files: [LostFile]
    /// The last asset that was looked at; nil: there are no more.
    package var next: AssetID?

    package init(files: [LostFile], next: AssetID?) {
        self.files = files
        self.next = next
    }
}
