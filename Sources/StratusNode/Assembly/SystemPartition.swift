import StratusAdmin
import StratusCluster
import StratusConfiguration
import StratusModel
import StratusPlacement
import StratusRuntime

/// The system partition as a node among peers uses it: it forms the cluster, says who it is, and
/// reads what administrators ask for.
struct SystemPartition: ClusterControl {
    private static let patience = Duration.seconds(5)
    private static let pause = Duration.milliseconds(250)
    private static let pauseMax = Duration.seconds(10)

    private let replicas: NodeReplicas
    private let partitions: PartitionClient
    let world: RealWorld
    let log: Log
    private let health: Health
    let cluster: NodeCluster
    /// The formation that a founder proposes; nil for a node that joined.
    private let formation: Formation?
    private let own: ClusterNode
    /// Nil for a node that works alone.
    /// - Parameter directory: the identity of the data directory.
    init?(
        _ cluster: NodeCluster, world: RealWorld, log: Log, health: Health,
        settings: ConfigurationSettings, directory: UInt64
    ) {
        guard ClusterPeers.isClustered(settings) else { return nil }
        self.cluster = cluster
        self.replicas = cluster.replicas
        self.partitions = cluster.partitions
        self.world = world
        self.log = log
        self.health = health
        let addresses = ClusterPeers.addresses(settings)
        self.formation =
            cluster.formation.isFounder
            ? cluster.formation.formation(addresses: addresses, master: cluster.sealedMaster) : nil
        let known = cluster.directory.view.node(cluster.formation.node)
        guard
            var own = known
                ?? self.formation?.nodes.first(where: { $0.id == cluster.formation.node })
        else { preconditionFailure("a node that is not in its own cluster") }
        if let address = addresses[own.name] { own.address = address }
        own.directory = max(1, directory)
        own.featureLevel = FeatureLevel.build.rawValue
        own.incarnation = NodeIncarnation(world.random())
        self.own = own
    }

    var node: NodeID { self.own.id }

    /// Until its cluster is formed a founder is not ready: nobody could join, and nothing be
    /// administrated.
    func awaitFormation() {
        guard self.formation != nil, self.lastView == nil else { return }
        self.health.raise("formation", SystemRefusal(.notFormed).explanation)
    }

    func leader(of group: GroupID) -> NodeID? { self.replicas.leader(of: group) }

    /// Says that this node was recovered, if it was, what the cluster is made of, then who this
    /// node is, until all is heard. Every founder says it at every start: the first one forms the
    /// cluster, the others hear that it is formed.
    ///
    /// - Parameter audit: begins to compare what partitions know of each other, once some were
    ///   recovered. It may fail while one of them has no leader.
    func takePart(auditing audit: @Sendable () async throws -> Int) async {
        let recovery = self.cluster.recovery
        let recovering = recovery.map { [SystemCommand.recover($0)] } ?? []
        let forming = self.formation.map { [SystemCommand.form($0)] } ?? []
        var isRecovered = false
        var isNew = false
        let wasFormed = self.lastView != nil
        for command in recovering + forming + [.announce(self.own)] {
            var pause = Self.pause
            // The same identity every time: however often it arrives, it is applied once.
            let deadline = self.world.wallMilliseconds + 20 * 60 * 1_000
            let identity = self.world.drawIdentity()
            var caller = Caller.system()
            caller.deadlineMilliseconds = deadline
            while !Task.isCancelled {
                if let outcome = await self.submit(command, as: caller, identity: identity) {
                    if case .form = command {
                        if !wasFormed { self.logFormation() }
                        self.health.clear("formation")
                        // Nothing has happened in the cluster since this was decided.
                        isNew = outcome == .done(revision: 1)
                    }
                    if case .refused(let refusal) = outcome {
                        self.refused(refusal)
                    } else if case .recover = command {
                        isRecovered = true
                        self.health.dropWarning("recovery")
                        self.log.info("the cluster continues without the lost nodes")
                    }
                    break
                }
                // Nobody leads: too few peers are here yet.
                try? await Task.sleep(for: pause)
                pause = min(pause * 2, Self.pauseMax)
                if self.world.wallMilliseconds > deadline - 60_000 {
                    return await self.takePart(auditing: audit)
                }
            }
        }
        if isRecovered { await self.finishRecovery(auditing: audit) }
        if isNew { await self.finaliseNewCluster() }
    }

