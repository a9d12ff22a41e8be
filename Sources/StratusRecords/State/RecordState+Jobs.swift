import StratusCoding
import StratusModel
import StratusRows

extension RecordState {
    /// Rows one slice may touch, whatever its command asks for.
    static let jobBudgetMax = 10_000

    mutating func apply(
        _ jobs: ContinueJobs, of command: Command, at position: EntryPosition,
        mended: inout MendedLinks, over rows: Rows
    ) throws(StoreError) -> RecordOutcome {
        guard command.principal.kind == .system || command.principal.kind == .administrator
        else { return .refused(RequestRefusal(.accessDenied)) }
        let time = position.time
        let budget = min(max(jobs.budget, 1), Self.jobBudgetMax)
        var rowCount = try self.endAssets(at: position, budget: budget, over: rows)
        var size = 0
        if rowCount < budget {
            rowCount += try self.askAfterReservations(
                at: time, budget: budget - rowCount, over: rows)
        }
        while rowCount < budget, size < self.bounds.jobSizeMax,
            let job = try self.nextJob(over: rows.view)
        {
            let rest = budget - rowCount
            let work: JobWork
            switch job {
            case .cascade: work = try self.cascade(job, budget: rest, at: time, over: rows)
            case .trim: work = JobWork(rowCount: try self.trim(job, budget: rest, over: rows))
            case .purge(let zone, let hasAssets):
                // Holders first: once the records are gone nobody knows of them.
                if hasAssets, !self.bugs.contains(.purgeForgetsAssets),
                    let holders = try self.purgeHolders(zone, budget: rest, at: time, over: rows)
                {
                    work = holders
                } else {
                    work = try self.purge(job, zone, budget: rest, over: rows)
                }
            case .index(let job) where job.kind == .clear:
                work = try self.clear(job, budget: rest, at: time, over: rows)
            case .index(let job): work = try self.run(job, budget: rest, over: rows)
            case .dispatch: work = try self.dispatch(job, budget: rest, at: time, over: rows)
            case .recall: work = try self.recall(job, at: time, over: rows)
            case .letter(_, let mail):
                try rows.remove(.job, job.key)
                try self.post(
                    [try self.asItIsNow(mail, mended: &mended, over: rows.view)], at: time,
                    into: rows)
                work = JobWork(rowCount: 1)
            case .audit: work = try self.audit(job, budget: rest, at: time, over: rows)
            }
            // Even a job that finds nothing to do costs something.
            rowCount += max(1, work.rowCount)
            size += work.size
        }
        var hasMore = try self.nextJob(over: rows.view) != nil
        if !hasMore, let end = try Self.nextEnd(over: rows.view) {
            hasMore = end <= time.milliseconds
        }
        return .jobs(JobProgress(rowCount: rowCount, hasMore: hasMore))
    }

    /// Jobs looked at to find one that posts nothing, while the outbox is full.
    private static let blockedJobCountMax = 256

    /// The first job that can be carried out now; while the outbox is full, one that posts nothing.
    func nextJob(over rows: RowView) throws(StoreError) -> Job? {
        let hasRoom = try self.office.hasRoom(over: rows)
        for (key, row) in try rows.rows(
            .job, from: [], to: [], limit: hasRoom ? 1 : Self.blockedJobCountMax)
        {
            let job = try decodingRow("job") { () throws(DecodingError) in
                try Job(key: key, row: row)
            }
            if hasRoom || !job.posts { return job }
        }
        return nil
    }

    /// The zone a job works in, if it still is the one the job was made for.
    mutating func zone(
        _ number: ZoneNumber, at place: JobPlace, over rows: RowView
    ) throws(StoreError) -> (DatabaseRow, ZoneRow)? {
        guard let database = try self.cache.database(place.database, over: rows),
            let zone = try self.cache.zone(place.zone, in: database.number, over: rows),
            !zone.isDeleted, zone.number == number
        else { return nil }
        return (database, zone)
    }

    // MARK: Cascades

