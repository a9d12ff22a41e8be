package import StratusCoding
package import StratusModel
package import StratusPlacement
import StratusSealing
import StratusStorage

// The file CLUSTER in a data directory
//
// | bytes  | what                                                              |
// | ------ | ----------------------------------------------------------------- |
// | 8      | "STRATUSC"                                                        |
// | 1      | 1 this node was there at first, 2 it joined, 3 it was converted   |
// | 8 + 8  | the cluster                                                       |
// | 4      | this node                                                         |
// | 2      | number of partitions                                              |
// | count  | the nodes the cluster was formed of, each 4 bytes and a text name |
// | 4      | CRC-32C of the bytes before                                       |
//
// The second field is a flag: its values belong to one format. 2 is a node that joined later: after
// the number of partitions its name, and no nodes. 3 is a node that served alone and was converted:
// after the number of partitions the feature level that its cluster begins at, 4 bytes; then the
// nodes, which is itself alone.

/// The nodes that a cluster was formed of, and which of them this is.
///
/// Written at a node's first start and the same ever after. Addresses may change and the cluster
/// may grow, but the first voters of a group never change. Only a recovery (``Salvage``) gives the
/// cluster another name.
package struct ClusterFormation: Sendable, Equatable {
    package struct Member: Sendable, Equatable {
        package var node: NodeID
        package var name: String
    }

    /// One entry of a peer list.
    package struct Peer: Sendable, Equatable {
        package var name: String
        package var host: String
        package var port: UInt16

        package init(name: String, host: String, port: UInt16) {
            self.name = name
            self.host = host
            self.port = port
        }
    }

    package enum Refusal: Error, Sendable, Equatable, CustomStringConvertible {
        case damaged(String)
        case disk(String)
        /// The directory was made for another node or cluster than the configuration says.
        case another(String)

        package var description: String {
            switch self {
            case .damaged(let what):
                "the file CLUSTER in the data directory is damaged: \(what). Without it this node does not "
                    + "know which it is. \(DataDirectory.rejoin)"
            case .disk(let text): text
            case .another(let what): what
            }
        }
    }

    package static let replicaCount = 3
    static let stamp: DiskPath = "CLUSTER"
    private static let frame = FileFrame("STRATUSC", versions: 1...3)
    private static let aloneName = "local"

    package let cluster: ClusterID
    package let node: NodeID
    package let partitionCount: Int
    /// In the order of their numbers; empty on a node that joined later, which founded nothing.
    package let members: [Member]
    private let ownName: String
    /// The level that the cluster begins at, on the node that served alone before it. Nil on every
    /// other node.
    package let convertedLevel: UInt32?

    /// A node that serves alone. It needs no secret: nobody else is let in.
    package init(alone identity: RequestIdentity, partitionCount: Int) {
        self.cluster = ClusterID(high: identity.high, low: identity.low)
        self.node = NodeID(1)
        self.partitionCount = partitionCount
        self.members = [Member(node: NodeID(1), name: Self.aloneName)]
        self.ownName = Self.aloneName
        self.convertedLevel = nil
    }

    /// The first node of a cluster, which served alone until now. The cluster keeps the identity of
    /// its data.
    ///
    /// - Parameter level: that its rows were written at.
    package init(converting alone: ClusterFormation, to name: String, level: UInt32) {
        precondition(alone.isAlone, "only a node that serves alone is converted")
        self.cluster = alone.cluster
        self.node = alone.node
        self.partitionCount = alone.partitionCount
        self.members = [Member(node: alone.node, name: name)]
        self.ownName = name
        self.convertedLevel = level
    }

    /// The cluster of a peer list and a secret: equal for equal input, in any order of the list.
    ///
    /// - Parameter name: this node's, one of `peers`.
    package init(peers: [Peer], name: String, secret: Bytes, partitionCount: Int) {
        let sorted = peers.sorted { $0.name < $1.name }
        guard let own = sorted.firstIndex(where: { $0.name == name }) else {
            preconditionFailure("'\(name)' is not in the list of peers")
        }
        var writer = ByteWriter()
        writer.write(text: "stratus cluster 1")
        writer.write(prefixed: secret)
        writer.write(count: partitionCount)
        for peer in sorted {
            writer.write(text: peer.name)
            writer.write(text: peer.host)
            writer.write(fixed: peer.port)
        }
        self.cluster = Self.name(from: writer.bytes)
        self.node = NodeID(UInt32(own + 1))
        self.partitionCount = partitionCount
        self.members = sorted.enumerated().map {
            Member(node: NodeID(UInt32($0.offset + 1)), name: $0.element.name)
        }
        self.ownName = name
        self.convertedLevel = nil
    }

    /// The formation of a node that the cluster has admitted.
    package init(joined cluster: ClusterID, as node: NodeID, name: String, partitionCount: Int) {
        self.cluster = cluster
        self.node = node
        self.partitionCount = partitionCount
        self.members = []
        self.ownName = name
        self.convertedLevel = nil
    }

    /// Derives the cluster identity from bytes that all its nodes know.
    static func name(from bytes: Bytes) -> ClusterID {
        let hash = SHA256.hash(bytes)
        func word(_ start: Int) -> UInt64 {
            hash[start..<(start + 8)].reduce(0) { $0 << 8 | UInt64($1) }
        }
        return ClusterID(high: word(0), low: word(8))
    }

    private init(_ other: ClusterFormation, cluster: ClusterID) {
        self.cluster = cluster
        self.node = other.node
        self.partitionCount = other.partitionCount
        self.members = other.members
        self.ownName = other.ownName
        self.convertedLevel = other.convertedLevel
    }

    /// The same of a cluster that goes on under another name, without those it has lost.
    func renamed(_ cluster: ClusterID) -> ClusterFormation {
        ClusterFormation(self, cluster: cluster)
    }

    /// A key that all nodes of the cluster have and nobody else.
    package static func key(for purpose: String, secret: Bytes) -> Bytes {
        var writer = ByteWriter()
        writer.write(text: "stratus key 1")
        writer.write(text: purpose)
        writer.write(prefixed: secret)
        return SHA256.hash(writer.bytes)
    }

    package var name: String { self.ownName }
    package var isFounder: Bool { !self.members.isEmpty }
    /// Whether the node serves alone, and belongs to no cluster.
    package var isAlone: Bool {
        self.members.count == 1 && self.ownName == Self.aloneName && self.convertedLevel == nil
    }

    /// The placement before the first change of the table.
    package var table: PlacementTable {
        .initial(
            nodes: self.members.map(\.node), partitionCount: self.partitionCount,
            replicaCount: min(Self.replicaCount, self.members.count))
    }

    /// The formation command that every founder sends.
    /// - Parameters:
    ///   - addresses: by name; a founder without one uses its name.
    ///   - master: the sealed master value of a converted node.
    package func formation(addresses: [String: String] = [:], master: Bytes? = nil) -> Formation {
        Formation(
            cluster: self.cluster, partitionCount: self.partitionCount,
            replicaCount: Self.replicaCount,
            nodes: self.members.map {
                ClusterNode(
                    id: $0.node, name: $0.name, address: addresses[$0.name] ?? $0.name,
                    featureLevel: self.convertedLevel ?? 1)
            },
            converted: self.convertedLevel.map {
                Formation.Converted(featureLevel: $0, master: master ?? [])
            })
    }

    // MARK: On disk

    /// Reads the cluster that a data directory was made for; nil before its first start.
    package static func kept(in world: any World) throws(Refusal) -> ClusterFormation? {
        do {
            guard try world.files.exists(Self.stamp) else { return nil }
            return try Self(decoding: try world.files.contents(of: Self.stamp, limit: 1 << 20))
        } catch let error as DecodingError {
            throw .damaged("\(error)")
        } catch { throw .disk("\(error)") }
    }

    /// Writes down that this node was admitted.
    package func keep(in world: any World) throws(DiskError) {
        try world.files.replace(Self.stamp, with: self.encoded())
    }

    /// Returns the cluster that the data directory was made for; at its first start that is `self`.
    package func adopted(in world: any World) throws(Refusal) -> ClusterFormation {
        do {
            let files = world.files
            guard try files.exists(Self.stamp) else {
                if try files.exists("local") {
                    throw Refusal.another(
                        "the data was written by a version of Stratus from before clusters, "
                            + "which this one cannot read: export it with that version, or begin "
                            + "with an empty directory"
                    )
                }
                try files.replace(Self.stamp, with: self.encoded())
                return self
            }
            let kept = try Self(decoding: try files.contents(of: Self.stamp, limit: 1 << 20))
            if self.isAlone, !kept.isAlone {
                throw Refusal.another(
                    "the data directory belongs to node '\(kept.name)' of a cluster, and the "
                        + "configuration is for a node that serves alone: bring its 'cluster' "
                        + "section back")
            }
            if kept.isAlone, !self.isAlone {
                throw Refusal.another(
                    "the data directory belongs to a node that serves alone: run 'stratus "
                        + "cluster convert --config FILE' to make it the first node of a cluster")
            }
            guard kept.name == self.name,
                !kept.isFounder || kept.members.count == 1 || self.members.count > 1
            else {
                throw Refusal.another(
                    "the data directory belongs to node '\(kept.name)' of a cluster of "
                        + "\(kept.members.count); the configuration is for '\(self.name)'")
            }
            return kept
        } catch let refusal as Refusal {
            throw refusal
        } catch let error as DecodingError {
            throw .damaged("\(error)")
        } catch { throw .disk("\(error)") }
    }

    package func encoded() -> Bytes {
        let version: UInt8 = self.convertedLevel != nil ? 3 : self.isFounder ? 1 : 2
        return Self.frame.encode(version: version) { writer in
            writer.write(fixed: self.cluster.high)
            writer.write(fixed: self.cluster.low)
            writer.write(fixed: self.node.raw)
            writer.write(fixed: UInt16(self.partitionCount))
            if !self.isFounder { writer.write(text: self.ownName) }
            if let convertedLevel { writer.write(fixed: convertedLevel) }
            writer.write(count: self.members.count)
            for member in self.members {
                writer.write(fixed: member.node.raw)
                writer.write(text: member.name)
            }
        }
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        self = try Self.frame.decode(bytes) { (reader, version) throws(DecodingError) in
            try ClusterFormation(from: &reader, version: version)
        }
    }

    private init(from reader: inout ByteReader, version: UInt8) throws(DecodingError) {
        self.cluster = ClusterID(high: try reader.fixed64(), low: try reader.fixed64())
        self.node = NodeID(try reader.fixed32())
        self.partitionCount = Int(try reader.fixed16())
        let name = version == 2 ? try reader.text() : ""
        self.convertedLevel = version == 3 ? try reader.fixed32() : nil
        var members: [Member] = []
        for _ in 0..<(try reader.count(minimumSize: 5)) {
            members.append(
                Member(node: NodeID(try reader.fixed32()), name: try reader.text()))
        }
        self.members = members
        let node = self.node
        self.ownName =
            version == 2 ? name : members.first { $0.node == node }?.name ?? "\(node)"
        guard PlacementTable.isPartitionCount(self.partitionCount),
            version == 2 ? members.isEmpty : members.contains(where: { $0.node == node }),
            version != 3 || members.count == 1
        else { throw DecodingError(.malformed, at: reader.offset) }
    }
}
