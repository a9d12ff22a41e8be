import StratusCluster
import StratusIdentity
import StratusModel
import StratusRecords

/// The parts of users' private databases that hold anything, for work on whole databases.
struct DatabaseParts: Sendable {
    let store: IdentityStore

    /// The buckets in use, by number, and the home last: as long as it is there, it says which
    /// buckets are to be looked at.
    func parts(of database: PrivateDatabase) async throws -> [DatabaseID] {
        guard database.isSpread else { return [database.home] }
        let ask = BucketsAsk(database: database.home, count: database.bucketCount)
        let answer = try await self.store.plain.ask(
            RecordQuery.Ask.buckets(ask), at: .database(database.home))
        guard case .buckets(let found) = answer else { throw RouteError.otherKind }
        return Array(database.parts(found.mask).dropFirst()) + [database.home]
    }
}
