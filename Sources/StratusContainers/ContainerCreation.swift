import StratusCluster
package import StratusIdentity
package import StratusModel
import StratusRecords

/// Takes a container's name into use, spread as is asked for.
package struct ContainerCreation: Sendable {
    private let registry: ContainerRegistry
    private let usage: ContainerUsage

    package init(_ directory: Directory) {
        self.registry = directory.registry
        self.usage = ContainerUsage(directory)
    }

    package enum Result: Sendable, Equatable {
        case created(ContainerDescriptor)
        case exists(ContainerDescriptor)
        /// The name's former container is still being removed.
        case isErasing
        /// Records were saved before anybody named the container. They lie in a whole database,
        /// where buckets would hide them.
        case hasRecords
    }

    package func run(
        _ container: ContainerReference, buckets: Int, zoneBuckets: Int = 1
    ) async throws -> Result {
        // Nobody has a private database before the container has a user, and a user makes it known.
        if buckets > 1, try await self.registry.descriptor(of: container) == nil {
            let held = try await self.usage.held(by: PublicDatabase(of: container))
            if held.use != .none { return .hasRecords }
        }
        return
            switch try await self.registry.create(
                container, buckets: buckets, zoneBuckets: zoneBuckets)
        {
        case .created(let descriptor): .created(descriptor)
        case .exists(let descriptor): .exists(descriptor)
        case .isErasing: .isErasing
        }
    }
}
