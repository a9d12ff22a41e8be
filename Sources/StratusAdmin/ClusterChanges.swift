import StratusCluster
import StratusHTTP
import StratusModel
import StratusPlacement
import StratusRuntime

/// The changes that administrators make to the cluster. Every change is a line in the log.
struct ClusterChanges {
    let cluster: (any ClusterControl)?
    let log: Log
    let request: HTTPRequest

    private struct Failed: Error { let answer: HTTPResponse }

    private static let tokenSecondsMax: Int64 = 30 * 86_400

    func answer(_ route: ClusterRoute) async -> HTTPResponse {
        guard let cluster else {
            return AdminAnswer.error(
                404, "NOT_CLUSTERED",
                "this node works alone: it has neither 'cluster.peers' nor 'cluster.join'")
        }
        do {
            if route == .health { return try await ClusterHealth(cluster: cluster).show() }
            if route == .upgrade, self.request.head.method != "POST" {
                return AdminAnswer.json(Self.json(UpgradeStanding(try await self.view(cluster))))
            }
            let body = try await self.body()
            switch route {
            case .joinTokens: return try await self.makeToken(body, cluster)
            case .health: return AdminAnswer.error(500, "INTERNAL", "answered before")
            case .upgrade: return try await self.finalise(cluster)
            case .node(let name):
                let weight = body?["weight"]?.int64.map { UInt32(clamping: $0) }
                return try await self.change(
                    .configure(
                        try await self.node(name, cluster).id, weight: weight,
                        rack: body?["rack"]?.string), cluster)
            case .nodeAction(let name, let action):
                let node = try await self.node(name, cluster)
                return try await self.change(
                    Self.command(action, node.id, body), cluster)
            case .partitionAction(let name, .move):
                return try await self.move(name, body, cluster)
            case .partitionAction(let name, .leader):
                return try await self.transfer(name, body, cluster)
            }
        } catch let failure as Failed {
            return failure.answer
        } catch let failure as NodeControlFailure {
            return Self.answer(failure)
        } catch {
            return AdminAnswer.error(400, "BAD_REQUEST", "the body could not be read")
        }
    }

    private func body() async throws -> JSONValue? {
        let bytes = try await self.request.body.collect()
        if bytes.isEmpty { return nil }
        guard let document = try? JSONDocument(parsing: bytes) else {
            throw Failed(answer: AdminAnswer.error(400, "BAD_REQUEST", "the body is not JSON"))
        }
        return document.root
    }

    private static func command(
        _ action: ClusterRoute.NodeAction, _ node: NodeID, _ body: JSONValue?
    ) -> SystemCommand {
        let accepted = body?["accept"]?.int64.map { Int(clamping: $0) }
        switch action {
        case .drain:
            return .drain(
                node, leavesWhenEmpty: body?["leave"]?.bool == true,
                acceptedReplicaCount: accepted)
        case .undrain: return .undrain(node)
        case .remove: return .remove(node, acceptedLossCount: accepted)
        }
    }

    private func view(_ cluster: any ClusterControl) async throws -> ClusterView {
        guard let view = try await cluster.view() else {
            throw Failed(
                answer: AdminAnswer.error(503, "NOT_FORMED", "the cluster is not formed yet"))
        }
        return view
    }

    /// A member by its name; a removed one may have had the same.
    private func node(_ name: String, _ cluster: any ClusterControl) async throws -> ClusterNode {
        try Self.node(name, in: try await self.view(cluster))
    }

    private static func node(_ name: String, in view: ClusterView) throws -> ClusterNode {
        guard
            let node = view.nodes.first(where: { $0.name == name && $0.isMember })
                ?? view.nodes.last(where: { $0.name == name })
        else {
            throw Failed(
                answer: AdminAnswer.error(404, "NO_SUCH_NODE", "there is no node '\(name)'"))
        }
        return node
    }

