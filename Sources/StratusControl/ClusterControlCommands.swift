import StratusCommandLine
import StratusHTTP

/// `stratusctl cluster`, `node` and `partition`: the cluster as its system partition knows it.
enum ClusterControlCommands {
    static let definitions: [CommandDefinition] = [
        CommandDefinition(
            "cluster", "The cluster a node is in",
            subcommands: [
                CommandDefinition(
                    "status", "Nodes, replicas, moves, and what is wrong with them",
                    examples: [
                        .init("stratusctl cluster status", "What any node of the cluster says")
                    ])
            ] + MembershipCommands.clusterCommands),
        CommandDefinition(
            "node", "The nodes of the cluster",
            subcommands: [
                CommandDefinition(
                    "list", "Every node: state, weight, rack, partitions and its share")
            ] + MembershipCommands.nodeCommands),
        CommandDefinition(
            "partition", "Where the data is",
            subcommands: [
                CommandDefinition(
                    "list", "Every partition: its replicas and who leads it",
                    options: [
                        .value("on", .text("NAME"), "Only those with a replica on this node"),
                        .flag("leaderless", nil, "Only those whose leader the node does not know"),
                    ])
            ] + MembershipCommands.partitionCommands),
    ]

    static func serves(_ path: [String]) -> Bool {
        ["cluster", "node", "partition"].contains(path.first ?? "")
    }

    /// - Returns: nil when `--on` names no node.
    static func text(_ invocation: Invocation, _ cluster: JSONValue) -> String? {
        switch invocation.path {
        case ["cluster", "status"]: self.status(cluster)
        case ["node", "list"]: self.nodes(cluster)
        default: self.partitions(cluster, invocation)
        }
    }

    private static func array(_ value: JSONValue, _ key: String) -> [JSONValue] {
        value[key]?.array.map(Array.init) ?? []
    }

    private static func status(_ cluster: JSONValue) -> String {
        var table = TextTable([.init(""), .init("")])
        table.append(["cluster", cluster["cluster"]?.string ?? ""])
        table.append(["partitions", cluster["partitionCount"]?.numberText ?? ""])
        table.append(["replicas", cluster["replicaCount"]?.numberText ?? ""])
        table.append(["placement", "epoch " + (cluster["placementEpoch"]?.numberText ?? "")])
        let partitions = self.array(cluster, "partitions")
        let led = partitions.filter { $0["leader"]?.int64 != nil }.count
        table.append(["leaders known", "\(led) of \(partitions.count)"])
        table.append(["moves", "\(self.array(cluster, "moves").count)"])
        for shortfall in self.array(cluster, "shortfalls") {
            table.append(["attention", shortfall.string ?? ""])
        }
        return table.write() + "\n" + self.nodes(cluster)
    }

    private static func nodes(_ cluster: JSONValue) -> String {
        var table = TextTable([
            .init("NODE", alignsRight: true), .init("NAME"), .init("ADDRESS"), .init("STATE"),
            .init("WEIGHT", alignsRight: true), .init("RACK"),
            .init("PARTITIONS", alignsRight: true), .init("SHARE", alignsRight: true),
        ])
        for node in self.array(cluster, "nodes") {
            let isHeard = node["wasHeard"]?.bool == true
            table.append([
                node["node"]?.numberText ?? "", node["name"]?.string ?? "",
                node["address"]?.string ?? "",
                (node["state"]?.string ?? "") + (isHeard ? "" : ", never heard of"),
                node["weight"]?.numberText ?? "", node["rack"]?.string ?? "",
                node["partitions"]?.numberText ?? "", self.share(node),
            ])
        }
        return table.write()
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
