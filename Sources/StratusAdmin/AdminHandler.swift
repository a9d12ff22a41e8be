import StratusCluster
package import StratusGateway
package import StratusHTTP
import StratusIdentity
package import StratusModel
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
    private let control: any NodeControl
    private let health: Health
    private let metrics: Metrics
    private let log: Log
    private let settings: Settings
    /// The service that knows people; nil if this node has no accounts (tests of everything else).
    private let people: SignInService?
    /// The cluster this node is in; nil where it works alone.
    private let cluster: (any ClusterControl)?

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
        people: SignInService? = nil, cluster: (any ClusterControl)? = nil
    ) {
        self.control = control
        self.health = health
        self.metrics = metrics
        self.log = log
        self.settings = settings
        self.people = people
        self.cluster = cluster
    }

    /// The pages of the API: for the dispatch, for 405 and for the labels of the metrics.
    private enum Page: Equatable {
        case healthz, readyz, metrics, status, configuration, logLevel, cluster
        case schema(ContainerReference), promotion(ContainerReference)
        case identity(IdentityRoute)
        case clusterChange(ClusterRoute)
        /// The path of a schema whose container or environment cannot exist.
        case nowhere

        static let fixed: [(path: String, page: Page)] = [
            ("/healthz", .healthz), ("/readyz", .readyz), ("/metrics", .metrics),
            ("/v1/status", .status), ("/v1/config", .configuration), ("/v1/log-level", .logLevel),
            ("/v1/cluster", .cluster),
        ]
        static let schemaTemplate = "/v1/containers/{container}/environments/{environment}/schema"
        static let templates =
            Self.fixed.map(\.path) + [Self.schemaTemplate, Self.schemaTemplate + "/promote"]
            + IdentityRoute.templates + ClusterRoute.templates

        init?(_ path: String) {
            if let page = Self.fixed.first(where: { $0.path == path })?.page {
                self = page
                return
            }
            if let route = ClusterRoute(path) {
                self = .clusterChange(route)
                return
            }
            if let route = IdentityRoute(path) {
                self = .identity(route)
                return
            }
            let parts = path.split(separator: "/", omittingEmptySubsequences: false)
            guard parts.count == 7 || (parts.count == 8 && parts[7] == "promote"),
                parts[0].isEmpty, parts[1] == "v1", parts[2] == "containers",
                parts[4] == "environments", parts[6] == "schema"
            else { return nil }
            guard let name = PercentCoding.decode(parts[3].utf8),
                ContainerReference.isName(name),
                let environment = Environment(name: String(parts[5])),
                parts.count == 7 || environment == .production
            else {
                self = .nowhere
                return
            }
            let container = ContainerReference(container: name, environment: environment)
            self = parts.count == 7 ? .schema(container) : .promotion(container)
        }

        var template: String {
            switch self {
            case .schema, .nowhere: Self.schemaTemplate
            case .promotion: Self.schemaTemplate + "/promote"
            case .identity(let route): route.template
            case .clusterChange(let route): route.template
            default: Self.fixed.first { $0.page == self }?.path ?? "other"
            }
        }

        var methods: [String] {
            switch self {
            case .logLevel, .schema: ["GET", "PUT"]
            case .promotion: ["POST"]
            case .identity(let route): route.methods
            case .clusterChange(let route): route.methods
            default: ["GET", "HEAD"]
            }
        }
    }

    /// The label of a request's route.
    package static func route(of head: RequestHead) -> ObservedHandler.Route {
        ObservedHandler.Route(Page(head.path)?.template ?? "other")
    }

    /// A schema of a thousand types fits.
    package func bodyLimit(for head: RequestHead) -> ByteCount { .mebibytes(1) }

    package func respond(to request: HTTPRequest) async -> HTTPResponse {
        let head = request.head
        let page = Page(head.path)
        if page != .healthz && page != .readyz
            && !(page == .metrics && self.settings.metricsAreOpen)
        {
            if let refusal = self.refusal(request) { return refusal }
        }
        guard let page else {
            return AdminAnswer.error(
                404, "NOT_FOUND",
                "there is nothing at this path; the API has "
                    + Page.templates.joined(separator: ", "))
        }
        guard page == .nowhere || page.methods.contains(head.method) else {
            var answer = AdminAnswer.error(
                405, "METHOD_NOT_ALLOWED",
                "\(page.template) takes "
                    + page.methods.joined(separator: " and "))
            answer.headers.append("Allow", page.methods.joined(separator: ", "))
            return answer
        }
        switch page {
        case .healthz: return HealthPages.alive()
        case .readyz: return HealthPages.ready(self.health, withReasons: true)
        case .metrics:
            var answer = AdminAnswer.text(200, "")
            answer.headers.set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            answer.body = .bytes(self.metrics.exposition())
            return answer
        case .status: return AdminAnswer.json(await self.control.status().json())
        case .configuration: return self.configuration()
        case .logLevel:
            if head.method == "PUT" { return await self.setLogLevel(request) }
            return self.logLevel()
        case .cluster: return await ClusterPages(cluster: self.cluster).show()
        case .schema(let container):
            let pages = SchemaPages(control: self.control, log: self.log)
            if head.method == "PUT", let refusal = await self.refusal(toChange: container) {
                return refusal
            }
            return head.method == "PUT"
                ? await pages.replace(container, request) : await pages.show(container)
        case .promotion(let container):
            let development = ContainerReference(
                container: container.container, environment: .development)
            for place in [container, development] {
                if let refusal = await self.refusal(toChange: place) { return refusal }
            }
            return await SchemaPages(control: self.control, log: self.log)
                .promote(container, request)
        case .identity(let route):
            guard let people else {
                return AdminAnswer.error(404, "NOT_FOUND", "this node has no accounts")
            }
            return await IdentityPages(people: people, log: self.log, request: request)
                .answer(route)
        case .clusterChange(let route):
            return await ClusterChanges(cluster: self.cluster, log: self.log, request: request)
                .answer(route)
        case .nowhere:
            return AdminAnswer.error(
                404, "NOT_FOUND",
                "a container's name and 'development' or 'production' are wanted")
        }
    }

    /// Registers the container that gets a schema. Returns a refusal if it was deleted or is being
    /// reset.
    private func refusal(toChange container: ContainerReference) async -> HTTPResponse? {
        guard let people else { return nil }
        do throws(RouteError) {
            if try await people.authenticator.registry.admit(container) { return nil }
            if try await people.authenticator.registry.descriptor(of: container)?.state
                == .resetting
            {
                return AdminAnswer.error(
                    409, "CONTAINER_RESETTING",
                    "this environment is being reset: go on with that first")
            }
            return AdminAnswer.error(
                409, "CONTAINER_DELETED", "this container was deleted: create it again first")
        } catch {
            return AdminAnswer.error(
                503, "TRY_AGAIN_LATER", "the node cannot do it now; nothing happened")
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
            reason = "one 'Authorization: Bearer TOKEN' is wanted, and nothing else"
        }
        self.log.warning(
            "administrator refused",
            [
                "request": .text(request.identity.uuid), "peer": .text(request.peer),
                "method": .text(request.head.method),
                "route": .text(Self.route(of: request.head).template),
                "hadToken": .bool(!fields.isEmpty),
            ])
        var answer = AdminAnswer.error(401, "NOT_AUTHENTICATED", reason)
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

    // MARK: Pages

    private func configuration() -> HTTPResponse {
        var json = JSONWriter()
        json.beginObject()
        json.key("configuration")
        json.beginArray()
        for row in self.control.configuration() {
            json.beginObject()
            json.member("key", row.key)
            json.key("value")
            if let value = row.value { json.write(raw: value.utf8) } else { json.writeNull() }
            json.member("origin", row.origin)
            json.member("reloads", row.reloads)
            json.endObject()
        }
        json.endArray()
        json.endObject()
        return AdminAnswer.json(json.finish())
    }

    private func logLevel() -> HTTPResponse {
        var json = JSONWriter()
        json.beginObject()
        json.member("level", self.control.logLevel.name)
        json.endObject()
        return AdminAnswer.json(json.finish())
    }

    private func setLogLevel(_ request: HTTPRequest) async -> HTTPResponse {
        let body: Bytes
        do { body = try await request.body.collect() } catch {
            return AdminAnswer.error(400, "BAD_REQUEST", "the body could not be read")
        }
        let names = LogLevel.allCases.map(\.name)
        guard let json = try? JSONDocument(parsing: body), let name = json.root["level"]?.string,
            let level = LogLevel(name: name)
        else {
            return AdminAnswer.error(
                400, "BAD_REQUEST",
                "the body is {\"level\": …} with one of \(names.joined(separator: ", "))")
        }
        let before = self.control.logLevel
        // Written while the more talkative of the two holds: a change must not hide itself.
        if level < before { self.control.setLogLevel(level) }
        self.log.warning(
            "log level changed by an administrator",
            [
                "request": .text(request.identity.uuid), "peer": .text(request.peer),
                "from": .text(before.name), "to": .text(level.name),
            ])
        self.control.setLogLevel(level)
        return self.logLevel()
    }
}
