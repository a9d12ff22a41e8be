package import StratusModel

/// Which nodes hold polls that wait for changes of which databases, as this node has heard.
///
/// A hint and no more: a poll that nobody tells of a change finds it at its next look. So what is
/// out of date, or beyond a bound, costs time and loses nothing. Databases are named by 64 bits;
/// two that share a name wake each other's polls.
package struct Attendance: Sendable, Equatable {
    /// Databases kept of one node. Of more, changes are found by looking.
    package static let databaseCountMax = 65_536
    /// How often a node says all of its own again.
    package static let repeatInterval: Duration = .seconds(30)
    /// A node that was not heard for so long holds no polls here.
    package static let life: Duration = .seconds(75)

    private struct Peer: Sendable, Equatable {
        var databases: Set<UInt64> = []
        var heardAt: MonotonicTime
    }

    private var peers: [NodeID: Peer] = [:]
    private let bugs: PlantedBugs

    package init(bugs: PlantedBugs = PlantedBugs()) { self.bugs = bugs }

    /// - Parameter isWhole: whether the node's polls wait for no others.
    package mutating func heard(
        from node: NodeID, _ databases: [UInt64], isWhole: Bool, at now: MonotonicTime
    ) {
        var peer = self.peers[node] ?? Peer(heardAt: now)
        if isWhole || self.bugs.contains(.attendanceReplaced) { peer.databases = [] }
        for database in databases where peer.databases.count < Self.databaseCountMax {
            peer.databases.insert(database)
        }
        peer.heardAt = now
        self.peers[node] = peer
    }

    /// The nodes to tell of a change, in their order.
    package mutating func listeners(of database: UInt64, at now: MonotonicTime) -> [NodeID] {
        for (node, peer) in self.peers where now - peer.heardAt > Self.life {
            self.peers[node] = nil
        }
        return self.peers.filter { $0.value.databases.contains(database) }.keys.sorted()
    }

    /// The 64 bits that name a database among nodes: FNV-1a of its parts.
    package static func name(of database: DatabaseID) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        func add(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        add(database.container.environment.rawValue)
        add(database.scope.rawValue)
        for byte in database.container.container.utf8 { add(byte) }
        add(0)
        for byte in database.owner.utf8 { add(byte) }
        // A part has events of its own.
        if let bucket = database.bucket {
            add(0)
            add(bucket.number)
        }
        return hash
    }
}
