import StratusHTTP

/// Finds what is wrong with a cluster and what to do about it. It decides from what the nodes said,
/// and asks nobody.
struct Diagnosis {
    struct Finding: Equatable {
        var alarm: DoctorAlarm
        var what: String
        var advice: String
    }

    private static let skewMaxMilliseconds: Int64 = 500
    private static let certificateDaysMin: Int64 = 14

    /// `/v1/cluster` now, and a few seconds before.
    let cluster: JSONValue
    let earlier: JSONValue
    /// `/v1/cluster/health`.
    let health: JSONValue

    var findings: [Finding] {
        self.nodeFindings + self.clockFindings + self.groupFindings + self.moveFindings
            + self.levelFindings + self.replicaFindings
            + ClusterFacts.array(self.cluster, "shortfalls").compactMap(\.string).map {
                Finding(
                    alarm: .placement,
                    what: $0,
                    advice: "Add nodes: 'stratusctl cluster join-token', then start one with it.")
            }
    }

    /// Explains why the system partition has no leader, by what a running node knows of the others;
    /// nil if it has one. Without a leader nothing else can be said, because nobody can be asked
    /// about the cluster itself.
    ///
    /// - Parameter health: as that node shows it.
    static func withoutLeader(_ health: JSONValue) -> Finding? {
        guard health["isCurrent"]?.bool == false else { return nil }
        let replicas = Set(ClusterFacts.array(health, "systemReplicas").compactMap(\.int64))
        var (here, silent, lost): ([String], [String], [String]) = ([], [], [])
        for node in ClusterFacts.nodes(health) {
            let name = node["name"]?.string ?? "?"
            let answers = node["reachable"]?.bool == true
            if !answers { lost.append(name) }
            guard replicas.contains(node["node"]?.int64 ?? 0) else { continue }
            if answers { here.append(name) } else { silent.append(name) }
        }
        func list(_ names: [String], _ word: String) -> String {
            names.map { "'\($0)'" }.joined(separator: word)
        }
        let required = replicas.count / 2 + 1
        let what =
            "the system partition has no leader: \(here.count) of the \(replicas.count) nodes that hold it answer, "
            + "and \(required) are needed"
        guard here.count < required else {
            return Finding(
                alarm: .noSystemLeader,
                what: what + ". Answering: \(list(here, ", "))",
                advice:
                    "Ask again in a few seconds: an election may be under way. If it lasts, "
                    + "check on each node's '/readyz' whether the nodes reach each other and "
                    + "whether their clocks agree.")
        }
        return Finding(
            alarm: .noSystemLeader,
            what: what + ". Answering: \(list(here, ", ")). Silent: \(list(silent, ", "))",
            advice:
                "Start \(list(silent, " or ")): \(required - here.count) of them are enough. "
                + "Until then the cluster cannot be changed, and partitions without a majority "
                + "can neither be read nor written. Only if none of their disks can be "
                + "recovered: stop the remaining nodes and run 'stratus cluster recover --lost "
                + "\(lost.joined(separator: ","))' on each. That loses whatever only the lost "
                + "nodes had; never start those again.")
    }

    /// What is wrong with a node that works alone, by its own `/v1/status`.
    static func ofSingleNode(_ status: JSONValue) -> [Finding] {
        var all: [Finding] = []
        for (key, alarm) in [("notReady", DoctorAlarm.notReady), ("warnings", .complaint)] {
            for reason in ClusterFacts.array(status, key) {
                let component = reason["component"]?.string ?? ""
                all.append(
                    Finding(
                        alarm: alarm, what: "\(component): \(reason["reason"]?.string ?? "")",
                        advice: Self.advice(component, "this node")))
            }
        }
        for partition in ClusterFacts.array(status, "partitions") {
            guard let problem = partition["problem"]?.string else { continue }
            all.append(
                Finding(
                    alarm: .complaint,
                    what: "partition \(partition["name"]?.string ?? ""): \(problem)",
                    advice: Self.advice("", "this node")))
        }
        if let free = status["freeBytes"]?.int64, let whole = status["diskBytes"]?.int64,
            Self.isNearlyFull(free, of: whole)
        {
            all.append(
                Finding(
                    alarm: .disk,
                    what: "\(free >> 20) MiB of the disk are left, of \(whole >> 20)",
                    advice: "Give the node more disk, or delete data."))
        }
        return all
    }

    private static func isNearlyFull(_ free: Int64, of whole: Int64) -> Bool {
        whole > 0 && free < max(whole / 10, 1 << 30)
    }

    private var nodes: [JSONValue] { ClusterFacts.nodes(self.health) }

