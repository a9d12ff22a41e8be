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
            return AdminAnswer.error(503, "NOT_FORMED", "the cluster is not formed yet")
        }
        let members = view.nodes.filter(\.isMember)
        seen.merge(await self.ask(members.map(\.id).filter { seen[$0] == nil })) { one, _ in one }
        var json = JSONWriter()
        json.beginObject()
        json.member("wallMilliseconds", cluster.wallMilliseconds)
        json.member("revision", Int64(clamping: view.settings.revision))
        json.member("isCurrent", current != nil)
        json.key("systemReplicas")
        json.beginArray()
        for node in view.systemReplicas { json.write(Int64(node.raw)) }
        json.endArray()
        json.key("nodes")
        json.beginArray()
        for node in members { Self.write(node, seen[node.id]?.health, to: &json) }
        json.endArray()
        json.key("groups")
        json.beginArray()
        for node in members {
            for group in seen[node.id]?.groups ?? [] {
                Self.write(group, missing: view.replicas(of: group.group), to: &json)
            }
        }
        json.endArray()
        json.endObject()
        return AdminAnswer.json(json.finish())
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

    private static func write(_ node: ClusterNode, _ health: NodeHealth?, to json: inout JSONWriter)
    {
        json.beginObject()
        json.member("name", node.name)
        json.member("node", Int64(node.id.raw))
        json.member("state", "\(node.state)")
        json.member("reachable", health != nil)
        if let health {
            json.member("version", health.version)
            json.member("wallMilliseconds", health.wallMilliseconds)
            json.member("freeBytes", Int64(clamping: health.freeBytes))
            json.member("diskBytes", Int64(clamping: health.diskBytes))
            json.member("certificateEnds", health.certificateEnds)
            json.member("revision", Int64(clamping: health.revision))
            json.member("leads", Int64(health.ledCount))
            json.member("residentBytes", Int64(clamping: health.residentBytes))
            json.member("requestsInFlight", Int64(clamping: health.requestsInFlight))
            json.member("complaints", objects: health.complaints) { json, complaint in
                json.member("component", complaint.component)
                json.member("reason", complaint.reason)
            }
        }
        json.endObject()
    }

    /// - Parameter replicas: where the placement says that the group is.
    private static func write(
        _ group: GroupObservation, missing replicas: [NodeID], to json: inout JSONWriter
    ) {
        json.beginObject()
        json.member(
            "partition", PartitionID(group: group.group).map { "\($0.raw)" } ?? "system")
        json.member("leader", Int64(group.leader.raw))
        json.member("joint", group.configuration.isJoint)
        json.key("behind")
        json.beginArray()
        for node in replicas where !group.caughtUp.contains(node) { json.write(Int64(node.raw)) }
        json.endArray()
        json.endObject()
    }
}
