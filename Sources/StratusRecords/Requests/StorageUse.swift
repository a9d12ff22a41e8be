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
