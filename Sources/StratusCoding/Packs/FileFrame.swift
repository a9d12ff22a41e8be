package import StratusModel

// A small file in a data directory
//
// | bytes | what                        |
// | ----- | --------------------------- |
// | 8     | the file's mark             |
// | 1     | version of the body         |
// | …     | the body                    |
// | 4     | CRC-32C of the bytes before |

/// The frame that all small files in a data directory share: a mark that says which file it is, a
/// version, and a checksum over all of it.
package struct FileFrame: Sendable {
    private let mark: Bytes
    private let versions: ClosedRange<UInt8>

    /// - Parameters:
    ///   - mark: eight letters.
    ///   - versions: of bodies that can be read.
    package init(_ mark: String, versions: ClosedRange<UInt8> = 1...1) {
        precondition(mark.utf8.count == 8)
        self.mark = Bytes(mark.utf8)
        self.versions = versions
    }

    package func encode(version: UInt8 = 1, _ body: (inout ByteWriter) -> Void) -> Bytes {
        var writer = ByteWriter()
        writer.write(raw: self.mark)
        writer.write(version)
        body(&writer)
        writer.write(fixed: CRC32C.of(writer.bytes))
        return writer.bytes
    }

    /// - Parameter body: reads all bytes between version and checksum.
    package func decode<Body>(
        _ bytes: Bytes,
        _ body: (inout ByteReader, _ version: UInt8) throws(DecodingError) -> Body
    ) throws(DecodingError) -> Body {
        var reader = ByteReader(bytes)
        guard try reader.raw(self.mark.count) == self.mark else {
            throw DecodingError(.malformed, at: 0)
        }
        let version = try reader.byte()
        guard self.versions.contains(version) else {
            throw DecodingError(.unknownVersion(version), at: self.mark.count)
        }
        let result = try body(&reader, version)
        let end = reader.offset
        let crc = try reader.fixed32()
        try reader.finish()
        guard CRC32C.of(Bytes(bytes[..<end])) == crc else {
            throw DecodingError(.malformed, at: end)
        }
        return result
    }
}
