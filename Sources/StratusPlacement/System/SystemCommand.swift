package import StratusCoding
package import StratusModel

// System command, version 1: the body of a `Command` of kind `.system`
//
// | bytes | what                                                                             |
// | ----- | -------------------------------------------------------------------------------- |
// | 1     | version, 1                                                                       |
// | 1     | kind, then                                                                       |
// |       | 1 form: 8 + 8 cluster, 1 log2 of partitions, 1 replicas, count of nodes as rows, |
// |       |   flag around a converted node: varint feature level, bytes master              |
// |       | 2 add token: bytes hash, 8 expires; 3 revoke token: bytes hash                   |
// |       | 4 join: bytes token hash, a node as its row                                      |
// |       | 5 announce: a node as its row                                                    |
// |       | 6 drain: 4 node, flag leaves when empty, flag accepted replicas, varint          |
// |       | 7 undrain: 4 node; 8 remove: 4 node, flag accepted losses, varint                |
// |       | 9 configure: 4 node, flag weight, varint, optional text rack                     |
// |       | 10 begin move: a move as its row                                                 |
// |       | 11 finish, 12 abandon, 13 fence move: 2 group, varints number and index          |
// |       | 14 raise: varint feature level; 15 recover: a recovery                           |
// |       | 16 withdraw, 17 restore certificate: bytes fingerprint                           |

/// A command to the system partition.
package enum SystemCommand: Sendable, Equatable {
    /// Makes the cluster, exactly once. The same formation again is no error.
    case form(Formation)
    case addToken(hash: Bytes, expiresMilliseconds: Int64)
    case revokeToken(hash: Bytes)
    /// Admits a node. The state assigns its identifier: the one in `node` is ignored. A repeated
    /// join with the same key gets the same identifier.
    case join(ClusterNode, tokenHash: Bytes)
    /// A node says who it is now: incarnation, directory, address, feature level.
    case announce(ClusterNode)
    /// - Parameter acceptedReplicaCount: the operator knows that only so many replicas remain
    ///   possible.
    case drain(NodeID, leavesWhenEmpty: Bool, acceptedReplicaCount: Int?)
    case undrain(NodeID)
    /// - Parameter acceptedLossCount: the operator knows that so many groups lose their majority.
    case remove(NodeID, acceptedLossCount: Int?)
    case configure(NodeID, weight: UInt32?, rack: String?)
    /// Its number is given by the state. Its fence is the group's configuration as it is now.
    case beginMove(ReplicaMove)
    /// The group's configuration is at `index` now: what was decided before is void.
    case fenceMove(GroupID, number: UInt64, at: LogIndex)
    /// The group's committed configuration says that it is done.
    case finishMove(GroupID, number: UInt64)
    /// Ends a move whose newcomer appears nowhere in the group's committed configuration at
    /// `index`. Refused unless that index is past the fence: a step on its way could still change
    /// the configuration at the fence.
    case abandonMove(GroupID, number: UInt64, at: LogIndex)
    case raiseFeatureLevel(UInt32)
    /// Sent by Stratus itself, for a node that was recovered offline. Applied once for each node
    /// and cluster identity: a later one would undo what has happened since.
    case recover(ClusterRecovery)
    /// Peers refuse the certificate with this fingerprint from now on, whoever shows it.
    case withdrawCertificate(Bytes)
    /// Takes a withdrawal back.
    case restoreCertificate(Bytes)
}

