import StratusCoding
import StratusModel
import StratusRows

extension RecordState {
    /// Who would hear of a change, asked by the code that matches events.
    ///
    /// The record is judged as it is now, with the fields that an event of it would have.
    mutating func audience(
        _ ask: AudienceAsk, _ principal: Principal, _ meter: ReadMeter,
        over rows: RowView
    ) throws(StoreError) -> RecordAnswer {
        let subscriber = principal.userRecordName
        var audience = Audience()
        guard !subscriber.isEmpty, !subscriber.utf8.contains(0),
            let database = try self.cache.database(ask.database, over: rows)
        else { return .audience(audience) }
        audience.lastEvent = try self.cache.watch(of: database.number, over: rows).nextEvent - 1
        for kind in [NewsFollower.poll, .device] {
            let start = Keys.followers(database.number, of: subscriber, as: kind)
            let found = try rows.rows(
                .subscription, from: start, to: Keys.end(of: start), limit: Self.followerCountMax)
            for (key, row) in found {
                let follower = try StoredRows.follower(decoding: row)
                audience.followers.append(
                    Audience.Follower(
                        token: try Keys.followerParts(key).1, kind: kind,
                        position: follower.position.number, milliseconds: follower.milliseconds))
            }
        }
        guard let change = ask.change else { return .audience(audience) }
        let id = ZoneID(name: change.zone, owner: ask.database.owner)
        var record: Record?
        if let zone = try self.liveZone(change.zone, of: ask.database, over: rows) {
            record = try StoredRows.record(
                change.record, of: zone.number, in: id, over: rows
            ).row?.live
        }
        audience.hasRecord = record != nil
        var event: NewsEvent?
        if let record,
            let interest = try StoredRows.interest(record.type, in: database.number, over: rows)
        {
            let (kept, omitted) = NewsEdit.reduced(record, to: interest)
            event = .record(change.reason, kept, omitted: omitted)
        } else if let record {
            event = .record(change.reason, record, omitted: [])
        }
        var matcher = NewsMatcher(
            ask.database, principal, try self.cache.schema(ask.database.container, over: rows))
        var mark = NewsMatcher.Asked(.zone(change.zone, ChangeTag(0)))
        var asked = event.map { NewsMatcher.Asked($0) }
        let subscriptions = try StoredRows.subscriptions(
            database.number, isShared: false, of: subscriber, over: rows)
        for row in subscriptions {
            guard audience.findings.isEmpty || !meter.isSpent else {
                audience.isCut = true
                break
            }
            let subscription = row.subscription
            var compiled: NewsMatcher.Compiled?
            var finding = Audience.Finding(
                subscription: subscription.id, kind: subscription.kind, verdict: .noRecord)
            if subscription.watchesZones {
                // The default zone has no marks.
                finding.verdict =
                    change.zone == ZoneID.defaultName
                    ? .otherZone
                    : matcher.verdict(of: subscription, on: &mark, &compiled, meter).0
            } else if var event = asked.take() {
                (finding.verdict, finding.filter) = matcher.verdict(
                    of: subscription, on: &event, &compiled, meter)
                asked = event
            }
            audience.findings.append(finding)
        }
        return .audience(audience)
    }
}
