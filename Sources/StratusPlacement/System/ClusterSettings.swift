import StratusCoding
package import StratusModel

// Settings: a row of the system partition
//
// | bytes  | what                                                        |
// | ------ | ----------------------------------------------------------- |
// | 1      | 1 formed of its nodes, 2 begun as a single node             |
// | 8 + 8  | cluster: high, low                                          |
// | 1      | binary logarithm of the number of partitions                |
// | 1      | replicas of a partition                                     |
// | 1      | replicas of the system partition                            |
// | varint | feature level                                               |
// | varint | revision of the view                                        |
// | varint | epoch of the placement table                                |
// | varint | identifier of the next node                                 |
// | varint | first notice kept, then the number the next one gets        |
//
// After a first byte 2 follows the cluster's master value, sealed, as prefixed bytes. The first byte
// is a flag: both values belong to one format.

/// The settings a cluster was formed with, and its counters.
package struct ClusterSettings: Sendable, Equatable {
    /// Hash of the peer list and the secret: clusters that are not this one are refused by it.
    package var cluster: ClusterID
    package var partitionCount: Int
    package var replicaCount: Int
    package var systemReplicaCount: Int
    /// Entry kinds above it are not written: every member can read what is.
    package var featureLevel: UInt32
    /// Rises with every change of nodes, placement or moves.
    package var revision: UInt64
    package var epoch: UInt64
    /// No identifier below it is given again.
    package var nextNode: UInt32
    package var firstNotice: UInt64
    package var nextNotice: UInt64
    /// The master value, sealed under the secret, of a cluster that began as a single node. Nil:
    /// the secret itself is the master.
    package var master: Bytes?

    func write(to writer: inout ByteWriter) {
        writer.write(self.master == nil ? 1 : 2 as UInt8)
        writer.write(fixed: self.cluster.high)
        writer.write(fixed: self.cluster.low)
        writer.write(UInt8(self.partitionCount.trailingZeroBitCount))
        writer.write(UInt8(self.replicaCount))
        writer.write(UInt8(self.systemReplicaCount))
        writer.write(varint: UInt64(self.featureLevel))
        writer.write(varint: self.revision)
        writer.write(varint: self.epoch)
        writer.write(varint: UInt64(self.nextNode))
        writer.write(varint: self.firstNotice)
        writer.write(varint: self.nextNotice)
        if let master { writer.write(prefixed: master) }
    }

    init(from reader: inout ByteReader) throws(DecodingError) {
        let version = try reader.byte()
        guard (1...2).contains(version) else {
            throw DecodingError(.unknownVersion(version), at: 0)
        }
        self.cluster = ClusterID(high: try reader.fixed64(), low: try reader.fixed64())
        let bits = try reader.byte()
        guard bits <= 12 else { throw DecodingError(.malformed, at: reader.offset - 1) }
        self.partitionCount = 1 << Int(bits)
        self.replicaCount = Int(try reader.byte())
        self.systemReplicaCount = Int(try reader.byte())
        guard self.replicaCount > 0, self.systemReplicaCount > 0 else {
            throw DecodingError(.malformed, at: reader.offset - 2)
        }
        self.featureLevel = try reader.number(max: .max)
        self.revision = try reader.varint()
        self.epoch = try reader.varint()
        self.nextNode = try reader.number(max: .max)
        self.firstNotice = try reader.varint()
        self.nextNotice = try reader.varint()
        self.master = version == 2 ? try reader.prefixed() : nil
        guard self.master.map(Formation.isMaster) ?? true else {
            throw DecodingError(.malformed, at: reader.offset)
        }
    }

    init(forming formation: Formation) {
        self.cluster = formation.cluster
        self.partitionCount = formation.partitionCount
        self.replicaCount = formation.replicaCount
        self.systemReplicaCount = formation.nodes.count >= 5 ? 5 : 3
        self.featureLevel = formation.converted?.featureLevel ?? 1
        self.revision = 0
        self.epoch = 1
        self.nextNode = (formation.nodes.map(\.id.raw).max() ?? 0) + 1
        self.firstNotice = 1
        self.nextNotice = 1
        self.master = formation.converted?.master
        // Before the first start nobody needs it.
        if self.master?.isEmpty == true { self.master = nil }
    }
}
