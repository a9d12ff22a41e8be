import StratusCommandLine
import StratusHTTP

/// `stratusctl cluster`, `node` and `partition`: the cluster as its system partition knows it.
enum ClusterControlCommands {
    static let definitions: [CommandDefinition] = [
        CommandDefinition(
            "cluster", "The cluster a node is in",
            subcommands: [
                CommandDefinition(
                    "status", "Nodes, replicas, moves, and problems with them",
                    examples: [
                        .init("stratusctl cluster status", "Any node of the cluster can answer")
                    ])
            ] + MembershipCommands.clusterCommands),
        CommandDefinition(
            "node", "The nodes of the cluster",
            subcommands: [
                CommandDefinition(
                    "list", "Every node: state, weight, rack, partitions and share of the data")
            ] + MembershipCommands.nodeCommands),
        CommandDefinition(
            "partition", "Partitions and their replicas",
            subcommands: [
                CommandDefinition(
                    "list", "Every partition: its replicas and its leader",
                    options: [
                        .value("on", .text("NAME"), "Only partitions with a replica on this node"),
                        .flag(
                            "leaderless", nil, "Only partitions whose leader the node does not know"
                        ),
                    ]),
                PartitionOfCommand.definition,
            ] + MembershipCommands.partitionCommands),
    ]

    static func serves(_ path: [String]) -> Bool {
        ["cluster", "node", "partition"].contains(path.first ?? "")
    }

    /// - Parameter health: `/v1/cluster/health`; nil if it did not come.
    /// - Returns: nil when `--on` names no node.
    static func text(_ invocation: Invocation, _ cluster: JSONValue, _ health: JSONValue?)
        -> String?
    {
        switch invocation.path {
        case ["cluster", "status"]: self.status(cluster, health)
        case ["node", "list"]: self.nodes(cluster, health)
        default: self.partitions(cluster, invocation)
        }
    }

    private static func array(_ value: JSONValue, _ key: String) -> [JSONValue] {
        value[key]?.array.map(Array.init) ?? []
    }

    /// Said before what may be old.
    static func remark(_ cluster: JSONValue) -> String? {
        guard cluster["isCurrent"]?.bool == false else { return nil }
        return
            "As last known: the system partition has no leader now. 'stratusctl doctor' says why.\n"
    }

    private static func status(_ cluster: JSONValue, _ health: JSONValue?) -> String {
        var table = TextTable([.init(""), .init("")])
        table.append(["cluster", cluster["cluster"]?.string ?? ""])
        table.append(["partitions", cluster["partitionCount"]?.numberText ?? ""])
        table.append(["replicas", cluster["replicaCount"]?.numberText ?? ""])
        table.append(["placement", "epoch " + (cluster["placementEpoch"]?.numberText ?? "")])
        let partitions = self.array(cluster, "partitions")
        let led = partitions.filter { $0["leader"]?.int64 != nil }.count
        let idle = led < partitions.count ? "; a partition that nobody uses needs none" : ""
        table.append(["leaders known", "\(led) of \(partitions.count)\(idle)"])
        table.append(["moves", "\(self.array(cluster, "moves").count)"])
        for shortfall in self.array(cluster, "shortfalls") {
            table.append(["attention", shortfall.string ?? ""])
        }
        return table.write() + "\n" + self.nodes(cluster, health)
    }

    private static func nodes(_ cluster: JSONValue, _ health: JSONValue?) -> String {
        let seen = health.map { ClusterFacts.nodes($0) } ?? []
        var table = TextTable([
            .init("NODE", alignsRight: true), .init("NAME"), .init("ADDRESS"), .init("STATE"),
            .init("UP"), .init("LAST HEARD"), .init("WEIGHT", alignsRight: true), .init("RACK"),
            .init("PARTITIONS", alignsRight: true), .init("SHARE", alignsRight: true),
        ])
        for node in self.array(cluster, "nodes") {
            let isHeard = node["wasHeard"]?.bool == true
            table.append([
                node["node"]?.numberText ?? "", node["name"]?.string ?? "",
                node["address"]?.string ?? "",
                (node["state"]?.string ?? "") + (isHeard ? "" : ", never heard of"),
                Self.up(node, in: seen), Self.lastHeard(node, in: cluster),
                node["weight"]?.numberText ?? "", node["rack"]?.string ?? "",
                node["partitions"]?.numberText ?? "", self.share(node),
            ])
        }
        return table.write()
    }

    /// Whether the node that was asked hears this one.
    private static func up(_ node: JSONValue, in seen: [JSONValue]) -> String {
        guard let found = seen.first(where: { $0["node"]?.int64 == node["node"]?.int64 }),
            let isReachable = found["reachable"]?.bool
        else { return "-" }
        return isReachable ? "yes" : "NO"
    }

    /// How long ago the node that was asked heard this one. Heartbeats come several times a second,
    /// so a few seconds say nothing.
    static func lastHeard(_ node: JSONValue, in cluster: JSONValue) -> String {
        guard let now = cluster["wallMilliseconds"]?.int64 else { return "-" }
        guard let heard = node["lastHeardMilliseconds"]?.int64 else { return "never" }
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
    private static func share(_ node: JSONValue) -> String {
        guard let text = node["share"]?.numberText else { return "-" }
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    private static func partitions(_ cluster: JSONValue, _ invocation: Invocation) -> String? {
        var names: [Int64: String] = [:]
        for node in self.array(cluster, "nodes") {
            if let id = node["node"]?.int64 { names[id] = node["name"]?.string ?? "\(id)" }
        }
        let only = invocation["on"]
        if let only, !names.values.contains(only) { return nil }
        var table = TextTable([.init("PARTITION"), .init("REPLICAS"), .init("LEADER")])
        for partition in self.array(cluster, "partitions") {
            let replicas = self.array(partition, "replicas").compactMap(\.int64).map {
                names[$0] ?? "\($0)"
            }
            let leader = partition["leader"]?.int64.map { names[$0] ?? "\($0)" }
            if let only, !replicas.contains(only) { continue }
            if invocation.flag("leaderless"), leader != nil { continue }
            table.append([
                partition["partition"]?.string ?? "", replicas.joined(separator: " "),
                leader ?? "-",
            ])
        }
        return table.write()
    }
}