/// The initial content of a cluster. Every node of a peer list makes the same one.
package struct Formation: Sendable, Equatable {
    package var cluster: ClusterID
    package var partitionCount: Int
    package var replicaCount: Int
    /// The peers, who are also the first system group.
    package var nodes: [ClusterNode]
    /// What a node brings that served alone before; nil for a cluster that begins empty.
    package var converted: Converted?

    /// The rows of a node that served alone hold whatever its build writes, and its names come from
    /// a key of its own.
    package struct Converted: Sendable, Equatable {
        /// The level that the cluster begins at.
        package var featureLevel: UInt32
        /// The master value, sealed under the cluster's secret.
        package var master: Bytes

        package init(featureLevel: UInt32, master: Bytes) {
            self.featureLevel = featureLevel
            self.master = master
        }
    }

    package static let replicaCountMax = 7
    /// The most bytes of a sealed master value: it stands in every copy of the view.
    package static let masterSizeMax = ByteCount.kibibytes(8)

    static func isMaster(_ bytes: Bytes) -> Bool {
        !bytes.isEmpty && bytes.count <= Self.masterSizeMax.raw
    }

    /// The first system group of a list of peers: all of a short list, five of a long one.
    package static func systemReplicas(of nodes: [NodeID]) -> [NodeID] {
        Array(nodes.sorted().prefix(5))
    }

    package init(
        cluster: ClusterID, partitionCount: Int = PlacementTable.ordinaryPartitionCount,
        replicaCount: Int = 3, nodes: [ClusterNode], converted: Converted? = nil
    ) {
        self.cluster = cluster
        self.partitionCount = partitionCount
        self.replicaCount = replicaCount
        self.nodes = nodes.sorted { $0.id < $1.id }
        self.converted = converted
    }
}

extension SystemCommand {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 256)
        writer.write(1 as UInt8)
        switch self {
        case .form(let formation):
            writer.write(self.number)
            formation.write(to: &writer)
        case .addToken(let hash, let expires):
            writer.write(2 as UInt8)
            writer.write(prefixed: hash)
            writer.write(fixed: UInt64(bitPattern: expires))
        case .revokeToken(let hash):
            writer.write(3 as UInt8)
            writer.write(prefixed: hash)
        case .join(let node, let tokenHash):
            writer.write(4 as UInt8)
            writer.write(prefixed: tokenHash)
            node.write(to: &writer)
        case .announce(let node):
            writer.write(5 as UInt8)
            node.write(to: &writer)
        case .drain(let node, let leaves, let accepted):
            writer.write(6 as UInt8)
            writer.write(fixed: node.raw)
            writer.write(flag: leaves)
            writer.write(optionalCount: accepted)
        case .undrain(let node):
            writer.write(7 as UInt8)
            writer.write(fixed: node.raw)
        case .remove(let node, let accepted):
            writer.write(8 as UInt8)
            writer.write(fixed: node.raw)
            writer.write(optionalCount: accepted)
        case .configure(let node, let weight, let rack):
            writer.write(9 as UInt8)
            writer.write(fixed: node.raw)
            writer.write(optionalCount: weight.map { Int($0) })
            writer.write(optionalText: rack)
        case .beginMove(let move):
            writer.write(10 as UInt8)
            move.write(to: &writer)
        case .fenceMove(let group, let number, let index):
            writer.write(13 as UInt8)
            writer.write(group, number, index)
        case .finishMove(let group, let number):
            writer.write(11 as UInt8)
            writer.write(group, number, .zero)
        case .abandonMove(let group, let number, let index):
            writer.write(12 as UInt8)
            writer.write(group, number, index)
        case .raiseFeatureLevel(let level):
            writer.write(14 as UInt8)
            writer.write(varint: UInt64(level))
        case .recover(let recovery):
            writer.write(15 as UInt8)
            recovery.write(to: &writer)
        case .withdrawCertificate(let fingerprint), .restoreCertificate(let fingerprint):
            writer.write(self.number)
            writer.write(prefixed: fingerprint)
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        self = try Self.read(try reader.byte(), &reader)
        try reader.finish()
    }

    private static func read(_ kind: UInt8, _ reader: inout ByteReader) throws(DecodingError)
        -> SystemCommand
    {
        switch kind {
        case 1: return .form(try Formation(from: &reader))
        case 2:
            return .addToken(
                hash: try reader.prefixed(),
                expiresMilliseconds: Int64(bitPattern: try reader.fixed64()))
        case 3: return .revokeToken(hash: try reader.prefixed())
        case 4:
            let hash = try reader.prefixed()
            return .join(try ClusterNode(from: &reader), tokenHash: hash)
        case 5: return .announce(try ClusterNode(from: &reader))
        case 6:
            return .drain(
                NodeID(try reader.fixed32()), leavesWhenEmpty: try reader.flag(),
                acceptedReplicaCount: try reader.optionalCount())
        case 7: return .undrain(NodeID(try reader.fixed32()))
        case 8:
            return .remove(
                NodeID(try reader.fixed32()), acceptedLossCount: try reader.optionalCount())
        case 9:
            return .configure(
                NodeID(try reader.fixed32()),
                weight: try reader.optionalCount().map { UInt32($0) },
                rack: try reader.optionalText())
        case 10: return .beginMove(try ReplicaMove(from: &reader))
        case 11, 12, 13:
            let group = GroupID(try reader.fixed16())
            let number = try reader.varint()
            let index = LogIndex(try reader.varint())
            if kind == 11 { return .finishMove(group, number: number) }
            return kind == 12
                ? .abandonMove(group, number: number, at: index)
                : .fenceMove(group, number: number, at: index)
        case 14: return .raiseFeatureLevel(try reader.number(max: .max))
        case 15: return .recover(try ClusterRecovery(from: &reader))
        case 16: return .withdrawCertificate(try reader.prefixed())
        case 17: return .restoreCertificate(try reader.prefixed())
        default: throw DecodingError(.malformed, at: 1)
        }
    }
}

