import StratusCluster
import StratusModel
import StratusRuntime

/// The metrics of a node among others: an alarm for each thing that the doctor reports, and the
/// figures that explain it.
extension NodeMetrics {
    /// The components that report what is wrong with a node. A component that is not listed here
    /// has no alarm, so add each new one of ``Health``.
    static let components = [
        "starting", "stopping", "formation", "cluster", "membership", "peers", "clock", "disk",
        "level",
        "log", "storage", "threads", "replicas", "mail", "assets",
    ]

    static func register(_ watch: ClusterWatch, of state: NodeState) {
        let metrics = state.metrics
        let cluster = state.cluster
        Self.registerAlarms(watch, of: state)
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
        gauge("stratus_leads_system", "1 on the node that leads the system partition") {
            $0.leadsSystem ? 1 : 0
        }
        metrics.counter(
            "stratus_leaderships_taken_total",
            "Partitions that this node had begun to lead, looked at every two seconds"
        ) { Double(watch.figures.takenCount) }
        metrics.gauge(
            "stratus_peer_certificate_end_seconds",
            "When the peer certificate expires, in seconds since 1970; 0 for a node alone"
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
