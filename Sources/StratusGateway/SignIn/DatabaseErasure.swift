import StratusCluster
import StratusIdentity
import StratusModel
import StratusRecords

/// Takes everything out of a database, as Stratus itself.
struct DatabaseErasure: Sendable {
    let store: IdentityStore
    private static let patience = Duration.seconds(30)
    /// A database has fewer zones than this many commands take.
    private static let commandCountMax = 1_000

    func run(_ database: DatabaseID) async throws -> ErasureProgress {
        var all = ErasureProgress(zoneCount: 0, recordCount: 0, hasMore: true)
        for _ in 0..<Self.commandCountMax where all.hasMore {
            let progress = try await self.step(database)
            all.zoneCount += progress.zoneCount
            all.recordCount += progress.recordCount
            all.hasMore = progress.hasMore
        }
        guard !all.hasMore else { throw RouteError.notExecuted(retryAfter: .seconds(1)) }
        return all
    }

    private func step(_ database: DatabaseID) async throws -> ErasureProgress {
        let command = RecordCommand.eraseDatabase(EraseDatabase(database: database))
        let outcome = try await self.store.router.submit(
            command.enveloped(
                container: database.container, identity: self.store.world.drawIdentity(),
                deadlineMilliseconds: self.store.now + 30_000, schemaVersion: 0,
                principal: Principal(kind: .system)),
            to: .database(database), deadline: self.store.world.now + Self.patience)
        guard outcome.verdict == .decided else {
            throw RouteError.notExecuted(retryAfter: .seconds(1))
        }
        switch try RecordOutcome(decoding: outcome.body, detail: outcome.detail) {
        case .erased(let progress): return progress
        case .refused(let refusal): throw RouteError.refused("\(refusal.reason)")
        default: throw RouteError.refused("an outcome of another kind")
        }
    }
}
