import StratusModel
import StratusQuery
import StratusRows

/// One look of one follower: tells what others have found already, and matches what nobody has
/// looked at, as far as the first notification.
struct NewsLook {
    let database: DatabaseID
    let number: DatabaseNumber
    /// The number of the next event.
    let end: UInt64
    let meter: ReadMeter
    let rows: RowView
    let bugs: PlantedBugs
    var matcher: NewsMatcher
    var page: NewsPage
    var recent: RecentEvents
    var news: News
    /// Whether a subscription was asked, or a hit passed over: each look gets on.
    private var hasGotOn = false

    init(
        _ database: DatabaseID, _ number: DatabaseNumber, through end: UInt64, _ news: News,
        _ matcher: NewsMatcher, _ page: NewsPage, _ recent: RecentEvents, _ meter: ReadMeter,
        over rows: RowView, bugs: PlantedBugs
    ) {
        self.database = database
        self.number = number
        self.end = end
        self.news = news
        self.matcher = matcher
        self.page = page
        self.recent = recent
        self.meter = meter
        self.rows = rows
        self.bugs = bugs
    }

    mutating func run() throws(StoreError) {
        // Each round but the last one joins two stretches.
        while true {
            let stretch = self.page.stretch(at: self.news.position)
            if try self.tellKnown(in: stretch) { return }
            if try self.match(in: stretch) { return }
        }
    }

    // MARK: What is known

    /// - Returns: whether the look is over.
    private mutating func tellKnown(in index: Int) throws(StoreError) -> Bool {
        let stretch = self.page.stretches[index]
        let from = self.news.position
        self.meter.count(ReadWork(comparisonCount: 1))
        for hit in stretch.hits(after: from) {
            if self.hasGotOn, self.meter.isSpent {
                self.news.hasMore = true
                return true
            }
            self.hasGotOn = true
            self.meter.count(ReadWork(comparisonCount: 1))
            self.news.position = hit.position
            guard self.mayTell(hit), let event = try self.event(hit.position.number) else {
                continue
            }
            self.tell(event, hit)
            return true
        }
        self.news.position = max(from, stretch.end)
        self.news.hasMore = self.news.position < NewsPosition(number: self.end - 1)
        return !self.news.hasMore
    }

    private func mayTell(_ hit: NewsPage.Hit) -> Bool {
        hit.record.map { self.matcher.mayRead($0.type, of: $0.creator) } ?? true
    }

    /// Nil: it has left the window since, or was merged with another mark.
    private func event(_ number: UInt64) throws(StoreError) -> NewsEvent? {
        guard let row = try self.rows.row(.event, Keys.event(self.number, number)) else {
            return nil
        }
        return try self.event(decoding: row)
    }

    private func event(decoding row: Bytes) throws(StoreError) -> NewsEvent {
        let event = try StoredRows.event(decoding: row, owner: self.database.owner)
        guard self.bugs.contains(.eventOfNow),
            case .record(let reason, let record, let omitted) = event,
            let zone = try StoredRows.zone(record.zone.name, in: self.number, over: self.rows),
            let now = try StoredRows.record(
                record.name, of: zone.number, in: record.zone, over: self.rows
            ).row?.live
        else { return event }
        // Planted: the record as it is now, not as the change left it.
        return .record(reason, now, omitted: omitted)
    }

    private mutating func tell(_ event: NewsEvent, _ hit: NewsPage.Hit) {
        self.news.position = hit.position
        if self.bugs.contains(.cursorMovedBeforePosted) { self.news.position.subscription = "" }
        self.news.hit = News.Hit(
            subscription: self.page.candidates[hit.candidate].row.subscription, isShared: false,
            event: event)
        self.news.hasMore = true
    }

    // MARK: What is not

    /// Matches events from the end of a stretch on.
    ///
    /// - Returns: whether the look is over.
    private mutating func match(in stretch: Int) throws(StoreError) -> Bool {
        let from = self.news.position
        let first = from.number + (from.subscription.isEmpty ? 1 : 0)
        let events = try self.rows.rows(
            .event, from: Keys.event(self.number, first),
            to: Keys.event(self.number, self.end), limit: News.eventCountMax,
            sizeMax: News.sizeMax)
        // An event holds its records' fields, so 256 of them may be megabytes.
        let isAll =
            events.count < News.eventCountMax
            && events.reduce(0) { $0 + $1.row.count } < News.sizeMax
        for (place, (key, row)) in events.enumerated() {
            if place > 0, self.meter.isSpent {
                self.news.hasMore = true
                return true
            }
            let number = try Keys.number(key, at: 4)
            if try self.ask(number, row, in: stretch) { return true }
            self.news.position = NewsPosition(number: number)
            if self.page.extend(stretch, through: self.news.position) { return false }
        }
        if isAll {
            // Everything was looked at, the numbers without an event too.
            self.news.position = NewsPosition(number: self.end - 1)
            if self.page.extend(stretch, through: self.news.position) { return false }
        }
        self.news.hasMore = self.news.position.number + 1 < self.end
        return true
    }

    /// Asks the subscriptions about one event, up to the first that the follower is told of.
    ///
    /// - Returns: whether the look is over.
    private mutating func ask(
        _ number: UInt64, _ row: Bytes, in stretch: Int
    ) throws(StoreError) -> Bool {
        let name = RecentEvents.Name(database: self.number, number: number)
        let known = self.recent.take(name)
        var asked: NewsMatcher.Asked
        if let known {
            asked = known
        } else {
            asked = NewsMatcher.Asked(try self.event(decoding: row))
        }
        defer { self.recent.put(asked, name, size: row.count) }
        let within = number == self.news.position.number ? self.news.position.subscription : ""
        for index in self.page.candidates(for: asked.event, after: within) {
            if self.isSpent {
                _ = self.page.extend(stretch, through: self.news.position)
                self.news.hasMore = true
                return true
            }
            self.hasGotOn = true
            let candidate = self.page.candidates[index]
            self.news.position = NewsPosition(number: number, subscription: candidate.place)
            guard self.fires(index, candidate, for: &asked, number) else { continue }
            let hit = NewsPage.Hit(asked.event, at: self.news.position, of: index)
            self.page.add(hit, to: stretch)
            guard self.mayTell(hit) else { continue }
            _ = self.page.extend(stretch, through: hit.position)
            self.tell(asked.event, hit)
            return true
        }
        return false
    }

    /// So many hits that the follower may not be told of are work for another look.
    private var isSpent: Bool {
        self.hasGotOn
            && (self.meter.isSpent || self.page.hitCount > 2 * NewsPage.hitCountMax)
    }

    private mutating func fires(
        _ index: Int, _ candidate: NewsPage.Candidate, for asked: inout NewsMatcher.Asked,
        _ number: UInt64
    ) -> Bool {
        guard candidate.row.since <= number || self.bugs.contains(.sinceIgnored) else {
            self.meter.count(ReadWork(comparisonCount: 1))
            return false
        }
        var compiled = candidate.compiled
        let verdict = self.matcher.match(
            candidate.row.subscription, on: &asked, &compiled, self.meter)
        self.page.keep(compiled, of: index)
        return verdict.0 == .fires
    }
}
