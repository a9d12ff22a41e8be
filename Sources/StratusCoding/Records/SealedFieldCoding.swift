package import StratusModel

// Sealed field, format 1: the bytes of a sealed value (see `ValueCoding.swift`).
//
// | bytes | what                                                                      |
// | ----- | ------------------------------------------------------------------------- |
// | 1     | format, 1                                                                 |
// | 4     | the version of the database's key                                         |
// | rest  | the value as `ValueCoding.swift` writes it, sealed by `FieldSealer`       |

/// The head of a sealed value: all of it that can be read without a key.
package enum SealedFieldCoding {
    private static let format: UInt8 = 1
    package static let headSize = 5

    /// - Parameter content: the value, sealed.
    package static func bytes(keyVersion: UInt32, content: Bytes) -> Bytes {
        var writer = ByteWriter(reserving: Self.headSize + content.count)
        writer.write(Self.format)
        writer.write(fixed: keyVersion)
        writer.write(raw: content)
        return writer.bytes
    }

    /// The version of the key that a value is sealed under.
    package static func keyVersion(of sealed: Bytes) throws(DecodingError) -> UInt32 {
        var reader = ByteReader(Bytes(sealed.prefix(Self.headSize)))
        guard try reader.byte() == Self.format else { throw DecodingError(.malformed, at: 0) }
        let version = try reader.fixed32()
        // Version 0 is the secret of digests, which seals nothing.
        guard version > 0 else { throw DecodingError(.malformed, at: 1) }
        return version
    }
}
