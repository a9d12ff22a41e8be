import StratusModel
import StratusRows

/// The two ends of links compared, after something was lost at one of them.
///
/// Whoever holds a reference is right about it: it is a field of a record, and its row was written
/// with that. So each bucket *states* every reference that leaves it, and *inquires* after every
/// link that comes in. Both are mail, so what is stated is in order with what is dropped and made
/// meanwhile: an audit may run while clients save.
///
/// A link is asked after when the deadline of its reservation has passed in this log. The inquiry
/// is received later than that. A save under that reservation that has not happened by then never
/// will, not even if it happened once already and was lost.
extension RecordState {
    /// Links looked at in one step.
    private static let auditCountMax = 128

    /// Leaves the work to a job. One that is under way begins again: what was lost since is found
    /// too.
    mutating func apply(
        _ audit: AuditLinks, of command: Command, over rows: Rows
    ) throws(StoreError) -> RecordOutcome {
        guard command.principal.kind == .system || command.principal.kind == .administrator
        else { return .refused(RequestRefusal(.accessDenied)) }
        guard audit.database.recordBucket != nil else {
            return .refused(RequestRefusal(.otherBucket))
        }
        let name = ZoneID.defaultName
        guard let zone = try self.liveZone(name, of: audit.database, over: rows.view) else {
            return .jobs(JobProgress(rowCount: 0, hasMore: false))
        }
        let job = Job.audit(
            zone.number, JobPlace(database: audit.database, zone: name), cursor: [])
        try rows.put(.job, job.key, job.encoded())
        return .jobs(JobProgress(rowCount: 0, hasMore: true))
    }

    mutating func audit(
        _ job: Job, budget: Int, at time: HybridTime, over rows: Rows
    ) throws(StoreError) -> JobWork {
        guard case .audit(let number, let place, let cursor) = job else {
            preconditionFailure("not an audit")
        }
        try rows.remove(.job, job.key)
        guard try self.zone(number, at: place, over: rows.view) != nil else { return JobWork() }
        let start = Keys.zoneStart(number)
        let limit = min(budget, Self.auditCountMax)
        let found = try rows.view.rows(
            .reference, from: cursor.isEmpty ? start : cursor + [0], to: Keys.end(of: start),
            limit: limit)
        let links = LinkRows(zone: number)
        var mails: [BucketMail] = []
        for (key, _) in found {
            switch try LinkKeys.found(key) {
            case .other: continue
            case .outbound(let reference, let referrer):
                guard let identity = try links.outbound(reference, of: referrer, over: rows.view)
                else { continue }
                let link = Link(
                    target: reference.target, action: reference.action, referrer: referrer,
                    identity: identity)
                if let mail = BucketMail(.stated, link, from: place.database) {
                    mails.append(mail)
                }
            case .inbound(let link):
                guard let state = try links.inbound(link, over: rows.view),
                    let mail = BucketMail(.inquiry, link, from: place.database)
                else { continue }
                if state.deadlineMilliseconds < time.milliseconds {
                    // Also where its question has left already, and was lost.
                    try links.forgetDeadline(link, state, over: rows)
                    mails.append(mail)
                } else {
                    try links.ask(mail, state, into: rows)
                }
            }
        }
        try self.post(mails, at: time, into: rows)
        if found.count == limit, let last = found.last {
            let rest = Job.audit(number, place, cursor: last.key)
            try rows.put(.job, rest.key, rest.encoded())
        }
        return JobWork(rowCount: max(1, found.count))
    }

    /// A letter as it is true when it leaves: one that says that a reference is held says so only
    /// if it is. Where it is not, who asked has a link that nobody holds, unless it has been told
    /// meanwhile.
    mutating func asItIsNow(
        _ mail: BucketMail, mended: inout MendedLinks, over rows: RowView
    ) throws(StoreError) -> BucketMail {
        guard mail.kind == .stated, let bucket = mail.database.recordBucket else { return mail }
        let link = mail.link
        var own = mail.database
        own.bucket = bucket.sibling(of: link.referrer)
        if let zone = try self.liveZone(ZoneID.defaultName, of: own, over: rows) {
            let reference = ActingReference(target: link.target, action: link.action)
            let held = try LinkRows(zone: zone.number).outbound(
                reference, of: link.referrer, over: rows)
            if held == link.identity { return mail }
        }
        var answer = mail
        answer.kind = .removed
        mended.count += 1
        return answer
    }
}
