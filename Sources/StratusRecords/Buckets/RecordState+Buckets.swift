import StratusModel
import StratusPlacement
import StratusQuery
import StratusRows

/// References from one bucket of a public database to another.
///
/// A save that refers to a record of another bucket first has the reference *reserved* there
/// (``ReserveReferences``), and confirms it by mail. What is deleted tells those who refer to it by
/// mail. If nobody confirms a reservation, the target's bucket asks about it after the deadline.
/// The question is mail, so the referrer's log also receives it after the deadline, when a command
/// past its deadline does nothing. Whoever answers it has therefore either sent a confirmation
/// before, which arrives first, or never will.
extension RecordState {
    /// The partition that holds a database's rows. A bucket is a database of its own.
    func group(of database: DatabaseID) -> GroupID {
        PlacementTable.partition(of: .database(database), among: self.bounds.partitionCount).group
    }

    func post(_ mails: [BucketMail], at time: HybridTime, into rows: Rows)
        throws(StoreError)
    {
        try self.office.post(
            mails.map { PostOffice.Letter(to: self.group(of: $0.database), $0.encoded()) },
            at: time, into: rows)
    }

    // MARK: Reserving

    mutating func apply(
        _ reserve: ReserveReferences, of command: Command, over rows: Rows
    ) throws(StoreError) -> RecordOutcome {
        let schema = try self.cache.schema(command.container, over: rows.view)
        if let refusal = Self.check(reserve, command, schema) { return .refused(refusal) }
        var numbers = NumberDraw()
        let database: DatabaseRow
        if let known = try self.cache.database(reserve.database, over: rows.view) {
            database = known
        } else {
            database = try numbers.database(over: rows.view)
        }
        let name = ZoneID.defaultName
        let zone: ZoneRow
        if let known = try self.cache.zone(name, in: database.number, over: rows.view),
            !known.isDeleted
        {
            zone = known
        } else {
            zone = ZoneRow(
                number: try numbers.zone(over: rows.view), incarnation: reserve.drawnIncarnation,
                baseTag: max(database.tagFloor, reserve.tagFloor))
        }
        var results: [RecordRefusal?] = []
        for wish in reserve.wishes {
            let refusal = try self.refusal(
                of: wish, reserve, in: zone, schema, command.principal, over: rows.view)
            results.append(refusal)
            guard refusal == nil else { continue }
            let link = Link(
                target: wish.target, action: wish.action, referrer: wish.referrer,
                identity: command.identity)
            guard let question = BucketMail(.question, link, from: reserve.database) else {
                preconditionFailure("checked: a bucket")
            }
            let links = LinkRows(zone: zone.number)
            // Two fields of one record may refer to one target.
            if try links.inbound(link, over: rows.view) != nil { continue }
            try links.reserve(
                link, question,
                InboundLink(
                    state: .reserved, tag: ChangeTag(zone.lastTag),
                    deadlineMilliseconds: command.deadlineMilliseconds), into: rows)
        }
        if numbers.isDrawn, results.contains(nil) {
            try numbers.write(into: rows)
            try rows.put(.database, Keys.database(reserve.database), database.encoded())
            try rows.put(.zone, Keys.zone(database.number, name), zone.encoded())
            self.cache.remember(database, of: reserve.database)
            self.cache.remember(zone, name, in: database.number)
        }
        return .reserved(results)
    }

    private static func check(
        _ reserve: ReserveReferences, _ command: Command, _ schema: IndexedSchema?
    ) -> RequestRefusal? {
        if let refusal = Self.check(command.schemaVersion, schema) { return refusal }
        if reserve.wishes.isEmpty { return RequestRefusal(.empty) }
        if reserve.wishes.count > ReserveReferences.countMax {
            return RequestRefusal(.tooManyItems, String(ReserveReferences.countMax))
        }
        guard let bucket = reserve.database.recordBucket else {
            return RequestRefusal(.otherBucket)
        }
        for wish in reserve.wishes {
            if !bucket.holds(wish.target) { return RequestRefusal(.otherBucket, wish.target) }
            if bucket.holds(wish.referrer) { return RequestRefusal(.otherBucket, wish.referrer) }
        }
        return nil
    }

