import StratusAdmin
import StratusCluster
import StratusCoding
import StratusModel
import StratusRecords
import StratusRuntime

/// Schemas: reads and commands to the container's home, as the gateway's are.
extension NodeState {
    private static let patience = Duration.seconds(10)

    func schema(of container: ContainerReference) async throws(NodeControlFailure) -> Schema {
        let query = RecordQuery(
            principal: Principal(kind: .administrator), .schema(container))
        do {
            let answer = try await self.router.read(
                query.enveloped(), at: .container(container),
                deadline: self.world.now + Self.patience)
            guard case .schema(let schema) = try RecordAnswer(decoding: answer.body) else {
                throw NodeControlFailure.failed("an unexpected answer about the schema")
            }
            return schema ?? Schema()
        } catch let failure as NodeControlFailure {
            throw failure
        } catch let error as RouteError {
            throw Self.failure(error)
        } catch { throw .failed(String(describing: error)) }
    }

    func install(_ schema: Schema, of container: ContainerReference)
        async throws(NodeControlFailure)
    {
        let command = RecordCommand.schema(.install(schema)).enveloped(
            container: container, identity: self.world.drawIdentity(),
            deadlineMilliseconds: self.world.wallMilliseconds + 10_000,
            schemaVersion: schema.version, principal: Principal(kind: .administrator))
        var reason: String?
        do throws(RouteError) {
            let outcome = try await self.router.submit(
                command, to: .container(container), deadline: self.world.now + Self.patience)
            guard outcome.verdict == .decided,
                let decided = try? RecordOutcome(decoding: outcome.body, detail: [])
            else { throw RouteError.outcomeUnknown }
            if case .refused(let refusal) = decided { reason = refusal.subject }
        } catch { throw Self.failure(error) }
        if let reason { throw .refused(reason) }
        // If two callers replace the same version at once, both hear its successor's number. Only
        // the schema that is stored now shows who won.
        guard try await self.schema(of: container) == schema else { throw .overtaken }
    }

    private static func failure(_ error: RouteError) -> NodeControlFailure {
        switch error {
        case .notExecuted, .upgrading: .unavailable
        case .outcomeUnknown: .outcomeUnknown
        case .refused(let reason): .failed(reason)
        }
    }
}