    private var nodeFindings: [Finding] {
        var all: [Finding] = []
        let now = (self.health["wallMilliseconds"]?.int64 ?? 0) / 1_000
        for node in self.nodes {
            let name = node["name"]?.string ?? "?"
            guard node["reachable"]?.bool == true else {
                all.append(
                    Finding(
                        alarm: .silentNode,
                        what: "node '\(name)' does not answer",
                        advice:
                            "Start it, or look at its log and the network. If its machine is "
                            + "gone, let another node join, then run 'stratusctl node replace "
                            + "\(name) NEW'."))
                continue
            }
            for complaint in ClusterFacts.array(node, "complaints") {
                let component = complaint["component"]?.string ?? ""
                // All clocks are compared below, also those of nodes that see nobody to compare
                // with.
                if component == "clock" { continue }
                all.append(
                    Finding(
                        alarm: .complaint,
                        what: "node '\(name)', \(component): \(complaint["reason"]?.string ?? "")",
                        advice: Self.advice(component, name)))
            }
            if let end = node["certificateEnds"]?.int64, end > 0 {
                let days = (end - now) / 86_400
                if days < Self.certificateDaysMin {
                    all.append(
                        Finding(
                            alarm: .certificate,
                            what: "the certificate of node '\(name)' "
                                + (end < now ? "has expired" : "expires in \(days) days"),
                            advice:
                                "Issue a new one with 'stratus cluster certificates', replace "
                                + "the files, and send SIGHUP to the node."))
                }
            }
            if let free = node["freeBytes"]?.int64, let whole = node["diskBytes"]?.int64,
                Self.isNearlyFull(free, of: whole)
            {
                all.append(
                    Finding(
                        alarm: .disk,
                        what:
                            "node '\(name)' has \(free >> 20) MiB of disk left, of \(whole >> 20)",
                        advice:
                            "Give it more disk, or lower its weight: 'stratusctl node weight "
                            + "\(name) N'."
                    ))
            }
        }
        return all
    }

    private static func advice(_ component: String, _ name: String) -> String {
        switch component {
        case "storage":
            "Look at the disk of '\(name)', then restart the node: only a restart brings it back."
        case "disk":
            "Give '\(name)' more disk, or delete data, which is still possible. Where most "
                + "replicas lack space, requests that add data are refused. They succeed again by "
                + "themselves once there is space."
        case "log":
            "Look at the disk of '\(name)': it is slow, or something else keeps it busy. The "
                + "node recovers by itself."
        case "data":
            "Stop '\(name)'. Bring back its latest data directory. Otherwise remove it with "
                + "'stratusctl node remove \(name) --now' and let it join anew with an empty one."
        case "level":
            "Install the release that the other nodes run on '\(name)', and restart it."
        case "peers":
            "Stop the node that is refused. If its build is too old, install the release of "
                + "the others on it. Otherwise bring back its latest data directory, or remove it "
                + "with 'stratusctl node remove NAME --now' and let it join anew with an empty one."
        case "mail":
            "If the receiver does not answer, repair its partition: see the other findings "
                + "about it. If the receiver cannot read the mail, bring every node to the newest "
                + "release. If mail is missing, one partition was restored "
                + "alone: restore the whole cluster."
        case "refused":
            "Compare 'cluster.peers', the secret and the certificates of '\(name)' with those of "
                + "the node that refuses it."
        case "threads":
            "The node recovers by itself. If it happens again, limit the container that is named "
                + "by 'limits.containerRequestRateMax'."
        case "starting", "formation", "stopping": "Wait a moment, and ask again."
        case "push":
            "'stratusctl push status' names the provider and what it answered. Check the container's "
                + "key with 'stratusctl push apns list', and the network to the provider."
        case "assets":
            "Bring back the nodes that are down: '\(name)' fetches missing copies of files from them. "
                + "'stratusctl assets status' shows how many are missing, and the log of '\(name)' what "
                + "cannot be read or written."
        case "sealing":
            "Make a key with 'openssl rand -hex 32' on another disk, name it in 'keys.masterFiles' "
                + "and 'keys.sealingMaster' of '\(name)', and restart the node. Then run "
                + "'stratusctl encryption-key rotate', and keep no copy of the directory from before."
        case "cluster", "member": "Stop '\(name)': it is no longer a member of the cluster."
        default: "Look at the log of '\(name)'."
        }
    }

    /// A reminder, where every member reads more than the cluster writes.
    var levelFindings: [Finding] {
        let level = self.cluster["featureLevel"]?.int64 ?? 0
        let announced = ClusterFacts.nodes(self.cluster).filter {
            $0["state"]?.string != "removed"
        }.compactMap { $0["featureLevel"]?.int64 }
        guard let lowest = announced.min(), lowest > level else { return [] }
        return [
            Finding(
                alarm: .unfinishedUpgrade,
                what:
                    "every node reads feature level \(lowest), but the cluster still writes "
                    + "level \(level)",
                advice:
                    "When you no longer want to go back to the previous release, run "
                    + "'stratusctl upgrade finalise'. Until then the features that are new in "
                    + "this release are refused.")
        ]
    }

