import StratusCluster
import StratusGateway
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// The metrics of a node as a whole. Those of its requests are ``ObservedHandler``'s.
enum NodeMetrics {
    static func register(
        _ state: NodeState, clients: ObservedHandler, server: HTTPServer, bodies: BodyBudget
    ) {
        let metrics = state.metrics
        state.observe(clients)
        metrics.gauge(
            "stratus_build_info", "1, with the version as a label",
            ["version": Versions.stratus, "sqlite": NodeVersions.libraries[0].version]
        ).set(1)
        metrics.gauge("stratus_ready", "1 while the node can serve") { [health = state.health] in
            health.isReady ? 1 : 0
        }
        metrics.gauge("stratus_uptime_seconds", "Seconds since the node started") { [weak state] in
            Double(state?.uptime.clampedNanoseconds ?? 0) / 1e9
        }
        metrics.gauge("stratus_client_connections", "Open connections of clients") {
            Double(server.connectionCount)
        }
        metrics.gauge("stratus_request_body_bytes", "Bytes of request bodies in memory") {
            Double(bodies.size)
        }
        metrics.gauge(
            "stratus_answer_bytes", "Bytes read for answers that clients have not received yet"
        ) {
            [answers = state.cluster.answers] in Double(answers.size)
        }
        metrics.counter(
            "stratus_text_log_dropped_lines_total",
            "Log lines lost because the buffer was full or the output was stuck"
        ) { [log = state.log] in Double(log.droppedCount) }
        Self.registerRefusals(state, server)
        Self.registerScrub(state)
        Self.registerAssets(state)
        Self.registerRoom(state)
        Self.registerOwnState(state)
        Self.registerLevels(state)
        metrics.gauge(
            "stratus_mail_waiting",
            "Mail to other partitions that waits in partitions led by this node"
        ) { [mail = state.cluster.mail] in Double(mail.waitingCount) }
        metrics.gauge(
            "stratus_mail_waiting_bytes", "Bytes of mail that waits in partitions led by this node"
        ) {
            [mail = state.cluster.mail] in Double(mail.waitingSize)
        }
        metrics.counter(
            "stratus_references_mended_total",
            "References between buckets that an audit found stored at one end only"
        ) { [mended = state.mended] in Double(mended.value) }
        metrics.gauge("process_resident_memory_bytes", "Bytes of resident memory") {
            Double(ProcessFacts.residentBytes)
        }
        metrics.gauge("process_open_fds", "Open files and sockets") {
            Double(ProcessFacts.openDescriptorCount)
        }
        metrics.counter("process_cpu_seconds_total", "Seconds of processor time used") {
            ProcessFacts.processorSeconds
        }
    }

    /// Registers metrics for connections refused before they became a request or a link.
    private static func registerRefusals(_ state: NodeState, _ server: HTTPServer) {
        for refusal in HTTPRefusal.allCases {
            state.metrics.counter(
                "stratus_http_refused_total",
                "Requests refused before a handler saw them: malformed, too large or too slow",
                ["reason": refusal.rawValue, "status": "\(refusal.status)"]
            ) { Double(server.refusedCount(refusal)) }
        }
        guard let links = state.cluster.peerLinks else { return }
        let name = "stratus_peer_strangers_total"
        let help = "Connections to the peer port that ended before a certificate was proven"
        state.metrics.counter(name, help, ["end": "failed"]) {
            Double(links.strangersSeen.failed)
        }
        state.metrics.counter(name, help, ["end": "displaced"]) {
            Double(links.strangersSeen.displaced)
        }
    }

    /// The places of a node, by their kinds.
    static func register(_ places: [PlaceFigures], in metrics: Metrics) {
        for figures in places {
            metrics.gauge(
                "stratus_places", "Places that are taken: of what a node holds for its clients",
                ["kind": figures.kind]
            ) { Double(figures.size()) }
            metrics.counter(
                "stratus_places_ended_total",
                "Places that somebody with more than a share gave up to somebody with less",
                ["kind": figures.kind]
            ) { Double(figures.endedCount()) }
        }
    }

