import StratusCluster
import StratusHTTP
import StratusModel
import StratusPlacement
import StratusRuntime

/// `/v1/cluster/health`: what every node says of itself, and what the leaders say of their groups. What of it is
/// wrong is for who asked to judge: `stratusctl doctor` and `top`.
///
/// Where nobody leads the system partition it is about the nodes that this one knows of, and says so.
struct ClusterHealth {
    let cluster: any ClusterControl

    func show() async throws(NodeControlFailure) -> HTTPResponse {
        let current: ClusterView?
        do throws(NodeControlFailure) { current = try await self.cluster.view() } catch {
            guard error == .unavailable, self.cluster.lastView != nil else { throw error }
            current = nil
        }
        guard let view = current ?? self.cluster.lastView else {
            return AdminAnswer.error(503, "NOT_FORMED", "the cluster is not formed yet")
        }
        let cluster = self.cluster
        let members = view.nodes.filter(\.isMember)
        let seen = await withTaskGroup(
            of: (NodeID, NodeHealth?, [GroupObservation]).self
        ) { tasks in
            for node in members {
                tasks.addTask {
                    let reply = await cluster.ask(.health, of: node.id)
                    guard case .health(let health)? = reply else { return (node.id, nil, []) }
                    guard
                        case .observed(let groups)? = await cluster.ask(
                            .observe(waking: []), of: node.id)
                    else { return (node.id, health, []) }
                    return (node.id, health, groups)
                }
            }
            var all: [NodeID: (NodeHealth?, [GroupObservation])] = [:]
            for await (node, health, groups) in tasks { all[node] = (health, groups) }
            return all
        }
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
        for node in members { Self.write(node, seen[node.id]?.0, to: &json) }
        json.endArray()
        json.key("groups")
        json.beginArray()
        for node in members {
            for group in seen[node.id]?.1 ?? [] {
                Self.write(group, missing: view.replicas(of: group.group), to: &json)
            }
        }
        json.endArray()
        json.endObject()
        return AdminAnswer.json(json.finish())
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
            json.key("complaints")
            json.beginArray()
            for complaint in health.complaints {
                json.beginObject()
                json.member("component", complaint.component)
                json.member("reason", complaint.reason)
                json.endObject()
            }
            json.endArray()
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
