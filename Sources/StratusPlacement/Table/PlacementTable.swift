package import StratusCoding
package import StratusModel

// Placement table, version 1: a row of the system partition, and what nodes tell each other.
//
// | bytes  | what                                                                     |
// | ------ | ------------------------------------------------------------------------ |
// | 1      | version, 1                                                               |
// | 8      | epoch                                                                    |
// | 1      | binary logarithm of the number of partitions, 0 to 12                    |
// | …      | for each partition: count of replicas, then 4 bytes for each, ascending  |

/// Which nodes hold which partition, as consensus committed it.
///
/// Invariants:
/// - `partitionCount` is a power of two, 1 to 4,096, and never changes in a cluster's life.
/// - A partition's replicas are distinct and ascending: their order says nothing.
/// - Whoever changes the table raises ``epoch``; of two tables the one with the higher epoch
///   counts.
package struct PlacementTable: Sendable, Equatable {
    package static let partitionCountMax = 4_096
    package static let ordinaryPartitionCount = 256

    package let partitionCount: Int
    package var epoch: UInt64
    private var rows: [[NodeID]]

    /// A table in which no partition has a replica, of epoch 0: before a cluster is formed.
    package init(partitionCount: Int) {
        precondition(
            Self.isPartitionCount(partitionCount), "\(partitionCount) partitions cannot be")
        self.partitionCount = partitionCount
        self.epoch = 0
        self.rows = Array(repeating: [], count: partitionCount)
    }

    package static func isPartitionCount(_ count: Int) -> Bool {
        count >= 1 && count <= self.partitionCountMax && count & (count - 1) == 0
    }

    // MARK: Key → partition

    /// Placement's hash of a key: of its encoding, version 1, under a key fixed for ever.
    package static func hash(of key: ShardKey) -> UInt64 {
        SipHash64.of(key.encoded(), key: (0x5374_7261_7475_7350, 0x6C61_6365_6D65_6E74))
    }

    /// The top bits of ``hash(of:)``: with twice as many partitions, p becomes 2p and 2p + 1.
    package func partition(of key: ShardKey) -> PartitionID {
        Self.partition(of: key, among: self.partitionCount)
    }

    /// The partition of a key in any table of so many partitions.
    package static func partition(of key: ShardKey, among partitionCount: Int) -> PartitionID {
        let bits = partitionCount.trailingZeroBitCount
        guard bits > 0 else { return PartitionID(0) }
        return PartitionID(UInt16(Self.hash(of: key) >> UInt64(64 - bits)))
    }

    // MARK: Partition → replicas

    package func replicas(of partition: PartitionID) -> [NodeID] { self.rows[Int(partition.raw)] }

    package var partitions: [PartitionID] {
        (0..<self.partitionCount).map { PartitionID(UInt16($0)) }
    }

    /// Partitions with a replica on `node`, ascending.
    package func partitions(on node: NodeID) -> [PartitionID] {
        self.partitions.filter { self.rows[Int($0.raw)].contains(node) }
    }

    /// Does not raise the epoch: a change of several partitions is one epoch.
    package mutating func setReplicas(_ nodes: [NodeID], of partition: PartitionID) {
        let sorted = nodes.sorted()
        precondition(
            !zip(sorted, sorted.dropFirst()).contains { $0 == $1 },
            "\(partition) twice on one node: \(nodes)")
        self.rows[Int(partition.raw)] = sorted
    }
}

extension PlacementTable {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 16 + self.partitionCount * 13)
        writer.write(1 as UInt8)
        writer.write(fixed: self.epoch)
        writer.write(UInt8(self.partitionCount.trailingZeroBitCount))
        for row in self.rows {
            writer.write(count: row.count)
            for node in row { writer.write(fixed: node.raw) }
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        let epoch = try reader.fixed64()
        let bits = try reader.byte()
        guard bits <= 12 else { throw DecodingError(.malformed, at: reader.offset - 1) }
        self.init(partitionCount: 1 << Int(bits))
        self.epoch = epoch
        for partition in 0..<self.partitionCount {
            let start = reader.offset
            var row: [NodeID] = []
            for _ in 0..<(try reader.count(minimumSize: 4)) {
                let node = NodeID(try reader.fixed32())
                if let last = row.last, last >= node { throw DecodingError(.malformed, at: start) }
                row.append(node)
            }
            self.rows[partition] = row
        }
        try reader.finish()
    }
}
