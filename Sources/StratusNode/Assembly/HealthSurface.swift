import StratusAdmin
package import StratusGateway
package import StratusHTTP
import StratusModel
package import StratusRuntime

/// The two health pages among the surfaces that clients reach. They take `GET` and `HEAD`; by
/// another method there is nothing at their paths.
package struct HealthSurface: Surface {
    /// What is asked for.
    package enum Target: Sendable {
        case isAlive
        case isReady
        case other(SurfacePlan<WebServices.Asked?>)
    }

    private let health: Health
    private let elsewhere: WebServices

    private static let labels = [HealthPages.healthPath, HealthPages.readyPath].map {
        RouteLabel($0)
    }

    /// - Parameter elsewhere: answers what there is nothing for.
    package init(_ health: Health, elsewhere: WebServices) {
        self.health = health
        self.elsewhere = elsewhere
    }

    package var roots: [SurfaceRoot] { Self.labels.map { .path($0.template) } }

    package func plan(_ head: RequestHead) -> SurfacePlan<Target> {
        let isHealth = head.path == HealthPages.healthPath
        // What a balancer asks every second need not be read.
        let route = RequestRoute(Self.labels[isHealth ? 0 : 1], level: .debug)
        guard head.method == "GET" || head.method == "HEAD" else {
            let plan = self.elsewhere.plan(head)
            return SurfacePlan(
                route, patience: plan.patience, bodySizeMax: plan.bodySizeMax,
                admission: plan.admission, target: .other(plan))
        }
        return SurfacePlan(
            route, bodySizeMax: .kibibytes(1), target: isHealth ? .isAlive : .isReady)
    }

    /// Whether the process runs is said at once: its loop works.
    package func answer(
        _ view: RequestView, _ bytes: Span<UInt8>, _ call: SurfaceCall,
        into answer: inout AnswerBuffer
    ) -> AnswerStep {
        let label = Self.labels[0]
        guard view.path.count == label.template.utf8.count, view.body.isEmpty,
            view.names("GET", at: view.method, in: bytes)
                || view.names("HEAD", at: view.method, in: bytes)
        else { return .plan }
        answer.begin(200)
        answer.write(lines: HealthPages.lines)
        answer.write("X-Apple-Request-UUID", call.identity)
        answer.end(HealthPages.aliveText)
        return .done(RequestRoute(label, level: .debug))
    }

    package func respond(_ task: TaskRequest<Target>) async -> HTTPResponse {
        switch task.target {
        case .isAlive: HealthPages.alive()
        case .isReady: HealthPages.ready(self.health, withReasons: false)
        case .other(let plan): await self.elsewhere.respond(TaskRequest(task.http, plan))
        }
    }

    package func failure(_ error: any Error, of request: HTTPRequest) -> HTTPResponse {
        self.elsewhere.failure(error, of: request)
    }
}
