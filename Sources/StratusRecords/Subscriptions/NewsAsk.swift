package import StratusCoding
package import StratusModel
import StratusQuery
package import StratusRows

/// Asks for the first notification that a follower has not taken, on behalf of its owner.
package struct NewsAsk: SingleQuestion, DatabaseQuestion, Equatable {
    package static let number: UInt8 = 13
    /// The owner's subscriptions are read, and one of them is compared, whatever was spent.
    package static let bound = WorkBound.page(step: 4_000)

    package var database = DatabaseID()
    package var follower = NewsFollower.poll
    package var token = FollowNews.noToken
    /// Where an earlier answer stopped looking; nil: at the follower.
    package var after: NewsPosition?
    /// A number of the poll that is to be answered; nil: no poll.
    package var poll: UInt64?
    /// Whether it waits for what another poll of its token was given and has not settled yet.
    package var waits = false

    package init() {}

    package var payer: Payer { .owner(of: self.database) }
    package var need: AccessNeed { .owner }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.database)
        try form.lay(&self.follower)
        try form.lay(token: &self.token)
        try form.lay(&self.after)
        try form.lay(&self.poll)
        try form.lay(&self.waits)
    }

    /// The first subscription of the asker that fires behind the follower.
    ///
    /// A pure function of the applied rows, but for what polls were given. It matches at the time
    /// of the question and by the events as they were written, so that a filter which is wrong
    /// fails a question and nothing that is replicated.
    package func answer(
        in state: inout RecordState, to asker: Principal, _ cost: ReadCost, over view: RowView
    ) throws(StoreError) -> Result<News, RequestRefusal> {
        var news = try self.look(in: &state, asker, cost.meter, over: view)
        // Without a time nobody waits for another poll.
        guard let poll = self.poll, let now = cost.now, let from = news.follower, news.hit != nil,
            let database = try state.cache.database(self.database, over: view)
        else { return .success(news) }
        let follower = Keys.follower(
            database.number, of: asker.userRecordName, self.token, as: self.follower)
        let given = state.handOuts.pending(follower, at: from, besides: poll, now: now)
        if let given, self.waits {
            if state.bugs.contains(.handOutSettlesAlone), given.to >= news.position {
                var later = self
                later.after = given.to
                return .success(try later.look(in: &state, asker, cost.meter, over: view))
            }
            // It is asked again, from where it began.
            news = News {
                $0.follower = from
                $0.position = self.after ?? from
                $0.isPending = true
            }
            return .success(news)
        }
        state.handOuts.give(follower, from: from, to: news.position, to: poll, at: now)
        return .success(news)
    }

    private func look(
        in state: inout RecordState, _ asker: Principal, _ meter: ReadMeter, over view: RowView
    ) throws(StoreError) -> News {
        let subscriber = asker.userRecordName
        guard !subscriber.isEmpty, !subscriber.utf8.contains(0),
            let database = try state.cache.database(self.database, over: view),
            let follower = try StoredRows.follower(
                Keys.follower(database.number, of: subscriber, self.token, as: self.follower),
                over: view)
        else { return News() }
        var news = News {
            $0.follower = follower.position
            $0.position = follower.position
        }
        let watch = try state.cache.watch(of: database.number, over: view)
        // A place behind the last event is of an earlier life of the database.
        if let after = self.after, after > news.position, after.number < watch.nextEvent {
            news.position = after
        }
        guard news.position < NewsPosition(number: watch.nextEvent - 1) else { return news }
        let schema = try state.cache.schema(self.database.container, over: view)
        let owner = NewsBoard.Owner(database: database.number, subscriber: subscriber)
        let page = try Self.page(of: owner, schema, in: &state, meter, over: view)
        var look = NewsLook(
            self.database, database.number, through: watch.nextEvent, news,
            NewsMatcher(self.database, asker, schema), page, state.cache.takeRecentEvents(), meter,
            over: view, bugs: state.bugs)
        try look.run()
        look.page.trim()
        state.cache.board.put(look.page, of: owner)
        state.cache.recentEvents = look.recent
        return look.news
    }

    /// What is known of an owner's subscriptions.
    private static func page(
        of owner: NewsBoard.Owner, _ schema: IndexedSchema?, in state: inout RecordState,
        _ meter: ReadMeter, over view: RowView
    ) throws(StoreError) -> NewsPage {
        let version = schema?.schema.version ?? 0
        if let known = state.cache.board.take(owner, schemaVersion: version),
            !state.bugs.contains(.newsForEachFollower)
        {
            return known
        }
        // Nothing is shared yet, so nothing fires in shared databases.
        let found = try StoredRows.subscriptions(
            owner.database, isShared: false, of: owner.subscriber, over: view)
        meter.count(ReadWork(comparisonCount: found.count))
        return NewsPage(found, schemaVersion: version)
    }
}

/// An answer to a ``NewsAsk``.
package struct News: FormValue, Sendable, Equatable {
    /// Events that one question about news reads, and their bytes. It answers with where it stopped
    /// when its meter is spent, too.
    static let eventCountMax = 256
    static let sizeMax = 512 << 10

    /// One subscription that fires for one event.
    package struct Hit: Sendable, Equatable {
        package var subscription: Subscription
        package var isShared: Bool
        package var event: NewsEvent

        package init(subscription: Subscription, isShared: Bool, event: NewsEvent) {
            self.subscription = subscription
            self.isShared = isShared
            self.event = event
        }

        /// What a settlement says of a zone's change.
        package var told: ChangeTag? {
            if case .zone(_, let tag) = self.event { tag } else { nil }
        }
    }

    /// Where the follower stands. Nil: nobody follows under this token.
    package var follower: NewsPosition?
    /// Everything through here was looked at; the hit's place if there is one.
    package var position = NewsPosition(number: 0)
    /// Whether there are events behind the position.
    package var hasMore = false
    /// Whether another poll was given what stands there, and has not settled it yet.
    package var isPending = false
    package var hit: Hit?

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.follower)
        try form.lay(&self.position)
        try form.lay(&self.hasMore)
        try form.lay(&self.isPending)
        try form.lay(
            &self.hit,
            by: { (writer, hit) in
                writer.write(flag: hit != nil)
                if let hit { writer.write(hit) }
            },
            { (reader) throws(DecodingError) in
                try reader.flag() ? try reader.newsHit() : nil
            })
    }
}
