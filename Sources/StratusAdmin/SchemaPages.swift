import StratusHTTP
import StratusModel
import StratusRecords
import StratusRuntime

/// `/v1/containers/{container}/environments/{environment}/schema`: CloudKit's schema language in
/// and out, and `…/schema/promote` for production.
///
/// An uploaded schema is the complete one. With `dryRun=1` in the query nothing is changed; the
/// answer is still the difference, so that nobody has to guess what a change does.
struct SchemaPages {
    let control: any NodeControl
    let log: Log

    func show(_ container: ContainerReference) async -> HTTPResponse {
        do throws(NodeControlFailure) {
            let schema = try await self.control.schema(of: container)
            return AdminAnswer.text(200, SchemaText.write(schema))
        } catch { return Self.answer(error) }
    }

    func replace(_ container: ContainerReference, _ request: HTTPRequest) async -> HTTPResponse {
        guard container.environment == .development else {
            return AdminAnswer.error(
                409, "PRODUCTION_IS_CLOSED",
                "production takes development's schema by promotion, and no other")
        }
        let body: Bytes
        do { body = try await request.body.collect() } catch {
            return AdminAnswer.error(400, "BAD_REQUEST", "the body could not be read")
        }
        guard let text = String(validating: body, as: UTF8.self) else {
            return AdminAnswer.error(400, "BAD_SCHEMA", "the schema is not UTF-8")
        }
        let wanted: Schema
        do throws(SchemaTextError) { wanted = try SchemaText.read(text) } catch {
            return AdminAnswer.error(400, "BAD_SCHEMA", error.description)
        }
        do throws(NodeControlFailure) {
            let held = try await self.control.schema(of: container)
            let production = try await self.control.schema(of: Self.production(container))
            return try await self.change(
                held, SchemaRules.importing(wanted, over: held, production: production),
                of: container, request)
        } catch { return Self.answer(error) }
    }

    /// Production becomes what development is, and keeps what only it has.
    func promote(_ container: ContainerReference, _ request: HTTPRequest) async -> HTTPResponse {
        do throws(NodeControlFailure) {
            let development = ContainerReference(
                container: container.container, environment: .development)
            let wanted = try await self.control.schema(of: development)
            let held = try await self.control.schema(of: container)
            return try await self.change(
                held, SchemaRules.promoting(wanted, over: held), of: container, request)
        } catch { return Self.answer(error) }
    }

    private func change(
        _ held: Schema, _ decided: Result<Schema, SchemaRefusal>, of container: ContainerReference,
        _ request: HTTPRequest
    ) async throws(NodeControlFailure) -> HTTPResponse {
        let schema: Schema
        switch decided {
        case .success(let accepted): schema = accepted
        case .failure(let refusal):
            return AdminAnswer.error(409, "SCHEMA_CONFLICT", refusal.text)
        }
        let changes = SchemaChange.between(held, schema)
        let isDry = ["1", "true"].contains(URLQuery(request.head.query)?["dryRun"])
        if !isDry, schema.version != held.version {
            try await self.control.install(schema, of: container)
            self.log.warning(
                "schema changed by an administrator",
                [
                    "request": .text(request.identity.uuid), "peer": .text(request.peer),
                    "container": .text(container.container),
                    "environment": .text(container.environment.name),
                    "changes": .count(changes.count),
                    "version": .integer(Int64(clamping: schema.version)),
                ])
        }
        var json = JSONWriter()
        json.beginObject()
        json.member("version", Int64(clamping: isDry ? held.version : schema.version))
        json.key("changes")
        json.beginArray()
        for change in changes { json.write(change.description) }
        json.endArray()
        json.endObject()
        return AdminAnswer.json(json.finish())
    }

    private static func production(_ container: ContainerReference) -> ContainerReference {
        ContainerReference(container: container.container, environment: .production)
    }

    private static func answer(_ failure: NodeControlFailure) -> HTTPResponse {
        switch failure {
        case .unavailable:
            AdminAnswer.error(503, "TRY_AGAIN_LATER", "the node cannot do it now; nothing happened")
        case .outcomeUnknown:
            AdminAnswer.error(
                500, "OUTCOME_UNKNOWN", "it may have happened: look before asking again")
        case .overtaken:
            AdminAnswer.error(409, "OVERTAKEN", "somebody else changed it meanwhile")
        case .refused(let reason): AdminAnswer.error(409, "SCHEMA_CONFLICT", reason)
        case .failed(let text): AdminAnswer.error(500, "INTERNAL_ERROR", text)
        }
    }
}
