import StratusModel
import StratusQuery

/// What looks for news have found so far, for each owner of subscriptions that was asked about.
///
/// The followers of one owner have the same subscriptions and the same events. So an event is
/// matched once for all of them. Who changes an owner's subscriptions tells the board, and another
/// version of the schema begins a new page.
struct NewsBoard: Sendable {
    /// What a partition keeps. The pages that were not used for the longest time go first.
    static let sizeMax = 8 << 20

    struct Owner: Hashable, Sendable {
        var database: DatabaseNumber
        var subscriber: String
    }

    private struct Kept: Sendable {
        var page: NewsPage
        var size: Int
        var use: UInt64
    }

    private let sizeMax: Int
    private var pages: [Owner: Kept] = [:]
    private var useCount: UInt64 = 0
    private(set) var size = 0

    init(sizeMax: Int = Self.sizeMax) { self.sizeMax = sizeMax }

    var count: Int { self.pages.count }

    /// Takes a page out, so that it is not copied while it is written on.
    mutating func take(_ owner: Owner, schemaVersion: UInt64) -> NewsPage? {
        guard let kept = self.pages.removeValue(forKey: owner) else { return nil }
        self.size -= kept.size
        return kept.page.schemaVersion == schemaVersion ? kept.page : nil
    }

    mutating func put(_ page: NewsPage, of owner: Owner) {
        let size = page.size
        guard size <= self.sizeMax else { return }
        if self.size + size > self.sizeMax { self.makeRoom(for: size) }
        self.useCount += 1
        self.pages[owner] = Kept(page: page, size: size, use: self.useCount)
        self.size += size
    }

    /// A quarter more than is needed, so that it is seldom done.
    private mutating func makeRoom(for size: Int) {
        let goal = max(0, self.sizeMax - size - self.sizeMax / 4)
        for (owner, kept) in self.pages.sorted(by: { $0.value.use < $1.value.use }) {
            if self.size <= goal { return }
            self.pages[owner] = nil
            self.size -= kept.size
        }
    }

    mutating func forget(_ owner: Owner) {
        if let kept = self.pages.removeValue(forKey: owner) { self.size -= kept.size }
    }

    /// Its events begin anew.
    mutating func forget(_ database: DatabaseNumber) {
        for (owner, kept) in self.pages where owner.database == database {
            self.pages[owner] = nil
            self.size -= kept.size
        }
    }
}

/// One owner's subscriptions in one database, and where they fire.
struct NewsPage: Sendable {
    static let hitCountMax = 4_096
    /// Stretches of events that were matched, with others between them.
    static let stretchCountMax = 16

    struct Candidate: Sendable {
        var row: SubscriptionRow
        /// Its predicate, since an event reached it.
        var compiled: NewsMatcher.Compiled?
        /// The order within an event.
        var place: String { self.row.subscription.id }
    }

    /// A subscription that fires for an event. Whoever is told must be allowed to read the record.
    struct Hit: Sendable {
        var position: NewsPosition
        var candidate: Int
        /// Of the record; nil: it is a zone's change.
        var record: (type: String, creator: String)?

        init(_ event: NewsEvent, at position: NewsPosition, of candidate: Int) {
            self.position = position
            self.candidate = candidate
            guard case .record(_, let record, _) = event else { return }
            self.record = (record.type, record.created.userRecordName)
        }
    }

    /// What lies behind `start`, through `end`, was matched, and these are all that fire there.
    struct Stretch: Sendable {
        var start: NewsPosition
        var end: NewsPosition
        var hits: [Hit] = []

        /// Those behind a position; by halving.
        func hits(after position: NewsPosition) -> ArraySlice<Hit> {
            var (low, high) = (0, self.hits.count)
            while low < high {
                let middle = (low + high) / 2
                if self.hits[middle].position <= position {
                    low = middle + 1
                } else {
                    high = middle
                }
            }
            return self.hits[low...]
        }
    }

    let schemaVersion: UInt64
    private(set) var candidates: [Candidate]
    /// Those that ask about records of a type, and those that watch zones, in their order.
    private var byType: [String: [Int]] = [:]
    private var watchers: [Int] = []
    /// In their order; none touches another.
    private(set) var stretches: [Stretch] = []
    private(set) var hitCount = 0
    private let rowSize: Int

    init(_ rows: [SubscriptionRow], schemaVersion: UInt64) {
        self.schemaVersion = schemaVersion
        self.candidates = rows.map { Candidate(row: $0) }.sorted { $0.place.precedes($1.place) }
        self.rowSize = rows.reduce(0) { $0 + $1.encoded().count }
        for (index, candidate) in self.candidates.enumerated() {
            if candidate.row.subscription.watchesZones {
                self.watchers.append(index)
            } else if let type = candidate.row.subscription.predicate?.recordType {
                self.byType[type, default: []].append(index)
            }
        }
    }