    private func refusal(
        of wish: ReserveReferences.Wish, _ reserve: ReserveReferences, in zone: ZoneRow,
        _ schema: IndexedSchema?, _ principal: Principal, over rows: RowView
    ) throws(StoreError) -> RecordRefusal? {
        guard NameRules.isReferenceTarget(wish.target, limit: Self.nameLengthMax),
            NameRules.isReferenceTarget(wish.referrer, limit: Self.nameLengthMax)
        else { return RecordRefusal(.nameInvalid, wish.target) }
        switch wish.action {
        case .none: return RecordRefusal(.nameInvalid, wish.target)
        case .deleteSelf:
            let links = LinkRows(zone: zone.number)
            let count = try links.counts(of: wish.target, over: rows).deleteSelf
            if count < reserve.referrerCountMax { return nil }
            // Who refers to it already takes nobody's place: the new link is for the old one's.
            if count < 2 * reserve.referrerCountMax,
                try links.refers(wish.referrer, to: wish.target, wish.action, over: rows)
            {
                return nil
            }
            return RecordRefusal(.tooManyReferrers, wish.target)
        case .validate:
            let id = ZoneID(name: ZoneID.defaultName, owner: reserve.database.owner)
            let stored = try StoredRows.record(wish.target, of: zone.number, in: id, over: rows)
            guard let record = stored.row?.live,
                AccessRules.allows(
                    .read, schema?.schema.type(named: record.type),
                    creator: record.created.userRecordName, in: reserve.database, principal)
            else { return RecordRefusal(.referenceTargetMissing, wish.target) }
            return nil
        }
    }

    // MARK: Receiving

    /// Applies what another bucket wrote. It posts nothing: what has to follow is a job.
    ///
    /// - Parameter mended: how many links were made right by what an audit has found.
    /// - Returns: false: written by a version that this one does not know.
    mutating func deliver(
        _ mail: Mail, from sender: GroupID, mended: inout MendedLinks,
        over rows: Rows
    ) throws(StoreError) -> Bool {
        guard let letter = try? BucketMail(decoding: mail.body) else { return false }
        let link = letter.link
        let answer = Job.LetterName(sender: sender, sequence: mail.sequence)
        if letter.kind == .question {
            // Whether or not there is anything left here that it could be about.
            return try Self.leave(.settled, link, answer, at: letter.database, over: rows)
        }
        if letter.kind == .inquiry {
            // Looked up when it leaves: until then the reference may come and go.
            return try Self.leave(.stated, link, answer, at: letter.database, over: rows)
        }
        guard let zone = try self.liveZone(ZoneID.defaultName, of: letter.database, over: rows.view)
        else { return true }
        let links = LinkRows(zone: zone.number)
        if letter.kind == .cascade {
            let job = Job.recall(
                zone.number, JobPlace(database: letter.database, zone: ZoneID.defaultName), link)
            try rows.put(.job, job.key, job.encoded())
            return true
        }
        guard let state = try links.inbound(link, over: rows.view) else {
            if letter.kind == .stated {
                try links.restore(link, zone, over: rows)
                mended.count += 1
            }
            return true
        }
        // Confirmations are stated again by audits alone.
        if letter.kind == .stated, state.state != .confirmed { mended.count += 1 }
        switch (letter.kind, state.state) {
        case (.confirmed, .reserved), (.stated, .reserved):
            try links.confirm(link, state, over: rows)
        case (.confirmed, .recalled), (.stated, .recalled):
            // The target went while the save was on its way.
            try links.remove(link, state, over: rows)
            _ = try Self.leave(.cascade, link, answer, at: letter.database, over: rows)
        case (.removed, _): try links.remove(link, state, over: rows)
        case (.settled, .reserved), (.settled, .recalled):
            try links.remove(link, state, over: rows)
        case (.confirmed, .confirmed), (.stated, .confirmed), (.settled, .confirmed): break
        case (.cascade, _), (.question, _), (.inquiry, _): preconditionFailure("decided above")
        }
        return true
    }

    private static func leave(
        _ kind: BucketMail.Kind, _ link: Link, _ name: Job.LetterName, at own: DatabaseID,
        over rows: Rows
    ) throws(StoreError) -> Bool {
        guard let mail = BucketMail(kind, link, from: own) else { return false }
        let job = Job.letter(name, mail)
        try rows.put(.job, job.key, job.encoded())
        return true
    }
}
