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

/// The note that a node was recovered and the system partition has not heard of it yet. It exists
/// from the first byte a recovery writes until the cluster has taken it.
package enum RecoveryNote {
    package static let path: DiskPath = "RECOVERED"
    private static let frame = FileFrame("STRATUSR")
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
        Self.frame.encode { recovery.write(to: &$0) }
    }

    static func decode(_ bytes: Bytes) throws(DecodingError) -> ClusterRecovery {
        try Self.frame.decode(bytes) { (reader, _) throws(DecodingError) in
            try ClusterRecovery(from: &reader)
        }
    }
}