    /// Deletes what refers to a deleted record, and what refers to that, until the budget is used;
    /// what remains becomes job rows.
    ///
    /// Only references written before the deletion count: a record made again under the old name,
    /// and whoever refers to it since, are spared. A referrer that VALIDATE references protect
    /// stays, its own reference dangling; so does one with children that do not go along.
    private mutating func cascade(
        _ job: Job, budget: Int, at time: HybridTime, over rows: Rows
    ) throws(StoreError) -> JobWork {
        guard case .cascade(let number, let place, let target, let before, let cursor) = job
        else { preconditionFailure("not a cascade") }
        try rows.remove(.job, job.key)
        guard let (database, zone) = try self.zone(number, at: place, over: rows.view) else {
            return JobWork()
        }
        var edit = ZoneEdit(
            place.zone, of: place.database, database: database, zone: zone, at: time,
            bugs: self.bugs)
        var open = [(target: target, before: before, cursor: cursor)]
        var count = 0
        let sizeMax = self.bounds.jobSizeMax
        while count < budget, edit.touchedSize < sizeMax, !edit.assets.isFull,
            let top = open.popLast()
        {
            let limit = min(budget - count, 128)
            let referrers = try edit.referrers(
                of: top.target, .deleteSelf, after: top.cursor, limit: limit, over: rows.view)
            // Looking at a spared referrer is work too.
            count += max(1, referrers.count)
            // Where to go on in these referrers; nil: they are all looked at.
            var cursor = referrers.count == limit ? referrers.last?.name : nil
            var last = top.cursor
            var found: [(target: String, before: ChangeTag, cursor: String)] = []
            for referrer in referrers {
                if edit.touchedSize >= sizeMax || edit.assets.isFull {
                    cursor = last
                    break
                }
                last = referrer.name
                guard referrer.tag < top.before else { continue }
                guard let record = try edit.record(referrer.name, over: rows.view) else { continue }
                let counts = try edit.referrerCounts(of: record.name, over: rows.view)
                if counts.validate > 0 || counts.stayingChildren > 0 {
                    try edit.spare(record, from: top.target, over: rows.view)
                    continue
                }
                let tag = try edit.delete(record, over: rows.view)
                if counts.deleteSelf > 0 { found.append((record.name, tag, "")) }
            }
            if let cursor { open.append((top.target, top.before, cursor)) }
            open += found
        }
        for rest in open {
            edit.enqueue(
                .cascade(
                    number, place, target: rest.target, before: rest.before, cursor: rest.cursor))
        }
        if try edit.noteCascades(over: rows.view), !edit.hasChanges {
            try rows.put(.zone, Keys.zone(database.number, place.zone), edit.zone.encoded())
            self.cache.remember(edit.zone, place.zone, in: database.number)
        }
        let schema = try self.cache.schema(place.database.container, over: rows.view)
        try edit.flush(
            into: rows, cache: &self.cache, schema: schema,
            tombstoneCountMin: RecordRules.standard.tombstoneCountMin)
        try self.post(edit.mails, at: time, into: rows)
        return JobWork(rowCount: count, size: edit.touchedSize)
    }

    // MARK: Tombstones

    /// Drops a zone's oldest tombstones. Whoever has not seen them would miss a deletion, so the
    /// oldest valid position moves with them.
    private mutating func trim(_ job: Job, budget: Int, over rows: Rows)
        throws(StoreError) -> Int
    {
        guard case .trim(let number, let place, let keep, var cursor) = job else {
            preconditionFailure("not a trim")
        }
        try rows.remove(.job, job.key)
        guard case (let database, var zone)? = try self.zone(number, at: place, over: rows.view)
        else {
            return 0
        }
        let found = try rows.view.rows(
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
            zone.oldestTag = max(zone.oldestTag, cursor.raw)
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
        _ job: Job, _ number: ZoneNumber, budget: Int, over rows: Rows
    ) throws(StoreError) -> JobWork {
        let start = Keys.zoneStart(number)
        let end = Keys.end(of: start)
        var work = JobWork()
        for table in [Table.record, .feed, .reference, .index, .share] {
            let found = try rows.view.keys(
                table, from: start, to: end, limit: budget - work.rowCount,
                sizeMax: self.bounds.jobSizeMax - work.size)
            for key in found.keys { try rows.remove(table, key) }
            work.rowCount += found.keys.count
            work.size += found.size
            if work.rowCount == budget || work.size >= self.bounds.jobSizeMax { return work }
        }
        try rows.remove(.job, job.key)
        return work
    }
}

/// The cost of a slice of a job.
struct JobWork {
    /// Rows read and written.
    var rowCount = 0
    /// Stored bytes of the large ones among them.
    var size = 0
}
