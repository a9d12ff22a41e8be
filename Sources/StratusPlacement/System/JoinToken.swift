import StratusCoding
package import StratusModel

// Join token, version 1: a row of the system partition, under the token's SHA-256
//
// | bytes  | what                                                    |
// | ------ | ------------------------------------------------------- |
// | 1      | version, 1                                              |
// | 8      | expires, wall milliseconds                              |
// | 1      | flag: used; then 4 bytes, the node that joined with it  |

/// A secret that lets one node join. The cluster keeps only its hash, and it works once.
package struct JoinToken: Sendable, Equatable {
    package static let countMax = 64
    package static let hashSize = 32

    package var expiresMilliseconds: Int64
    package var usedBy: NodeID?

    package init(expiresMilliseconds: Int64, usedBy: NodeID? = nil) {
        self.expiresMilliseconds = expiresMilliseconds
        self.usedBy = usedBy
    }

    func write(to writer: inout ByteWriter) {
        writer.write(1 as UInt8)
        writer.write(fixed: UInt64(bitPattern: self.expiresMilliseconds))
        writer.write(flag: self.usedBy != nil)
        if let node = self.usedBy { writer.write(fixed: node.raw) }
    }

    init(from reader: inout ByteReader) throws(DecodingError) {
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        self.expiresMilliseconds = Int64(bitPattern: try reader.fixed64())
        self.usedBy = try reader.flag() ? NodeID(try reader.fixed32()) : nil
    }
}
