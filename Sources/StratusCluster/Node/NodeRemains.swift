import StratusCoding
package import StratusModel

// Remains: what follows the kind of the answer 121
//
// | bytes  | what                                                       |
// | ------ | ---------------------------------------------------------- |
// | 1      | flags: 1 complete, 2 in the log                            |
// | varint | partitions whose files may hold what was erased            |
// | 8 + 8  | since, cleared: milliseconds since 1970, or 0              |
// | varint | count of partitions here, each 2 group, varint applied     |

/// What a node has still to do so that nothing of what was erased is left on its disk.
package struct NodeRemains: Sendable, Equatable {
    /// How far a replica here is.
    package struct Position: Sendable, Equatable {
        package var group: GroupID
        package var applied: LogIndex
        package init(group: GroupID, applied: LogIndex) {
            self.group = group
            self.applied = applied
        }
    }

    /// False while partitions of the disk have not been looked at.
    package var isComplete = false
    package var partitionCount = 0
    package var isInLog = false
    /// When the oldest of the erasures was applied; 0: nothing is left.
    package var sinceMilliseconds: Int64 = 0
    /// When the last was done; 0: none since the start.
    package var clearedMilliseconds: Int64 = 0
    package var positions: [Position] = []

    package init() {}

    /// Whether nothing is left of what was erased up to these entries.
    package func isCleared(through positions: [GroupID: LogIndex]) -> Bool {
        guard self.isComplete, self.partitionCount == 0, !self.isInLog else { return false }
        return self.positions.allSatisfy { $0.applied >= positions[$0.group] ?? .zero }
    }

    func write(to writer: inout ByteWriter) {
        writer.write((self.isComplete ? 1 : 0) | (self.isInLog ? 2 : 0) as UInt8)
        writer.write(varint: UInt64(max(0, self.partitionCount)))
        writer.write(fixed: UInt64(bitPattern: self.sinceMilliseconds))
        writer.write(fixed: UInt64(bitPattern: self.clearedMilliseconds))
        writer.write(count: self.positions.count)
        for position in self.positions {
            writer.write(fixed: position.group.raw)
            writer.write(varint: position.applied.raw)
        }
    }

    init(from reader: inout ByteReader) throws(DecodingError) {
        self.init()
        let flags = try reader.byte()
        guard flags < 4 else { throw DecodingError(.malformed, at: reader.offset - 1) }
        self.isComplete = flags & 1 != 0
        self.isInLog = flags & 2 != 0
        self.partitionCount = Int(clamping: try reader.varint())
        self.sinceMilliseconds = Int64(bitPattern: try reader.fixed64())
        self.clearedMilliseconds = Int64(bitPattern: try reader.fixed64())
        for _ in 0..<(try reader.count(minimumSize: 3)) {
            let group = GroupID(try reader.fixed16())
            self.positions.append(
                Position(group: group, applied: LogIndex(try reader.varint())))
        }
    }
}
