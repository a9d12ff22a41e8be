package import StratusCoding
package import StratusModel
package import StratusRows

/// Asks who would hear of a change: the followers of one user, and what each of the user's
/// subscriptions says. The user is the asker, with the roles that reading is judged by.
///
/// The code that matches events answers it. The record is judged as it is now, with the fields that
/// an event of it would have.
package struct AudienceAsk: SingleQuestion, DatabaseQuestion, Equatable {
    package static let number: UInt8 = 15
    /// Followers, subscriptions and the record are read, whatever was spent.
    package static let bound = WorkBound.page(step: 4_000)

    /// A change that somebody could make.
    package struct Change: FormValue, Sendable, Equatable {
        package var zone = ""
        package var record = ""
        package var reason = Subscription.Reasons.created

        package init() {}

        package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
            try form.lay(&self.zone)
            try form.lay(&self.record)
            var reason = self.reason.rawValue
            try form.lay(byte: &reason)
            self.reason = Subscription.Reasons(rawValue: reason)
            try form.require([.created, .updated, .deleted].contains(self.reason))
        }
    }

    package var database = DatabaseID()
    /// Nil: only the followers are asked for.
    package var change: Change?

    package init() {}

    package var payer: Payer { .owner(of: self.database) }
    package var need: AccessNeed { .owner }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.database)
        try form.lay(&self.change)
    }

    package func answer(
        in state: inout RecordState, to asker: Principal, _ cost: ReadCost, over view: RowView
    ) throws(StoreError) -> Result<Audience, RequestRefusal> {
        let subscriber = asker.userRecordName
        var audience = Audience()
        guard !subscriber.isEmpty, !subscriber.utf8.contains(0),
            let database = try state.cache.database(self.database, over: view)
        else { return .success(audience) }
        audience.lastEvent = try state.cache.watch(of: database.number, over: view).nextEvent - 1
        for kind in [NewsFollower.poll, .device] {
            let start = Keys.followers(database.number, of: subscriber, as: kind)
            let found = try view.rows(
                .subscription, from: start, to: Keys.end(of: start),
                limit: RecordState.followerCountMax)
            for (key, row) in found {
                let follower = try StoredRows.follower(decoding: row)
                let token = try Keys.followerParts(key).1
                audience.followers.append(
                    Audience.Follower {
                        $0.token = token
                        $0.kind = kind
                        $0.position = follower.position.number
                        $0.milliseconds = follower.milliseconds
                    })
            }
        }
        guard let change = self.change else { return .success(audience) }
        let id = ZoneID(name: change.zone, owner: self.database.owner)
        var record: Record?
        if let zone = try state.liveZone(change.zone, of: self.database, over: view) {
            record = try StoredRows.record(
                change.record, of: zone.number, in: id, over: view
            ).row?.live
        }
        audience.hasRecord = record != nil
        var event: NewsEvent?
        if let record,
            let interest = try StoredRows.interest(record.type, in: database.number, over: view)
        {
            let (kept, omitted) = NewsEdit.reduced(record, to: interest)
            event = .record(change.reason, kept, omitted: omitted)
        } else if let record {
            event = .record(change.reason, record, omitted: [])
        }
        var matcher = NewsMatcher(
            self.database, asker, try state.cache.schema(self.database.container, over: view))
        var mark = NewsMatcher.Asked(.zone(change.zone, ChangeTag(0)))
        var asked = event.map { NewsMatcher.Asked($0) }
        let subscriptions = try StoredRows.subscriptions(
            database.number, isShared: false, of: subscriber, over: view)
        for row in subscriptions {
            guard audience.findings.isEmpty || !cost.meter.isSpent else {
                audience.isCut = true
                break
            }
            let subscription = row.subscription
            var compiled: NewsMatcher.Compiled?
            var finding = Audience.Finding {
                $0.subscription = subscription.id
                $0.kind = subscription.kind
            }
            if subscription.watchesZones {
                // The default zone has no marks.
                finding.verdict =
                    change.zone == ZoneID.defaultName
                    ? .otherZone
                    : matcher.verdict(of: subscription, on: &mark, &compiled, cost.meter).0
            } else if var event = asked.take() {
                let (verdict, filter) = matcher.verdict(
                    of: subscription, on: &event, &compiled, cost.meter)
                finding.verdict = verdict
                finding.filter = UInt32(clamping: filter)
                asked = event
            }
            audience.findings.append(finding)
        }
        return .success(audience)
    }
}

/// Why a subscription fires for an event, or does not.
package enum NewsVerdict: UInt8, Sendable, CaseIterable {
    case fires = 1
    /// It watches records and the event is a zone's, or the other way round.
    case otherKind = 2
    case otherZone = 3
    case otherReason = 4
    case otherType = 5
    /// A filter does not compile by the schema as it is.
    case filterBroken = 6
    case filterFails = 7
    /// Its owner may not read the record.
    case mayNotRead = 8
    /// There is no such record to judge by.
    case noRecord = 9
}

/// The answer to an ``AudienceAsk``.
package struct Audience: FormValue, Sendable, Equatable {
    package struct Follower: FormValue, Sendable, Equatable {
        package var token = FollowNews.noToken
        package var kind = NewsFollower.poll
        /// The last event that it was told, or that was looked at for it.
        package var position: UInt64 = 0
        /// When it was moved last.
        package var milliseconds: Int64 = 0

        package init() {}

        package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
            try form.lay(token: &self.token)
            try form.lay(&self.kind)
            try form.lay(&self.position)
            try form.lay(&self.milliseconds)
        }
    }

    package struct Finding: FormValue, Sendable, Equatable {
        package var subscription = ""
        package var kind = Subscription.Kind.query
        package var verdict = NewsVerdict.noRecord
        /// The filter that fails, from 1; otherwise 0.
        package var filter: UInt32 = 0

        package init() {}

        package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
            try form.lay(&self.subscription)
            try form.lay(&self.kind)
            try form.lay(&self.verdict)
            try form.lay(&self.filter)
        }
    }

    /// Everything that one answer may hold of either.
    private static let countMax = 10_000

    package var lastEvent: UInt64 = 0
    package var followers: [Follower] = []
    /// Whether the record is there.
    package var hasRecord = false
    package var findings: [Finding] = []
    /// Whether there are subscriptions that were not asked.
    package var isCut = false

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.lastEvent)
        try form.lay(&self.followers, atMost: 2 * RecordState.followerCountMax)
        try form.lay(&self.hasRecord)
        try form.lay(&self.findings, atMost: Self.countMax)
        try form.lay(&self.isCut)
    }
}
