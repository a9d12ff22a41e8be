import StratusCoding
package import StratusModel

// Move, version 1: a row of the system partition
//
// | bytes  | what                                          |
// | ------ | --------------------------------------------- |
// | 1      | version, 1                                    |
// | 2      | group                                         |
// | 1      | flag: from; then 4 bytes                      |
// | 1      | flag: to; then 4 bytes                        |
// | varint | number                                        |
// | varint | fence, a log index of the group               |

/// A move of one replica of one group. A group has one move at a time.
///
/// From the entry that begins the move to the entry that ends it, ``to`` keeps a replica and
/// ``from`` keeps its own. The group's own configuration, kept by consensus, shows how far the move
/// has come.
package struct ReplicaMove: Sendable, Hashable {
    package var group: GroupID
    /// Nil: a replica is added.
    package var from: NodeID?
    /// Nil: a replica is dropped.
    package var to: NodeID?
    /// Given when it begins; no two moves share one. A step that names an older number comes too
    /// late.
    package var number: UInt64
    /// The index of the only group configuration that this move may change next. A step decided
    /// before the fence rose finds another configuration and does nothing, however late it arrives.
    /// That is why a move that was given up stays given up.
    package var fence: LogIndex

    package init(
        _ group: GroupID, from: NodeID?, to: NodeID?, number: UInt64 = 0, fence: LogIndex = .zero
    ) {
        self.group = group
        self.from = from
        self.to = to
        self.number = number
        self.fence = fence
    }
}

extension ReplicaMove {
    func write(to writer: inout ByteWriter) {
        writer.write(1 as UInt8)
        writer.write(fixed: self.group.raw)
        for node in [self.from, self.to] {
            writer.write(flag: node != nil)
            if let node { writer.write(fixed: node.raw) }
        }
        writer.write(varint: self.number)
        writer.write(varint: self.fence.raw)
    }

    init(from reader: inout ByteReader) throws(DecodingError) {
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        let group = GroupID(try reader.fixed16())
        let from = try reader.flag() ? NodeID(try reader.fixed32()) : nil
        let to = try reader.flag() ? NodeID(try reader.fixed32()) : nil
        self.init(
            group, from: from, to: to, number: try reader.varint(),
            fence: LogIndex(try reader.varint()))
    }
}
