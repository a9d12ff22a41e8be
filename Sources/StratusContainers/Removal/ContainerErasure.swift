import StratusCluster
import StratusIdentity
package import StratusModel
import StratusRecords

/// Removes what a deleted container held, a bounded piece at a time.
///
/// The caller asks for one piece after the other until nothing is left, and may stop in between.
/// The descriptor at the container's home says that it is being erased, and each piece is found by
/// looking at what is still there. The users' rows say whose private databases there are, so each
/// goes only after its database.
package struct ContainerErasure: Sendable {
    private let accounts: Accounts
    private let access: ContainerAccess
    private let registry: ContainerRegistry
    private let settlingMilliseconds: Int64
    private var store: IdentityStore { self.accounts.store }

    /// Users one piece takes care of.
    static let userCountMax = 20

    /// - Parameter settling: how long after the end of access the first piece waits: credentials
    ///   are believed for a second, and what was let in before that may take as long as a command
    ///   may.
    package init(_ directory: Directory, settling: Duration? = nil) {
        let settling = settling ?? directory.commandDeadline + .seconds(2)
        self.accounts = directory.accounts
        self.access = directory.access
        self.registry = directory.registry
        self.settlingMilliseconds = settling.clampedNanoseconds / 1_000_000
    }

    /// One piece. Nil: the container is not being erased.
    package func step(_ container: ContainerReference) async throws -> RemovalProgress? {
        guard let descriptor = try await self.registry.descriptor(of: container),
            descriptor.state == .erasing
        else { return nil }
        var progress = RemovalProgress()
        let rest =
            descriptor.deletedMilliseconds + self.settlingMilliseconds - self.store.now
        if rest > 0 {
            progress.waitsMilliseconds = rest
            return progress
        }
        let users = try await self.rows(.user, of: container, limit: Self.userCountMax)
        for row in users {
            guard let user = try? ContainerUser(decoding: row.row.body) else {
                throw RouteError.refused("a row that cannot be read")
            }
            try await self.erase(
                String(decoding: row.name, as: UTF8.self), user, in: container, descriptor.layout,
                &progress)
        }
        if !users.isEmpty { return progress }
        // Once more with each piece that follows: a bucket that is empty costs one command.
        for part in descriptor.publicDatabase(of: container).parts {
            try await self.erase(part, &progress)
        }
        // The key last: what it seals is of no use without it.
        let kinds: [IdentityKey.Kind] = [
            .apiToken, .serverKey, .usedLink, .keyRotation, .pushKey, .brand,
            .containerKey,
        ]
        for kind in kinds {
            let rows = try await self.rows(
                kind, of: container, limit: IdentityCommand.editCountMax)
            if rows.isEmpty { continue }
            _ = try await self.store.submit(
                rows.map {
                    .init(
                        IdentityKey(kind, of: IdentityKey.home(container), $0.name), .remove)
                }, to: .container(container))
            return progress
        }
        progress.isDone = try await self.registry.finishErasure(of: container) != nil
        return progress
    }

    private func rows(
        _ kind: IdentityKey.Kind, of container: ContainerReference, limit: Int
    ) async throws -> [IdentityAnswer.Listed] {
        try await self.store.page(
            kind, of: IdentityKey.home(container), at: .container(container), limit: limit,
            descending: false)
    }

    private func erase(
        _ name: String, _ user: ContainerUser, in container: ContainerReference,
        _ layout: ContainerLayout, _ progress: inout RemovalProgress
    ) async throws {
        let erased = try await DatabaseErasure(store: self.store).run(
            layout.privateDatabase(of: name, in: container))
        progress.zoneCount += erased.zoneCount
        progress.recordCount += erased.recordCount
        if let account = user.account {
            try await self.accounts.leave(container, account)
        }
        try await self.access.removeUser(name, in: container)
        progress.userCount += 1
    }

    private func erase(_ database: DatabaseID, _ progress: inout RemovalProgress) async throws {
        let erased = try await DatabaseErasure(store: self.store).run(database)
        progress.zoneCount += erased.zoneCount
        progress.recordCount += erased.recordCount
    }
}
