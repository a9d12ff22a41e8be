import StratusAdminModel
import StratusCluster
package import StratusContainers
package import StratusHTTP
import StratusIdentity
import StratusModel
package import StratusRuntime

/// The administrators' API: `/v1/…` in JSON, `/metrics`, `/healthz` and `/readyz`.
///
/// It stands on a listener of its own. The clients' listener has another handler that cannot reach
/// this one, whatever the path or the Host field says (X-16). Everything but the two health pages
/// needs the token, or a client certificate of the administrators' authority. `/metrics` may be
/// opened by configuration.
///
/// Every change and every denial is a line in the log.
package struct AdminHandler: HTTPHandler {
    private let services: AdminServices
    private let settings: Settings
    private let refused: Counter
    private var log: Log { self.services.log }

    package struct Settings: Sendable {
        /// Whether the token in a request is the administrators'. Compares in constant time.
        package var isToken: @Sendable (Secret<String>) -> Bool
        package var metricsAreOpen: Bool

        package init(
            isToken: @escaping @Sendable (Secret<String>) -> Bool,
            metricsAreOpen: Bool = false
        ) {
            self.isToken = isToken
            self.metricsAreOpen = metricsAreOpen
        }
    }

    package init(
        control: any NodeControl, health: Health, metrics: Metrics, log: Log, settings: Settings,
        directory: Directory? = nil, cluster: (any ClusterControl)? = nil,
        push: (any PushControl)? = nil, files: (any ExportedFiles)? = nil,
        resealing: (any FileResealing)? = nil, copying: (any RecordCopying)? = nil
    ) {
        self.services = AdminServices(
            control: control, health: health, metrics: metrics, log: log, directory: directory,
            cluster: cluster, push: push, files: files, resealing: resealing, copying: copying)
        self.settings = settings
        self.refused = metrics.counter(
            "stratus_administrators_refused_total",
            "Requests to the administrators' listener without a valid token or certificate")
    }

    private static let labels = Dictionary(
        uniqueKeysWithValues: (AdminRoute.templates + ["other"]).map { ($0, RouteLabel($0)) })

    /// The label of requests of a path.
    package static func label(of path: String) -> RouteLabel {
        let template = AdminRoute.fitting(path).first?.route.template ?? "other"
        return Self.labels[template] ?? RouteLabel(template)
    }

    package func plan(for head: RequestHead) -> RequestPlan {
        let fitting = AdminRoute.fitting(head.path)
        return RequestPlan(
            RequestRoute(Self.label(of: head.path)),
            // A schema of a thousand types fits. Copies are taken one by one.
            bodySizeMax: head.path == AssetAdoptionPages.adoptPath
                ? ByteCount(.max) : .mebibytes(1),
            patience: fitting.contains { $0.route.isLong } ? .transfer : .usual
        ) { await self.respond(to: $0) }
    }

    package func respond(to request: HTTPRequest) async -> HTTPResponse {
        let head = request.head
        let fitting = AdminRoute.fitting(head.path)
        let isOpen = fitting.contains {
            $0.route.role == .anyone
                || ($0.route.role == .scraper && self.settings.metricsAreOpen)
        }
        if !isOpen, let refusal = self.refusal(request) { return refusal }
        guard let template = fitting.first?.route.template else {
            return AdminAnswer.error(
                404, .notFound,
                "there is nothing at this path; the API has "
                    + AdminRoute.templates.joined(separator: ", "))
        }
        guard let (route, parameters) = fitting.first(where: { $0.route.takes(head.method) })
        else { return Self.methodRefused(template, fitting.map(\.route.method)) }
        let exchange = AdminExchange(
            request: request, template: template, parameters: parameters,
            services: self.services)
        let response = await self.run(route, exchange)
        // What is remembered of tokens and people may have changed.
        if route.method != "GET" { self.services.directory?.authenticator.forget() }
        return response
    }

    private static func methodRefused(_ template: String, _ methods: [String]) -> HTTPResponse {
        let allowed = methods.flatMap { $0 == "GET" ? ["GET", "HEAD"] : [$0] }
        var answer = AdminAnswer.error(
            405, .methodNotAllowed, "\(template) takes \(allowed.joined(separator: " and "))")
        answer.headers.append("Allow", allowed.joined(separator: ", "))
        return answer
    }

    private func run(_ route: AdminRoute, _ exchange: AdminExchange) async -> HTTPResponse {
        do {
            switch route.need {
            case .node: break
            case .people: _ = try exchange.directory
            case .cluster: _ = try exchange.cluster
            }
            return try await route.run(exchange)
        } catch let refusal as AdminRefusal {
            return refusal.answer
        } catch RouteError.outcomeUnknown {
            return AdminAnswer.error(
                500, .outcomeUnknown, "the change may have been made: check before you repeat it")
        } catch RouteError.notExecuted {
            return AdminAnswer.error(
                503, .tryAgainLater,
                "the node cannot do this now; nothing was changed: try again later")
        } catch RouteError.upgrading {
            return AdminAnswer.error(
                503, .tryAgainLater,
                "the cluster is being upgraded, or was just formed; nothing was changed: try again "
                    + "once 'stratusctl upgrade status' shows that every node reads the new level")
        } catch RouteError.refused(let why), RouteError.unreadable(let why) {
            return AdminAnswer.error(500, .internalError, why)
        } catch {
            return exchange.failure("\(error)").answer
        }
    }

    // MARK: Who is asking

    /// Nil for an administrator.
    private func refusal(_ request: HTTPRequest) -> HTTPResponse? {
        // Verified by the listener against the administrators' authority, and nobody else's.
        if request.certificate != nil { return nil }
        let fields = request.head.headers.values(of: "Authorization")
        var reason: String
        if fields.isEmpty {
            reason = "send the administrators' token: 'Authorization: Bearer TOKEN'"
        } else if fields.count == 1, let token = Self.bearer(fields[0]) {
            if self.settings.isToken(token) { return nil }
            reason = "this is not the administrators' token of this node"
        } else {
            reason = "send exactly one header 'Authorization: Bearer TOKEN'"
        }
        self.refused.add()
        self.log.warning(
            "administrator refused",
            [
                "request": .text(request.identity.uuid), "peer": .text(request.peer),
                "method": .text(request.head.method),
                "route": .text(
                    Self.label(of: request.head.path).template),
                "hadToken": .bool(!fields.isEmpty),
            ])
        var answer = AdminAnswer.error(401, .notAuthenticated, reason)
        answer.headers.append("WWW-Authenticate", "Bearer realm=\"stratus\"")
        return answer
    }

    /// RFC 6750 §2.1; the scheme's case does not matter (RFC 9110 §11.1).
    private static func bearer(_ field: String) -> Secret<String>? {
        let parts = field.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].lowercased() == "bearer", !parts[1].isEmpty else {
            return nil
        }
        return Secret(String(parts[1]))
    }
}
