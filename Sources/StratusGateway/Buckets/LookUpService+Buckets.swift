import StratusModel
import StratusRecords

extension LookUpService {
    /// Looks names up where they are, and puts the answers in the order of the names.
    func lookUp(
        _ names: [String], in buckets: Bucket, at place: ZonePlace, roundCountMax: Int
    ) async throws -> ([LookupAnswer.Item], ZoneSummary?) {
        var positions: [Bucket: [Int]] = [:]
        for (position, name) in names.enumerated() {
            positions[buckets.sibling(of: name), default: []].append(position)
        }
        let parts = positions.sorted { $0.key.number < $1.key.number }
        // Before the records: what changes meanwhile is told by the feed.
        let zone = self.exchange.wantsSyncToken ? try await self.exchange.summary(of: place) : nil
        let found = try await withThrowingTaskGroup(
            of: (positions: [Int], items: [LookupAnswer.Item]).self
        ) { tasks in
            for (bucket, positions) in parts {
                tasks.addTask {
                    let (items, _) = try await self.lookUp(
                        positions.map { names[$0] }, at: place.part(bucket),
                        roundCountMax: roundCountMax)
                    return (positions, items)
                }
            }
            var items: [LookupAnswer.Item] = names.map { _ in .deferred }
            for try await part in tasks {
                for (position, item) in zip(part.positions, part.items) { items[position] = item }
            }
            return items
        }
        return (found, zone)
    }
}
