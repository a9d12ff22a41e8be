import StratusCluster
import StratusIdentity
package import StratusModel
import StratusRecords

/// Starts an audit: the buckets of public databases compare the references between them, and repair
/// those that differ.
///
/// It begins the work and does not wait for it: that goes on in the partitions, slice by slice, and
/// by mail.
package struct LinkAudit: Sendable {
    private let store: IdentityStore
    private let registry: ContainerRegistry

    package init(_ directory: Directory) {
        self.store = directory.accounts.store
        self.registry = directory.registry
    }

    /// - Returns: how many buckets have begun; nil: there is no such container, or nobody may use
    ///   it.
    package func begin(in container: ContainerReference) async throws -> Int? {
        guard let descriptor = try await self.registry.descriptor(of: container),
            descriptor.state == .active
        else { return nil }
        return try await self.begin(in: descriptor.publicDatabase(of: container))
    }

    /// In every container, after a recovery. Thrown out of it, it is to be begun again: nothing is
    /// done twice that would do harm.
    ///
    /// - Returns: how many buckets have begun.
    package func beginEverywhere() async throws -> Int {
        var count = 0
        for (container, listed) in try await self.registry.all() where listed.state == .active {
            count += try await self.begin(in: container) ?? 0
        }
        return count
    }

    private func begin(in database: PublicDatabase) async throws -> Int {
        guard database.bucketCount > 1 else { return 0 }
        var count = 0
        for part in database.parts {
            let outcome = try await self.store.plain.submit(
                RecordCommand.auditLinks(AuditLinks(database: part)), at: .database(part))
            guard case .jobs(let progress) = outcome else {
                throw RouteError.otherKind
            }
            // One that nobody ever wrote to has nothing to compare.
            if progress.hasMore { count += 1 }
        }
        return count
    }
}
