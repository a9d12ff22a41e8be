import StratusAdminModel
import StratusCluster
import StratusHTTP
import StratusModel
import StratusPlacement
import StratusRuntime

/// `/v1/cluster/health`: the report of every node about itself, and of the leaders about their
/// groups. The caller judges what is wrong: `stratusctl doctor` and `top`.
///
/// If nobody leads the system partition, the answer covers the nodes that this one knows of, and
/// says so.
struct ClusterHealth {
    let cluster: any ClusterControl

    /// How long nodes and the system partition are waited for, all of them side by side.
    private static let patience = Duration.seconds(3)

    private typealias Seen = (node: NodeID, health: NodeHealth?, groups: [GroupObservation])

    func show() async throws(NodeControlFailure) -> HTTPResponse {
        let cluster = self.cluster
        // If nobody leads the system partition, waiting for it is useless, so the others are asked
        // meanwhile.
        let known = (cluster.lastView?.nodes ?? []).filter(\.isMember).map(\.id)
        async let early = self.ask(known)
        let viewed: Result<ClusterView?, NodeControlFailure>
        do throws(NodeControlFailure) {
            viewed = .success(try await cluster.view(within: Self.patience))
        } catch { viewed = .failure(error) }
        var seen = await early
        var current: ClusterView?
        switch viewed {
        case .success(let view): current = view
        case .failure(let error):
            guard error == .unavailable else { throw error }
        }
        guard let view = current ?? cluster.lastView else {
            return AdminAnswer.error(503, .notFormed, "the cluster is not formed yet")
        }
        let members = view.nodes.filter(\.isMember)
        seen.merge(await self.ask(members.map(\.id).filter { seen[$0] == nil })) { one, _ in one }
        return AdminAnswer.json(
            ClusterHealthAnswer {
                $0.wallMilliseconds = cluster.wallMilliseconds
                $0.revision = Int64(clamping: view.settings.revision)
                $0.isCurrent = current != nil
                $0.systemReplicas = view.systemReplicas.map { Int64($0.raw) }
                $0.nodes = members.map { ClusterHealthAnswer.Node($0, seen[$0.id]?.health) }
                $0.groups = members.flatMap { node in
                    (seen[node.id]?.groups ?? []).map {
                        ClusterHealthAnswer.Group($0, placedOn: view.replicas(of: $0.group))
                    }
                }
            })
    }

    private func ask(_ nodes: [NodeID]) async -> [NodeID: Seen] {
        let cluster = self.cluster
        return await withTaskGroup(of: Seen.self) { tasks in
            for node in nodes {
                tasks.addTask {
                    let reply = await cluster.ask(.health, of: node)
                    guard case .health(let health)? = reply else { return (node, nil, []) }
                    guard
                        case .observed(let groups)? = await cluster.ask(
                            .observe(waking: []), of: node)
                    else { return (node, health, []) }
                    return (node, health, groups)
                }
            }
            var all: [NodeID: Seen] = [:]
            for await seen in tasks { all[seen.node] = seen }
            return all
        }
    }
}

extension ClusterHealthAnswer.Node {
    init(_ node: ClusterNode, _ health: NodeHealth?) {
        self.init()
        self.name = node.name
        self.node = Int64(node.id.raw)
        self.state = "\(node.state)"
        self.isReachable = health != nil
        guard let health else { return }
        self.version = health.version
        self.wallMilliseconds = health.wallMilliseconds
        self.freeBytes = Int64(clamping: health.freeBytes)
        self.diskBytes = Int64(clamping: health.diskBytes)
        self.certificateEnds = health.certificateEnds
        self.revision = Int64(clamping: health.revision)
        self.leads = Int64(health.ledCount)
        self.residentBytes = Int64(clamping: health.residentBytes)
        self.requestsInFlight = Int64(clamping: health.requestsInFlight)
        self.complaints = health.complaints.map { ComponentReport($0.component, $0.reason) }
    }
}

extension ClusterHealthAnswer.Group {
    /// - Parameter replicas: where the placement says that the group is.
    init(_ group: GroupObservation, placedOn replicas: [NodeID]) {
        self.init()
        self.partition = ClusterPages.name(group.group)
        self.leader = Int64(group.leader.raw)
        self.isJoint = group.configuration.isJoint
        self.behind = replicas.filter { !group.caughtUp.contains($0) }.map { Int64($0.raw) }
    }
}
