import StratusAdminModel
import StratusHTTP
import StratusModel
import StratusQuery
import StratusRecords
import StratusRuntime

/// `/v1/containers/{container}/environments/{environment}/schema`: CloudKit's schema language in
/// and out, and `…/schema/promote` for production.
///
/// An uploaded schema is the complete one. With `dryRun=1` in the query nothing is changed; the
/// answer is still the difference, so that nobody has to guess what a change does.
enum SchemaPages {
    private static let path = "/v1/containers/{container}/environments/{environment}/schema"

    static let routes: [AdminRoute] = [
        AdminRoute(
            "GET", Self.path, need: .node, answer: "the schema, in CloudKit's schema language"
        ) { try await Self.show($0) },
        AdminRoute(
            "PUT", Self.path, need: .node, body: "the whole schema, in CloudKit's schema language",
            answer:
                "the version, the changes, and whether this made the container (dryRun=1: nothing "
                + "is changed; existing=1: the container must be there)"
        ) { try await Self.replace($0) },
        AdminRoute(
            "POST", Self.path + "/promote", need: .node,
            answer: "the version and the changes (dryRun=1: nothing is changed)"
        ) { try await Self.promote($0) },
    ]

    private static func show(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let container = try await exchange.container()
        do throws(NodeControlFailure) {
            let schema = try await exchange.control.schema(of: container)
            return AdminAnswer.text(200, SchemaText.write(schema.namingUsers))
        } catch { return Self.answer(error, exchange) }
    }

    private static func replace(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let container = try exchange.namedContainer()
        guard container.environment == .development else {
            throw AdminRefusal(
                409, .productionIsClosed,
                "production's schema changes only by promotion: import into development, then "
                    + "promote")
        }
        let body = try await exchange.bytes()
        guard let text = String(validating: body, as: UTF8.self) else {
            throw AdminRefusal(400, .badSchema, "the schema is not valid UTF-8")
        }
        let wanted: Schema
        do throws(SchemaTextError) { wanted = try SchemaText.read(text) } catch {
            throw AdminRefusal(400, .badSchema, error.description)
        }
        // A file that cannot be read, and a mere look, make no container.
        var isCreated = false
        if exchange.services.directory != nil {
            isCreated = try await Self.admit(container, exchange)
        }
        do throws(NodeControlFailure) {
            let held = try await exchange.control.schema(of: container)
            let production = try await exchange.control.schema(of: Self.production(container))
            return try await Self.change(
                held, SchemaRules.importing(wanted, over: held, production: production),
                of: container, exchange, isCreated: isCreated)
        } catch { return Self.answer(error, exchange) }
    }

    private static func isDry(_ exchange: AdminExchange) -> Bool {
        ["1", "true"].contains(exchange.query?["dryRun"])
    }

    /// - Returns: whether the container was made by this.
    private static func admit(
        _ container: ContainerReference, _ exchange: AdminExchange
    ) async throws -> Bool {
        if Self.isDry(exchange), try await !exchange.isKnown(container) {
            try await exchange.requireAsAsked(container)
            return false
        }
        return try await exchange.admit(container)
    }

    /// Production becomes what development is, and keeps what only it has.
    private static func promote(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let container = try exchange.namedContainer()
        guard container.environment == .production else {
            throw AdminRefusal(404, .notFound, "a schema is promoted to 'production'")
        }
        let development = ContainerReference(
            container: container.container, environment: .development)
        if exchange.services.directory != nil {
            try await exchange.requireKnown(development)
            try await exchange.requireOpen(development)
            _ = try await Self.admit(container, exchange)
        }
        do throws(NodeControlFailure) {
            let wanted = try await exchange.control.schema(of: development)
            let held = try await exchange.control.schema(of: container)
            return try await Self.change(
                held, SchemaRules.promoting(wanted, over: held), of: container, exchange)
        } catch { return Self.answer(error, exchange) }
    }

    private static func change(
        _ held: Schema, _ decided: Result<Schema, SchemaRefusal>, of container: ContainerReference,
        _ exchange: AdminExchange, isCreated: Bool? = nil
    ) async throws(NodeControlFailure) -> HTTPResponse {
        let schema: Schema
        switch decided {
        case .success(let accepted): schema = accepted
        case .failure(let refusal):
            return AdminAnswer.error(409, .schemaConflict, refusal.text)
        }
        let changes = SchemaChange.between(held, schema)
        let isDry = Self.isDry(exchange)
        if !isDry, schema.version != held.version {
            try await exchange.control.install(schema, of: container)
            exchange.log.warning(
                "schema changed by an administrator",
                [
                    "request": .text(exchange.request.identity.uuid),
                    "peer": .text(exchange.request.peer), "by": .text(exchange.actor),
                    "container": .text(container.container),
                    "environment": .text(container.environment.name),
                    "changes": .count(changes.count),
                    "version": .integer(Int64(clamping: schema.version)),
                ])
        }
        if !isDry, schema.version != held.version {
            await exchange.noteAfterwards(
                container.environment == .production ? "schema promote" : "schema import",
                "version \(schema.version)", container)
        }
        return AdminAnswer.json(
            SchemaAnswer {
                $0.version = Int64(clamping: isDry ? held.version : schema.version)
                $0.changes = changes.map(\.description)
                $0.isCreated = isCreated
            })
    }

    private static func production(_ container: ContainerReference) -> ContainerReference {
        ContainerReference(container: container.container, environment: .production)
    }

    private static func answer(_ failure: NodeControlFailure, _ exchange: AdminExchange)
        -> HTTPResponse
    {
        switch failure {
        case .unavailable:
            AdminAnswer.error(
                503, .tryAgainLater,
                "the node cannot do this now; nothing was changed: try again later")
        case .outcomeUnknown:
            AdminAnswer.error(
                500, .outcomeUnknown, "the change may have been made: check before you repeat it")
        case .overtaken:
            AdminAnswer.error(
                409, .overtaken, "somebody else changed it in the meantime: look again")
        case .refused(let reason): AdminAnswer.error(409, .schemaConflict, reason)
        case .failed(let text): exchange.failure(text).answer
        }
    }
}
