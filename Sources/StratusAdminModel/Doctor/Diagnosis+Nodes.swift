/// What may be wrong with a node.
extension Diagnosis {
    static let disk = DoctorRow.Threshold(
        text: "10 % or 1 GiB",
        inRule: "< 0.1 * stratus_disk_bytes or stratus_disk_free_bytes < 1073741824")

    static let nodeRows: [DoctorRow] = [
        DoctorRow(
            alarm: "silentNode", alert: "StratusNodeDown",
            sentence: "node '{node}' does not answer",
            advice:
                "Start it, or look at its log and the network. If its machine is gone, let "
                + "another node join, then run 'stratusctl node replace {node} NEW'.",
            command: "node replace", page: "Docs/guides/operating.md#replacing",
            look: .silent { ["node": $0.name] }),
        DoctorRow(
            alarm: "complaint", alert: "StratusAlarm",
            sentence: "node '{node}', {component}: {reason}", advice: "{advice}",
            page: "Docs/guides/operating.md#when-something-is-wrong",
            look: .node { node, sight in
                // All clocks are compared below, also those of nodes that see nobody to compare
                // with. Where nodes are silent, they are the reason why others do not lead.
                let isCaused = !sight.unreachable.isEmpty
                return (node.complaints ?? []).filter {
                    $0.component != "clock" && !($0.component == "leaders" && isCaused)
                }
                .map {
                    [
                        "node": node.name, "component": $0.component, "reason": $0.reason,
                        "advice": Self.advice(about: $0.component, of: node.name),
                    ]
                }
            }),
        DoctorRow(
            alarm: "certificate", alert: "StratusCertificateEnds",
            threshold: .init(text: "14 days", inRule: "< 14 * 86400"),
            sentence: "the certificate of node '{node}' {ends}",
            advice:
                "Issue a new one with 'stratus cluster certificates', replace the files, and send "
                + "SIGHUP to the node.",
            page: "Docs/guides/operating.md#forming-a-cluster",
            look: .node { node, sight in
                guard let end = node.certificateEnds, end > 0 else { return [] }
                let now = sight.health.wallMilliseconds / 1_000
                let days = (end - now) / 86_400
                guard days < Self.certificateDaysMin else { return [] }
                let ends = end < now ? "has expired" : "expires in \(days) days"
                return [["node": node.name, "ends": ends]]
            }),
        DoctorRow(
            alarm: "disk", alert: "StratusDiskNearlyFull", threshold: Self.disk,
            sentence: "node '{node}' has {free} MiB of disk left, of {whole}",
            advice:
                "Give it more disk, or lower its weight: 'stratusctl node weight {node} N'.",
            command: "node weight", page: "Docs/guides/operating.md#growing",
            look: .node { node, _ in
                // A node whose reserve is used up says so itself.
                let complains = (node.complaints ?? []).contains { $0.component == "disk" }
                guard !complains, Self.isNearlyFull(node.freeBytes, of: node.diskBytes) else {
                    return []
                }
                return [Self.space(node.name, node.freeBytes, node.diskBytes)]
            }),
        DoctorRow(
            alarm: "clock", alert: "StratusClockOff",
            threshold: .init(text: "500 ms", inRule: "stratus_clock_off == 1"),
            sentence: "the clock of node '{node}' is {skew} ms off the others'",
            advice: "Synchronise it with NTP. Until then the node leads no partition.",
            page: "Docs/guides/operating.md#when-something-is-wrong",
            look: .cluster { Self.skewedClocks($0.health) }),
    ]

    static func space(_ node: String, _ free: Int64?, _ whole: Int64?) -> DoctorRow.Values {
        ["node": node, "free": "\((free ?? 0) >> 20)", "whole": "\((whole ?? 0) >> 20)"]
    }

    private static func skewedClocks(_ health: ClusterHealthAnswer) -> [DoctorRow.Values] {
        let clocks = health.nodes.compactMap { node in
            node.wallMilliseconds.map { (node.name, $0) }
        }
        guard clocks.count > 1 else { return [] }
        let median = clocks.map(\.1).sorted()[clocks.count / 2]
        return clocks.filter { abs($0.1 - median) > Self.skewMaxMilliseconds }.map { name, clock in
            ["node": name, "skew": "\(clock - median)"]
        }
    }

