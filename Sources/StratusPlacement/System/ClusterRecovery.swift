package import StratusCoding
package import StratusModel

// Recovery, version 1: in a system command and in the file RECOVERED
//
// | bytes | what                                                |
// | ----- | --------------------------------------------------- |
// | 8 + 8 | what the cluster is called from now on: high, low   |
// | 4     | the node that says so                               |
// | …     | count of nodes that are lost, each 4 bytes          |
// | …     | count of groups, each 2 bytes                       |

/// The recovery of a cluster by its survivors after too many nodes were lost for good. Each
/// survivor sends one, and all of them name the same cluster and the same lost nodes.
package struct ClusterRecovery: Sendable, Equatable {
    /// A new identity, so that a lost node that comes back after all belongs to another cluster
    /// than this one.
    package var cluster: ClusterID
    package var node: NodeID
    /// In their order.
    package var lost: [NodeID]
    /// Groups that go on from the replica on ``node`` and no other, in their order.
    package var groups: [GroupID]

    package init(cluster: ClusterID, node: NodeID, lost: [NodeID], groups: [GroupID]) {
        self.cluster = cluster
        self.node = node
        self.lost = lost.sorted()
        self.groups = groups.sorted()
    }

    package func write(to writer: inout ByteWriter) {
        writer.write(fixed: self.cluster.high)
        writer.write(fixed: self.cluster.low)
        writer.write(fixed: self.node.raw)
        writer.write(count: self.lost.count)
        for node in self.lost { writer.write(fixed: node.raw) }
        writer.write(count: self.groups.count)
        for group in self.groups { writer.write(fixed: group.raw) }
    }

    package init(from reader: inout ByteReader) throws(DecodingError) {
        let cluster = ClusterID(high: try reader.fixed64(), low: try reader.fixed64())
        let node = NodeID(try reader.fixed32())
        var lost: [NodeID] = []
        for _ in 0..<(try reader.count(minimumSize: 4)) {
            lost.append(NodeID(try reader.fixed32()))
        }
        var groups: [GroupID] = []
        for _ in 0..<(try reader.count(minimumSize: 2)) {
            groups.append(GroupID(try reader.fixed16()))
        }
        self.init(cluster: cluster, node: node, lost: lost, groups: groups)
    }
}

extension ClusterView {
    /// The view of a recovered node before the system partition confirms it: its groups are on this
    /// node alone, and the lost nodes are gone.
    package func recovered(by recovery: ClusterRecovery) throws(SystemRefusal) -> ClusterView {
        var view = self
        _ = try view.recover(recovery)
        // The counters stay the same, however often this runs: those of the system partition will
        // be higher.
        view.settings = self.settings
        view.settings.cluster = recovery.cluster
        view.table.epoch = self.settings.epoch
        return view
    }

    /// Groups that another member continues alone are left to it.
    mutating func recover(_ recovery: ClusterRecovery) throws(SystemRefusal) -> [Change] {
        guard let own = self.node(recovery.node) else { throw SystemRefusal(.unknownNode) }
        guard own.isMember else { throw SystemRefusal(.nodeRemoved) }
        guard !recovery.lost.contains(recovery.node),
            recovery.lost.allSatisfy({ self.node($0) != nil }),
            recovery.groups.allSatisfy({ Int($0.raw) <= self.table.partitionCount })
        else { throw SystemRefusal(.badRequest) }
        self.settings.cluster = recovery.cluster
        if recovery.groups.contains(.system) { self.liftCounters() }
        var changes: [Change] = []
        for position in self.nodes.indices
        where recovery.lost.contains(self.nodes[position].id) && self.nodes[position].isMember {
            self.nodes[position].state = .removed
            self.nodes[position].leavesWhenEmpty = false
            changes.append(.node(self.nodes[position].id))
        }
        for group in recovery.groups {
            let replicas = self.replicas(of: group)
            if replicas.count == 1, replicas != [recovery.node],
                self.node(replicas[0])?.isMember == true
            {
                continue
            }
            self.moves.removeAll { $0.group == group }
            self.setReplicas([recovery.node], of: group)
            changes += [.replicas(group), .move(group)]
        }
        self.raiseEpoch()
        return changes
    }

    /// Others may have seen later views, numbers and nodes than these rows know of.
    private mutating func liftCounters() {
        func lifted(_ number: UInt64) -> UInt64 { (number >> 32 + 1) << 32 }
        self.settings.revision = lifted(self.settings.revision)
        self.settings.epoch = lifted(self.settings.epoch)
        self.settings.nextNode = (self.settings.nextNode >> 12 + 1) << 12
    }
}
