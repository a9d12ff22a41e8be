import StratusAdmin
import StratusCluster
import StratusCoding
import StratusModel
import StratusRecords
import StratusRuntime

/// Schemas: reads and commands to the container's home, as the gateway's are.
extension NodeState {
    private static let patience = Duration.seconds(10)

    private static func caller(_ container: ContainerReference? = nil) -> Caller {
        Caller(Principal(kind: .administrator), in: container)
    }

    func schema(of container: ContainerReference) async throws(NodeControlFailure) -> Schema {
        do throws(RouteError) {
            guard
                case .schema(let schema) = try await self.partitions.plain.ask(
                    RecordQuery.Ask.schema(container), at: .container(container),
                    as: Self.caller(), within: Self.patience)
            else { throw .otherKind }
            return schema ?? Schema()
        } catch { throw Self.failure(error) }
    }

    func install(_ schema: Schema, of container: ContainerReference)
        async throws(NodeControlFailure)
    {
        do throws(PartitionError<RequestRefusal>) {
            _ = try await self.partitions.submit(
                RecordCommand.schema(.install(schema)), at: .container(container),
                as: Self.caller(container), schemaVersion: schema.version, within: Self.patience)
        } catch {
            if case .refused(let refusal) = error { throw .refused(refusal.subject) }
            throw Self.failure(RouteError(error))
        }
        // If two callers replace the same version at once, both hear its successor's number. Only
        // the schema that is stored now shows who won.
        guard try await self.schema(of: container) == schema else { throw .overtaken }
    }

    private static func failure(_ error: RouteError) -> NodeControlFailure {
        switch error {
        case .notExecuted, .upgrading: .unavailable
        case .outcomeUnknown: .outcomeUnknown
        case .refused(let reason), .unreadable(let reason): .failed(reason)
        }
    }
}
