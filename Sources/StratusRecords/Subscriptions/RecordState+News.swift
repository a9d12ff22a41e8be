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
        guard news.position < NewsPosition(number: watch.nextEvent - 1) else { return news }
        let schema = try self.cache.schema(ask.database.container, over: rows)
        let owner = NewsBoard.Owner(database: database.number, subscriber: subscriber)
        let page = try self.page(of: owner, schema, meter, over: rows)
        var look = NewsLook(
            ask.database, database.number, through: watch.nextEvent, news,
            NewsMatcher(ask.database, principal, schema), page, self.cache.takeRecentEvents(),
            meter, over: rows, bugs: self.bugs)
        try look.run()
        look.page.trim()
        self.cache.board.put(look.page, of: owner)
        self.cache.recentEvents = look.recent
        return look.news
    }

    /// What is known of an owner's subscriptions.
    private mutating func page(
        of owner: NewsBoard.Owner, _ schema: IndexedSchema?, _ meter: ReadMeter,
        over rows: RowView
    ) throws(StoreError) -> NewsPage {
        let version = schema?.schema.version ?? 0
        if let known = self.cache.board.take(owner, schemaVersion: version),
            !self.bugs.contains(.newsForEachFollower)
        {
            return known
        }
        // Nothing is shared yet, so nothing fires in shared databases.
        let found = try StoredRows.subscriptions(
            owner.database, isShared: false, of: owner.subscriber, over: rows)
        meter.count(ReadWork(comparisonCount: found.count))
        return NewsPage(found, schemaVersion: version)
    }
}
