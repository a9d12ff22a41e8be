package import StratusCluster
import StratusHTTP
package import StratusModel
package import StratusPlacement
import StratusRuntime

/// The cluster of a node as administrators see it.
package protocol ClusterControl: Sendable {
    var node: NodeID { get }
    /// The system partition's view, linearizable; nil before the cluster is formed.
    func view(within patience: Duration) async throws(NodeControlFailure) -> ClusterView?
    /// The view as this node last knew it; nil before it was ever told.
    var lastView: ClusterView? { get }
    /// The leader of a group, as far as this node knows.
    func leader(of group: GroupID) -> NodeID?
    /// Asks the system partition for a change. Returns once this node follows the decision.
    func change(_ command: SystemCommand) async throws(NodeControlFailure) -> SystemOutcome
    /// Lets one more node in, once.
    /// - Returns: the token in clear, which nobody can read again, and when it ends.
    func makeJoinToken(validFor: Duration) async throws(NodeControlFailure) -> (
        token: String, expiresMilliseconds: Int64
    )
    /// The answer of another node, or of this one; nil if it does not answer.
    func ask(_ question: NodeQuestion, of node: NodeID) async -> NodeReply?
    var wallMilliseconds: Int64 { get }
    /// When this node last heard another one, or itself, by its own wall clock; nil: not since it
    /// was started.
    func lastHeardMilliseconds(_ node: NodeID) -> Int64?
}

extension ClusterControl {
    package func view() async throws(NodeControlFailure) -> ClusterView? {
        try await self.view(within: .seconds(5))
    }
}

/// `/v1/cluster`: nodes, placement and moves, and the health of all.
enum ClusterPages {
    static let routes: [AdminRoute] = [
        AdminRoute(
            "GET", "/v1/cluster", need: .cluster,
            answer:
                "nodes, placement, leaders and moves (lastKnown=1: without a majority too, then `isCurrent` is false)"
        ) {
            let acceptsOld = ["1", "true"].contains($0.query?["lastKnown"])
            return try await Self.show($0.cluster, acceptsOld: acceptsOld)
        },
        AdminRoute(
            "GET", "/v1/cluster/health", need: .cluster,
            answer: "what every node says of itself, and the leaders of their groups"
        ) { try await Self.health($0.cluster) },
    ]

    private static func health(_ cluster: any ClusterControl) async throws -> HTTPResponse {
        do throws(NodeControlFailure) {
            return try await ClusterHealth(cluster: cluster).show()
        } catch { throw ClusterChanges.refusal(error) }
    }

    private static func show(_ cluster: any ClusterControl, acceptsOld: Bool) async throws
        -> HTTPResponse
    {
        do throws(NodeControlFailure) {
            let patience = Duration.seconds(acceptsOld ? 2 : 5)
            guard let view = try await cluster.view(within: patience) else {
                return AdminAnswer.error(
                    503, "NOT_FORMED",
                    "the cluster is not formed yet: too few of its peers are reachable")
            }
            return AdminAnswer.json(Self.json(view, cluster))
        } catch {
            if acceptsOld, error == .unavailable || error == .outcomeUnknown,
                let view = cluster.lastView
            {
                return AdminAnswer.json(Self.json(view, cluster, isCurrent: false))
            }
            switch error {
            case .failed(let text): throw AdminRefusal(500, "INTERNAL", text)
            case .unavailable, .outcomeUnknown, .overtaken, .refused:
                throw AdminRefusal(
                    503, "UNAVAILABLE",
                    "the system partition has no leader now: a majority of its replicas is needed")
            }
        }
    }

    static func json(
        _ view: ClusterView, _ cluster: any ClusterControl, isCurrent: Bool = true
    ) -> Bytes {
        let plan = MembershipController.plan(for: view)
        let shares = FairShares(
            nodes: view.placementNodes, partitionCount: view.table.partitionCount,
            replicaCount: view.settings.replicaCount)
        var json = JSONWriter()
        json.beginObject()
        json.member("cluster", "\(view.settings.cluster)")
        json.member("isCurrent", isCurrent)
        json.member("wallMilliseconds", cluster.wallMilliseconds)
        json.member("answeredBy", Int64(cluster.node.raw))
        json.member("revision", Int64(clamping: view.settings.revision))
        json.member("placementEpoch", Int64(clamping: view.table.epoch))
        json.member("featureLevel", Int64(view.settings.featureLevel))
        json.member("partitionCount", Int64(view.table.partitionCount))
        json.member("replicaCount", Int64(view.settings.replicaCount))
        // As many as there are nodes for.
        json.member("possibleReplicaCount", Int64(shares.replicaCount))
        json.key("shortfalls")
        json.beginArray()
        for shortfall in plan.shortfalls { json.write(Self.text(shortfall)) }
        json.endArray()
        json.key("nodes")
        json.beginArray()
        for node in view.nodes {
            let share = shares.nodes.firstIndex { $0.id == node.id }.map { shares.shares[$0].value }
            Self.write(
                node, held: view.table.partitions(on: node.id).count, share: share,
                lastHeard: cluster.lastHeardMilliseconds(node.id), to: &json)
        }
        json.endArray()
        json.key("moves")
        json.beginArray()
        for move in view.moves { Self.write(move, to: &json) }
        json.endArray()
        json.member("partitions", objects: view.groups) { json, group in
            json.member(
                "partition", PartitionID(group: group).map { "\($0.raw)" } ?? "system")
            json.key("replicas")
            json.beginArray()
            for node in view.replicas(of: group) { json.write(Int64(node.raw)) }
            json.endArray()
            json.key("leader")
            if let leader = cluster.leader(of: group) {
                json.write(Int64(leader.raw))
            } else {
                json.writeNull()
            }
        }
        json.endObject()
        return json.finish()
    }

    private static func write(
        _ node: ClusterNode, held: Int, share: Double?, lastHeard: Int64?,
        to json: inout JSONWriter
    ) {
        json.beginObject()
        json.member("node", Int64(node.id.raw))
        json.member("name", node.name)
        json.member("address", node.address)
        json.member("state", "\(node.state)")
        json.member("weight", Int64(node.weight))
        json.member("rack", node.rack)
        json.member("partitions", Int64(held))
        json.key("share")
        if let share { json.write((share * 100).rounded() / 100) } else { json.writeNull() }
        json.member("wasHeard", node.directory != 0)
        json.key("lastHeardMilliseconds")
        if let lastHeard { json.write(lastHeard) } else { json.writeNull() }
        json.member("featureLevel", Int64(node.featureLevel))
        json.endObject()
    }

    private static func write(_ move: ReplicaMove, to json: inout JSONWriter) {
        json.beginObject()
        json.member("partition", PartitionID(group: move.group).map { "\($0.raw)" } ?? "system")
        json.member("number", Int64(clamping: move.number))
        for (name, node) in [("from", move.from), ("to", move.to)] {
            json.key(name)
            if let node { json.write(Int64(node.raw)) } else { json.writeNull() }
        }
        json.endObject()
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
