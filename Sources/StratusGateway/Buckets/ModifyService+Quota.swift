import StratusCluster
import StratusModel
import StratusRecords

/// One quota for a database that lies in several parts.
extension ModifyService {
    /// The size that each part may reach by this save, by number; nil: there is no quota.
    ///
    /// - Parameter spread: the private database that the parts are of.
    func sizeBounds(
        of database: SpreadParts, _ spread: PrivateDatabase? = nil
    ) async -> [UInt64]? {
        let quota = self.exchange.rules.databaseSizeMax
        if quota == 0 { return nil }
        let uses = self.exchange.kernel.caches.bucketUses
        let now = self.exchange.kernel.world.now
        if let sizes = uses.sizes(of: database, at: now) {
            return BucketUses.bounds(of: sizes, quota: quota)
        }
        let sizes = await self.sizes(of: database, spread)
        return BucketUses.bounds(
            of: uses.keep(sizes, of: database, at: now), quota: quota)
    }

    /// All at once. A part that cannot be reached fails what is saved in it, and nothing else:
    /// nobody waits long.
    private func sizes(
        of database: SpreadParts, _ spread: PrivateDatabase?
    ) async -> [UInt64?] {
        let partitions = self.exchange.kernel.partitions
        let deadline = self.exchange.kernel.world.now + BucketUses.patience / 2
        var sizes: [UInt64?] = Array(repeating: nil, count: database.count)
        var numbers = Array(0..<database.count)
        if let spread {
            // A participant may not ask, and the quota is the owner's.
            let buckets = try? await self.exchange.buckets(
                of: spread, as: .system(in: self.exchange.route.container, until: deadline))
            guard let mask = buckets?.mask else { return sizes }
            numbers = database.numbers(mask)
            // A bucket that holds no zone holds nothing.
            sizes = Array(repeating: 0, count: database.count)
            for number in numbers { sizes[number] = nil }
        }
        return await withTaskGroup(of: (Int, UInt64?).self) { [numbers] tasks in
            for number in numbers {
                let part = database.part(number)
                tasks.addTask {
                    let answer = try? await partitions.ask(
                        RecordQuery.Ask.use(part), at: .database(part),
                        as: .system(until: deadline))
                    guard case .use(let use, _, let assets)? = answer else { return (number, nil) }
                    return (number, use.size + assets.size)
                }
            }
            for await (number, size) in tasks { sizes[number] = size }
            return sizes
        }
    }

    /// The quota that a client is told of is the database's, not what was left of it for one part.
    static func saying(
        _ rules: RecordRules, _ result: ModifiedRecords.Result
    ) -> ModifiedRecords.Result {
        guard case .refused(let refusal) = result, refusal.reason == .databaseFull else {
            return result
        }
        return .refused(RecordRefusal(.databaseFull, String(rules.databaseSizeMax)))
    }
}
