import StratusCoding
import StratusModel
import StratusQuery

extension RecordState {
    /// What one question about news looks at before it answers with where it stopped: events, and
    /// subscriptions and their filters.
    static let newsEventCountMax = 256
    static let newsWorkMax = 2_000

    /// The first subscription of the caller that fires behind the follower.
    ///
    /// A pure function of the applied rows. It matches at the time of the question and by the
    /// events as they were written, so that a filter which is wrong fails a question and nothing
    /// that is replicated.
    mutating func news(
        _ ask: NewsAsk, _ principal: Principal, _ meter: ReadMeter,
        over rows: borrowing some RowReader
    ) throws(StoreError) -> RecordAnswer {
        let subscriber = principal.userRecordName
        let start = NewsPosition(number: 0)
        guard !subscriber.isEmpty, !subscriber.utf8.contains(0),
            let database = try self.cache.database(ask.database, over: rows),
            let follower = try StoredRows.follower(
                Keys.follower(database.number, of: subscriber, ask.token, as: ask.follower),
                over: rows)
        else { return .news(News(follower: nil, position: start)) }
        var news = News(follower: follower.position, position: follower.position)
        let watch = try self.cache.watch(of: database.number, over: rows)
        // A place behind the last event is of an earlier life of the database.
        if let after = ask.after, after > news.position, after.number < watch.nextEvent {
            news.position = after
        }
        let first = news.position.number + (news.position.subscription.isEmpty ? 1 : 0)
        guard first < watch.nextEvent else { return .news(news) }
        var matcher = NewsMatcher(
            ask.database, principal, try self.cache.schema(ask.database.container, over: rows),
            bugs: self.bugs)
        for isShared in [false, true] {
            let found = try StoredRows.subscriptions(
                database.number, isShared: isShared, of: subscriber, over: rows)
            matcher.add(found, isShared: isShared)
        }
        if matcher.isEmpty {
            news.position = NewsPosition(number: watch.nextEvent - 1)
            return .news(news)
        }
        let events = try rows.rows(
            .event, from: Keys.event(database.number, first),
            to: Keys.event(database.number, watch.nextEvent), limit: Self.newsEventCountMax,
            sizeMax: Self.lookupSizeMax)
        // An event holds its records' fields, so 256 of them may be many megabytes.
        let isAll =
            events.count < Self.newsEventCountMax
            && events.reduce(0) { $0 + $1.row.count } < Self.lookupSizeMax
        var work = Self.newsWorkMax
        for (place, (key, row)) in events.enumerated() {
            if place > 0, meter.isSpent {
                news.hasMore = true
                return .news(news)
            }
            let number = try Keys.number(key, at: 4)
            var event = try decodingRow("event") { () throws(DecodingError) in
                try NewsEvent(decoding: row, owner: ask.database.owner)
            }
            if self.bugs.contains(.eventOfNow) {
                event = try self.asItIsNow(event, in: database.number, over: rows)
            }
            let within = number == news.position.number ? news.position.subscription : ""
            switch matcher.ask(event, number, after: within, work: &work) {
            case .fires(let place, let hit):
                news.position = NewsPosition(
                    number: number,
                    subscription: self.bugs.contains(.cursorMovedBeforePosted) ? "" : place)
                news.hit = hit
                news.hasMore = true
                return .news(news)
            case .stopped(let place):
                if !place.isEmpty {
                    news.position = NewsPosition(number: number, subscription: place)
                }
                news.hasMore = true
                return .news(news)
            case .nobody: news.position = NewsPosition(number: number)
            }
        }
        if isAll {
            // Everything was looked at, the numbers without an event too.
            news.position = NewsPosition(number: watch.nextEvent - 1)
        }
        news.hasMore = news.position.number + 1 < watch.nextEvent
        return .news(news)
    }
}

extension RecordState {
    /// Planted: the record as it is now, not as the change left it.
    fileprivate mutating func asItIsNow(
        _ event: NewsEvent, in database: DatabaseNumber, over rows: borrowing some RowReader
    ) throws(StoreError) -> NewsEvent {
        guard case .record(let reason, let record, let omitted) = event,
            let zone = try self.cache.zone(record.zone.name, in: database, over: rows),
            let now = try StoredRows.record(
                record.name, of: zone.number, in: record.zone, over: rows
            ).row?.live
        else { return event }
        return .record(reason, now, omitted: omitted)
    }
}

/// Asks the subscriptions of one owner about events.
struct NewsMatcher {
    private struct Candidate {
        /// The order within an event: IDs of the own database before those of the shared one.
        var place: String
        var row: SubscriptionRow
        var isShared: Bool
    }

