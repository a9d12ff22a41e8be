import StratusAdminModel
package import StratusHTTP
import StratusModel
package import StratusRuntime

/// The listener of `metrics.listen`: metrics and health for everybody, and nothing else.
///
/// It holds no administrators' pages, so no request to it can reach one.
package struct MetricsHandler: HTTPHandler {
    private static let metricsPath = "/metrics"
    private let health: Health
    private let metrics: Metrics

    package init(health: Health, metrics: Metrics) {
        self.health = health
        self.metrics = metrics
    }

    private static let labels = [
        HealthPages.healthPath, HealthPages.readyPath, Self.metricsPath,
    ].map { RouteLabel($0) }
    private static let other = RouteLabel("other")

    package func plan(for head: RequestHead) -> RequestPlan {
        let label = Self.labels.first { $0.template == head.path } ?? Self.other
        return RequestPlan(RequestRoute(label), bodySizeMax: ByteCount(0)) {
            await self.respond(to: $0)
        }
    }

    package func respond(to request: HTTPRequest) async -> HTTPResponse {
        guard ["GET", "HEAD"].contains(request.head.method) else {
            var answer = AdminAnswer.error(
                405, .methodNotAllowed, "this listener takes GET and HEAD")
            answer.headers.append("Allow", "GET, HEAD")
            return answer
        }
        return switch request.head.path {
        case HealthPages.healthPath: HealthPages.alive()
        case HealthPages.readyPath: HealthPages.ready(self.health, withReasons: false)
        case Self.metricsPath: NodePages.answer(self.metrics)
        default:
            AdminAnswer.error(
                404, .notFound, "this listener has /metrics, /healthz and /readyz, no more")
        }
    }
}
