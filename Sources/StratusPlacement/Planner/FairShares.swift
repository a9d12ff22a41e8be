import StratusModel

/// The number of replicas each node should carry: its weight's part of all, as far as the
/// constraints allow.
///
/// No node holds a partition twice and no rack holds more than ``replicasPerRackMax`` of one, so a
/// heavy node or rack may be unable to carry its part; what it cannot, the others carry by weight
/// (progressive filling). Exact: shares are fractions of integers.
package struct FairShares: Sendable, Equatable {
    /// `numerator / denominator` replicas.
    package struct Share: Sendable, Equatable {
        package var numerator: Int
        package var denominator: Int

        package var floor: Int { self.numerator / self.denominator }
        package var ceiling: Int { (self.numerator + self.denominator - 1) / self.denominator }
        package var value: Double { Double(self.numerator) / Double(self.denominator) }
    }

    /// Only nodes with a weight, ascending by identifier.
    package let nodes: [PlacementNode]
    /// The rack of each node, counted from 0.
    package let racks: [Int]
    package let rackCount: Int
    package let partitionCount: Int
    /// The replicas of each partition: fewer than wanted if there are fewer nodes.
    package let replicaCount: Int
    /// The fewest that lets every partition have its replicas.
    package let replicasPerRackMax: Int
    /// In the order of ``nodes``.
    package private(set) var shares: [Share]
    /// Shares of one number filled up together, and their sum is whole.
    private var fillings: [Int]

    package init(nodes all: [PlacementNode], partitionCount: Int, replicaCount wanted: Int) {
        precondition(wanted >= 1, "a partition without replicas is no partition")
        let nodes = all.filter { $0.weight > 0 }.sorted { $0.id < $1.id }
        precondition(
            !zip(nodes, nodes.dropFirst()).contains { $0.id == $1.id }, "a node twice in a plan")
        self.nodes = nodes
        self.partitionCount = partitionCount
        self.replicaCount = min(wanted, nodes.count)

        var numbers: [String: Int] = [:]
        var racks: [Int] = []
        var sizes: [Int] = []
        for node in nodes {
            let known = node.rack.isEmpty ? nil : numbers[node.rack]
            let rack = known ?? sizes.count
            if known == nil {
                sizes.append(0)
                if !node.rack.isEmpty { numbers[node.rack] = rack }
            }
            sizes[rack] += 1
            racks.append(rack)
        }
        self.racks = racks
        self.rackCount = sizes.count
        var perRack = 1
        while sizes.reduce(0, { $0 + min($1, perRack) }) < self.replicaCount { perRack += 1 }
        self.replicasPerRackMax = perRack
        self.shares = nodes.map { _ in Share(numerator: 0, denominator: 1) }
        self.fillings = nodes.map { _ in 0 }
        self.fill(rackCapacities: sizes.map { partitionCount * min($0, perRack) })
    }

    /// Raises everybody's share in step with the weights. Whatever is full first, a node or a rack,
    /// keeps what it has; the others rise on.
    private mutating func fill(rackCapacities: [Int]) {
        var isOpen = self.nodes.map { _ in true }
        var rackRoom = rackCapacities
        var total = self.partitionCount * self.replicaCount
        var filling = 0
        while true {
            var weight = 0
            var rackWeights = rackRoom.map { _ in 0 }
            for position in self.nodes.indices where isOpen[position] {
                weight += Int(self.nodes[position].weight)
                rackWeights[self.racks[position]] += Int(self.nodes[position].weight)
            }
            guard weight > 0 else { return }
            // The level at which something is full, as the fraction room / weight: the lowest.
            var room = total
            var below = weight
            var fullNode: Int?
            var fullRack: Int?
            for rack in rackRoom.indices where rackWeights[rack] > 0 {
                if rackRoom[rack] * below < room * rackWeights[rack] {
                    (room, below, fullRack) = (rackRoom[rack], rackWeights[rack], rack)
                }
            }
            for position in self.nodes.indices where isOpen[position] {
                let own = Int(self.nodes[position].weight)
                if self.partitionCount * below < room * own {
                    (room, below) = (self.partitionCount, own)
                    (fullNode, fullRack) = (position, nil)
                }
            }
            for position in self.nodes.indices where isOpen[position] {
                if let fullNode, fullNode != position { continue }
                if let fullRack, fullRack != self.racks[position] { continue }
                isOpen[position] = false
                self.shares[position] = Share(
                    numerator: room * Int(self.nodes[position].weight), denominator: below)
                self.fillings[position] = filling
            }
            if let fullNode { rackRoom[self.racks[fullNode]] -= self.partitionCount }
            if let fullRack { rackRoom[fullRack] = 0 }
            guard fullNode != nil || fullRack != nil else { return }
            total -= room
            filling += 1
        }
    }

    /// Whole numbers of replicas, each its share rounded up or down, that add up.
    ///
    /// - Parameter current: what each node holds now. A node that holds more than its share rounded
    ///   down is rounded up first: it need not give that one away.
    package func quotas(current: [Int]) -> [Int] {
        var quotas = self.shares.map(\.floor)
        var rackRoom = Array(repeating: 0, count: self.rackCount)
        var rackSize = rackRoom
        for position in self.nodes.indices { rackSize[self.racks[position]] += 1 }
        for rack in rackRoom.indices {
            rackRoom[rack] = self.partitionCount * min(rackSize[rack], self.replicasPerRackMax)
        }
        for position in self.nodes.indices { rackRoom[self.racks[position]] -= quotas[position] }
        for filling in 0...(self.fillings.max() ?? 0) {
            let members = self.nodes.indices.filter { self.fillings[$0] == filling }
            guard let first = members.first else { continue }
            let denominator = self.shares[first].denominator
            var left =
                members.reduce(0) { $0 + self.shares[$1].numerator % denominator } / denominator
            let order = members.filter { self.shares[$0].numerator % denominator > 0 }.sorted {
                let keeps = (current[$0] > quotas[$0], current[$1] > quotas[$1])
                if keeps.0 != keeps.1 { return keeps.0 }
                let rests = (
                    self.shares[$0].numerator % denominator, self.shares[$1].numerator % denominator
                )
                return rests.0 != rests.1 ? rests.0 > rests.1 : $0 < $1
            }
            for position in order where left > 0 && rackRoom[self.racks[position]] > 0 {
                quotas[position] += 1
                rackRoom[self.racks[position]] -= 1
                left -= 1
            }
            precondition(left == 0, "shares that cannot be rounded")
        }
        return quotas
    }
}
