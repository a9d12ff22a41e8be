import StratusModel
import StratusPlacement

/// A cluster that changes as clusters do, drawn from a seed.
struct RandomCluster {
    var random: SeededGenerator
    var nodes: [PlacementNode] = []
    var replicaCount: Int
    var table: PlacementTable
    private var nextNode: UInt32 = 1
    private let usesRacks: Bool
    private let usesWeights: Bool

    init(seed: UInt64, partitionBitsMax: Int = 7, nodeCountMax: Int = 14) {
        var random = SeededGenerator(seed: seed)
        self.usesRacks = Bool.random(using: &random)
        self.usesWeights = Bool.random(using: &random)
        self.replicaCount = [1, 2, 3, 3, 3, 5].randomElement(using: &random)!
        let bits = Int.random(in: 0...partitionBitsMax, using: &random)
        self.table = PlacementTable(partitionCount: 1 << bits)
        let count = Int.random(in: 1...nodeCountMax, using: &random)
        self.random = random
        for _ in 0..<count { self.join() }
    }

    mutating func join() {
        self.nodes.append(
            PlacementNode(NodeID(self.nextNode), weight: self.weight(), rack: self.rack()))
        self.nextNode += UInt32.random(in: 1...3, using: &self.random)
    }

    private mutating func weight() -> UInt32 {
        self.usesWeights
            ? [10, 50, 100, 100, 150, 200, 1_000].randomElement(using: &self.random)! : 100
    }

    private mutating func rack() -> String {
        self.usesRacks ? ["", "a", "b", "c", "d"].randomElement(using: &self.random)! : ""
    }

    /// Joins, losses, drains, new weights and racks: one of them, or several at once.
    mutating func change() -> String {
        guard !self.nodes.isEmpty else {
            self.join()
            return "join"
        }
        let victim = Int.random(in: self.nodes.indices, using: &self.random)
        switch Int.random(in: 0..<20, using: &self.random) {
        case 0..<6:
            self.join()
            return "join"
        case 6..<11 where self.nodes.count > 1:
            self.nodes.remove(at: victim)
            return "leave"
        case 11..<13:
            self.nodes[victim].weight = 0
            return "drain"
        case 13..<16:
            self.nodes[victim].weight = self.weight()
            return "weight"
        case 16:
            self.nodes[victim].rack = self.rack()
            return "rack"
        case 17:
            self.replicaCount = [1, 3, 3, 5].randomElement(using: &self.random)!
            return "replica count"
        default:
            self.join()
            self.join()
            if self.nodes.count > 4 { self.nodes.remove(at: victim) }
            return "two join, one leaves"
        }
    }

    /// Fewest replicas that must arrive anywhere, whatever the planner: what partitions have lost,
    /// and what nodes have below the least they should.
    func movesMin(shares: FairShares) -> Int {
        var missing = 0
        for partition in self.table.partitions {
            var perRack = Array(repeating: 0, count: shares.rackCount)
            for node in self.table.replicas(of: partition) {
                guard let place = shares.nodes.firstIndex(where: { $0.id == node }) else {
                    continue
                }
                perRack[shares.racks[place]] += 1
            }
            let kept = perRack.reduce(0) { $0 + min($1, shares.replicasPerRackMax) }
            missing += max(0, shares.replicaCount - kept)
        }
        var lacking = 0
        for (node, share) in zip(shares.nodes, shares.shares) {
            lacking += max(0, share.floor - self.table.partitions(on: node.id).count)
        }
        return max(missing, lacking)
    }
}
