package import StratusModel

/// What stands before each copy that an administrator sends: 4 bytes with its number in the body and
/// 4 with its size, little-endian.
package struct CopyFrame: Sendable, Equatable {
    package static let size = 8

    package var ordinal: UInt32
    package var storedSize: UInt32

    package init(ordinal: UInt32, storedSize: UInt32) {
        self.ordinal = ordinal
        self.storedSize = storedSize
    }

    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: Self.size)
        writer.write(fixed: self.ordinal)
        writer.write(fixed: self.storedSize)
        return writer.bytes
    }

    /// - Throws: where it is not whole, or larger than any copy is.
    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        self.ordinal = try reader.fixed32()
        self.storedSize = try reader.fixed32()
        guard self.storedSize <= AssetLimits.storedSizeMax else {
            throw DecodingError(.malformed, at: 4)
        }
        try reader.finish()
    }
}
