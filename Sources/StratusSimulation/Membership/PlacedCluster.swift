import StratusDoubles
import StratusModel
import StratusPlacement

/// The additional state of a cluster whose groups are placed by the real table.
struct PlacedCluster {
    /// A newcomer that an operator has let in or is letting in.
    struct Join {
        let number: Int
        var isUnderWay = false
    }

    let executor: SimulatedExecutor
    let formation: Formation
    let founding: ClusterView
    /// The newest view that the system group has committed, as some replica of it has applied it.
    var view: ClusterView?
    var join: Join?
    /// Gone for good: their replicas have to be made again elsewhere.
    var lost: [NodeID] = []
    /// An operator's order to let the lost go is under way.
    var isReplacing = false

    /// Nobody is thrown out or dies before: an order may be under way for so long.
    var calmAt: Int64 = 0
    static let calm: Int64 = 20_000_000_000

    /// Whether every lost node is replaced everywhere.
    func isWhole(_ view: ClusterView) -> Bool {
        self.lost.allSatisfy { view.groups(keptBy: $0).isEmpty }
            && view.nodes.allSatisfy { $0.isMember || view.groups(keptBy: $0.id).isEmpty }
    }

    init(seed: UInt64, options: SimulationOptions, nodes: [NodeID]) {
        self.executor = SimulatedExecutor(world: SimulatedWorld(seed: seed), seed: seed)
        self.formation = Formation(
            cluster: ClusterID(high: 1, low: seed), partitionCount: options.partitionCount,
            replicaCount: options.voterCount,
            nodes: nodes.map { Self.node($0, number: Int($0.raw), options) })
        guard let founding = ClusterView.formed(by: self.formation) else {
            preconditionFailure("a formation that cannot be: \(self.formation)")
        }
        self.founding = founding
    }

    static func node(_ id: NodeID, number: Int, _ options: SimulationOptions) -> ClusterNode {
        ClusterNode(
            id: id, name: "node\(number)", address: "node\(number):1",
            rack: options.rackCount > 0 ? "rack\(number % options.rackCount)" : "")
    }
}