    /// What to do about a complaint of a component of a node that works alone. Nobody else has what
    /// it holds, so it is never removed.
    static func advice(aboutAlone component: String) -> String {
        let advice = Self.advice(about: component, of: "this node")
        return advice.contains("node remove")
            ? "Look at its log and its disk. If it lasts, stop the node, and restore its data "
                + "directory from a backup: no other node has what it holds."
            : advice
    }

    /// The components that have an advice of their own.
    package static var components: [String] { Self.complaints.flatMap(\.components) }

    /// What to do about a complaint of a component.
    static func advice(about component: String, of node: String) -> String {
        let values: DoctorRow.Values = ["node": node]
        return values.fill(
            Self.complaints.first { $0.components.contains(component) }?.advice
                ?? "Look at the log of '{node}'.")
    }

    private static let complaints: [(components: [String], advice: String)] = [
        (
            ["storage"],
            "Look at the disk of '{node}', then restart the node: only a restart brings it back."
        ),
        (
            ["disk"],
            "Give '{node}' more disk, or delete data, which is still possible. Where most "
                + "replicas lack space, requests that add data are refused. They succeed again by "
                + "themselves once there is space."
        ),
        (
            ["log"],
            "Look at the disk of '{node}': it is slow, or something else keeps it busy. The "
                + "node recovers by itself."
        ),
        (
            ["data"],
            "Stop '{node}'. Bring back its latest data directory. Otherwise remove it with "
                + "'stratusctl node remove {node} --now' and let it join anew with an empty one."
        ),
        (
            ["level"],
            "Install the release that the other nodes run on '{node}', and restart it."
        ),
        (
            ["peers"],
            "Stop the node that is refused. If its build is too old, install the release of "
                + "the others on it. Otherwise bring back its latest data directory, or remove it "
                + "with 'stratusctl node remove NAME --now' and let it join anew with an empty one."
        ),
        (
            ["mail"],
            "If the receiver does not answer, repair its partition: see the other findings "
                + "about it. If the receiver cannot read the mail, bring every node to the newest "
                + "release. If mail is missing, one partition was restored "
                + "alone: restore the whole cluster."
        ),
        (
            ["refused"],
            "Compare 'cluster.peers', the secret and the certificates of '{node}' with those of "
                + "the node that refuses it."
        ),
        (
            ["threads"],
            "The node recovers by itself. If it happens again, limit the container that is named "
                + "by 'limits.containerRequestRateMax'."
        ),
        (
            ["partitions"],
            "Other nodes have what '{node}' cannot open: run 'stratusctl node remove {node} --now', "
                + "and let it join anew with an empty data directory."
        ),
        (
            ["leaders"],
            "'stratusctl cluster status' shows the nodes that hold them: start those that are down. If "
                + "all answer, look at the other findings, and at the clocks and disks of these nodes."
        ),
        (
            ["replicas"],
            "Where it asks for a snapshot, or was refused one, wait: 'stratusctl doctor --wait 10m'. "
                + "If it stays, look at the log and the disk of '{node}'. Only where other nodes have "
                + "these partitions: run 'stratusctl node remove {node} --now', and let it join anew "
                + "with an empty data directory."
        ),
        (
            ["recovery"],
            "Wait: the cluster takes the recovery as soon as its system partition has a leader."
        ),
        (
            ["entries"],
            "The node serves. If what was saved just before it ended must not be missing, stop it "
                + "and restore its data directory from a backup. Look at the disk, which changed "
                + "what it was given. The finding goes with the next restart."
        ),
        (
            ["time"],
            "Compare the clocks of all machines with 'chronyc tracking'. Nothing is lost. Dates in "
                + "these partitions are wrong until real time has caught up."
        ),
        (["starting", "formation", "stopping"], "Wait a moment, and ask again."),
        (
            ["push"],
            "'stratusctl push status' names the provider and what it answered. Check the container's "
                + "key with 'stratusctl push apns list', and the network to the provider."
        ),
        (
            ["assets"],
            "Bring back the nodes that are down: '{node}' fetches missing copies of files from them. "
                + "'stratusctl assets status' shows how many are missing, and the log of '{node}' "
                + "what cannot be read or written."
        ),
        (
            ["sealing"],
            "Make a key with 'openssl rand -hex 32' on another disk, name it in 'keys.masterFiles' "
                + "and 'keys.sealingMaster' of '{node}', and restart the node. Then run "
                + "'stratusctl encryption-key rotate', and keep no copy of the directory from before."
        ),
        (["cluster", "member"], "Stop '{node}': it is no longer a member of the cluster."),
    ]
}
