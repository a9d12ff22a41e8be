import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// `stratusctl top`: the nodes of the cluster, again and again.
struct TopCommand: AdminConversation {
    let context: ControlContext

    init(_ context: ControlContext) { self.context = context }

    func run() async throws(AdminClient.Failure) -> ExitCode {
        let pause = self.invocation.duration("every") ?? .seconds(2)
        var left = self.invocation["count"].flatMap { Int($0) }
        while true {
            let cluster = try await self.ask("GET", "/v1/cluster?lastKnown=1")
            let health = try await self.ask("GET", "/v1/cluster/health")
            if self.isJSON {
                // A line for each look, so that a script can read them as they come.
                _ = Terminal.write(
                    ClusterLook {
                        $0.cluster = RawJSON(cluster.body)
                        $0.health = RawJSON(health.body)
                    })
            } else {
                let isTerminal = Terminal.isTerminal(Terminal.output)
                let known: ClusterAnswer = try cluster.read()
                let text =
                    (ClusterControlCommands.remark(known) ?? "")
                    + Self.overview(known, try health.read())
                Terminal.write((isTerminal ? "\u{1B}[H\u{1B}[2J" : "") + text)
            }
            if let count = left {
                left = count - 1
                if count <= 1 { return .success }
            }
            try? await Task.sleep(for: pause)
        }
    }

    static func overview(_ cluster: ClusterAnswer, _ health: ClusterHealthAnswer) -> String {
        func count(_ count: Int64?) -> String { count.map { "\($0)" } ?? "-" }
        let table = TextTable.text(
            health.nodes,
            [
                .init("NODE", \.name),
                .init("STATE") { $0.isReachable ? $0.state : "does not answer" },
                .init("REPLICAS", alignsRight: true) {
                    "\(cluster.replicaCount(of: $0.node))"
                },
                .init("LEADS", alignsRight: true) { count($0.leads) },
                .init("IN FLIGHT", alignsRight: true) { count($0.requestsInFlight) },
                .init("MEMORY", alignsRight: true) {
                    $0.residentBytes.map { "\($0 >> 20) MiB" } ?? "-"
                },
                .init("DISK FREE", alignsRight: true) {
                    $0.freeBytes.map { "\($0 >> 30) GiB" } ?? "-"
                },
                .init("COMPLAINS OF") {
                    ($0.complaints ?? []).map(\.component).joined(separator: " ")
                },
            ])
        return table + "\nmoves \(cluster.moves.count), revision \(cluster.revision)\n"
    }
}
