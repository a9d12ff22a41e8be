import StratusCluster
import StratusModel
import StratusPlacement
import StratusRuntime
import Synchronization

/// Looks every few seconds at the partitions of this node and at its peers, for metrics.
///
/// A scrape must not wait for the storage thread, so it reads what the last look found.
final class ClusterWatch: Sendable {
    struct Figures: Sendable, Equatable {
        /// The replicas that are open here. Those of idle partitions are closed.
        var openCount = 0
        /// Replicas that this node keeps and cannot open.
        var unopenedCount = 0
        var ledCount = 0
        /// Open replicas that know no leader: their partitions have no majority in reach.
        var leaderlessCount = 0
        var leadsSystem = false
        /// Members of partitions led here whose logs do not match the leader's yet.
        var behindCount = 0
        /// Partitions led here whose members change.
        var changingCount = 0
        /// Replicas with a problem of their own, such as damage or no room.
        var troubledCount = 0
        /// How far the time of the partition that is furthest ahead is ahead of this node's clock.
        var aheadMilliseconds: Int64 = 0
        /// Moves that the cluster plans or carries out, as this node last heard.
        var moveCount = 0
        /// Replicas that partitions lack, as this node last heard: they are being copied, or nodes
        /// are wanting.
        var shortReplicaCount = 0
        /// Partitions that one look found led here and the look before did not.
        var takenCount = 0
    }

    private static let interval = Duration.seconds(2)

    private let cluster: NodeCluster
    private let seen = Mutex((figures: Figures(), led: Set<GroupID>()))
    /// Since when partitions that are open here have had no leader.
    private let leaderless = Mutex<[GroupID: MonotonicTime]>([:])

    init(_ cluster: NodeCluster) { self.cluster = cluster }

    var figures: Figures { self.seen.withLock { $0.figures } }

    func run() -> Task<Void, Never> {
        Task {
            while !Task.isCancelled {
                await self.look()
                try? await Task.sleep(for: Self.interval)
            }
        }
    }

    private func look() async {
        let observed = await self.cluster.replicas.observations()
        let replicas = await self.cluster.replicas.status()
        var figures = Figures()
        figures.openCount = replicas.count(where: \.isOpen)
        figures.unopenedCount = replicas.count - figures.openCount
        for replica in replicas {
            if replica.isOpen, replica.leader == nil { figures.leaderlessCount += 1 }
            if replica.problem != nil { figures.troubledCount += 1 }
            figures.aheadMilliseconds = max(figures.aheadMilliseconds, replica.aheadMilliseconds)
        }
        self.noteAhead(replicas)
        self.noteLeaderless(replicas)
        figures.ledCount = observed.count
        // What a cluster keeps in its system partition, a node alone has by itself.
        figures.leadsSystem =
            self.cluster.formation.isAlone || observed.contains { $0.group == .system }
        for group in observed {
            let members = Set(group.configuration.voters + group.configuration.learners)
            figures.behindCount += members.subtracting(group.caughtUp).count
            if group.configuration.isJoint || !group.configuration.learners.isEmpty {
                figures.changingCount += 1
            }
        }
        let view = self.cluster.directory.view
        figures.moveCount = view.moves.count
        figures.shortReplicaCount = Self.shortReplicas(of: view)
        let led = Set(observed.map(\.group))
        self.seen.withLock { seen in
            figures.takenCount = seen.figures.takenCount + led.subtracting(seen.led).count
            seen = (figures, led)
        }
    }

    /// An election takes less.
    private static let leaderlessMax = Duration.seconds(10)

    /// Partitions that nobody leads are served by nobody: that is no reason to ask another node.
    private func noteLeaderless(_ replicas: [NodeReplicas.GroupStatus]) {
        let now = self.cluster.now
        let found = replicas.filter { $0.isOpen && $0.leader == nil }.map(\.group)
        let long = self.leaderless.withLock { since in
            since = Dictionary(uniqueKeysWithValues: found.map { ($0, since[$0] ?? now) })
            return found.filter { now - (since[$0] ?? now) >= Self.leaderlessMax }.sorted()
        }
        guard !long.isEmpty else { return self.cluster.health.dropWarning("leaders") }
        let names = ReplicaTroubles.list(long.map { ReplicaTroubles.name(of: $0) })
        self.cluster.health.warn(
            "leaders",
            "\(long.count) partitions (\(names)) have had no leader for 10 s: they can neither be read nor written"
        )
    }

    /// A lead that clocks of one cluster may have against each other is none.
    private static let aheadMax: Int64 = 10_000

    private func noteAhead(_ replicas: [NodeReplicas.GroupStatus]) {
        let ahead = replicas.filter { $0.isOpen && $0.aheadMilliseconds > Self.aheadMax }
        guard let most = ahead.map(\.aheadMilliseconds).max() else {
            return self.cluster.health.dropWarning("time")
        }
        self.cluster.health.warn(
            "time",
            "the time of \(ahead.count) partitions is ahead of this node's clock, by up to "
                + "\(most / 1_000) s: a clock was wrong when somebody wrote there")
    }

    /// The replicas that partitions lack; 0 for a node alone, whose cluster is not formed.
    private static func shortReplicas(of view: ClusterView) -> Int {
        guard view.settings.revision > 0 else { return 0 }
        return view.groups.reduce(0) {
            $0 + max(0, view.settings.replicaCount - view.replicas(of: $1).count)
        }
    }
}