    private var clockFindings: [Finding] {
        let clocks = self.nodes.compactMap { node in
            node["wallMilliseconds"]?.int64.map { (node["name"]?.string ?? "?", $0) }
        }
        guard clocks.count > 1 else { return [] }
        let sorted = clocks.map(\.1).sorted()
        let median = sorted[sorted.count / 2]
        return clocks.filter { abs($0.1 - median) > Self.skewMaxMilliseconds }.map { name, clock in
            Finding(
                alarm: .clock,
                what: "the clock of node '\(name)' is \(clock - median) ms off the others'",
                advice: "Synchronise it with NTP. Until then the node leads no partition.")
        }
    }

    private var groupFindings: [Finding] {
        var all: [Finding] = []
        let names = ClusterFacts.names(self.cluster)
        let moving = Set(
            ClusterFacts.array(self.cluster, "moves").compactMap { $0["partition"]?.string })
        var behind: [Int64: Int] = [:]
        for group in ClusterFacts.array(self.health, "groups")
        where !moving.contains(group["partition"]?.string ?? "") {
            for node in ClusterFacts.array(group, "behind").compactMap(\.int64) {
                behind[node, default: 0] += 1
            }
        }
        let unreachable = Set(
            self.nodes.filter { $0["reachable"]?.bool != true }.compactMap { $0["node"]?.int64 })
        // That a silent node lags goes without saying.
        for (node, count) in behind.sorted(by: { $0.key < $1.key })
        where !unreachable.contains(node) {
            let name = names[node] ?? "\(node)"
            all.append(
                Finding(
                    alarm: .behind,
                    what:
                        "\(count) replicas on node '\(name)' are behind, or have not been "
                        + "heard of yet",
                    advice:
                        "If the node has just started, wait. Otherwise look at its disk and its log."
                ))
        }
        let led = Set(
            ClusterFacts.array(self.health, "groups").compactMap { $0["partition"]?.string })
        for partition in ClusterFacts.array(self.cluster, "partitions") {
            let name = partition["partition"]?.string ?? ""
            let replicas = ClusterFacts.array(partition, "replicas").compactMap(\.int64)
            let left = replicas.count { !unreachable.contains($0) }
            // A partition that nobody has used since the start has no leader, and needs none.
            guard !led.contains(name), left < replicas.count / 2 + 1 else { continue }
            all.append(
                Finding(
                    alarm: .noMajority,
                    what:
                        "partition \(name) has \(left) of \(replicas.count) replicas, which "
                        + "is not a majority: it can neither be read nor written",
                    advice: "Start "
                        + replicas.filter { unreachable.contains($0) }
                        .map { "'\(names[$0] ?? "\($0)")'" }.joined(separator: " or ") + "."))
        }
        return all
    }

    /// Partitions that lack replicas for which there are nodes. Where nodes are wanting, the cluster
    /// says so itself.
    private var replicaFindings: [Finding] {
        let wanted =
            (self.cluster["possibleReplicaCount"] ?? self.cluster["replicaCount"])?.int64 ?? 0
        let missing = ClusterFacts.array(self.cluster, "partitions").map {
            max(0, wanted - Int64(ClusterFacts.array($0, "replicas").count))
        }.filter { $0 > 0 }
        guard !missing.isEmpty else { return [] }
        let left = missing.reduce(0, +)
        let isCopying = !ClusterFacts.array(self.cluster, "moves").isEmpty
        return [
            Finding(
                alarm: .placement,
                what: Self.partitions(missing.count) + " fewer replicas than wanted; "
                    + (isCopying ? "copying, about \(left) left" : "\(left) are missing"),
                advice: "Stop no node until they are there: it may hold the only replica. "
                    + "'stratusctl doctor --wait 10m' waits for them.")
        ]
    }

    private static func partitions(_ count: Int) -> String {
        count == 1 ? "1 partition has" : "\(count) partitions have"
    }

    private var moveFindings: [Finding] {
        func key(_ move: JSONValue) -> String {
            ["partition", "number"].map {
                move[$0]?.string ?? move[$0]?.numberText ?? ""
            }.joined(separator: "/")
        }
        let before = Set(ClusterFacts.array(self.earlier, "moves").map(key))
        guard self.earlier["revision"]?.int64 == self.cluster["revision"]?.int64 else { return [] }
        return ClusterFacts.array(self.cluster, "moves").filter { before.contains(key($0)) }.map {
            Finding(
                alarm: .stuckMove,
                what: "the move of partition \($0["partition"]?.string ?? "") makes no progress",
                advice:
                    "Check whether its nodes answer. A new replica that stays silent is given "
                    + "up after 30 s; a partition without a majority waits for its nodes.")
        }
    }
}
