package import StratusModel

/// Decides which nodes should hold which partition.
///
/// Rendezvous hashing proposes, because a node that comes or goes then disturbs no other. Exact
/// quotas decide, because chance alone leaves the busiest of ten nodes a fifth above its share.
/// Swaps settle the rest where racks stand in the way.
///
/// Promises, each a property test:
/// - No node holds more than its share rounded up, nor less than its share rounded down.
/// - No partition has two replicas on one node, nor more in a rack than `FairShares` allows.
/// - Nothing moves that need not, within a tenth; planning again from the target moves nothing.
/// - The same input gives the same plan, on every machine and in every order of `nodes`.
package struct PlacementPlanner: Sendable {
    package var replicaCount: Int

    package init(replicaCount: Int) {
        precondition(replicaCount >= 1, "a partition without replicas is no partition")
        self.replicaCount = replicaCount
    }

    /// - Parameter nodes: those that may hold replicas. All replicas on other nodes, or on nodes of
    ///   weight 0, leave them.
    package func plan(from table: PlacementTable, nodes: [PlacementNode]) -> PlacementPlan {
        let shares = FairShares(
            nodes: nodes, partitionCount: table.partitionCount, replicaCount: self.replicaCount)
        guard shares.replicaCount > 0 else {
            // Nobody may hold anything: what there is stays where it is.
            return PlacementPlan(
                target: table, moves: [],
                shortfalls: [.tooFewNodes(wanted: self.replicaCount, possible: 0)])
        }
        var settlement = Settlement(shares: shares, table: table)
        settlement.fillVacancies()
        settlement.levelDirectly()
        settlement.levelBySwaps()

        var target = table
        var moves: [PlacementPlan.Move] = []
        for partition in table.partitions {
            let before = table.replicas(of: partition)
            let after = settlement.replicas(of: partition)
            target.setReplicas(after, of: partition)
            moves += Self.moves(of: partition, from: before, to: after, shares: shares)
        }
        var shortfalls: [PlacementPlan.Shortfall] = []
        if shares.replicaCount < self.replicaCount {
            shortfalls.append(
                .tooFewNodes(wanted: self.replicaCount, possible: shares.replicaCount))
        }
        if shares.replicasPerRackMax > 1 {
            shortfalls.append(.tooFewRacks(replicasPerRack: shares.replicasPerRackMax))
        }
        if settlement.misplacedCount > 0 {
            shortfalls.append(.unsettled(replicaCount: settlement.misplacedCount))
        }
        return PlacementPlan(
            target: target, moves: Self.ordered(moves), shortfalls: shortfalls)
    }

    /// Pairs newcomers with the nodes they replace, of the same rack if there is one, so that
    /// between two moves of one partition its racks stay apart.
    private static func moves(
        of partition: PartitionID, from before: [NodeID], to after: [NodeID], shares: FairShares
    ) -> [PlacementPlan.Move] {
        var leaving = before.filter { !after.contains($0) }
        var arriving = after.filter { !before.contains($0) }
        guard !leaving.isEmpty || !arriving.isEmpty else { return [] }
        func rack(_ node: NodeID) -> Int? {
            shares.nodes.firstIndex { $0.id == node }.map { shares.racks[$0] }
        }
        var moves: [PlacementPlan.Move] = []
        for old in leaving {
            guard let own = rack(old), let match = arriving.firstIndex(where: { rack($0) == own })
            else { continue }
            moves.append(.init(partition, from: old, to: arriving.remove(at: match)))
            leaving.removeAll { $0 == old }
        }
        for (old, new) in zip(leaving, arriving) {
            moves.append(.init(partition, from: old, to: new))
        }
        for new in arriving.dropFirst(leaving.count) {
            moves.append(.init(partition, from: nil, to: new))
        }
        for old in leaving.dropFirst(arriving.count) {
            moves.append(.init(partition, from: old, to: nil))
        }
        return moves
    }

    private static func ordered(_ moves: [PlacementPlan.Move]) -> [PlacementPlan.Move] {
        moves.filter { $0.from == nil } + moves.filter { $0.from != nil && $0.to != nil }
            + moves.filter { $0.to == nil }
    }
}

extension PlacementTable {
    /// The table of a new cluster, epoch 1. Every node computes the same from the same peers.
    package static func initial(
        nodes: [PlacementNode], partitionCount: Int, replicaCount: Int
    ) -> PlacementTable {
        var table = PlacementPlanner(replicaCount: replicaCount).plan(
            from: PlacementTable(partitionCount: partitionCount), nodes: nodes
        ).target
        table.epoch = 1
        return table
    }

    /// The first table for nodes of equal weight, each a rack of its own.
    package static func initial(
        nodes: [NodeID], partitionCount: Int, replicaCount: Int
    ) -> PlacementTable {
        self.initial(
            nodes: nodes.map { PlacementNode($0) }, partitionCount: partitionCount,
            replicaCount: replicaCount)
    }
}
