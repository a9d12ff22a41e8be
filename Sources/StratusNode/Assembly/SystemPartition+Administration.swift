import StratusAdmin
import StratusCluster
import StratusModel
import StratusPlacement
import StratusRuntime
import StratusSealing

/// How the cluster's membership is changed: by administrators, and by newcomers who show a token.
extension SystemPartition {
    var wallMilliseconds: Int64 { self.world.wallMilliseconds }

    func lastHeardMilliseconds(_ node: NodeID) -> Int64? {
        if node == self.node { return self.world.wallMilliseconds }
        guard let heard = self.cluster.replicas.ownState.lastHeard[node] else { return nil }
        let silence = (self.world.now - heard).clampedNanoseconds / 1_000_000
        return self.world.wallMilliseconds - max(0, silence)
    }

    func change(_ command: SystemCommand) async throws(NodeControlFailure) -> SystemOutcome {
        let caller = Caller(Principal(kind: .administrator))
        guard let outcome = await self.submit(command, as: caller) else { throw .outcomeUnknown }
        if case .done(let revision) = outcome { await self.cluster.follower.heard(of: revision) }
        return outcome
    }

    func makeJoinToken(validFor duration: Duration) async throws(NodeControlFailure) -> (
        token: String, expiresMilliseconds: Int64
    ) {
        let bytes = AdminToken.hexadecimal(Node.draw(self.world))
        let expires =
            self.world.wallMilliseconds + Int64(duration.clampedNanoseconds / 1_000_000)
        let outcome = try await self.change(
            .addToken(hash: SHA256.hash(bytes), expiresMilliseconds: expires))
        if case .refused(let refusal) = outcome { throw .refused(refusal.explanation) }
        return (String(decoding: bytes, as: UTF8.self), expires)
    }

    func ask(_ question: NodeQuestion, of node: NodeID) async -> NodeReply? {
        if node == self.node { return await self.cluster.ownReply(to: question) }
        // What is said for support is longer than any other answer.
        return await self.cluster.ask(
            question, of: node, within: .seconds(question == .support ? 8 : 2))
    }

    /// Admits a newcomer if its token is good, and sends it what it needs. The connection has shown
    /// that it owns a certificate of the cluster's authority for its name.
    func admit(_ join: PeerJoin, _ fingerprint: Bytes) async -> Result<PeerAdmission, PeerRefusal> {
        let node = ClusterNode(
            id: NodeID(0), state: .joining, name: join.name, address: join.address,
            weight: min(join.weight, PlacementNode.weightMax), rack: join.rack,
            featureLevel: join.featureLevel, key: fingerprint)
        let command = SystemCommand.join(node, tokenHash: SHA256.hash(join.token))
        switch await self.submit(command) {
        case .joined(let id, let revision)?:
            await self.cluster.follower.heard(of: revision)
            guard let view = try? await self.view(), view.node(id) != nil else {
                return .failure(PeerRefusal(.unknownNode, "the view could not be read: ask again"))
            }
            self.log.warning(
                "a node joined",
                ["node": .describing(id), "name": .text(join.name), "address": .text(join.address)])
            return .success(PeerAdmission(node: id, view: view.encoded()))
        case .refused(let refusal)?:
            return .failure(PeerRefusal(.notAdmitted, refusal.explanation))
        case .done?, nil:
            return .failure(
                PeerRefusal(.unknownNode, "the system partition does not answer now: ask again"))
        }
    }
}
