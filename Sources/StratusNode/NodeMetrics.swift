import StratusGateway
import StratusModel
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
            ["version": Versions.stratus, "sqlite": Versions.libraries[0].version]
        ).set(1)
        metrics.gauge("stratus_ready", "1 while the node can serve") { [health = state.health] in
            health.isReady ? 1 : 0
        }
        metrics.gauge("stratus_uptime_seconds", "Since the start of the node") { [weak state] in
            Double(state?.uptime.clampedNanoseconds ?? 0) / 1e9
        }
        metrics.gauge("stratus_client_connections", "Open connections of clients") {
            Double(server.connectionCount)
        }
        metrics.gauge("stratus_request_body_bytes", "Bodies of requests in memory") {
            Double(bodies.size)
        }
        metrics.counter("stratus_log_dropped_lines_total", "Log lines lost to a full buffer") {
            [log = state.log] in Double(log.droppedCount)
        }
        metrics.gauge("process_resident_memory_bytes", "Memory in use") {
            Double(ProcessFacts.residentBytes)
        }
        metrics.gauge("process_open_fds", "Open files and sockets") {
            Double(ProcessFacts.openDescriptorCount)
        }
        metrics.counter("process_cpu_seconds_total", "Processor time used") {
            ProcessFacts.processorSeconds
        }
    }
}
