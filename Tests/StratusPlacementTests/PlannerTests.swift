import StratusModel
import StratusPlacement
import Testing

/// The planner's promises, on thousands of clusters drawn from seeds.
@Suite struct PlannerTests {
    @Test(arguments: 0..<UInt64(24))
    func `M-15 whatever changes, loads are fair, replicas apart, and little moves`(seed: UInt64) {
        var moved = 0
        var unavoidable = 0
        for number in 0..<12 {
            let clusterSeed = seed * 100 + UInt64(number)
            var cluster = RandomCluster(seed: clusterSeed)
            var history = ["form"]
            for _ in 0..<8 {
                let note = "seed \(clusterSeed): \(history.joined(separator: ", "))"
                let planner = PlacementPlanner(replicaCount: cluster.replicaCount)
                let plan = planner.plan(from: cluster.table, nodes: cluster.nodes)
                let shares = FairShares(
                    nodes: cluster.nodes, partitionCount: cluster.table.partitionCount,
                    replicaCount: cluster.replicaCount)
                guard shares.replicaCount > 0 else {
                    #expect(plan.target == cluster.table && plan.moves.isEmpty, "\(note)")
                    history.append(cluster.change())
                    continue
                }
                Self.expectFair(plan.target, shares, note)
                Self.expectApart(plan.target, shares, note)
                Self.expectStepwise(plan, from: cluster.table, note)
                #expect(
                    !plan.shortfalls.contains {
                        if case .unsettled = $0 { true } else { false }
                    }, "\(note)")
                if history.count > 1 {
                    moved += plan.moves.count { $0.to != nil }
                    unavoidable += cluster.movesMin(shares: shares)
                }
                let again = planner.plan(from: plan.target, nodes: cluster.nodes.reversed())
                #expect(again.moves.isEmpty && again.target == plan.target, "\(note)")
                let shuffled = planner.plan(
                    from: cluster.table, nodes: cluster.nodes.shuffled(using: &cluster.random))
                #expect(shuffled == plan, "\(note)")
                cluster.table = plan.target
                history.append(cluster.change())
            }
        }
        #expect(
            Double(moved) <= 1.10 * Double(unavoidable),
            "seed \(seed): moved \(moved), unavoidable \(unavoidable)")
    }

    /// Every node its share rounded one way or the other, so the busiest within a rounding of it.
    static func expectFair(_ table: PlacementTable, _ shares: FairShares, _ note: String) {
        for (node, share) in zip(shares.nodes, shares.shares) {
            let count = table.partitions(on: node.id).count
            #expect(
                count >= share.floor && count <= share.ceiling,
                "\(note): \(node.id) holds \(count) of \(share.value)")
        }
    }

    static func expectApart(_ table: PlacementTable, _ shares: FairShares, _ note: String) {
        for partition in table.partitions {
            let replicas = table.replicas(of: partition)
            let places = replicas.compactMap { node in
                shares.nodes.firstIndex { $0.id == node }
            }
            #expect(
                places.count == shares.replicaCount && replicas.count == places.count
                    && Set(places).count == places.count, "\(note): \(partition) \(replicas)")
            for rack in 0..<shares.rackCount {
                #expect(
                    places.count { shares.racks[$0] == rack } <= shares.replicasPerRackMax,
                    "\(note): \(partition) \(replicas)")
            }
        }
    }

    /// The moves, one after the other, lead to the target, and each changes one replica.
    static func expectStepwise(
        _ plan: PlacementPlan, from table: PlacementTable, _ note: String
    ) {
        var current = table
        for move in plan.moves {
            var row = current.replicas(of: move.partition)
            if let old = move.from {
                #expect(row.contains(old), "\(note): \(move)")
                row.removeAll { $0 == old }
            }
            if let new = move.to {
                #expect(!row.contains(new), "\(note): \(move)")
                row.append(new)
            }
            current.setReplicas(row, of: move.partition)
        }
        #expect(current == plan.target, "\(note)")
    }

    @Test(arguments: 0..<UInt64(200))
    func `shares fill up evenly until a node or its rack is full`(seed: UInt64) {
        let cluster = RandomCluster(seed: seed, nodeCountMax: 30)
        let shares = FairShares(
            nodes: cluster.nodes, partitionCount: cluster.table.partitionCount,
            replicaCount: cluster.replicaCount)
        let partitions = Double(shares.partitionCount)
        let total = shares.shares.reduce(0) { $0 + $1.value }
        #expect(abs(total - partitions * Double(shares.replicaCount)) < 1e-6, "seed \(seed)")
        // A node with less than another for its weight is full itself, or its rack is.
        let levels = zip(shares.nodes, shares.shares).map { $1.value / Double($0.weight) }
        let top = levels.max() ?? 0
        for (place, share) in shares.shares.enumerated() {
            #expect(share.value <= partitions + 1e-9, "seed \(seed)")
            let rack = shares.racks[place]
            let inRack = shares.nodes.indices.filter { shares.racks[$0] == rack }
            let carried = inRack.reduce(0) { $0 + shares.shares[$1].value }
            let capacity = partitions * Double(min(inRack.count, shares.replicasPerRackMax))
            #expect(carried <= capacity + 1e-6, "seed \(seed)")
            let isFull = share.value > partitions - 1e-9 || carried > capacity - 1e-6
            #expect(isFull || levels[place] > top * (1 - 1e-9), "seed \(seed): \(place)")
        }
        let quotas = shares.quotas(current: shares.nodes.map { _ in 0 })
        #expect(quotas.reduce(0, +) == shares.partitionCount * shares.replicaCount)
    }

    @Test(arguments: [3, 4, 5, 9, 16])
    func `M-15 one node that joins N takes its share from each, and nothing else moves`(count: Int)
    {
        let nodes = (1...count).map { PlacementNode(NodeID(UInt32($0))) }
        let table = PlacementTable.initial(
            nodes: nodes, partitionCount: 256, replicaCount: 3)
        let newcomer = PlacementNode(NodeID(99))
        let plan = PlacementPlanner(replicaCount: 3).plan(from: table, nodes: nodes + [newcomer])
        let share = 256 * 3 / (count + 1)
        #expect(plan.moves.allSatisfy { $0.to == newcomer.id && $0.from != nil })
        #expect(plan.moves.count == share || plan.moves.count == share + 1)
        #expect(Set(plan.moves.map(\.partition)).count == plan.moves.count)
        #expect(plan.shortfalls.isEmpty)
    }

    @Test(arguments: [4, 5, 6, 10])
    func `M-15 one node that leaves loses what it has, and next to nothing else moves`(count: Int) {
        let nodes = (1...count).map { PlacementNode(NodeID(UInt32($0))) }
        let table = PlacementTable.initial(nodes: nodes, partitionCount: 256, replicaCount: 3)
        let plan = PlacementPlanner(replicaCount: 3).plan(
            from: table, nodes: nodes.filter { $0.id != NodeID(4) })
        let lost = table.partitions(on: NodeID(4)).count
        #expect(plan.moves.count { $0.from == NodeID(4) } == lost)
        #expect(Double(plan.moves.count) <= 1.10 * Double(lost))
    }

    @Test func `what cannot be is reported, and the rest is done`() {
        func plan(_ nodes: [PlacementNode], _ replicas: Int = 3) -> PlacementPlan {
            PlacementPlanner(replicaCount: replicas).plan(
                from: PlacementTable(partitionCount: 16), nodes: nodes)
        }
        let one = plan([PlacementNode(NodeID(1))])
        #expect(one.shortfalls == [.tooFewNodes(wanted: 3, possible: 1)])
        #expect(one.target.partitions(on: NodeID(1)).count == 16)

        let racks = ["a", "a", "b", "b"].enumerated().map {
            PlacementNode(NodeID(UInt32($0.offset)), rack: $0.element)
        }
        let two = plan(racks)
        #expect(two.shortfalls == [.tooFewRacks(replicasPerRack: 2)])
        #expect(plan(racks, 5).shortfalls.count == 2)
        #expect(plan(racks + [PlacementNode(NodeID(9), rack: "c")]).shortfalls.isEmpty)

        let nobody = plan([PlacementNode(NodeID(1), weight: 0)])
        #expect(nobody.shortfalls == [.tooFewNodes(wanted: 3, possible: 0)])
        #expect(nobody.moves.isEmpty)
    }

    @Test func `a drained node gives up everything, and undrained gets its share back`() {
        var nodes = (1...4).map { PlacementNode(NodeID(UInt32($0))) }
        let table = PlacementTable.initial(nodes: nodes, partitionCount: 64, replicaCount: 3)
        let planner = PlacementPlanner(replicaCount: 3)
        nodes[2].weight = 0
        let drained = planner.plan(from: table, nodes: nodes)
        #expect(drained.moves.allSatisfy { $0.from == NodeID(3) })
        #expect(drained.moves.count == 48)
        nodes[2].weight = 100
        let back = planner.plan(from: drained.target, nodes: nodes)
        #expect(back.moves.count == 48 && back.moves.allSatisfy { $0.to == NodeID(3) })
    }
}
