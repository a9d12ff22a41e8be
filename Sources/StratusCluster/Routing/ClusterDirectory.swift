package import StratusCoding
package import StratusModel
package import StratusPlacement
import StratusStorage
import Synchronization

// The file VIEW in a data directory, version 1
//
// | bytes | what                                              |
// | ----- | ------------------------------------------------- |
// | 8     | "STRATUSV"                                        |
// | 1     | version, 1                                        |
// | bytes | the view, prefixed                                |
// | 4     | CRC-32C of the bytes before                       |

/// The nodes and the placement as this node knows them: the newest view committed by the system
/// partition that this node has heard of. Routers, links and replicas follow it.
///
/// Promises:
/// - A view counts once it is on disk, so after a restart the node never follows an older one: a
///   replica that a view deleted does not come back as a first voter.
/// - Views only get newer, and are all of one cluster.
package final class ClusterDirectory: Sendable {
    package enum Refusal: Error, Sendable, Equatable, CustomStringConvertible {
        case damaged(String)
        case disk(String)

        package var description: String {
            switch self {
            case .damaged(let what):
                "the file VIEW in the data directory is damaged: \(what). Without it this node does not "
                    + "know which replicas it may keep. \(DataDirectory.rejoin)"
            case .disk(let text): "the file VIEW in the data directory: \(text)"
            }
        }
    }

    package static let path: DiskPath = "VIEW"
    private static let frame = FileFrame("STRATUSV")
    private static let sizeMax = 16 << 20

    package let own: NodeID
    private let files: any Files
    /// The placement when the cluster was formed; nil on a node that came later.
    private let founding: ClusterView?
    private let current: Mutex<ClusterView>
    /// The level of `current`, kept apart because every command asks for it.
    private let newestLevel: Atomic<UInt32>
    private let bugs: PlantedBugs

    /// - Parameters:
    ///   - founding: what the cluster is formed of; for a node that joined, nil.
    package init(
        _ own: NodeID, founding: ClusterView?, in world: any World,
        bugs: PlantedBugs = PlantedBugs()
    ) throws(Refusal) {
        self.own = own
        self.bugs = bugs
        self.files = world.files
        self.founding = founding
        let found: ClusterView
        do {
            if try world.files.exists(Self.path) {
                let bytes = try world.files.contents(of: Self.path, limit: Self.sizeMax)
                let view = try Self.decode(bytes)
                // An earlier process may have died between renaming it and this.
                try world.files.syncDirectory(.root)
                found = view
            } else if let founding {
                found = founding
            } else {
                throw Refusal.damaged("it is missing, and this node joined by it")
            }
        } catch let refusal as Refusal {
            throw refusal
        } catch let error as DecodingError {
            throw .damaged("\(error)")
        } catch { throw .disk("\(error)") }
        self.current = Mutex(found)
        self.newestLevel = Atomic(found.settings.featureLevel)
    }

    /// The cluster's feature level, by the newest view that this node has on its disk.
    package var level: ClusterLevel {
        ClusterLevel { FeatureLevel(self.newestLevel.load(ordering: .relaxed)) }
    }

    package var view: ClusterView { self.current.withLock { $0 } }
    package var revision: UInt64 { self.current.withLock { $0.settings.revision } }

    /// Makes a newer view the one that counts, once it is on disk. May block.
    /// - Returns: whether it was newer.
    package func adopt(_ view: ClusterView) throws(DiskError) -> Bool {
        let now = self.view
        guard view.settings.revision > now.settings.revision,
            view.settings.cluster == now.settings.cluster,
            view.table.partitionCount == now.table.partitionCount
        else { return false }
        if !self.bugs.contains(.viewCountsBeforeDisk) {
            try self.files.replace(Self.path, with: Self.encode(view))
        }
        return self.current.withLock { current in
            guard view.settings.revision > current.settings.revision else { return false }
            current = view
            self.newestLevel.store(view.settings.featureLevel, ordering: .relaxed)
            return true
        }
    }

    // MARK: What follows from it

    package func place(of key: ShardKey) -> PlacedPartition {
        self.current.withLock { view in
            let partition = view.table.partition(of: key)
            return PlacedPartition(
                group: partition.group, replicas: view.table.replicas(of: partition),
                epoch: view.table.epoch)
        }
    }

    /// Nil for a group that there is not.
    package func place(of group: GroupID) -> PlacedPartition? {
        self.current.withLock { view in
            guard Int(group.raw) <= view.table.partitionCount else { return nil }
            return PlacedPartition(
                group: group, replicas: view.replicas(of: group), epoch: view.table.epoch)
        }
    }

    /// Who keeps a replica of the group by the placement, and with those to whom one moves.
    package func keepers(of group: GroupID) -> (placed: Set<NodeID>, all: Set<NodeID>) {
        self.current.withLock { view in
            let placed = Set(view.replicas(of: group))
            return (placed, placed.union(view.move(of: group)?.to.map { [$0] } ?? []))
        }
    }

    /// Whether this node must keep a replica of the group.
    package func keeps(_ group: GroupID) -> Bool {
        self.current.withLock { view in
            guard Int(group.raw) <= view.table.partitionCount else { return false }
            if self.bugs.contains(.deletedBeforeMoved), view.move(of: group)?.from == self.own {
                return false
            }
            return view.replicas(of: group).contains(self.own)
                || view.move(of: group)?.to == self.own
        }
    }

    /// The voters of a replica that begins empty; nil if there is to be no replica. A newcomer
    /// knows no voters: the group's own log tells it.
    package func firstConfiguration(of group: GroupID) -> Configuration? {
        guard self.keeps(group) else { return nil }
        let isArriving = self.current.withLock { $0.move(of: group)?.to == self.own }
        let founders = self.founding?.replicas(of: group) ?? []
        guard !isArriving, founders.contains(self.own) else { return Configuration(voters: []) }
        return Configuration(voters: founders)
    }

    /// The fence of the move that brings a replica here, while it arrives: everything up to it was
    /// committed without it.
    package func silentThrough(of group: GroupID) -> LogIndex {
        self.current.withLock { view in
            guard let move = view.move(of: group), move.to == self.own else { return .zero }
            return move.fence
        }
    }

    /// Everybody this node talks to.
    package var peers: [PeerAddress] {
        self.view.nodes.compactMap { node in
            guard node.isMember, node.id != self.own,
                let (host, port) = Self.parts(of: node.address)
            else { return nil }
            return PeerAddress(node: node.id, name: node.name, host: host, port: port)
        }
    }

    /// The other members that hold replicas.
    package var peersWithReplicas: Set<NodeID> {
        let view = self.view
        var peers = Set(view.systemReplicas)
        for partition in view.table.partitions {
            peers.formUnion(view.table.replicas(of: partition))
        }
        peers.remove(self.own)
        return peers
    }

    /// `host:port`, the host in brackets where it has colons of its own.
    package static func parts(of address: String) -> (host: String, port: UInt16)? {
        guard let colon = address.lastIndex(of: ":"),
            let port = UInt16(address[address.index(after: colon)...]), port > 0
        else { return nil }
        var host = String(address[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        return host.isEmpty ? nil : (host, port)
    }

    // MARK: On disk

    /// Saves the view that a node was admitted with, before ``ClusterFormation`` says that it is a
    /// member.
    package static func keep(_ view: ClusterView, in world: any World) throws(DiskError) {
        try world.files.replace(Self.path, with: Self.encode(view))
    }

    package static func encode(_ view: ClusterView) -> Bytes {
        Self.frame.encode { $0.write(prefixed: view.encoded()) }
    }

    package static func decode(_ bytes: Bytes) throws(DecodingError) -> ClusterView {
        let view = try Self.frame.decode(bytes) { (reader, _) throws(DecodingError) in
            try reader.prefixed()
        }
        return try ClusterView(decoding: view)
    }
}
