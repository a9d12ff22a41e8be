package import StratusModel

// Entry, version 1
//
// | bytes  | what                                                      |
// | ------ | --------------------------------------------------------- |
// | 1      | version, 1                                                |
// | 2      | group                                                     |
// | 8      | index                                                     |
// | 8      | term                                                      |
// | 8 + 2  | hybrid time: milliseconds, count                          |
// | 1      | kind                                                      |
// | 4      | CRC-32C of the payload                                    |
// | rest   | prefixed bytes: the payload                               |

extension Entry {
    package func encoded(in group: GroupID) -> Bytes {
        var writer = ByteWriter(reserving: self.payload.count + 48)
        writer.write(1 as UInt8)
        writer.write(fixed: group.raw)
        writer.write(fixed: self.index.raw)
        writer.write(fixed: self.term.raw)
        writer.write(fixed: UInt64(bitPattern: self.time.milliseconds))
        writer.write(fixed: self.time.count)
        writer.write(self.kind.rawValue)
        writer.write(fixed: CRC32C.of(self.payload))
        writer.write(prefixed: self.payload)
        return writer.bytes
    }

    /// - Returns: the group the entry belongs to, and the entry.
    package static func decode(_ bytes: Bytes) throws(DecodingError) -> (GroupID, Entry) {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        let group = GroupID(try reader.fixed16())
        let index = LogIndex(try reader.fixed64())
        let term = Term(try reader.fixed64())
        let milliseconds = Int64(bitPattern: try reader.fixed64())
        let count = try reader.fixed16()
        guard let kind = Kind(rawValue: try reader.byte()) else {
            throw DecodingError(.malformed, at: reader.offset - 1)
        }
        let crc = try reader.fixed32()
        let start = reader.offset
        let payload = try reader.prefixed()
        try reader.finish()
        guard CRC32C.of(payload) == crc else { throw DecodingError(.malformed, at: start) }
        let time = HybridTime(milliseconds: milliseconds, count: count)
        return (group, Entry(index: index, term: term, time: time, kind: kind, payload: payload))
    }
}
