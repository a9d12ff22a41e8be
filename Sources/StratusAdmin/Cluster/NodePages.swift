import StratusAdminModel
import StratusHTTP
import StratusModel
import StratusRuntime

/// The node itself: health, metrics, status, configuration and the level of the log.
enum NodePages {
    static let routes: [AdminRoute] = [
        AdminRoute(
            "GET", HealthPages.healthPath, role: .anyone, need: .node,
            answer: "that the process runs"
        ) { _ in HealthPages.alive() },
        AdminRoute(
            "GET", HealthPages.readyPath, role: .anyone, need: .node,
            answer: "whether the node serves, and why not"
        ) { HealthPages.ready($0.services.health, withReasons: true) },
        AdminRoute(
            "GET", "/metrics", role: .scraper, need: .node,
            answer: "the metrics, as Prometheus reads them"
        ) { Self.answer($0.services.metrics) },
        AdminRoute(
            "GET", "/v1/status", need: .node,
            answer: "the node: version, disk, partitions, what is wrong"
        ) { AdminAnswer.json(StatusAnswer(await $0.control.status())) },
        AdminRoute(
            "GET", "/v1/config", need: .node,
            answer: "every key of the configuration, its value and where that stands"
        ) { Self.configuration($0) },
        AdminRoute("GET", "/v1/log-level", need: .node, answer: "the level of the log") {
            Self.logLevel($0)
        },
        AdminRoute(
            "PUT", "/v1/log-level", need: .node, body: "level",
            answer: "the level of the log, until the next reload or start"
        ) { try await Self.setLogLevel($0) },
    ]

    static func answer(_ metrics: Metrics) -> HTTPResponse {
        var answer = AdminAnswer.text(200, "")
        answer.headers.set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        answer.body = .bytes(metrics.exposition())
        return answer
    }

    private static func configuration(_ exchange: AdminExchange) -> HTTPResponse {
        AdminAnswer.json(
            Listing(
                exchange.control.configuration().map { row in
                    ConfiguredKey {
                        $0.key = row.key
                        $0.value = row.value.map { RawJSON($0.utf8) }
                        $0.origin = row.origin
                        $0.reloads = row.reloads
                    }
                }))
    }

    private static func logLevel(_ exchange: AdminExchange) -> HTTPResponse {
        AdminAnswer.json(LogLevelAnswer(exchange.control.logLevel.name))
    }

    private static func setLogLevel(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let body = try await exchange.bytes()
        let names = LogLevel.allCases.map(\.name)
        guard let asked = try? LogLevelAnswer(reading: body),
            let level = LogLevel(name: asked.level)
        else {
            throw AdminRefusal.bad(
                "the body must be {\"level\": …} with one of \(names.joined(separator: ", "))")
        }
        let before = exchange.control.logLevel
        // Written while the more talkative of the two holds: a change must not hide itself.
        if level < before { exchange.control.setLogLevel(level) }
        exchange.log.warning(
            "log level changed by an administrator",
            [
                "request": .text(exchange.request.identity.uuid),
                "peer": .text(exchange.request.peer), "by": .text(exchange.actor),
                "from": .text(before.name), "to": .text(level.name),
            ])
        exchange.control.setLogLevel(level)
        await exchange.noteAfterwards("log-level set", level.name)
        return Self.logLevel(exchange)
    }
}