    private static func group(_ name: String, in view: ClusterView) throws -> GroupID {
        if name == "system" { return .system }
        if let number = UInt16(name), Int(number) < view.table.partitionCount {
            return PartitionID(number).group
        }
        throw Failed(
            answer: AdminAnswer.error(
                404, "NO_SUCH_PARTITION",
                "partitions are 'system' and 0 to \(view.table.partitionCount - 1)"))
    }

    private static func word(for outcome: SystemOutcome) -> String {
        switch outcome {
        case .done(let revision): "done, revision \(revision)"
        case .joined(let id, let revision): "joined as \(id), revision \(revision)"
        case .refused(let refusal): "refused: \(refusal.explanation)"
        }
    }

    private func change(_ command: SystemCommand, _ cluster: any ClusterControl) async throws
        -> HTTPResponse
    {
        let outcome = try await cluster.change(command)
        self.log.warning(
            "cluster changed by an administrator",
            [
                "request": .text(self.request.identity.uuid), "peer": .text(self.request.peer),
                "change": .text("\(ChangeWords(command, in: cluster.lastView))"),
                "outcome": .text(Self.word(for: outcome)),
            ])
        switch outcome {
        case .refused(let refusal): return Self.answer(refusal)
        case .done(let revision), .joined(_, let revision):
            var json = JSONWriter()
            json.beginObject()
            json.member("revision", Int64(clamping: revision))
            json.endObject()
            return AdminAnswer.json(json.finish())
        }
    }

    // MARK: Upgrades

    /// Raises the cluster to the level of its newest build, once every member has announced it.
    private func finalise(_ cluster: any ClusterControl) async throws -> HTTPResponse {
        let standing = UpgradeStanding(try await self.view(cluster))
        guard standing.lagging.isEmpty else {
            return AdminAnswer.error(
                409, "REFUSED",
                "\(standing.laggingNames) announced a lower feature level than \(standing.newest): install "
                    + "the new release there first, or remove the node")
        }
        guard standing.newest > standing.level else {
            return AdminAnswer.error(
                409, "FINALISED",
                "the cluster is at feature level \(standing.level) already, which is that of every node"
            )
        }
        return try await self.change(.raiseFeatureLevel(standing.newest.rawValue), cluster)
    }

    private static func json(_ standing: UpgradeStanding) -> Bytes {
        var json = JSONWriter()
        json.beginObject()
        json.member("featureLevel", Int64(standing.level.rawValue))
        json.member("newestLevel", Int64(standing.newest.rawValue))
        json.member("buildLevel", Int64(FeatureLevel.build.rawValue))
        json.member("canFinalise", standing.canFinalise)
        json.member("isFinalised", standing.isFinalised)
        json.key("lagging")
        json.beginArray()
        for node in standing.lagging { json.write(node.name) }
        json.endArray()
        json.key("nodes")
        json.beginArray()
        for node in standing.members {
            json.beginObject()
            json.member("name", node.name)
            json.member("node", Int64(node.id.raw))
            json.member("featureLevel", Int64(node.featureLevel))
            json.endObject()
        }
        json.endArray()
        json.endObject()
        return json.finish()
    }

    // MARK: Tokens

    private func makeToken(_ body: JSONValue?, _ cluster: any ClusterControl) async throws
        -> HTTPResponse
    {
        let seconds = body?["validSeconds"]?.int64 ?? 3_600
        guard (1...Self.tokenSecondsMax).contains(seconds) else {
            return AdminAnswer.error(
                400, "BAD_REQUEST", "'validSeconds' is 1 to \(Self.tokenSecondsMax)")
        }
        let made = try await cluster.makeJoinToken(validFor: .seconds(seconds))
        self.log.warning(
            "join token made by an administrator",
            ["request": .text(self.request.identity.uuid), "peer": .text(self.request.peer)])
        var json = JSONWriter()
        json.beginObject()
        json.member("token", made.token)
        json.member("expiresMilliseconds", made.expiresMilliseconds)
        json.endObject()
        return AdminAnswer.json(json.finish())
    }

