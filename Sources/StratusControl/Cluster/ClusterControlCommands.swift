import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// `stratusctl cluster status`, `node list` and `partition list`: the cluster as its system partition
/// knows it.
struct ClusterControlCommands: AdminConversation {
    let context: ControlContext

    init(_ context: ControlContext) { self.context = context }

    static let commands: [ControlCommand] = [
        ControlCommand(
            "cluster", "The cluster a node is in",
            subcommands: [
                ControlCommand(
                    "status", "Nodes, replicas, moves, and problems with them",
                    examples: [
                        .init("stratusctl cluster status", "Any node of the cluster can answer")
                    ],
                    run: ClusterControlCommands.status)
            ] + MembershipCommands.clusterCommands),
        ControlCommand(
            "node", "The nodes of the cluster",
            subcommands: [
                ControlCommand(
                    "list", "The nodes: state, weight, rack, partitions and share of the data",
                    options: [.flag("removed", nil, "Removed nodes too")],
                    examples: [
                        .init("stratusctl node list", "Which nodes there are, and which are up")
                    ],
                    run: ClusterControlCommands.nodes)
            ] + MembershipCommands.nodeCommands),
        ControlCommand(
            "partition", "Partitions and their replicas",
            subcommands: [
                ControlCommand(
                    "list", "Every partition: its replicas and its leader",
                    options: [
                        .value("on", .text("NAME"), "Only partitions with a replica on this node"),
                        .flag(
                            "leaderless", nil, "Only partitions whose leader the node does not know"
                        ),
                    ],
                    examples: [
                        .init("stratusctl partition list --on a", "Before node a is stopped")
                    ],
                    run: ClusterControlCommands.partitions),
                PartitionOfCommand.command,
            ] + MembershipCommands.partitionCommands),
    ]

    func status() async throws(AdminClient.Failure) -> ExitCode {
        try await self.tell { cluster, health in Self.status(cluster, health) }
    }

    func nodes() async throws(AdminClient.Failure) -> ExitCode {
        let isAll = self.invocation.flag("removed")
        return try await self.tell { cluster, health in
            Self.nodes(cluster, health, withRemoved: isAll)
        }
    }

    func partitions() async throws(AdminClient.Failure) -> ExitCode {
        let only = self.invocation["on"]
        let isLeaderless = self.invocation.flag("leaderless")
        return try await self.tell { (cluster, _) throws(AdminClient.Failure) in
            guard
                let text = Self.partitions(cluster, on: only, onlyLeaderless: isLeaderless)
            else { throw Failure(.usage, "there is no node of this name") }
            return text
        }
    }

    private func tell(
        _ words: (ClusterAnswer, ClusterHealthAnswer?) throws(AdminClient.Failure) -> String
    ) async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask("GET", "/v1/cluster?lastKnown=1")
        if self.isJSON { return self.show(answer.text + "\n") }
        let cluster: ClusterAnswer = try answer.read()
        if let remark = Self.remark(cluster) { Terminal.write(remark, to: Terminal.errors) }
        let health = try? await self.client.send("GET", "/v1/cluster/health")
        let seen: ClusterHealthAnswer? = health.flatMap {
            $0.status == 200 ? try? $0.read() : nil
        }
        return self.show(try words(cluster, seen))
    }

    // MARK: Words

    /// Said before what may be old.
    static func remark(_ cluster: ClusterAnswer) -> String? {
        guard !cluster.isCurrent else { return nil }
        return
            "As last known: the system partition has no leader now. 'stratusctl doctor' says why.\n"
    }

    /// - Parameter health: nil if it did not come.
    static func status(_ cluster: ClusterAnswer, _ health: ClusterHealthAnswer?) -> String {
        var table = TextTable([.init(""), .init("")])
        table.append(["cluster", cluster.cluster])
        table.append(["partitions", "\(cluster.partitionCount)"])
        table.append(["replicas", "\(cluster.replicaCount)"])
        table.append(["placement", "epoch \(cluster.placementEpoch)"])
        let count = cluster.partitions.count
        let led = cluster.partitions.count { $0.leader != nil }
        let idle = led < count ? "; a partition that nobody uses needs none" : ""
        table.append(["leaders known", "\(led) of \(count)\(idle)"])
        table.append(["moves", "\(cluster.moves.count)"])
        for shortfall in cluster.shortfalls { table.append(["attention", shortfall]) }
        return table.write() + "\n" + Self.nodes(cluster, health)
    }

    static func nodes(
        _ cluster: ClusterAnswer, _ health: ClusterHealthAnswer?, withRemoved isAll: Bool = false
    ) -> String {
        let shown = cluster.nodes.filter { isAll || $0.isMember }
        let hidden = cluster.nodes.count - shown.count
        let remark = hidden == 0 ? "" : "\(hidden) removed: see 'node list --removed'\n"
        return TextTable.text(
            shown,
            [
                .init("ID", alignsRight: true, \.node), .init("NAME", \.name),
                .init("ADDRESS", \.address),
                .init("STATE") { $0.state + ($0.wasHeard ? "" : ", never heard of") },
                .init("UP") { Self.up($0, in: health) },
                .init("HEARD") { Self.lastHeard($0, in: cluster) },
                .init("WEIGHT", alignsRight: true, \.weight), .init("RACK", \.rack),
                .init("REPLICAS", alignsRight: true, \.partitions),
                .init("SHARE", alignsRight: true, text: Self.share),
            ]) + remark
    }

    /// Whether the node that was asked hears this one.
    private static func up(_ node: ClusterAnswer.Node, in health: ClusterHealthAnswer?) -> String {
        guard let found = health?.nodes.first(where: { $0.node == node.node }) else { return "-" }
        return found.isReachable ? "yes" : "NO"
    }

    /// How long ago the node that was asked heard this one. Heartbeats come several times a second,
    /// so a few seconds say nothing.
    static func lastHeard(_ node: ClusterAnswer.Node, in cluster: ClusterAnswer) -> String {
        guard let now = cluster.wallMilliseconds else { return "-" }
        guard let heard = node.lastHeardMilliseconds else { return "never" }
        let (silence, isOutside) = now.subtractingReportingOverflow(heard)
        let seconds = isOutside ? 0 : max(0, silence / 1_000)
        return switch seconds {
        case ..<5: "now"
        case ..<120: "\(seconds) s ago"
        case ..<7_200: "\(seconds / 60) min ago"
        case ..<172_800: "\(seconds / 3_600) h ago"
        default: "\(seconds / 86_400) days ago"
        }
    }

    /// Formats a share with as many digits as are significant: a whole share has none.
    private static func share(_ node: ClusterAnswer.Node) -> String {
        guard let text = node.share?.description else { return "-" }
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    /// - Returns: nil when `only` names no node.
    static func partitions(
        _ cluster: ClusterAnswer, on only: String? = nil, onlyLeaderless: Bool = false
    ) -> String? {
        let names = cluster.names
        if let only, !names.values.contains(only) { return nil }
        func words(_ replicas: [Int64]) -> [String] { replicas.map { names[$0] ?? "\($0)" } }
        let shown = cluster.partitions.filter { partition in
            if let only, !words(partition.replicas).contains(only) { return false }
            return !onlyLeaderless || partition.leader == nil
        }
        return TextTable.text(
            shown,
            [
                .init("PARTITION", \.partition),
                .init("REPLICAS") { words($0.replicas).joined(separator: " ") },
                .init("LEADER") { $0.leader.map { words([$0])[0] } ?? "-" },
            ])
    }
}