    static func register(_ threads: ThreadWatch, in metrics: Metrics) {
        metrics.gauge(
            "stratus_stuck_threads", "Threads busy with one thing for more than two seconds"
        ) { Double(threads.figures.now) }
        metrics.counter("stratus_thread_stalls_total", "Times a thread was found stuck") {
            Double(threads.figures.total)
        }
    }

    private static func registerRoom(_ state: NodeState) {
        let metrics = state.metrics
        let replicas = state.cluster.replicas
        metrics.gauge("stratus_disk_free_bytes", "Free bytes on the disk of the data directory") {
            Double(replicas.reserveFigures.space?.free ?? 0)
        }
        metrics.gauge("stratus_disk_bytes", "Bytes of the disk of the data directory") {
            Double(replicas.reserveFigures.space?.all ?? 0)
        }
        metrics.gauge("stratus_disk_low", "1 while less than `storage.reserve` is free") {
            replicas.reserveFigures.isLow ? 1 : 0
        }
        metrics.counter(
            "stratus_disk_refused_total", "Commands that add data, refused to keep the reserve"
        ) { Double(replicas.reserveFigures.refusedCount) }
        metrics.counter(
            "stratus_replicas_diverged_total",
            "Replicas on this node whose rows differed from a majority's and are replaced"
        ) { Double(replicas.divergedReplicaCount) }
        metrics.gauge("stratus_log_bytes", "Bytes of the log on disk") {
            Double(replicas.retentionFigures.logSize.raw)
        }
        metrics.gauge(
            "stratus_log_queued_bytes", "Bytes in memory that wait to be written to the log"
        ) {
            Double(replicas.retentionFigures.queuedSize.raw)
        }
        metrics.counter(
            "stratus_followers_given_up_total",
            "Followers that fell behind what the log keeps and get a snapshot"
        ) { Double(replicas.retentionFigures.givenUpCount) }
        metrics.gauge(
            "stratus_partitions_slowed",
            "Partitions led by this node that accept commands more slowly while a follower "
                + "catches up"
        ) { Double(replicas.retentionFigures.slowedCount) }
    }

    private static func registerOwnState(_ state: NodeState) {
        let metrics = state.metrics
        let replicas = state.cluster.replicas
        metrics.gauge(
            "stratus_clock_lead_seconds",
            "Seconds that the wall clock is ahead of the median of all nodes that are heard"
        ) { Double(replicas.ownState.clockLeadMilliseconds) / 1_000 }
        metrics.gauge(
            "stratus_clock_off", "1 while the wall clock is so far off that the node leads nothing"
        ) { replicas.ownState.isClockOff ? 1 : 0 }
        metrics.gauge(
            "stratus_log_stalled",
            "1 while the log waits so long for the disk that the node leads nothing"
        ) { replicas.ownState.isStalled ? 1 : 0 }
    }

    private static func registerLevels(_ state: NodeState) {
        let metrics = state.metrics
        let cluster = state.cluster
        metrics.gauge(
            "stratus_feature_level", "Feature level of the cluster, see `stratusctl upgrade status`"
        ) {
            Double(cluster.partitions.level.now.rawValue)
        }
        metrics.gauge("stratus_build_feature_level", "Highest feature level that this build reads")
        {
            Double(FeatureLevel.build.rawValue)
        }
        metrics.gauge(
            "stratus_replicas_stopped",
            "Replicas that stopped before an entry that only a newer build can read"
        ) { Double(cluster.replicas.stoppedReplicaCount) }
    }

    private static func registerScrub(_ state: NodeState) {
        let metrics = state.metrics
        let replicas = state.cluster.replicas
        metrics.counter(
            "stratus_scrub_read_bytes_total", "Bytes read back from the disk to find damage"
        ) { Double(replicas.scrubFigures.readSize) }
        metrics.counter("stratus_scrub_rounds_total", "Complete rounds of reading everything back")
        {
            Double(replicas.scrubFigures.roundCount)
        }
        metrics.counter("stratus_scrub_damaged_total", "Replicas found damaged") {
            Double(replicas.scrubFigures.damageCount)
        }
        metrics.counter(
            "stratus_scrub_repaired_total",
            "Replicas reopened without their damaged part, which their peers send"
        ) { Double(replicas.scrubFigures.repairCount) }
    }
}
