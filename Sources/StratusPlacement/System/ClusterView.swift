package import StratusCoding
package import StratusModel

// View, version 1: what a node keeps of the system partition
//
// | bytes | what                                                           |
// | ----- | -------------------------------------------------------------- |
// | 1     | 1 no certificate is withdrawn, 2 some are                      |
// | …     | settings, as their row                                         |
// | …     | count of nodes, each as its row                                |
// | …     | count of the system group's replicas, 4 bytes each             |
// | bytes | placement table, prefixed                                      |
// | …     | count of moves, each as its row                                |
//
// After a first byte 2 follows the count of withdrawn certificates, each the bytes of a fingerprint,
// in their order. The first byte is a flag: both values belong to one format.

/// Nodes, placement and moves: everything about the cluster that a node must know to take part.
///
/// Invariant: nodes and moves are in the order of their identifiers.
package struct ClusterView: Sendable, Equatable {
    package internal(set) var settings: ClusterSettings
    package internal(set) var nodes: [ClusterNode]
    package internal(set) var systemReplicas: [NodeID]
    package internal(set) var table: PlacementTable
    package internal(set) var moves: [ReplicaMove]
    /// The fingerprints of certificates that no peer takes any more, in their order.
    package internal(set) var withdrawn: [Bytes] = []

    /// Withdrawn certificates that are remembered. One that has expired need not be.
    package static let withdrawnCountMax = 1_000
    /// SHA-256 of a certificate.
    package static let fingerprintSize = 32

    package func node(_ id: NodeID) -> ClusterNode? { self.nodes.first { $0.id == id } }
    package func move(of group: GroupID) -> ReplicaMove? { self.moves.first { $0.group == group } }

    /// Every group there is, the system's first.
    package var groups: [GroupID] { [.system] + self.table.partitions.map(\.group) }

    package func replicas(of group: GroupID) -> [NodeID] {
        PartitionID(group: group).map { self.table.replicas(of: $0) } ?? self.systemReplicas
    }

    mutating func setReplicas(_ nodes: [NodeID], of group: GroupID) {
        if let partition = PartitionID(group: group) {
            self.table.setReplicas(nodes, of: partition)
        } else {
            self.systemReplicas = nodes.sorted()
        }
    }

    /// Groups of which `node` must keep a replica: those placed on it, and those moving to it. It
    /// may delete all others.
    package func groups(keptBy node: NodeID) -> [GroupID] {
        self.groups.filter { group in
            self.replicas(of: group).contains(node) || self.move(of: group)?.to == node
        }
    }

    /// Groups placed on `node`.
    package func groups(on node: NodeID) -> [GroupID] {
        self.groups.filter { self.replicas(of: $0).contains(node) }
    }

    /// Nodes that may be given replicas.
    package var placementNodes: [PlacementNode] { self.nodes.compactMap(\.forPlacement) }
}

extension ClusterView {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 1_024 + self.table.partitionCount * 13)
        writer.write(self.withdrawn.isEmpty ? 1 : 2 as UInt8)
        self.settings.write(to: &writer)
        writer.write(count: self.nodes.count)
        for node in self.nodes { node.write(to: &writer) }
        writer.write(count: self.systemReplicas.count)
        for node in self.systemReplicas { writer.write(fixed: node.raw) }
        writer.write(prefixed: self.table.encoded())
        writer.write(count: self.moves.count)
        for move in self.moves { move.write(to: &writer) }
        if !self.withdrawn.isEmpty {
            writer.write(count: self.withdrawn.count)
            for fingerprint in self.withdrawn { writer.write(prefixed: fingerprint) }
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard (1...2).contains(version) else {
            throw DecodingError(.unknownVersion(version), at: 0)
        }
        self.settings = try ClusterSettings(from: &reader)
        self.nodes = []
        for _ in 0..<(try reader.count(minimumSize: 30)) {
            self.nodes.append(try ClusterNode(from: &reader))
        }
        self.systemReplicas = []
        for _ in 0..<(try reader.count(minimumSize: 4)) {
            self.systemReplicas.append(NodeID(try reader.fixed32()))
        }
        self.table = try PlacementTable(decoding: try reader.prefixed())
        self.moves = []
        for _ in 0..<(try reader.count(minimumSize: 5)) {
            self.moves.append(try ReplicaMove(from: &reader))
        }
        if version == 2 {
            for _ in 0..<(try reader.count()) { self.withdrawn.append(try reader.prefixed()) }
        }
        try reader.finish()
    }
}
