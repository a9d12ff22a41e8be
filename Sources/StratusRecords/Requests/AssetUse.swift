import StratusCoding

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

extension ByteWriter {
    mutating func write(_ use: AssetUse) {
        self.write(varint: use.count)
        self.write(varint: use.size)
        self.write(varint: use.unattachedCount)
        self.write(varint: use.unattachedSize)
    }
}

extension ByteReader {
    mutating func assetUse() throws(DecodingError) -> AssetUse {
        let count = try self.varint()
        let size = try self.varint()
        let unattachedCount = try self.varint()
        return AssetUse(
            count: count, size: size, unattachedCount: unattachedCount,
            unattachedSize: try self.varint())
    }
}
