import StratusCluster
package import StratusModel
import StratusRecords

/// People's own records in the containers they use.
package struct UserRecords: Sendable {
    private let store: IdentityStore
    private let registry: ContainerRegistry

    package init(store: IdentityStore, registry: ContainerRegistry) {
        self.store = store
        self.registry = registry
    }

    /// Everybody has a record of type `Users` in the public database, made when the container first
    /// sees them. Where it is already there, nothing happens.
    ///
    /// The partition that holds it learns the schema first, where it will: records saved without
    /// one are in the way of every index that is asked for later.
    package func make(_ name: String, in container: ContainerReference) async throws {
        let descriptor = try await self.registry.descriptor(of: container)
        let database = (descriptor?.publicDatabase(of: container) ?? PublicDatabase(of: container))
            .part(of: name)
        let floor = descriptor?.layout.tagFloor ?? 0
        let schema = try await self.schema(of: container)
        do throws(PartitionError<RequestRefusal>) {
            return try await self.make(name, in: database, schema, above: floor)
        } catch {
            guard case .refused(let refusal) = error else { throw RouteError(error) }
            // What else it refuses keeps nobody out.
            guard refusal.reason == .schemaBehind else { return }
        }
        try? await self.store.install(schema, of: container, at: .database(database))
        do throws(PartitionError<RequestRefusal>) {
            try await self.make(name, in: database, Schema(), above: floor)
        } catch {
            if case .refused = error { return }
            throw RouteError(error)
        }
    }

    /// The container's schema. If development has none yet, an empty one is installed first. A
    /// partition that saves a record without a schema builds every later index by a job, and
    /// refuses the first query after a save until that is done: see *A new field's index is ready
    /// at once* in `Docs/internals/queries.md`.
    private func schema(of container: ContainerReference) async throws -> Schema {
        let schema = try await self.store.schema(of: container)
        guard schema.version == 0, container.environment == .development else { return schema }
        try await self.store.install(
            Schema(version: 1), of: container, at: .container(container))
        return try await self.store.schema(of: container)
    }

    private func make(
        _ name: String, in database: DatabaseID, _ schema: Schema, above floor: UInt64
    ) async throws(PartitionError<RequestRefusal>) {
        var command = RecordCommand.modifyRecords(
            ModifyRecords(
                database: database,
                drawnIncarnation: ZoneIncarnation(self.store.world.random()),
                operations: [
                    RecordOperation(
                        .create, recordName: name, recordType: RecordState.userType)
                ]))
        command.tagFloor = floor
        _ = try await self.store.partitions.submit(
            command, at: .database(database),
            as: Caller(Principal(kind: .system, userRecordName: name)),
            schemaVersion: schema.version)
    }
}

extension IdentityStore {
    /// A container's schema, as its home has it.
    package func schema(
        of container: ContainerReference, as kind: Principal.Kind = .system
    ) async throws(RouteError) -> Schema {
        guard
            case .schema(let schema) = try await self.plain.ask(
                RecordQuery.Ask.schema(container), at: .container(container),
                as: Caller(Principal(kind: kind)))
        else { throw .otherKind }
        return schema ?? Schema()
    }

    /// Makes it the schema at its home, or the copy of it that a partition keeps.
    package func install(
        _ schema: Schema, of container: ContainerReference, at key: ShardKey
    ) async throws(RouteError) {
        _ = try await self.plain.submit(
            RecordCommand.schema(.install(schema)), at: .key(key), as: .system(in: container),
            schemaVersion: schema.version)
    }
}