/// No container is meant by it, and its refusals are outcomes.
extension SystemCommand: Submittable {
    package typealias Refusal = String
    package static var family: Command.Kind { .system }

    package static func outcome(decoding body: Bytes, detail: Bytes) throws -> SystemOutcome {
        try SystemOutcome(decoding: body)
    }
}

extension Formation {
    fileprivate func write(to writer: inout ByteWriter) {
        writer.write(fixed: self.cluster.high)
        writer.write(fixed: self.cluster.low)
        writer.write(UInt8(self.partitionCount.trailingZeroBitCount))
        writer.write(UInt8(self.replicaCount))
        writer.write(count: self.nodes.count)
        for node in self.nodes { node.write(to: &writer) }
        writer.write(flag: self.converted != nil)
        if let converted {
            writer.write(varint: UInt64(converted.featureLevel))
            writer.write(prefixed: converted.master)
        }
    }

    fileprivate init(from reader: inout ByteReader) throws(DecodingError) {
        let cluster = ClusterID(high: try reader.fixed64(), low: try reader.fixed64())
        let bits = try reader.byte()
        guard bits <= 12 else { throw DecodingError(.malformed, at: reader.offset - 1) }
        let replicaCount = Int(try reader.byte())
        var nodes: [ClusterNode] = []
        for _ in 0..<(try reader.count(minimumSize: 30)) {
            nodes.append(try ClusterNode(from: &reader))
        }
        self.init(
            cluster: cluster, partitionCount: 1 << Int(bits), replicaCount: replicaCount,
            nodes: nodes)
        if try reader.flag() {
            self.converted = Converted(
                featureLevel: try reader.number(max: .max), master: try reader.prefixed())
        }
    }
}

extension ByteWriter {
    mutating func write(_ group: GroupID, _ number: UInt64, _ index: LogIndex) {
        self.write(fixed: group.raw)
        self.write(varint: number)
        self.write(varint: index.raw)
    }

    mutating func write(optionalCount count: Int?) {
        self.write(flag: count != nil)
        if let count { self.write(varint: UInt64(max(0, count))) }
    }
}

extension ByteReader {
    mutating func optionalCount() throws(DecodingError) -> Int? {
        try self.flag() ? Int(try self.number(max: .max)) : nil
    }
}