    private func logFormation() {
        guard let formation else { return }
        self.log.info(
            "the cluster is formed",
            [
                "cluster": .describing(formation.cluster),
                "nodes": .text(formation.nodes.map(\.name).joined(separator: " ")),
                "partitions": .count(formation.partitionCount),
            ])
    }

    /// A cluster that was just formed holds nothing that an older build would have to read: its
    /// founders raise it to their level as soon as all of them have said theirs. If one is of an
    /// older build, or does not come, that is left to an administrator.
    private func finaliseNewCluster() async {
        let until = self.world.now + Self.formingPatience
        var pause = Self.pause
        while !Task.isCancelled, self.world.now < until {
            if let view = try? await self.view(within: Self.patience) {
                guard view.settings.featureLevel < FeatureLevel.build.rawValue else { return }
                if view.lagging(behind: .build).isEmpty {
                    let command = SystemCommand.raiseFeatureLevel(FeatureLevel.build.rawValue)
                    if case .done(let revision)? = await self.submit(command) {
                        return await self.cluster.follower.heard(of: revision)
                    }
                }
            }
            try? await Task.sleep(for: pause)
            pause = min(pause * 2, Self.pauseMax)
        }
    }

    private static let formingPatience = Duration.seconds(600)

    /// Until it is done the note stays: a node that ends meanwhile begins again.
    private func finishRecovery(auditing audit: @Sendable () async throws -> Int) async {
        var pause = Self.pause
        while !Task.isCancelled {
            do {
                let count = try await audit()
                self.log.info(
                    "references between buckets are compared", ["buckets": .integer(Int64(count))])
                break
            } catch {
                // Nodes that are left are not all here yet.
                self.log.debug(
                    "references between buckets are not compared yet",
                    ["reason": .text("\(error)")])
            }
            try? await Task.sleep(for: pause)
            pause = min(pause * 2, Self.pauseMax)
        }
        if Task.isCancelled { return }
        do throws(DiskError) { try RecoveryNote.remove(from: self.world.files) } catch {
            self.log.error("membership", ["reason": .text("RECOVERED: \(error)")])
        }
    }

    /// - Returns: nil when it is not known what became of it.
    func submit(
        _ command: SystemCommand, as caller: Caller = .system(), identity: RequestIdentity? = nil
    ) async -> SystemOutcome? {
        try? await self.partitions.submit(
            command, at: .system, as: caller, identity: identity, within: Self.patience)
    }

    private func refused(_ refusal: SystemRefusal) {
        self.log.error(
            "the cluster refuses this node",
            ["node": .describing(self.own.id), "reason": .text(refusal.explanation)])
        self.health.raise("cluster", refusal.explanation)
    }

    var lastView: ClusterView? {
        let last = self.cluster.directory.view
        return last.settings.revision > 0 ? last : nil
    }

    func view(within patience: Duration) async throws(NodeControlFailure) -> ClusterView? {
        let last = self.cluster.directory.view
        // Nobody answers a node that was removed; it knows that much itself.
        if last.node(self.node)?.isMember == false { return last }
        let answer: SystemAnswer
        do throws(RouteError) {
            answer = try await self.partitions.ask(
                SystemQuery.view, at: .system, as: .system(), within: patience)
        } catch {
            if case .unreadable(let why) = error { throw .failed(why) }
            throw .unavailable
        }
        guard case .view(let view) = answer else {
            throw .failed("the system partition's answer cannot be read")
        }
        return view
    }
}
