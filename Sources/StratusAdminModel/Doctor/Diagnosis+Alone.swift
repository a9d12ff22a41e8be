/// What may be wrong with a node that works alone, and with a cluster that does not answer.
extension Diagnosis {
    static let aloneRows: [DoctorRow] = [
        DoctorRow(
            alarm: "notReady", alert: "StratusNotReady", sentence: "{component}: {reason}",
            advice: "{advice}", page: "Docs/guides/observing.md#is-it-alive-is-it-ready",
            look: .alone { $0.notReady.map(Self.reported) }),
        DoctorRow(
            alarm: "complaint", alert: "StratusAlarm", sentence: "{component}: {reason}",
            advice: "{advice}", page: "Docs/guides/operating.md#when-something-is-wrong",
            look: .alone { $0.warnings.map(Self.reported) }),
        DoctorRow(
            alarm: "complaint", alert: "StratusAlarm",
            sentence: "{partitions}: {problem}", advice: "{advice}",
            page: "Docs/guides/operating.md#when-something-is-wrong",
            look: .alone { status in
                Self.folded(
                    status.partitions.compactMap { partition in
                        partition.problem.map { (partition.name, $0) }
                    }
                ).map { partitions, problem in
                    [
                        "partitions": partitions, "problem": problem,
                        "advice": Self.advice(aboutAlone: ""),
                    ]
                }
            }),
        DoctorRow(
            alarm: "disk", alert: "StratusDiskNearlyFull", threshold: Self.disk,
            sentence: "{free} MiB of the disk are left, of {whole}",
            advice: "Give the node more disk, or delete data.",
            page: "Docs/guides/operating.md#the-data-directory",
            look: .alone { status in
                // A node whose reserve is used up says so itself.
                let complains = (status.notReady + status.warnings).contains {
                    $0.component == "disk"
                }
                guard !complains, Self.isNearlyFull(status.freeBytes, of: status.diskBytes) else {
                    return []
                }
                return [Self.space("", status.freeBytes, status.diskBytes)]
            }),
    ]

    /// One cause is one finding, however many partitions it strikes: numbers apart, the text is the
    /// same.
    static func folded(_ problems: [(name: String, text: String)]) -> [(String, String)] {
        var kinds: [(kind: String, text: String, names: [String])] = []
        for (name, text) in problems {
            let kind = text.filter { !$0.isNumber }
            if let position = kinds.firstIndex(where: { $0.kind == kind }) {
                kinds[position].names.append(name)
            } else {
                kinds.append((kind, text, [name]))
            }
        }
        return kinds.map {
            ($0.names.count == 1 ? "partition \($0.names[0])" : Self.partitions($0.names), $0.text)
        }
    }

    /// Their number, and the first of their names.
    static func partitions(_ names: [String]) -> String {
        if names.count == 1 { return "partition \(names[0])" }
        let shown = names.prefix(8).joined(separator: ", ")
        return "\(names.count) partitions (\(shown)\(names.count > 8 ? ", …" : ""))"
    }

    private static func reported(_ report: ComponentReport) -> DoctorRow.Values {
        [
            "component": report.component, "reason": report.reason,
            "advice": Self.advice(aboutAlone: report.component),
        ]
    }

    static let leaderlessRows: [DoctorRow] = [
        DoctorRow(
            alarm: "noSystemLeader", alert: "StratusNoSystemLeader",
            sentence:
                "the system partition has no leader: {count} of the {all} nodes that hold it "
                + "answer, and {required} are needed. Answering: {here}",
            advice:
                "Ask again in a few seconds: an election may be under way. If it lasts, check on "
                + "each node's '/readyz' whether the nodes reach each other and whether their "
                + "clocks agree.",
            page: "Docs/guides/operating.md#when-something-is-wrong",
            look: .leaderless { health in
                let holders = SystemHolders(health)
                return holders.here.count < holders.required ? nil : holders.values
            }),
        DoctorRow(
            alarm: "noSystemLeader", alert: "StratusNoSystemLeader",
            sentence:
                "the system partition has no leader: {count} of the {all} nodes that hold it "
                + "answer, and {required} are needed. Answering: {here}. Silent: {silent}",
            advice:
                "Start {starts}: {lacking} of them are enough. Until then the cluster cannot be "
                + "changed, and partitions without a majority can neither be read nor written. "
                + "Only if none of their disks can be recovered: stop the remaining nodes and run "
                + "'stratus cluster recover --lost {lost}' on each. That loses whatever only the "
                + "lost nodes had; never start those again.",
            page: "Docs/guides/operating.md#when-a-majority-is-gone-for-good",
            look: .leaderless { SystemHolders($0).values }),
    ]

    /// The nodes that hold the system partition, by whether they answer.
    private struct SystemHolders {
        var here: [String] = []
        var silent: [String] = []
        /// Every node that does not answer.
        var lost: [String] = []
        let count: Int
        var required: Int { self.count / 2 + 1 }

        init(_ health: ClusterHealthAnswer) {
            let replicas = Set(health.systemReplicas)
            self.count = replicas.count
            for node in health.nodes {
                if !node.isReachable { self.lost.append(node.name) }
                guard replicas.contains(node.node) else { continue }
                if node.isReachable {
                    self.here.append(node.name)
                } else {
                    self.silent.append(node.name)
                }
            }
        }

        var values: DoctorRow.Values {
            func list(_ names: [String], _ word: String) -> String {
                names.map { "'\($0)'" }.joined(separator: word)
            }
            return [
                "count": "\(self.here.count)", "all": "\(self.count)",
                "required": "\(self.required)", "here": list(self.here, ", "),
                "silent": list(self.silent, ", "), "starts": list(self.silent, " or "),
                "lacking": "\(self.required - self.here.count)",
                "lost": self.lost.joined(separator: ","),
            ]
        }
    }

    static let askedRows: [DoctorRow] = [Self.unformed, Self.olderRelease, Self.recoveryPending]

    package static let unformed = DoctorRow(
        alarm: "notReady", alert: "StratusNotReady",
        sentence: "the cluster is not formed yet. The node says: {reasons}",
        advice:
            "Start the other founders. Each needs the same 'cluster.peers' and the same secret, "
            + "and must reach the others at the addresses of that list. Ask those that run too: "
            + "'stratusctl --node URL doctor'.",
        command: "doctor", page: "Docs/guides/operating.md#forming-a-cluster", look: .asked)

    static let recoveryPending = DoctorRow(
        alarm: "complaint", alert: "StratusAlarm", sentence: "node '{node}', recovery: {reason}",
        advice:
            "Wait: 'stratusctl doctor --wait 1m'. If it lasts, start the other nodes that were "
            + "recovered. Start none of those that were given as lost.",
        command: "doctor", page: "Docs/guides/operating.md#when-a-majority-is-gone-for-good",
        look: .asked)

    package static let olderRelease = DoctorRow(
        alarm: Self.unfinishedUpgrade, alert: "StratusUpgradeUnfinished",
        sentence: "nodes of an older release: {nodes}",
        advice: "Install the new release there, or remove the node.", command: "node remove",
        page: "Docs/guides/operating.md#upgrading", look: .asked)
}
