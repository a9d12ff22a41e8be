import StratusCoding
import StratusModel

extension RecordState {
    /// Rows one slice may touch, whatever its command asks for.
    static let jobBudgetMax = 10_000

    mutating func apply(
        _ jobs: ContinueJobs, of command: Command, at time: HybridTime,
        over rows: inout some RowStore
    ) throws(StoreError) -> RecordOutcome {
        guard command.principal.kind == .system || command.principal.kind == .administrator
        else { return .refused(RequestRefusal(.accessDenied)) }
        let budget = min(max(jobs.budget, 1), Self.jobBudgetMax)
        var rowCount = 0
        while rowCount < budget, let next = try rows.rows(.job, from: [], to: [], limit: 1).first {
            let job = try decodingRow("job") { () throws(DecodingError) in
                try Job(key: next.key, row: next.row)
            }
            let rest = budget - rowCount
            let count: Int
            switch job {
            case .cascade: count = try self.cascade(job, budget: rest, at: time, over: &rows)
            case .trim: count = try self.trim(job, budget: rest, over: &rows)
            case .purge(let zone): count = try self.purge(job, zone, budget: rest, over: &rows)
            case .index(let job): count = try self.run(job, budget: rest, over: &rows)
            }
            // Even a job that finds nothing to do costs something.
            rowCount += max(1, count)
        }
        let hasMore = try !rows.rows(.job, from: [], to: [], limit: 1).isEmpty
        return .jobs(JobProgress(rowCount: rowCount, hasMore: hasMore))
    }

    /// The zone a job works in, if it still is the one the job was made for.
    private mutating func zone(
        _ number: ZoneNumber, at place: JobPlace, over rows: borrowing some RowReader
    ) throws(StoreError) -> (DatabaseRow, ZoneRow)? {
        guard let database = try self.cache.database(place.database, over: rows),
            let zone = try self.cache.zone(place.zone, in: database.number, over: rows),
            !zone.isDeleted, zone.number == number
        else { return nil }
        return (database, zone)
    }

    // MARK: Cascades

    /// Deletes what refers to a deleted record, and what refers to that, until the budget is used; what
    /// remains becomes job rows.
    ///
    /// Only references written before the deletion count: a record made again under the old name, and
    /// whoever refers to it since, are spared. A referrer that VALIDATE references protect stays, its
    /// own reference dangling.
    private mutating func cascade(
        _ job: Job, budget: Int, at time: HybridTime, over rows: inout some RowStore
    ) throws(StoreError) -> Int {
        guard case .cascade(let number, let place, let target, let before, let cursor) = job
        else { preconditionFailure("not a cascade") }
        try rows.remove(.job, job.key)
        guard let (database, zone) = try self.zone(number, at: place, over: rows) else { return 0 }
        var edit = ZoneEdit(
            place.zone, of: place.database, database: database, zone: zone, at: time)
        var open = [(target: target, before: before, cursor: cursor)]
        var count = 0
        while count < budget, let top = open.popLast() {
            let limit = min(budget - count, 128)
            let referrers = try edit.referrers(
                of: top.target, .deleteSelf, after: top.cursor, limit: limit, over: rows)
            if referrers.count == limit, let last = referrers.last {
                open.append((top.target, top.before, last.name))
            }
            // Looking at a spared referrer is work too.
            count += max(1, referrers.count)
            for referrer in referrers where referrer.tag < top.before {
                guard let record = try edit.record(referrer.name, over: rows) else { continue }
                let counts = try edit.referrerCounts(of: record.name, over: rows)
                if counts.validate > 0 { continue }
                let tag = try edit.delete(record, over: rows)
                if counts.deleteSelf > 0 { open.append((record.name, tag, "")) }
            }
        }
        for rest in open {
            edit.enqueue(
                .cascade(
                    number, place, target: rest.target, before: rest.before, cursor: rest.cursor))
        }
        let schema = try self.cache.schema(place.database.container, over: rows)
        try edit.flush(
            into: &rows, cache: &self.cache, schema: schema,
            tombstoneCountMin: RecordRules.standard.tombstoneCountMin)
        return count
    }

    // MARK: Tombstones

    /// Drops a zone's oldest tombstones. Whoever has not seen them would miss a deletion, so the oldest
    /// valid position moves with them.
    private mutating func trim(_ job: Job, budget: Int, over rows: inout some RowStore)
        throws(StoreError) -> Int
    {
        guard case .trim(let number, let place, let keep, var cursor) = job else {
            preconditionFailure("not a trim")
        }
        try rows.remove(.job, job.key)
        guard case (let database, var zone)? = try self.zone(number, at: place, over: rows) else {
            return 0
        }
        let found = try rows.rows(
            .feed, from: Keys.feed(number, ChangeTag(cursor.raw + 1)),
            to: Keys.end(of: Keys.zoneStart(number)), limit: budget)
        for (key, row) in found where zone.tombstoneCount > keep {
            let feed = try decodingRow("feed") { () throws(DecodingError) in
                try FeedRow(decoding: row)
            }
            cursor = ChangeTag(try Keys.number(key, at: 4))
            guard feed.isDeletion else { continue }
            try rows.remove(.feed, key)
            try rows.remove(.record, Keys.record(number, feed.name))
            zone.tombstoneCount -= 1
            zone.oldestTag = cursor.raw
        }
        try rows.put(.zone, Keys.zone(database.number, place.zone), zone.encoded())
        self.cache.remember(zone, place.zone, in: database.number)
        if zone.tombstoneCount > keep, found.count == budget {
            let rest = Job.trim(number, place, keep: keep, cursor: cursor)
            try rows.put(.job, rest.key, rest.encoded())
        }
        return found.count
    }

    // MARK: Zones that are gone

    private mutating func purge(
        _ job: Job, _ number: ZoneNumber, budget: Int, over rows: inout some RowStore
    ) throws(StoreError) -> Int {
        let start = Keys.zoneStart(number)
        let end = Keys.end(of: start)
        var count = 0
        for table in [Table.record, .feed, .reference, .index] {
            let found = try rows.keys(table, from: start, to: end, limit: budget - count)
            for key in found { try rows.remove(table, key) }
            count += found.count
            if count == budget { return count }
        }
        try rows.remove(.job, job.key)
        return count
    }
}
