import StratusCluster
import StratusModel
import StratusRecords

/// One quota for a database that lies in several buckets.
extension ModifyService {
    /// The size that each bucket may reach by this save; nil: there is no quota.
    func sizeBounds(of place: ZonePlace, in buckets: Bucket) async -> [UInt64]? {
        let quota = self.exchange.rules.databaseSizeMax
        if quota == 0 { return nil }
        let database = PublicDatabase(
            of: place.database.container, bucketCount: Int(buckets.count))
        let uses = self.exchange.handler.bucketUses
        let now = self.exchange.handler.world.now
        if let sizes = uses.sizes(of: database, at: now) {
            return BucketUses.bounds(of: sizes, quota: quota)
        }
        let sizes = await self.sizes(of: database)
        return BucketUses.bounds(
            of: uses.keep(sizes, of: database, at: now), quota: quota)
    }

    /// All at once. A bucket that cannot be reached fails what is saved in it, and nothing else:
    /// nobody waits long.
    private func sizes(of database: PublicDatabase) async -> [UInt64?] {
        let router = self.exchange.handler.router
        let deadline = self.exchange.handler.world.now + BucketUses.patience / 2
        return await withTaskGroup(of: (Int, UInt64?).self) { tasks in
            for (number, part) in database.parts.enumerated() {
                tasks.addTask {
                    let query = RecordQuery(principal: Principal(kind: .system), .use(part))
                    let answer = try? await router.read(
                        query.enveloped(), at: .database(part), deadline: deadline)
                    guard let answer,
                        case .use(let use, _, let assets)? = try? RecordAnswer(
                            decoding: answer.body)
                    else { return (number, nil) }
                    return (number, use.size + assets.size)
                }
            }
            var sizes: [UInt64?] = database.parts.map { _ in nil }
            for await (number, size) in tasks { sizes[number] = size }
            return sizes
        }
    }
}
