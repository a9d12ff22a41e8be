import StratusCluster
import StratusIdentity
import StratusModel
import StratusRecords

/// The parts of users' private databases that hold anything, for work on whole databases.
struct DatabaseParts: Sendable {
    let store: IdentityStore
    private static let patience = Duration.seconds(30)

    /// The buckets in use, by number, and the home last: as long as it is there, it says which
    /// buckets are to be looked at.
    func parts(of database: PrivateDatabase) async throws -> [DatabaseID] {
        guard database.isSpread else { return [database.home] }
        let ask = BucketsAsk(database: database.home, count: database.bucketCount)
        let query = RecordQuery(principal: Principal(kind: .system), .buckets(ask))
        let answer = try await self.store.router.read(
            query.enveloped(), at: .database(database.home),
            deadline: self.store.world.now + Self.patience)
        guard case .buckets(let found) = try RecordAnswer(decoding: answer.body) else {
            throw RouteError.refused("no buckets where they were asked for")
        }
        return Array(database.parts(found.mask).dropFirst()) + [database.home]
    }
}
