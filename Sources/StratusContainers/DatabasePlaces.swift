import StratusCluster
import StratusIdentity
package import StratusModel
import StratusRecords

/// Says in which partitions a user's private database lies.
package struct DatabasePlaces: Sendable {
    private let store: IdentityStore
    private let registry: ContainerRegistry

    package init(_ directory: Directory) {
        self.store = directory.accounts.store
        self.registry = directory.registry
    }

    /// One part of the database.
    package struct Place: Sendable, Equatable {
        /// Nil: the home.
        package var bucket: Int?
        /// Nil: all is in one partition.
        package var group: GroupID?
        /// Whether a zone is, or was, in it.
        package var isInUse: Bool
    }

    /// - Parameter zone: the part of this zone only; nil: the home and every bucket.
    /// - Returns: nil: there is no such container.
    package func places(
        of owner: String, in container: ContainerReference, zone: String?
    ) async throws -> [Place]? {
        guard let layout = try await self.registry.descriptor(of: container)?.layout else {
            return nil
        }
        let database = layout.privateDatabase(of: owner, in: container)
        let inUse = Set(try await DatabaseParts(store: self.store).parts(of: database))
        let parts = zone.map { [database.part(of: $0)] } ?? database.parts
        return parts.map { part in
            Place(
                bucket: part.bucket.map { Int($0.number) },
                group: self.store.partitions.group(of: .database(part)),
                isInUse: inUse.contains(part))
        }
    }
}
