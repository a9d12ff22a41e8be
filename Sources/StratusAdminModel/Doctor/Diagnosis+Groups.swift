/// What may be wrong with partitions, their replicas and the cluster's level.
extension Diagnosis {
    static let groupRows: [DoctorRow] = [
        DoctorRow(
            alarm: "behind", alert: "StratusReplicasBehind",
            sentence:
                "{count} replicas on node '{node}' are behind, or have not been heard of yet",
            advice: "If the node has just started, wait. Otherwise look at its disk and its log.",
            page: "Docs/guides/operating.md#when-something-is-wrong",
            look: .cluster(Self.lagging)),
        DoctorRow(
            alarm: "noMajority", alert: "StratusPartitionsWithoutLeader",
            sentence:
                "{partitions} {have} {left} of {count} replicas, which is not a majority: "
                + "{they} can neither be read nor written",
            advice: "Start {nodes}.",
            page: "Docs/guides/operating.md#when-a-majority-is-gone-for-good",
            look: .cluster(Self.withoutMajority)),
        DoctorRow(
            alarm: "stuckMove", alert: "StratusMoveStuck",
            sentence: "the move of partition {partition} makes no progress",
            advice:
                "Check whether its nodes answer. A new replica that stays silent is given up after "
                + "30 s; a partition without a majority waits for its nodes.",
            command: "cluster status", page: "Docs/guides/operating.md#looking-at-a-cluster",
            look: .cluster { sight in
                guard sight.earlier.revision == sight.cluster.revision else { return [] }
                let before = Set(sight.earlier.moves.map { "\($0.partition)/\($0.number)" })
                return sight.cluster.moves.filter {
                    before.contains("\($0.partition)/\($0.number)")
                }
                .map { ["partition": $0.partition] }
            }),
        DoctorRow(
            alarm: Self.unfinishedUpgrade, alert: "StratusUpgradeUnfinished",
            sentence:
                "every node reads feature level {lowest}, but the cluster still writes level "
                + "{level}",
            advice:
                "When you no longer want to go back to the previous release, run "
                + "'stratusctl upgrade finalise'. Until then the features that are new in this "
                + "release are refused.",
            command: "upgrade finalise", page: "Docs/guides/operating.md#upgrading",
            look: .cluster { sight in
                let level = sight.cluster.featureLevel
                let announced = sight.cluster.nodes.filter(\.isMember).compactMap(\.featureLevel)
                guard let lowest = announced.min(), lowest > level else { return [] }
                return [["lowest": "\(lowest)", "level": "\(level)"]]
            }),
        // Partitions that lack replicas for which there are nodes. Where nodes are wanting, the
        // cluster says so itself.
        DoctorRow(
            alarm: Self.placement, alert: "StratusTooFewReplicas",
            sentence: "{partitions} fewer replicas than wanted; {state}",
            advice:
                "Stop no node until they are there: it may hold the only replica. "
                + "'stratusctl doctor --wait 10m' waits for them.",
            command: "doctor", page: "Docs/guides/operating.md#shrinking",
            look: .cluster(Self.missingReplicas)),
        DoctorRow(
            alarm: Self.placement, alert: "StratusTooFewReplicas",
            sentence: "{shortfall}",
            advice: "Add nodes: 'stratusctl cluster join-token', then start one with it.",
            command: "cluster join-token", page: "Docs/guides/operating.md#growing",
            look: .cluster { sight in sight.cluster.shortfalls.map { ["shortfall": $0] } }),
    ]

    package static let unfinishedUpgrade = "unfinishedUpgrade"
    package static let placement = "placement"

    private static func lagging(_ sight: ClusterSight) -> [DoctorRow.Values] {
        let moving = Set(sight.cluster.moves.map(\.partition))
        var behind: [Int64: Int] = [:]
        for group in sight.health.groups where !moving.contains(group.partition) {
            for node in group.behind { behind[node, default: 0] += 1 }
        }
        let (names, unreachable) = (sight.cluster.names, sight.unreachable)
        // That a silent node lags goes without saying.
        return behind.sorted { $0.key < $1.key }.filter { !unreachable.contains($0.key) }
            .map { node, count in ["count": "\(count)", "node": names[node] ?? "\(node)"] }
    }

    private static func withoutMajority(_ sight: ClusterSight) -> [DoctorRow.Values] {
        let led = Set(sight.health.groups.map(\.partition))
        let (names, unreachable) = (sight.cluster.names, sight.unreachable)
        var found: [(away: String, left: Int, count: Int, partitions: [String])] = []
        for partition in sight.cluster.partitions {
            let replicas = partition.replicas
            let left = replicas.count { !unreachable.contains($0) }
            // A partition that nobody has used since the start has no leader, and needs none.
            guard !led.contains(partition.partition), left < replicas.count / 2 + 1 else {
                continue
            }
            let away = replicas.filter { unreachable.contains($0) }
                .map { "'\(names[$0] ?? "\($0)")'" }.joined(separator: " or ")
            let position = found.firstIndex {
                $0.away == away && $0.left == left && $0.count == replicas.count
            }
            if let position {
                found[position].partitions.append(partition.partition)
            } else {
                found.append((away, left, replicas.count, [partition.partition]))
            }
        }
        // One cause for all that wait for the same nodes.
        return found.map { cause in
            let isOne = cause.partitions.count == 1
            return [
                "partitions": Self.partitions(cause.partitions), "have": isOne ? "has" : "have",
                "they": isOne ? "it" : "they", "left": "\(cause.left)", "count": "\(cause.count)",
                "nodes": cause.away,
            ]
        }
    }

    private static func missingReplicas(_ sight: ClusterSight) -> [DoctorRow.Values] {
        let wanted = sight.cluster.possibleReplicaCount ?? sight.cluster.replicaCount
        let missing = sight.cluster.partitions.map { max(0, wanted - Int64($0.replicas.count)) }
            .filter { $0 > 0 }
        guard !missing.isEmpty else { return [] }
        let left = missing.reduce(0, +)
        return [
            [
                "partitions": missing.count == 1
                    ? "1 partition has" : "\(missing.count) partitions have",
                "state": sight.cluster.moves.isEmpty
                    ? "\(left) are missing" : "copying, about \(left) left",
            ]
        ]
    }
}
