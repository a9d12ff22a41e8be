import StratusCluster
import StratusIdentity
import StratusModel
import StratusRecords

/// Takes everything out of a database, as Stratus itself.
struct DatabaseErasure: Sendable {
    let store: IdentityStore
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

    /// Every part of a private database, in use or not: subscriptions are also where no zone is,
    /// and an empty part costs one command. The home goes last.
    func run(_ database: PrivateDatabase) async throws -> ErasureProgress {
        var all = ErasureProgress(zoneCount: 0, recordCount: 0, hasMore: false)
        for part in database.parts.reversed() {
            let progress = try await self.run(part)
            all.zoneCount += progress.zoneCount
            all.recordCount += progress.recordCount
        }
        return all
    }

    private func step(_ database: DatabaseID) async throws -> ErasureProgress {
        let command = RecordCommand.eraseDatabase(EraseDatabase(database: database))
        guard
            case .erased(let progress) = try await self.store.plain.submit(
                command, at: .database(database))
        else { throw RouteError.otherKind }
        return progress
    }
}
