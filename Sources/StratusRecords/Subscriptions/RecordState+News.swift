import StratusCoding
import StratusModel
import StratusQuery
import StratusRows

extension RecordState {
    /// Events that one question about news reads, and their bytes. It answers with where it stopped
    /// when its meter is spent, too.
    static let newsEventCountMax = 256
    static let newsSizeMax = 512 << 10

    /// The first subscription of the caller that fires behind the follower.
    ///
    /// A pure function of the applied rows. It matches at the time of the question and by the
    /// events as they were written, so that a filter which is wrong fails a question and nothing
    /// that is replicated.
    ///
    /// - Parameter now: nil where nobody waits for another poll.
    mutating func news(
        _ ask: NewsAsk, _ principal: Principal, at now: MonotonicTime? = nil, _ meter: ReadMeter,
        over rows: RowView
    ) throws(StoreError) -> RecordAnswer {
        var news = try self.look(ask, principal, meter, over: rows)
        guard let poll = ask.poll, let now, let from = news.follower, news.hit != nil,
            let database = try self.cache.database(ask.database, over: rows)
        else { return .news(news) }
        let follower = Keys.follower(
            database.number, of: principal.userRecordName, ask.token, as: ask.follower)
        let given = self.handOuts.pending(follower, at: from, besides: poll, now: now)
        if let given, ask.waits {
            if self.bugs.contains(.handOutSettlesAlone), given.to >= news.position {
                var later = ask
                later.after = given.to
                return .news(try self.look(later, principal, meter, over: rows))
            }
            // It is asked again, from where it began.
            news = News(follower: from, position: ask.after ?? from)
            news.isPending = true
            return .news(news)
        }
        self.handOuts.give(follower, from: from, to: news.position, to: poll, at: now)
        return .news(news)
    }

    private mutating func look(
        _ ask: NewsAsk, _ principal: Principal, _ meter: ReadMeter, over rows: RowView
    ) throws(StoreError) -> News {
        let subscriber = principal.userRecordName
        let start = NewsPosition(number: 0)
        guard !subscriber.isEmpty, !subscriber.utf8.contains(0),
            let database = try self.cache.database(ask.database, over: rows),
            let follower = try StoredRows.follower(
                Keys.follower(database.number, of: subscriber, ask.token, as: ask.follower),
                over: rows)
        else { return News(follower: nil, position: start) }
        var news = News(follower: follower.position, position: follower.position)
        let watch = try self.cache.watch(of: database.number, over: rows)
        // A place behind the last event is of an earlier life of the database.
        if let after = ask.after, after > news.position, after.number < watch.nextEvent {
            news.position = after
        }
        let first = news.position.number + (news.position.subscription.isEmpty ? 1 : 0)
        guard first < watch.nextEvent else { return news }
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
            return news
        }
        let events = try rows.rows(
            .event, from: Keys.event(database.number, first),
            to: Keys.event(database.number, watch.nextEvent), limit: Self.newsEventCountMax,
            sizeMax: Self.newsSizeMax)
        // An event holds its records' fields, so 256 of them may be megabytes.
        let isAll =
            events.count < Self.newsEventCountMax
            && events.reduce(0) { $0 + $1.row.count } < Self.newsSizeMax
        for (place, (key, row)) in events.enumerated() {
            if place > 0, meter.isSpent {
                news.hasMore = true
                return news
            }
            let number = try Keys.number(key, at: 4)
            var event = try StoredRows.event(decoding: row, owner: ask.database.owner)
            if self.bugs.contains(.eventOfNow) {
                event = try self.asItIsNow(event, in: database.number, over: rows)
            }
            let within = number == news.position.number ? news.position.subscription : ""
            switch matcher.ask(event, number, after: within, meter) {
            case .fires(let place, let hit):
                news.position = NewsPosition(
                    number: number,
                    subscription: self.bugs.contains(.cursorMovedBeforePosted) ? "" : place)
                news.hit = hit
                news.hasMore = true
                return news
            case .stopped(let place):
                if !place.isEmpty {
                    news.position = NewsPosition(number: number, subscription: place)
                }
                news.hasMore = true
                return news
            case .nobody: news.position = NewsPosition(number: number)
            }
        }
        if isAll {
            // Everything was looked at, the numbers without an event too.
            news.position = NewsPosition(number: watch.nextEvent - 1)
        }
        news.hasMore = news.position.number + 1 < watch.nextEvent
        return news
    }
}

extension RecordState {
    /// Planted: the record as it is now, not as the change left it.
    fileprivate mutating func asItIsNow(
        _ event: NewsEvent, in database: DatabaseNumber, over rows: RowView
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
