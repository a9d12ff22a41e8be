/// Bounds of assets that formats and stores rely on.
package enum AssetLimits {
    /// A body's plain bytes: 64 GiB.
    package static let bodySizeMax: UInt64 = 64 << 30
    /// The sizes a chunk may have, in plain bytes. Each body names its own; the smallest ones are
    /// for the simulator.
    package static let chunkSizes: ClosedRange<UInt32> = 64...(1 << 20)
    package static let chunkSizeDefault: UInt32 = 256 << 10
    /// The bytes that sealing adds to a chunk: one that names the encoding, and the authentication
    /// tag.
    package static let sealedOverhead: UInt32 = 17
    /// The stored bytes of a copy: a chunk that does not compress, sealed.
    package static let storedSizeMax: UInt32 = Self.chunkSizes.upperBound + Self.sealedOverhead
    /// Chunks of one body.
    package static let chunkCountMax: UInt64 =
        Self.bodySizeMax / UInt64(Self.chunkSizes.lowerBound)
}
