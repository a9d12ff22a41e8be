import StratusCluster
import StratusGateway
import StratusModel
import StratusRecords
import StratusRuntime

/// The metrics of a node among others: an alarm for each thing that the doctor reports, and the
/// figures that explain it.
extension NodeMetrics {
    /// The components that report what is wrong with a node. `AlarmTests` compares them with the
    /// sources: a component that is not listed here would have no alarm.
    static let components = [
        "starting", "stopping", "formation", "cluster", "member", "data", "refused", "peers",
        "clock", "disk", "level", "log", "storage", "threads", "replicas", "mail", "assets", "push",
        "sealing", "partitions", "entries", "time", "leaders", "recovery",
    ]

    private static let certificateHelp =
        "When the certificate of a listener ends, in seconds since 1970; 0 where there is none"

    static func register(_ certificates: Certificates, in metrics: Metrics) {
        for listener in ["client", "admin"] {
            metrics.gauge(
                "stratus_certificate_end_seconds", Self.certificateHelp, ["listener": listener]
            ) { Double(certificates.end(of: listener)) }
        }
    }

    static func register(_ sizes: DataSizes, in metrics: Metrics) {
        for (part, _) in DataSizes.parts {
            metrics.gauge(
                "stratus_data_bytes", "Bytes on disk, looked at every 30 seconds", ["part": part]
            ) { Double(sizes.size(of: part)) }
        }
    }

    static func register(_ held: HeldCounts, in metrics: Metrics) {
        metrics.gauge(
            "stratus_records",
            "Records in the partitions that this node leads, counted every minute"
        ) { Double(held.use.recordCount) }
        metrics.gauge(
            "stratus_records_bytes",
            "Bytes of records in the partitions that this node leads, counted every minute"
        ) { Double(held.use.size) }
    }

    static func register(_ counts: RecordCounts, _ people: SignInService, in metrics: Metrics) {
        let help = "Records that clients saved or deleted through this node"
        for (change, counter) in [("save", counts.saved), ("delete", counts.deleted)] {
            metrics.counter("stratus_records_changed_total", help, ["change": change]) {
                Double(counter.value)
            }
        }
        for outcome in SignInService.Outcome.allCases {
            metrics.counter(
                "stratus_sign_ins_total", "Attempts to sign in with a password",
                ["outcome": outcome.rawValue]
            ) { Double(people.count(outcome)) }
        }
    }

    static func registerQueues(of state: NodeState) {
        let metrics = state.metrics
        let replicas = state.cluster.replicas
        metrics.gauge(
            "stratus_replica_requests_waiting",
            "Commands and reads that wait for a replica on this node"
        ) { Double(replicas.retentionFigures.waitingCount) }
        metrics.gauge("stratus_replica_requests_waiting_bytes", "Bytes of those") {
            Double(replicas.retentionFigures.waitingSize)
        }
        metrics.gauge(
            "stratus_storage_events_waiting", "Events that wait for the storage thread"
        ) { Double(replicas.retentionFigures.eventCount) }
        metrics.counter(
            "stratus_snapshots_total", "Snapshots spooled for followers, and installed here",
            ["end": "sender"]
        ) { Double(replicas.retentionFigures.spooledCount) }
        metrics.counter(
            "stratus_snapshots_total", "Snapshots spooled for followers, and installed here",
            ["end": "receiver"]
        ) { Double(replicas.retentionFigures.installedCount) }
        metrics.gauge(
            "stratus_snapshots_under_way", "Snapshots that are being spooled or installed"
        ) { Double(replicas.retentionFigures.snapshotsUnderWayCount) }
        metrics.gauge(
            "stratus_erasure_remains_seconds",
            "How long ago the oldest erasure was of which something is left on this disk; 0: nothing is"
        ) { [world = state.world] in
            guard let since = replicas.remainsFigures.sinceMilliseconds else { return 0 }
            return Double(max(1, world.wallMilliseconds - since)) / 1_000
        }
        metrics.counter(
            "stratus_erasure_rebuilds_total", "Files of partitions made anew after an erasure"
        ) { Double(replicas.remainsFigures.rebuiltCount) }
    }

