import StratusCoding
package import StratusModel

// Notice, version 1: a row of the system partition
//
// | bytes  | what                                |
// | ------ | ----------------------------------- |
// | 1      | version, 1                          |
// | varint | sequence                            |
// | 8      | when, wall milliseconds of its entry |
// | 1      | kind                                |
// | bytes  | payload, read by the kind's owner   |

/// Something every node must hear of. One feed for the whole cluster, in one order.
package struct Notice: Sendable, Equatable {
    /// The number is on disk for ever. A module that adds a kind adds it here.
    package enum Kind: UInt8, Sendable {
        /// The view has changed; the payload is its revision, 8 bytes.
        case view = 1
    }
    package var sequence: UInt64
    package var milliseconds: Int64
    package var kind: Kind
    package var payload: Bytes

    /// The feed keeps the newest; who has missed more reads everything anew.
    package static let countMax = 4_096

    package init(sequence: UInt64, milliseconds: Int64, kind: Kind, payload: Bytes) {
        self.sequence = sequence
        self.milliseconds = milliseconds
        self.kind = kind
        self.payload = payload
    }

    func write(to writer: inout ByteWriter) {
        writer.write(1 as UInt8)
        writer.write(varint: self.sequence)
        writer.write(fixed: UInt64(bitPattern: self.milliseconds))
        writer.write(self.kind.rawValue)
        writer.write(prefixed: self.payload)
    }

    init(from reader: inout ByteReader) throws(DecodingError) {
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        let sequence = try reader.varint()
        let milliseconds = Int64(bitPattern: try reader.fixed64())
        guard let kind = Kind(rawValue: try reader.byte()) else {
            throw DecodingError(.malformed, at: reader.offset - 1)
        }
        self.init(
            sequence: sequence, milliseconds: milliseconds, kind: kind,
            payload: try reader.prefixed())
    }
}