    private let database: DatabaseID
    private let principal: Principal
    private let schema: IndexedSchema?
    private let bugs: PlantedBugs
    private var candidates: [Candidate] = []

    init(
        _ database: DatabaseID, _ principal: Principal, _ schema: IndexedSchema?,
        bugs: PlantedBugs = PlantedBugs()
    ) {
        self.bugs = bugs
        self.database = database
        self.principal = principal
        self.schema = schema
    }

    var isEmpty: Bool { self.candidates.isEmpty }

    enum Finding {
        case fires(at: String, News.Hit)
        /// The work is done before the event is: everything through this place was asked.
        case stopped(at: String)
        case nobody
    }

    mutating func add(_ rows: [SubscriptionRow], isShared: Bool) {
        for row in rows {
            // Nothing is shared yet, so nothing fires there.
            if isShared { continue }
            self.candidates.append(
                Candidate(place: row.subscription.id, row: row, isShared: isShared))
        }
        self.candidates.sort { $0.place.precedes($1.place) }
    }

    /// Nil: the filters cannot be asked by the schema as it is now, so it does not fire.
    ///
    /// - Parameter home: the record's zone, which an operand without a zone means.
    private func compiled(
        _ predicate: RecordPredicate, home: ZoneID
    ) -> [CompiledFilter]? {
        guard let schema = self.schema,
            let type = schema.schema.type(named: predicate.recordType)
        else { return nil }
        let compiler = FilterCompiler(type, in: schema, home: home, requiresIndexes: false)
        return try? predicate.filters.map { filter throws(QueryRefusal) in
            try compiler.compile(filter)
        }
    }

    /// The first that fires for this event, behind the place of an earlier one.
    ///
    /// - Parameter work: what may still be asked. It is at least one at the first event of a
    ///   question, so that each question gets on.
    func ask(
        _ event: NewsEvent, _ number: UInt64, after place: String, work: inout Int
    ) -> Finding {
        var last = place
        for candidate in self.candidates where place.precedes(candidate.place) {
            if work <= 0 { return .stopped(at: last) }
            work -= 1 + (candidate.row.subscription.predicate?.filters.count ?? 0)
            last = candidate.place
            let isSince = candidate.row.since <= number || self.bugs.contains(.sinceIgnored)
            guard isSince, self.fires(candidate, event) else { continue }
            return .fires(
                at: candidate.place,
                News.Hit(
                    subscription: candidate.row.subscription, isShared: candidate.isShared,
                    event: event))
        }
        return .nobody
    }

    private func fires(_ candidate: Candidate, _ event: NewsEvent) -> Bool {
        self.verdict(of: candidate.row.subscription, on: event).0 == .fires
    }

    /// Whether a subscription fires for an event, and why it does not. With it the filter that
    /// fails, from 1.
    func verdict(of subscription: Subscription, on event: NewsEvent) -> (NewsVerdict, filter: Int) {
        switch (event, subscription.kind) {
        case (.zone, .database): return (.fires, 0)
        case (.zone(let zone, _), .zone):
            let isIts = subscription.zone.map { $0.utf8.elementsEqual(zone.utf8) } ?? false
            return (isIts ? .fires : .otherZone, 0)
        case (.zone, .query), (.record, .zone), (.record, .database): return (.otherKind, 0)
        case (.record(let reason, let record, let omitted), .query):
            guard subscription.reasons.contains(reason) else { return (.otherReason, 0) }
            guard let predicate = subscription.predicate, record.type == predicate.recordType
            else { return (.otherType, 0) }
            let isIts =
                subscription.zone.map { $0.utf8.elementsEqual(record.zone.name.utf8) } ?? true
            guard isIts else { return (.otherZone, 0) }
            guard let filters = self.compiled(predicate, home: record.zone) else {
                return (.filterBroken, 0)
            }
            // A notification is a hint: one too many is harmless, one too few is not.
            let failing = filters.firstIndex {
                !($0.names(any: omitted) || $0.matches(record))
            }
            if let failing { return (.filterFails, failing + 1) }
            let mayRead = AccessRules.allows(
                .read, self.schema?.schema.type(named: record.type),
                creator: record.created.userRecordName, in: self.database, self.principal)
            return (mayRead ? .fires : .mayNotRead, 0)
        }
    }
}

extension CompiledFilter {
    /// Whether it asks about one of these fields.
    func names(any fields: [String]) -> Bool {
        if fields.isEmpty { return false }
        switch self.target {
        case .field(let name): return fields.contains(name)
        case .fields(let names): return names.contains { fields.contains($0) }
        case .system: return false
        }
    }
}
