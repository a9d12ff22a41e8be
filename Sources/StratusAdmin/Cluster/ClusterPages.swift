import StratusAdminModel
import StratusCluster
import StratusHTTP
import StratusModel
import StratusPlacement
import StratusRuntime

/// `/v1/cluster`: nodes, placement and moves, and the health of all.
enum ClusterPages {
    static let routes: [AdminRoute] = [
        AdminRoute(
            "GET", "/v1/cluster", need: .cluster,
            answer:
                "nodes, placement, leaders and moves (lastKnown=1: without a majority too, then `isCurrent` is false)"
        ) {
            let acceptsOld = ["1", "true"].contains($0.query?["lastKnown"])
            return try await Self.show($0, acceptsOld: acceptsOld)
        },
        AdminRoute(
            "GET", "/v1/cluster/health", need: .cluster,
            answer: "what every node says of itself, and the leaders of their groups"
        ) { try await Self.health($0) },
    ]

    private static func health(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let cluster = try exchange.cluster
        do throws(NodeControlFailure) {
            return try await ClusterHealth(cluster: cluster).show()
        } catch { throw exchange.refusal(of: error) }
    }

    private static func show(_ exchange: AdminExchange, acceptsOld: Bool) async throws
        -> HTTPResponse
    {
        let cluster = try exchange.cluster
        do throws(NodeControlFailure) {
            let patience = Duration.seconds(acceptsOld ? 2 : 5)
            guard let view = try await cluster.view(within: patience) else {
                return AdminAnswer.error(
                    503, .notFormed,
                    "the cluster is not formed yet: too few of its peers are reachable")
            }
            return AdminAnswer.json(Self.answer(view, cluster))
        } catch {
            if acceptsOld, error == .unavailable || error == .outcomeUnknown,
                let view = cluster.lastView
            {
                return AdminAnswer.json(Self.answer(view, cluster, isCurrent: false))
            }
            switch error {
            case .failed(let text): throw exchange.failure(text)
            case .unavailable, .outcomeUnknown, .overtaken, .refused:
                throw AdminRefusal(
                    503, .unavailable,
                    "the system partition has no leader now: a majority of its replicas is needed")
            }
        }
    }

    static func answer(
        _ view: ClusterView, _ cluster: any ClusterControl, isCurrent: Bool = true
    ) -> ClusterAnswer {
        let shares = FairShares(
            nodes: view.placementNodes, partitionCount: view.table.partitionCount,
            replicaCount: view.settings.replicaCount)
        return ClusterAnswer {
            $0.cluster = "\(view.settings.cluster)"
            $0.isCurrent = isCurrent
            $0.wallMilliseconds = cluster.wallMilliseconds
            $0.answeredBy = Int64(cluster.node.raw)
            $0.revision = Int64(clamping: view.settings.revision)
            $0.placementEpoch = Int64(clamping: view.table.epoch)
            $0.featureLevel = Int64(view.settings.featureLevel)
            $0.partitionCount = Int64(view.table.partitionCount)
            $0.replicaCount = Int64(view.settings.replicaCount)
            $0.possibleReplicaCount = Int64(shares.replicaCount)
            $0.shortfalls = MembershipController.plan(for: view).shortfalls.map(Self.text)
            $0.nodes = view.nodes.map { Self.node($0, in: view, shares, cluster) }
            $0.moves = view.moves.map(Self.move)
            $0.partitions = view.groups.map { group in
                ClusterAnswer.Partition {
                    $0.partition = Self.name(group)
                    $0.replicas = view.replicas(of: group).map { Int64($0.raw) }
                    $0.leader = cluster.leader(of: group).map { Int64($0.raw) }
                }
            }
        }
    }

    private static func node(
        _ node: ClusterNode, in view: ClusterView, _ shares: FairShares,
        _ cluster: any ClusterControl
    ) -> ClusterAnswer.Node {
        ClusterAnswer.Node {
            $0.node = Int64(node.id.raw)
            $0.name = node.name
            $0.address = node.address
            $0.state = "\(node.state)"
            $0.weight = Int64(node.weight)
            $0.rack = node.rack
            $0.partitions = Int64(view.table.partitions(on: node.id).count)
            $0.share = shares.nodes.firstIndex { $0.id == node.id }.map {
                (shares.shares[$0].value * 100).rounded() / 100
            }
            $0.wasHeard = node.directory != 0
            $0.lastHeardMilliseconds = cluster.lastHeardMilliseconds(node.id)
            $0.featureLevel = Int64(node.featureLevel)
        }
    }

    private static func move(_ move: ReplicaMove) -> ClusterAnswer.Move {
        ClusterAnswer.Move {
            $0.partition = Self.name(move.group)
            $0.number = Int64(clamping: move.number)
            $0.from = move.from.map { Int64($0.raw) }
            $0.to = move.to.map { Int64($0.raw) }
        }
    }

    /// A partition's number, or `system`.
    static func name(_ group: GroupID) -> String {
        PartitionID(group: group).map { "\($0.raw)" } ?? "system"
    }

    private static func text(_ shortfall: PlacementPlan.Shortfall) -> String {
        switch shortfall {
        case .tooFewNodes(let wanted, let possible):
            "partitions have \(possible) of \(wanted) replicas: there are too few nodes"
        case .tooFewRacks(let perRack):
            "some racks hold \(perRack) replicas of one partition: there are too few racks"
        case .unsettled(let count): "\(count) replicas are not where they should be"
        }
    }
}
