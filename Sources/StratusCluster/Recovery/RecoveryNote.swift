import StratusCoding
package import StratusModel
package import StratusPlacement
import StratusStorage

// The file RECOVERED in a data directory, version 1
//
// | bytes | what                          |
// | ----- | ----------------------------- |
// | 8     | "STRATUSR"                    |
// | 1     | version, 1                    |
// | …     | a recovery                    |
// | 4     | CRC-32C of the bytes before   |

/// That a node was recovered and the system partition has not heard of it yet: there from the first byte a recovery
/// writes until the cluster has taken it.
package enum RecoveryNote {
    package static let path: DiskPath = "RECOVERED"
    private static let mark = Bytes("STRATUSR".utf8)
    private static let sizeMax = 1 << 20

    package struct Refusal: Error, Sendable, Equatable, CustomStringConvertible {
        package let description: String
    }

    /// Nil where there is nothing to tell.
    package static func kept(in files: any Files) throws(Refusal) -> ClusterRecovery? {
        do {
            guard try files.exists(Self.path) else { return nil }
            return try Self.decode(try files.contents(of: Self.path, limit: Self.sizeMax))
        } catch { throw Refusal(description: "the file RECOVERED in the data directory: \(error)") }
    }

    package static func keep(_ recovery: ClusterRecovery, in files: any Files) throws(DiskError) {
        try files.replace(Self.path, with: Self.encode(recovery))
    }

    package static func remove(from files: any Files) throws(DiskError) {
        guard try files.exists(Self.path) else { return }
        try files.remove(Self.path)
        try files.syncDirectory(.root)
    }

    static func encode(_ recovery: ClusterRecovery) -> Bytes {
        var writer = ByteWriter()
        writer.write(raw: Self.mark)
        writer.write(1 as UInt8)
        recovery.write(to: &writer)
        writer.write(fixed: CRC32C.of(writer.bytes))
        return writer.bytes
    }

    static func decode(_ bytes: Bytes) throws(DecodingError) -> ClusterRecovery {
        var reader = ByteReader(bytes)
        guard try reader.raw(8) == Self.mark else { throw DecodingError(.malformed, at: 0) }
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 8) }
        let recovery = try ClusterRecovery(from: &reader)
        let end = reader.offset
        let crc = try reader.fixed32()
        try reader.finish()
        guard CRC32C.of(Bytes(bytes[..<end])) == crc else {
            throw DecodingError(.malformed, at: end)
        }
        return recovery
    }
}