    /// Roughly what it takes: subscriptions, their compiled filters, and hits.
    var size: Int {
        1_024 + 4 * self.rowSize + 256 * self.candidates.count + 96 * self.hitCount
    }

    /// The subscriptions that may fire for an event, behind a place in their order.
    func candidates(for event: NewsEvent, after place: String) -> ArraySlice<Int> {
        let all: [Int]
        switch event {
        case .zone: all = self.watchers
        case .record(_, let record, _): all = self.byType[record.type] ?? []
        }
        let first = all.firstIndex { place.precedes(self.candidates[$0].place) }
        return all[(first ?? all.endIndex)...]
    }

    mutating func keep(_ compiled: NewsMatcher.Compiled?, of candidate: Int) {
        self.candidates[candidate].compiled = compiled
    }

    // MARK: Stretches

    /// The stretch that goes on at a position; made where there is none.
    mutating func stretch(at position: NewsPosition) -> Int {
        let next = self.stretches.firstIndex { position < $0.start } ?? self.stretches.endIndex
        if next > 0, position <= self.stretches[next - 1].end { return next - 1 }
        self.stretches.insert(Stretch(start: position, end: position), at: next)
        guard self.stretches.count > Self.stretchCountMax else { return next }
        // The oldest events have the fewest followers behind them.
        let gone = next == 0 ? 1 : 0
        self.hitCount -= self.stretches.remove(at: gone).hits.count
        return gone < next ? next - 1 : next
    }

    mutating func add(_ hit: Hit, to stretch: Int) {
        self.stretches[stretch].hits.append(hit)
        self.stretches[stretch].end = hit.position
        self.hitCount += 1
    }

    /// Everything through here was asked, and nothing else fires.
    ///
    /// - Returns: whether the stretch has come to the next one, and is one with it now.
    mutating func extend(_ stretch: Int, through position: NewsPosition) -> Bool {
        self.stretches[stretch].end = max(self.stretches[stretch].end, position)
        let next = stretch + 1
        guard next < self.stretches.count, self.stretches[next].start <= position else {
            return false
        }
        let other = self.stretches.remove(at: next)
        self.stretches[stretch].hits += other.hits.filter { position < $0.position }
        self.hitCount -= other.hits.count { $0.position <= position }
        self.stretches[stretch].end = max(position, other.end)
        return true
    }

    /// Drops the oldest hits where there are too many. Whoever stands before them asks anew.
    mutating func trim() {
        while self.hitCount > Self.hitCountMax {
            if self.stretches.count > 1 {
                self.hitCount -= self.stretches.removeFirst().hits.count
                continue
            }
            let excess = self.hitCount - Self.hitCountMax / 2
            self.stretches[0].start = self.stretches[0].hits[excess - 1].position
            self.stretches[0].hits.removeFirst(excess)
            self.hitCount -= excess
        }
    }
}

/// The last events that were matched, with what was made of their fields for the filters of all
/// owners.
struct RecentEvents: Sendable {
    static let countMax = 64
    static let sizeMax = 1 << 20
    /// Words and folded texts beside the record itself.
    private static let sizePerByte = 3

    struct Name: Hashable, Sendable {
        var database: DatabaseNumber
        var number: UInt64
    }

    private var events: [Name: (event: NewsMatcher.Asked, size: Int)] = [:]
    private var order: [Name] = []
    private(set) var size = 0

    var count: Int { self.events.count }

    /// Takes an event out, so that what it keeps is not copied.
    mutating func take(_ name: Name) -> NewsMatcher.Asked? {
        guard let known = self.events.removeValue(forKey: name) else { return nil }
        self.order.removeAll { $0 == name }
        self.size -= known.size
        return known.event
    }

    /// - Parameter size: of its row.
    mutating func put(_ event: NewsMatcher.Asked, _ name: Name, size: Int) {
        let size = size * Self.sizePerByte
        guard case .record = event.event, size <= Self.sizeMax else { return }
        while self.order.count >= Self.countMax || self.size + size > Self.sizeMax {
            let oldest = self.order.removeFirst()
            self.size -= self.events.removeValue(forKey: oldest)?.size ?? 0
        }
        self.order.append(name)
        self.events[name] = (event, size)
        self.size += size
    }

    mutating func forget(_ database: DatabaseNumber) {
        for name in self.order where name.database == database {
            self.size -= self.events.removeValue(forKey: name)?.size ?? 0
        }
        self.order.removeAll { $0.database == database }
    }
}