    // MARK: Partitions

    private func observation(of group: GroupID, _ view: ClusterView, _ cluster: any ClusterControl)
        async throws -> GroupObservation
    {
        for node in view.replicas(of: group) {
            if case .observed(let groups)? = await cluster.ask(
                .observe(waking: [group]), of: node),
                let seen = groups.first(where: { $0.group == group })
            {
                return seen
            }
        }
        throw Failed(
            answer: AdminAnswer.error(
                503, "UNAVAILABLE", "nobody leads the partition now: ask again in a moment"))
    }

    private func move(_ name: String, _ body: JSONValue?, _ cluster: any ClusterControl)
        async throws -> HTTPResponse
    {
        let view = try await self.view(cluster)
        let group = try Self.group(name, in: view)
        guard let from = body?["from"]?.string, let to = body?["to"]?.string else {
            return AdminAnswer.error(400, "BAD_REQUEST", "'from' and 'to' name nodes")
        }
        let seen = try await self.observation(of: group, view, cluster)
        return try await self.change(
            .beginMove(
                ReplicaMove(
                    group, from: try Self.node(from, in: view).id,
                    to: try Self.node(to, in: view).id, fence: seen.configurationIndex)), cluster)
    }

    private func transfer(_ name: String, _ body: JSONValue?, _ cluster: any ClusterControl)
        async throws -> HTTPResponse
    {
        let view = try await self.view(cluster)
        let group = try Self.group(name, in: view)
        guard let to = body?["to"]?.string else {
            return AdminAnswer.error(400, "BAD_REQUEST", "'to' names a node")
        }
        let heir = try Self.node(to, in: view)
        let seen = try await self.observation(of: group, view, cluster)
        guard seen.configuration.voters.contains(heir.id) else {
            return AdminAnswer.error(
                409, "REFUSED", "'\(to)' has no replica of the partition that may lead")
        }
        if seen.leader != heir.id {
            guard
                case .done(true)? = await cluster.ask(
                    .transfer(group, to: heir.id), of: seen.leader)
            else {
                return AdminAnswer.error(503, "UNAVAILABLE", "the leader changed meanwhile")
            }
        }
        var json = JSONWriter()
        json.beginObject()
        json.member("leader", to)
        json.endObject()
        return AdminAnswer.json(json.finish())
    }

    // MARK: Answers

    private static func answer(_ refusal: SystemRefusal) -> HTTPResponse {
        var json = JSONWriter()
        json.beginObject()
        json.key("error")
        json.beginObject()
        json.member("code", "REFUSED")
        var reason = refusal.explanation
        // The number by which an operator confirms a refused change, if it may be confirmed.
        let accept: Int? =
            switch refusal.reason {
            case .tooFewNodes: refusal.count
            case .holdsReplicas: refusal.limit
            default: nil
            }
        if let accept { reason += "; to do it all the same, accept \(accept)" }
        json.member("reason", reason)
        json.member("cause", "\(refusal.reason)")
        if let accept { json.member("accept", Int64(accept)) }
        json.endObject()
        json.endObject()
        return AdminAnswer.json(json.finish(), status: 409)
    }

    private static func answer(_ failure: NodeControlFailure) -> HTTPResponse {
        switch failure {
        case .unavailable:
            AdminAnswer.error(
                503, "UNAVAILABLE",
                "the system partition has no leader now: a majority of its replicas is needed")
        case .outcomeUnknown:
            AdminAnswer.error(
                503, "OUTCOME_UNKNOWN",
                "the system partition did not answer in time: look before asking again")
        case .overtaken: AdminAnswer.error(409, "OVERTAKEN", "somebody else changed it meanwhile")
        case .refused(let reason): AdminAnswer.error(409, "REFUSED", reason)
        case .failed(let text): AdminAnswer.error(500, "INTERNAL", text)
        }
    }
}
