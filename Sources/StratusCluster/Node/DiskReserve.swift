package import StratusModel

/// Decides which groups accept no more data, so that there is room left to delete. It knows the
/// free space of the disks that hold their replicas, and the free space inside each group's file.
///
/// A group accepts data while a majority of its voters has room. Its file never shrinks: space
/// freed in it serves later additions to it, on each of its replicas alike, and no other group.
///
/// A value without I/O. A group that was short of room accepts data again once a quarter more than
/// the reserve is free, so that it does not oscillate.
package struct DiskReserve: Sendable, Equatable {
    /// The space to keep free on each disk; 0: none.
    package var size: ByteCount {
        didSet { if self.size.raw == 0 { self.shortGroups = [] } }
    }
    /// The free space that each node last reported. A node that was not heard of counts as one with
    /// room.
    private var free: [NodeID: UInt64] = [:]
    private var shortGroups: Set<GroupID> = []

    package init(size: ByteCount) { self.size = size }

    private var sizeToComeBack: UInt64 {
        let size = UInt64(max(0, self.size.raw))
        return size + size / 4
    }

    package mutating func note(_ free: UInt64, on node: NodeID) {
        self.free[node] = free
        if !self.isNear { self.shortGroups = [] }
    }

    /// Forgets the disks of nodes that are no longer members.
    package mutating func keep(only nodes: [NodeID]) {
        self.free = self.free.filter { nodes.contains($0.key) }
    }

    package func free(on node: NodeID) -> UInt64? { self.free[node] }

    /// Some disk is near its reserve: groups have to be asked for one by one.
    package var isNear: Bool {
        self.size.raw > 0 && self.free.values.contains { $0 < self.sizeToComeBack }
    }

    /// Whether a node has less than its reserve.
    package func isLow(_ node: NodeID) -> Bool {
        guard let free = self.free[node] else { return false }
        return free < UInt64(max(0, self.size.raw))
    }

    /// Whether the group may take something in.
    /// - Parameter spare: what is free inside its file.
    package mutating func takesIn(_ group: GroupID, on voters: [NodeID], spare: ByteCount) -> Bool {
        guard self.size.raw > 0, !voters.isEmpty else { return true }
        let needed =
            self.shortGroups.contains(group) ? self.sizeToComeBack : UInt64(self.size.raw)
        let roomy = voters.count { node in
            guard let free = self.free[node] else { return true }
            return free + UInt64(max(0, spare.raw)) >= needed
        }
        if roomy >= voters.count / 2 + 1 {
            self.shortGroups.remove(group)
            return true
        }
        self.shortGroups.insert(group)
        return false
    }
}
