import StratusModel
import StratusRows

/// The jobs that mail between buckets leaves behind.
extension RecordState {
    /// Reservations asked about in one slice.
    private static let questionCountMax = 64

    func work(at milliseconds: Int64, over rows: RowView)
        throws(StoreError) -> RecordAnswer
    {
        let deadline = try rows.keys(
            .mail, from: LinkKeys.deadlines, to: Keys.end(of: LinkKeys.deadlines), limit: 1
        ).first
        let end = try Self.nextEnd(over: rows)
        let willWait = deadline != nil || end != nil
        guard try self.nextJob(over: rows) == nil else {
            return .work(isWaiting: true, willWait: willWait)
        }
        if let end, end <= milliseconds { return .work(isWaiting: true, willWait: true) }
        guard let deadline,
            deadline.lexicographicallyPrecedes(LinkKeys.deadlines(before: milliseconds))
        else { return .work(isWaiting: false, willWait: willWait) }
        return .work(isWaiting: try self.office.hasRoom(over: rows), willWait: true)
    }

    /// Asks the referrers' buckets about links whose reservation is over. The entry is later than
    /// the deadline, the mail is received later still: by then the save has happened or never will.
    ///
    /// - Returns: how many.
    func askAfterReservations(
        at time: HybridTime, budget: Int, over rows: Rows
    ) throws(StoreError) -> Int {
        let due = try rows.view.rows(
            .mail, from: LinkKeys.deadlines, to: LinkKeys.deadlines(before: time.milliseconds),
            limit: min(budget, Self.questionCountMax))
        var count = 0
        for (key, row) in due where try self.office.hasRoom(over: rows.view) {
            try rows.remove(.mail, key)
            try self.post([try LinkRows.question(row)], at: time, into: rows)
            count += 1
        }
        return count
    }

    /// Tells the buckets of those who refer to a deleted record. A link that is only reserved is
    /// marked: should it be confirmed, its referrer goes too.
    mutating func dispatch(
        _ job: Job, budget: Int, at time: HybridTime, over rows: Rows
    ) throws(StoreError) -> JobWork {
        guard case .dispatch(let number, let place, let target, let before, let cursor) = job
        else { preconditionFailure("not a dispatch") }
        try rows.remove(.job, job.key)
        guard try self.zone(number, at: place, over: rows.view) != nil else { return JobWork() }
        let links = LinkRows(zone: number)
        let limit = min(budget, 128)
        let found = try links.inbound(
            to: target, .deleteSelf, after: cursor, limit: limit, over: rows.view)
        var mails: [BucketMail] = []
        for (_, link, state) in found where state.tag < before {
            switch state.state {
            case .reserved:
                var state = state
                state.state = .recalled
                try links.put(link, state, into: rows)
            case .confirmed:
                try links.remove(link, state, over: rows)
                if let mail = BucketMail(.cascade, link, from: place.database) {
                    mails.append(mail)
                }
            case .recalled: break
            }
        }
        try self.post(mails, at: time, into: rows)
        if found.count == limit, let last = found.last {
            let rest = Job.dispatch(
                number, place, target: target, before: before, cursor: last.key)
            try rows.put(.job, rest.key, rest.encoded())
        }
        return JobWork(rowCount: max(1, found.count))
    }

    /// Deletes the record that holds a link to what is gone, and leaves to further jobs who refers
    /// to it. A record that VALIDATE references protect stays, its own reference dangling; so does
    /// one that holds another reference by now, made after the target came back.
    mutating func recall(
        _ job: Job, at time: HybridTime, over rows: Rows
    ) throws(StoreError) -> JobWork {
        guard case .recall(let number, let place, let link) = job else {
            preconditionFailure("not a recall")
        }
        try rows.remove(.job, job.key)
        guard let (database, zone) = try self.zone(number, at: place, over: rows.view) else {
            return JobWork()
        }
        let held = try LinkRows(zone: number).outbound(
            ActingReference(target: link.target, action: link.action), of: link.referrer,
            over: rows.view)
        var edit = ZoneEdit(
            place.zone, of: place.database, database: database, zone: zone, at: time,
            bugs: self.bugs)
        guard held == link.identity, let record = try edit.record(link.referrer, over: rows.view),
            try edit.referrerCounts(of: record.name, over: rows.view).validate == 0
        else { return JobWork(rowCount: 1) }
        let tag = try edit.delete(record, over: rows.view)
        if try edit.referrerCounts(of: record.name, over: rows.view).deleteSelf > 0 {
            edit.enqueue(
                .cascade(number, place, target: record.name, before: tag, cursor: ""))
        }
        let schema = try self.cache.schema(place.database.container, over: rows.view)
        try edit.flush(
            into: rows, cache: &self.cache, schema: schema,
            tombstoneCountMin: RecordRules.standard.tombstoneCountMin)
        try self.post(edit.mails, at: time, into: rows)
        return JobWork(rowCount: 4, size: edit.touchedSize)
    }
}
