import StratusCluster
import StratusIdentity
package import StratusModel
package import StratusQuery
import StratusRecords

/// Takes a container's development environment back to production's schema and to no records, a
/// bounded piece at a time.
///
/// What stays is who may use it: tokens, keys, users, sessions. While it lasts, the container lets
/// nobody in, and the answer is that it will. How far it has come stands in the container's
/// descriptor, so that whoever asks for the next piece, from whatever node, goes on there.
package struct EnvironmentReset: Sendable {
    private let directory: Directory
    private let registry: ContainerRegistry
    private let settlingMilliseconds: Int64
    private var store: IdentityStore { self.directory.accounts.store }

    /// Users one piece takes care of.
    static let userCountMax = 20

    /// - Parameter settling: as in ``ContainerErasure``.
    package init(_ directory: Directory, settling: Duration? = nil) {
        let settling = settling ?? directory.commandDeadline + .seconds(2)
        self.directory = directory
        self.registry = directory.registry
        self.settlingMilliseconds = settling.clampedNanoseconds / 1_000_000
    }

    /// The types and fields that the schema would lose and get.
    package func changes(of container: ContainerReference) async throws -> [SchemaChange] {
        let (development, production) = try await self.schemas(of: container)
        return SchemaChange.between(development, production)
    }

    /// One piece. Nil: the environment is not being reset.
    package func step(_ container: ContainerReference) async throws -> RemovalProgress? {
        guard let descriptor = try await self.registry.descriptor(of: container),
            var reset = descriptor.reset
        else { return nil }
        var progress = RemovalProgress()
        let rest = reset.begunMilliseconds + self.settlingMilliseconds - self.store.now
        if rest > 0 {
            progress.waitsMilliseconds = rest
            return progress
        }
        // Before the users: each gets a record of their own in it again.
        if !reset.isPublicErased {
            for part in descriptor.publicDatabase(of: container).parts {
                try await self.erase(part, &progress)
            }
            reset.isPublicErased = true
            try await self.registry.noteReset(reset, of: container)
            return progress
        }
        let users = try await self.store.page(
            .user, of: IdentityKey.home(container), at: .container(container),
            after: reset.lastUser.isEmpty ? nil : Bytes(reset.lastUser.utf8),
            limit: Self.userCountMax)
        for row in users {
            guard (try? ContainerUser(decoding: row.row.body)) != nil,
                let name = String(validating: row.name, as: UTF8.self)
            else { throw RouteError.refused("a row that cannot be read") }
            let erased = try await DatabaseErasure(store: self.store).run(
                descriptor.layout.privateDatabase(of: name, in: container))
            progress.zoneCount += erased.zoneCount
            progress.recordCount += erased.recordCount
            try await self.directory.makeUserRecord(name, in: container)
            progress.userCount += 1
            reset.lastUser = name
        }
        if !users.isEmpty {
            try await self.registry.noteReset(reset, of: container)
            return progress
        }
        // Nothing is left that the old schema was for.
        let (development, production) = try await self.schemas(of: container)
        let next = SchemaRules.resetting(development, to: production)
        try await self.store.install(next, of: container, at: .container(container))
        progress.version = next.version
        progress.isDone = try await self.registry.finishReset(of: container) != nil
        return progress
    }

    // MARK: Databases

    private func erase(_ database: DatabaseID, _ progress: inout RemovalProgress) async throws {
        let erased = try await DatabaseErasure(store: self.store).run(database)
        progress.zoneCount += erased.zoneCount
        progress.recordCount += erased.recordCount
    }

    // MARK: Schemas

    private func schemas(of container: ContainerReference) async throws -> (
        development: Schema, production: Schema
    ) {
        let production = ContainerReference(
            container: container.container, environment: .production)
        return (
            try await self.store.schema(of: container), try await self.store.schema(of: production)
        )
    }
}