    static func register(_ watch: ClusterWatch, of state: NodeState) {
        let metrics = state.metrics
        let cluster = state.cluster
        Self.registerAlarms(watch, of: state)
        Self.registerQueues(of: state)
        Self.registerPeers(of: state)
        func gauge(
            _ name: String, _ help: String,
            _ read: @escaping @Sendable (ClusterWatch.Figures) -> Int
        ) {
            metrics.gauge(name, help) { Double(read(watch.figures)) }
        }
        gauge("stratus_replicas_open", "Open replicas; those of idle partitions are closed") {
            $0.openCount
        }
        gauge("stratus_replicas_unopened", "Replicas that this node keeps and cannot open") {
            $0.unopenedCount
        }
        metrics.gauge(
            "stratus_partition_time_ahead_seconds",
            "How far the time of a partition is ahead of this node's clock, of the one furthest ahead"
        ) { Double(watch.figures.aheadMilliseconds) / 1_000 }
        gauge("stratus_replicas_without_leader", "Open replicas that know of no leader") {
            $0.leaderlessCount
        }
        gauge("stratus_replicas_behind", "Replicas that lag, of partitions led by this node") {
            $0.behindCount
        }
        gauge("stratus_partitions_led", "Partitions led by this node") { $0.ledCount }
        gauge(
            "stratus_partitions_changing", "Partitions led by this node whose members are changing"
        ) {
            $0.changingCount
        }
        gauge(
            "stratus_leads_system",
            "1 on the node that leads the system partition, and on a node alone"
        ) {
            $0.leadsSystem ? 1 : 0
        }
        gauge("stratus_moves", "Moves of replicas that the cluster has under way") {
            $0.moveCount
        }
        gauge(
            "stratus_replicas_missing",
            "Replicas that partitions of the cluster lack: being copied, or for want of nodes"
        ) { $0.shortReplicaCount }
        metrics.gauge(
            "stratus_cluster_revision", "Changes of nodes and placement that this node follows"
        ) { Double(cluster.directory.revision) }
        metrics.counter(
            "stratus_leaderships_taken_total",
            "Partitions that this node had begun to lead, looked at every two seconds"
        ) { Double(watch.figures.takenCount) }
        metrics.gauge(
            "stratus_certificate_end_seconds", Self.certificateHelp, ["listener": "peer"]
        ) { Double(cluster.certificateEnd) }
        metrics.gauge(
            "process_start_time_seconds", "When the process started, in seconds since 1970"
        ) { [start = state.startedAtMilliseconds] in Double(start) / 1_000 }
        metrics.gauge("process_max_fds", "Maximum of open files and sockets") {
            Double(ProcessFacts.descriptorCountMax)
        }
    }

    private static func registerAlarms(_ watch: ClusterWatch, of state: NodeState) {
        let help = "1 while the node reports a problem of this component"
        for component in Self.components {
            state.metrics.gauge("stratus_alarm", help, ["component": component]) {
                [health = state.health, mail = state.cluster.mail, world = state.world] in
                let isRaised =
                    switch component {
                    case "replicas": watch.figures.troubledCount > 0
                    case "mail": !mail.stuck(at: world.now).isEmpty
                    default:
                        health.reasons.contains { $0.component == component }
                            || health.warnings.contains { $0.component == component }
                    }
                return isRaised ? 1 : 0
            }
        }
    }

    private static func registerPeers(of state: NodeState) {
        let cluster = state.cluster
        state.metrics.gauge("stratus_peers", "Other nodes of the cluster") {
            Double(cluster.directory.peers.count)
        }
        state.metrics.gauge("stratus_peers_connected", "Other nodes with an open link") {
            Double(cluster.peerLinks?.openCount ?? 0)
        }
    }
}
