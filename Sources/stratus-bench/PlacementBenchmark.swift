import StratusModel
import StratusPlacement

extension Benchmark {
    /// `stratus-bench placement [--histories N]`
    static let placement = Benchmark(
        name: "placement", summary: "CPU time, balance and movement of plans up to 1,000 nodes"
    ) { arguments in
        print("nodes\tpartitions\tracks\twhat\tms\tmoved\tleast\tratio\tbusiest/share")
        for (nodes, partitions) in [(3, 256), (10, 256), (100, 4_096), (1_000, 4_096)] {
            for racks in [0, 8] where nodes >= racks {
                Self.life(of: nodes, partitions: partitions, racks: racks)
            }
        }
        let histories = Int(Self.option("histories", in: arguments) ?? "") ?? 200
        Self.randomHistories(histories)
    }

    /// Forms a cluster, then changes it as operators do.
    private static func life(of count: Int, partitions: Int, racks: Int) {
        var random = SeededGenerator(seed: UInt64(count))
        func node(_ number: Int, weight: UInt32 = 100) -> PlacementNode {
            PlacementNode(
                NodeID(UInt32(number)), weight: weight,
                rack: racks == 0 ? "" : "rack \(number % racks)")
        }
        var nodes = (1...count).map { node($0) }
        var table = PlacementTable(partitionCount: partitions)
        var next = count + 1
        func step(_ name: String) {
            table = Self.measure(name, table, nodes, racks: racks, size: count)
        }
        step("form")
        nodes.append(node(next))
        next += 1
        step("one joins")
        nodes.remove(at: nodes.count / 2)
        step("one is lost")
        for _ in 0..<max(1, count / 10) {
            nodes.append(node(next))
            next += 1
        }
        step("a tenth join")
        for _ in 0..<max(1, count / 10) {
            nodes.remove(at: Int.random(in: nodes.indices, using: &random))
        }
        step("a tenth are lost")
        for place in nodes.indices {
            nodes[place].weight = [50, 100, 100, 200].randomElement(using: &random)!
        }
        step("weights differ")
    }

    private static func measure(
        _ name: String, _ table: PlacementTable, _ nodes: [PlacementNode], racks: Int, size: Int
    ) -> PlacementTable {
        let planner = PlacementPlanner(replicaCount: 3)
        var plan = planner.plan(from: table, nodes: nodes)
        var times: [Int64] = []
        for _ in 0..<5 {
            let start = ConsensusRoom.processorNanoseconds
            plan = planner.plan(from: table, nodes: nodes)
            times.append(ConsensusRoom.processorNanoseconds - start)
        }
        times.sort()
        let shares = FairShares(
            nodes: nodes, partitionCount: table.partitionCount, replicaCount: 3)
        let moved = plan.moves.count { $0.to != nil }
        let least = Self.movesMin(table, shares)
        let ratio = least == 0 ? 1 : Double(moved) / Double(least)
        let counts = Self.counts(plan.target)
        let busiest =
            zip(shares.nodes, shares.shares).map {
                Double(counts[$0.id] ?? 0) / $1.value
            }.max() ?? 0
        print(
            "\(size)\t\(table.partitionCount)\t\(racks)\t\(name)\t"
                + "\(Double(times[2] / 10_000) / 100)\t\(moved)\t\(least)\t"
                + "\(Self.rounded(ratio))\t\(Self.rounded(busiest))")
        return plan.target
    }

    private static func counts(_ table: PlacementTable) -> [NodeID: Int] {
        var counts: [NodeID: Int] = [:]
        for partition in table.partitions {
            for node in table.replicas(of: partition) { counts[node, default: 0] += 1 }
        }
        return counts
    }

    /// The fewest replicas that must arrive anywhere, with any planner: those that partitions have
    /// lost, and those that nodes lack to reach their share rounded down.
    private static func movesMin(_ table: PlacementTable, _ shares: FairShares) -> Int {
        let present = Set(shares.nodes.map(\.id))
        let missing = table.partitions.reduce(0) { sum, partition in
            sum
                + max(
                    0,
                    shares.replicaCount
                        - table.replicas(of: partition).count { present.contains($0) })
        }
        let counts = Self.counts(table)
        let lacking = zip(shares.nodes, shares.shares).reduce(0) {
            $0 + max(0, $1.1.floor - (counts[$1.0.id] ?? 0))
        }
        return max(missing, lacking)
    }

    private static func rounded(_ value: Double) -> Double { (value * 1_000).rounded() / 1_000 }

    /// Small clusters with uneven weights and racks, each changed forty times: all movement
    /// compared with the unavoidable part.
    private static func randomHistories(_ count: Int) {
        var moved = 0
        var least = 0
        var plans = 0
        var unsettled = 0
        for seed in 0..<count {
            var random = SeededGenerator(seed: UInt64(seed))
            var nodes: [PlacementNode] = []
            var next: UInt32 = 1
            func join() {
                nodes.append(
                    PlacementNode(
                        NodeID(next), weight: [50, 100, 100, 200].randomElement(using: &random)!,
                        rack: ["", "a", "b", "c", "d"].randomElement(using: &random)!))
                next += 1
            }
            for _ in 0..<Int.random(in: 3...20, using: &random) { join() }
            let planner = PlacementPlanner(replicaCount: 3)
            var table = planner.plan(from: PlacementTable(partitionCount: 128), nodes: nodes).target
            for _ in 0..<40 {
                if nodes.count <= 3 || Bool.random(using: &random) {
                    join()
                } else {
                    nodes.remove(at: Int.random(in: nodes.indices, using: &random))
                }
                let shares = FairShares(nodes: nodes, partitionCount: 128, replicaCount: 3)
                let plan = planner.plan(from: table, nodes: nodes)
                moved += plan.moves.count { $0.to != nil }
                least += Self.movesMin(table, shares)
                plans += 1
                for case .unsettled in plan.shortfalls { unsettled += 1 }
                table = plan.target
            }
        }
        print(
            "random histories\t\(count) clusters, \(plans) plans\tmoved \(moved)\tleast \(least)\t"
                + "ratio \(Self.rounded(Double(moved) / Double(max(1, least))))\t"
                + "unsettled \(unsettled)")
    }
}
