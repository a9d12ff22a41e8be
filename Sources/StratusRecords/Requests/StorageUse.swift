package import StratusModel

/// The storage that a zone or a database uses: live records, and the bytes of their rows.
/// Tombstones and index rows are not counted, because the owner did not make them.
package struct StorageUse: Sendable, Hashable {
    package var recordCount: UInt64
    package var size: UInt64

    package init(recordCount: UInt64 = 0, size: UInt64 = 0) {
        self.recordCount = recordCount
        self.size = size
    }

    package static let none = StorageUse()

    package static func + (left: StorageUse, right: StorageUse) -> StorageUse {
        StorageUse(
            recordCount: left.recordCount + right.recordCount, size: left.size + right.size)
    }

    /// Never below nothing: what was stored before sizes were counted goes without having come.
    package static func - (left: StorageUse, right: StorageUse) -> StorageUse {
        StorageUse(
            recordCount: left.recordCount - min(left.recordCount, right.recordCount),
            size: left.size - min(left.size, right.size))
    }
}

/// A page of what one partition holds, over all its databases.
package struct HeldRecordsAsk: Sendable, Equatable {
    /// Where an earlier answer stopped; nil: at the beginning.
    package var after: Bytes?
    /// Rows that one answer looks at: those of zones, and of their places in feeds.
    package var limit: Int

    package init(after: Bytes? = nil, limit: Int = 500) {
        self.after = after
        self.limit = limit
    }
}

/// An answer to a ``HeldRecordsAsk``.
package struct HeldRecords: Sendable, Equatable {
    package var use: StorageUse
    /// Where the next page begins; nil: this was the last.
    package var next: Bytes?

    package init(use: StorageUse, next: Bytes? = nil) {
        self.use = use
        self.next = next
    }
}
