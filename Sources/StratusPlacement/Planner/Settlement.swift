import StratusModel

/// A placement on its way from what is to what should be: who holds what, and who has how many too
/// many or too few.
///
/// A replica that a partition lacks is held by nobody, ``hole``, whose quota is 0: filling it and
/// levelling a node that has too much are one thing.
///
/// Invariant: no step puts a partition twice on a node, or too often in a rack.
struct Settlement {
    private let shares: FairShares
    private let rendezvous = Rendezvous()
    /// Nodes by their position in `shares.nodes`, ``hole`` for what is missing.
    private var holders: [[Int]]
    private var held: [[Int]]
    /// The replicas that each node holds beyond its quota; negative if it has room.
    private var surplus: [Int]

    private var hole: Int { self.shares.nodes.count }

    init(shares: FairShares, table: PlacementTable) {
        self.shares = shares
        var position: [NodeID: Int] = [:]
        for (index, node) in shares.nodes.enumerated() { position[node.id] = index }
        self.holders = table.partitions.map { partition in
            table.replicas(of: partition).compactMap { position[$0] }
        }
        self.held = Array(repeating: [], count: shares.nodes.count + 1)
        self.surplus = self.held.map { _ in 0 }
        var counts = shares.nodes.map { _ in 0 }
        for row in self.holders { for node in row { counts[node] += 1 } }
        let quotas = shares.quotas(current: counts)
        for node in counts.indices { self.surplus[node] = counts[node] - quotas[node] }

        for partition in self.holders.indices {
            self.dropExcess(of: partition)
            for node in self.holders[partition] { self.held[node].append(partition) }
            let missing = shares.replicaCount - self.holders[partition].count
            for _ in 0..<missing {
                self.holders[partition].append(self.hole)
                self.held[self.hole].append(partition)
            }
            self.surplus[self.hole] += missing
        }
    }

    /// Replicas that are not on the node they should be on.
    var misplacedCount: Int { self.surplus.reduce(0) { $0 + max(0, $1) } }

    func replicas(of partition: PartitionID) -> [NodeID] {
        self.holders[Int(partition.raw)].filter { $0 != self.hole }.map {
            self.shares.nodes[$0].id
        }
    }

    /// Too many replicas, or too many in one rack: those on the fullest nodes go.
    private mutating func dropExcess(of partition: Int) {
        while true {
            let row = self.holders[partition]
            var candidates = row.filter { node in
                row.count { self.shares.racks[$0] == self.shares.racks[node] }
                    > self.shares.replicasPerRackMax
            }
            if candidates.isEmpty, row.count > self.shares.replicaCount { candidates = row }
            guard
                let fullest = candidates.max(by: {
                    (self.surplus[$0], $0) < (self.surplus[$1], $1)
                })
            else { return }
            self.holders[partition].removeAll { $0 == fullest }
            self.surplus[fullest] -= 1
        }
    }

    // MARK: Steps

    private func mayMove(_ partition: Int, from old: Int, to new: Int) -> Bool {
        let rack = self.shares.racks[new]
        var inRack = 0
        for node in self.holders[partition] where node != self.hole {
            if node == new { return false }
            if node != old, self.shares.racks[node] == rack { inRack += 1 }
        }
        return inRack < self.shares.replicasPerRackMax
    }

    private mutating func move(_ partition: Int, from old: Int, to new: Int) {
        guard let place = self.holders[partition].firstIndex(of: old),
            let entry = self.held[old].firstIndex(of: partition)
        else { preconditionFailure("partition \(partition) is not where it is moved from") }
        self.holders[partition][place] = new
        self.held[old].remove(at: entry)
        self.held[new].append(partition)
        self.surplus[old] -= 1
        self.surplus[new] += 1
    }

    private func score(_ partition: Int, _ node: Int) -> UInt64 {
        self.rendezvous.score(of: self.shares.nodes[node], for: partition)
    }

    /// Each missing replica goes to the node with room that the partition likes best.
    mutating func fillVacancies() {
        let vacancies = self.held[self.hole]
        var open = self.shares.nodes.indices.filter { self.surplus[$0] < 0 }
        for partition in vacancies {
            var best: (score: UInt64, node: Int)?
            for node in open where self.mayMove(partition, from: self.hole, to: node) {
                let score = self.score(partition, node)
                if best == nil || score < best!.score { best = (score, node) }
            }
            guard let best else { continue }
            self.move(partition, from: self.hole, to: best.node)
            if self.surplus[best.node] == 0 { open.removeAll { $0 == best.node } }
        }
    }

    /// Moves replicas straight from nodes with too many to nodes with room, by the best preference
    /// first.
    mutating func levelDirectly() {
        let sources = self.shares.nodes.indices.filter { self.surplus[$0] > 0 }.sorted {
            (self.surplus[$1], $0) < (self.surplus[$0], $1)
        }
        for source in sources {
            let open = self.shares.nodes.indices.filter { self.surplus[$0] < 0 }
            var offers: [(score: UInt64, partition: Int, node: Int)] = []
            for partition in self.held[source] {
                for node in open where self.mayMove(partition, from: source, to: node) {
                    offers.append((self.score(partition, node), partition, node))
                }
            }
            offers.sort { ($0.score, $0.partition, $0.node) < ($1.score, $1.partition, $1.node) }
            for offer in offers where self.surplus[source] > 0 && self.surplus[offer.node] < 0 {
                guard self.holders[offer.partition].contains(source),
                    self.mayMove(offer.partition, from: source, to: offer.node)
                else { continue }
                self.move(offer.partition, from: source, to: offer.node)
            }
        }
    }

    /// Moves the remaining surplus in chains: a gives to b, which gives to c, which has room. Takes
    /// the shortest chain each time, so that few replicas move twice.
    mutating func levelBySwaps() {
        while let chain = self.shortestChain() {
            for link in chain.reversed() { self.move(link.partition, from: link.from, to: link.to) }
        }
    }

    private struct Link {
        var partition: Int
        var from: Int
        var to: Int
    }

    /// Searches breadth first from all nodes that have too many. No partition is in a chain twice,
    /// so that its links do not get in each other's way.
    private func shortestChain() -> [Link]? {
        var into: [Link?] = self.held.map { _ in nil }
        var frontier = self.held.indices.filter { self.surplus[$0] > 0 }
        var unseen = self.shares.nodes.indices.filter { self.surplus[$0] <= 0 }
        while !frontier.isEmpty, !unseen.isEmpty {
            var next: [Int] = []
            for node in frontier {
                let chain = Self.chain(to: node, by: into)
                for partition in self.held[node]
                where !chain.contains(where: { $0.partition == partition }) {
                    for other in unseen where self.mayMove(partition, from: node, to: other) {
                        let link = Link(partition: partition, from: node, to: other)
                        if self.surplus[other] < 0 { return chain + [link] }
                        into[other] = link
                        next.append(other)
                    }
                    if !next.isEmpty { unseen.removeAll { into[$0] != nil } }
                }
            }
            frontier = next
        }
        return nil
    }

    private static func chain(to node: Int, by into: [Link?]) -> [Link] {
        var chain: [Link] = []
        var place = node
        while let link = into[place] {
            chain.append(link)
            place = link.from
        }
        return chain.reversed()
    }
}
