import Foundation
import StratusModel
import StratusRows
import Testing

@testable import StratusQuery
@testable import StratusRecords

/// Random changes of three zones, followers that are slow, quick, or told twice at once, and a live
/// stream, against a model that knows nothing of marks. `STRATUS_SEEDS` sets the number of seeds.
@Suite struct MarkPropertyTests {
    static let seeds: Range<UInt64> =
        0..<(UInt64(ProcessInfo.processInfo.environment["STRATUS_SEEDS"] ?? "") ?? 20)

    @Test(arguments: Self.seeds)
    func `no live event and no change of a zone is lost, and a zone is told in its turn`(
        seed: UInt64
    ) throws {
        do {
            var run = try MarkRun(seed: seed, PlantedBugs())
            for _ in 0..<2_000 { try run.step() }
            try run.finish()
            #expect(run.zoneCount > 50 && run.recordCount > 50, "seed \(seed): hardly anything")
        } catch {
            Issue.record("seed \(seed): \(error)")
        }
    }

    #if STRATUS_PLANTED
        @Test(arguments: [PlantedBug.markMoves, .windowCountsNumbers, .renewedMarkSettled])
        func `a planted bug of marks is found`(_ bug: PlantedBug) {
            let found = (0..<20).contains { seed in
                do {
                    var run = try MarkRun(seed: UInt64(seed), PlantedBugs([bug]))
                    for _ in 0..<2_000 { try run.step() }
                    try run.finish()
                    return false
                } catch {
                    return true
                }
            }
            #expect(found, "\(bug) was not found within 20 seeds")
        }
    #endif
}

struct MarkRun {
    /// A small window, so that it is full all the time.
    private static let window: UInt64 = 24
    private static let zones = ["Shelves", "Other", "Third"]
    /// Subscriptions that are there from the beginning and never change.
    private static let stable = ["d0", "q0", "z0"]

    private struct Pair: Hashable {
        var subscription: String
        var zone: String
    }

    private struct Follower {
        var token: Bytes
        var kind: NewsFollower
        var begun: UInt64
        /// Changes of records that are due, by subscription: their tags, in order.
        var due: [String: [UInt64]] = [:]
        /// The tag that a zone was told with last.
        var told: [Pair: UInt64] = [:]
        /// How many other notifications may still be taken before a zone is told.
        var patience: [Pair: Int] = [:]
        /// Looks that wait to be settled.
        var held: [News] = []
        /// A live stream: it settles nothing, and goes on from here.
        var isStream = false
        var place: NewsPosition?
    }

    private var own: SubscriptionBench
    private var random: SeededGenerator
    private let bugs: PlantedBugs
    private let number: DatabaseNumber
    private var followers: [Follower] = []
    private var subscriptions: [String: (kind: Subscription, since: UInt64)] = [:]
    /// Counts everything that happens; the tags are numbers of it.
    private var clock: UInt64 = 1
    private var newest: [String: UInt64] = [:]
    private var changes: [String: Set<UInt64>] = [:]
    /// The tags of the events that the window must hold.
    private var live: [UInt64] = []
    private var followerCount = 0
    private(set) var zoneCount = 0
    private(set) var recordCount = 0

    init(seed: UInt64, _ bugs: PlantedBugs) throws {
        self.random = SeededGenerator(seed: seed)
        self.bugs = bugs
        self.own = try SubscriptionBench()
        try self.own.bench.zones(.create, "Third")
        self.own.bench.state = DataState(bounds: RecordState.Bounds(), bugs: bugs)
        try self.own.follow(token: Bytes(repeating: 99, count: 16))
        self.number = try #require(
            try StoredRows.database(Bench.privateDatabase, over: self.own.bench.rows.view)
        ).number
        try self.own.move(.device, Bytes(repeating: 99, count: 16), .leave)
        try self.subscribe("q0")
        try self.subscribe("d0")
        try self.subscribe("z0")
        for _ in 0..<2 { try self.follow() }
        try self.follow(isStream: true)
    }

    private mutating func draw(_ count: Int) -> Int {
        Int.random(in: 0..<count, using: &self.random)
    }

    mutating func step() throws {
        self.clock += 1
        // A fresh cache: the changes below are written past the state's own.
        self.own.bench.state.forget()
        switch self.draw(40) {
        case 0: try self.subscribe(["q1", "z1", "d1"][self.draw(3)])
        case 1: try self.unsubscribe(["q1", "z1", "d1"][self.draw(3)])
        case 2: if self.followers.count < 4 { try self.follow() }
        case 3: try self.leave()
        case 4: for _ in 0..<self.draw(40) { try self.change(Self.zones[0]) }
        case 5...18: try self.change(Self.zones[self.draw(8) / 3])
        default:
            let index = self.draw(self.followers.count)
            // The first is slow.
            if index > 0 || self.draw(3) == 0 { try self.go(index) }
        }
    }

    /// Everybody takes all that there is.
    mutating func finish() throws {
        self.own.bench.state.forget()
        for index in self.followers.indices {
            while let news = self.followers[index].held.popLast() { try self.settle(news, index) }
            for _ in 0..<10_000 {
                guard let news = try self.look(index) else { break }
                try self.settle(news, index)
            }
            let follower = self.followers[index]
            for (id, due) in follower.due.sorted(by: { $0.key < $1.key }) {
                let lost = due.filter(self.live.contains)
                guard lost.isEmpty else { throw BenchError("\(id) was not told of \(lost)") }
            }
            for zone in Self.zones {
                guard let newest = self.newest[zone] else { continue }
                for pair in self.pairs(of: zone) where self.isOwed(pair, newest, follower) {
                    throw BenchError("\(pair) was not told through \(newest)")
                }
            }
        }
    }

    // MARK: Who watches

    private mutating func subscribe(_ id: String) throws {
        let subscription: Subscription =
            switch id.first {
            case "q": SubscriptionBench.query(id)
            case "z": SubscriptionBench.zone(id, Self.zones[0])
            default: SubscriptionBench.database(id)
            }
        guard self.subscriptions[id] == nil else { return }
        guard try self.own.modify(.create(subscription)) == [.saved] else {
            throw BenchError("\(id) was not saved")
        }
        self.subscriptions[id] = (subscription, self.clock)
    }

    private mutating func unsubscribe(_ id: String) throws {
        guard self.subscriptions.removeValue(forKey: id) != nil else { return }
        try self.own.modify(.delete(id))
        for index in self.followers.indices {
            self.followers[index].due[id] = nil
            self.followers[index].told = self.followers[index].told.filter {
                $0.key.subscription != id
            }
        }
    }

    private mutating func follow(isStream: Bool = false) throws {
        self.followerCount += 1
        let kind: NewsFollower = self.followerCount % 2 == 0 ? .device : .poll
        var follower = Follower(
            token: Bytes(repeating: UInt8(self.followerCount % 99), count: 16),
            kind: isStream ? .poll : kind, begun: self.clock)
        follower.isStream = isStream
        try self.own.follow(token: follower.token, as: follower.kind)
        self.followers.append(follower)
    }

    private mutating func leave() throws {
        guard self.followers.count > 3, let last = self.followers.last else { return }
        self.followers.removeLast()
        try self.own.move(.device, last.token, .leave)
        // A page's follower does not leave: it is one more that never moves.
    }

    private func pairs(of zone: String) -> [Pair] {
        self.subscriptions.filter {
            $0.value.kind.kind == .database || $0.value.kind.zone == zone
        }.keys.sorted().map { Pair(subscription: $0, zone: zone) }
    }

    private func isOwed(_ pair: Pair, _ tag: UInt64, _ follower: Follower) -> Bool {
        let since = self.subscriptions[pair.subscription]?.since ?? .max
        return tag > max(since, follower.begun) && tag > follower.told[pair] ?? 0
    }

    // MARK: Changes

    private mutating func change(_ zone: String) throws {
        self.clock += 1
        let tag = ChangeTag(self.clock)
        let rows = self.own.bench.rows
        var cache = RowCache()
        guard
            var news = try NewsEdit(
                self.number, cache: &cache, bugs: self.bugs, eventCountMax: Self.window,
                over: rows.view)
        else { throw BenchError("nobody watches") }
        var changed: [(before: Record?, after: Record?, tag: ChangeTag)] = []
        // A zone can change without a record that anybody wants.
        let queries = self.subscriptions.values.filter { $0.kind.kind == .query }
        if self.draw(6) > 0 {
            let stamp = ChangeStamp(
                milliseconds: 1, userRecordName: Bench.owner, deviceID: "")
            let record = Record(
                name: "r\(self.clock)", type: "Book",
                zone: ZoneID(name: zone, owner: Bench.owner), tag: tag, created: stamp,
                modified: stamp, fields: [])
            changed = [(nil, record, tag)]
            self.live.append(self.clock)
            self.live = self.live.suffix(Int(Self.window))
        }
        try news.write(changed, into: rows)
        try news.mark(zone, self.clock, into: rows)
        try news.flush(into: rows, cache: &cache)
        self.own.bench.state.forget()
        let before = self.newest[zone] ?? 0
        self.newest[zone] = self.clock
        self.changes[zone, default: []].insert(self.clock)
        for index in self.followers.indices {
            if !changed.isEmpty {
                for query in queries {
                    self.followers[index].due[query.kind.id, default: []].append(self.clock)
                }
            }
            for pair in self.pairs(of: zone)
            where !self.isOwed(pair, before, self.followers[index]) {
                try self.expect(pair, at: index)
            }
        }
    }

    /// The zone is told after as many notifications as stand before it now.
    private mutating func expect(_ pair: Pair, at index: Int) throws {
        let follower = self.followers[index]
        var place = follower.place
        for count in 0..<10_000 {
            guard let news = try self.peek(index, after: place), let hit = news.hit else { break }
            place = news.position
            guard hit.subscription.id == pair.subscription, case .zone(pair.zone, _) = hit.event
            else { continue }
            // Nobody but itself knows where a stream is, so its marks may be merged.
            if Self.stable.contains(pair.subscription), !follower.isStream {
                self.followers[index].patience[pair] = count
            }
            return
        }
        throw BenchError("\(pair) does not stand before \(follower.token[0])")
    }

    // MARK: Telling

    private func peek(_ index: Int, after place: NewsPosition?) throws -> News? {
        let follower = self.followers[index]
        var place = place
        for _ in 0..<100 {
            let news = try self.own.news(token: follower.token, as: follower.kind, after: place)
            if news.hit != nil { return news }
            if !news.hasMore { return nil }
            place = news.position
        }
        throw BenchError("news without end")
    }

    private mutating func look(_ index: Int) throws -> News? {
        guard let news = try self.peek(index, after: self.followers[index].place),
            let hit = news.hit
        else { return nil }
        let follower = self.followers[index]
        switch hit.event {
        case .zone(let zone, let tag):
            // Whoever begins while somebody else is told of a zone may hear of that change too.
            guard self.changes[zone]?.contains(tag.raw) == true else {
                throw BenchError("\(hit.subscription.id) is told of \(zone) at \(tag.raw)")
            }
        case .record(_, let record, _):
            let due = follower.due[hit.subscription.id]?.first(where: self.live.contains)
            guard due == nil || due == record.tag.raw else {
                throw BenchError(
                    "\(hit.subscription.id) is told of \(record.tag.raw), due \(due ?? 0)")
            }
        }
        return news
    }

    /// A look, or the settlement of an earlier one. Both may be late, and settlements are lost.
    private mutating func go(_ index: Int) throws {
        if !self.followers[index].held.isEmpty, self.draw(2) == 0 {
            let place = self.draw(self.followers[index].held.count)
            let news = self.followers[index].held.remove(at: place)
            if self.draw(6) > 0 { try self.settle(news, index) }
            return
        }
        // A stream writes one event after the other; a page may be open twice.
        let room = self.followers[index].isStream ? 1 : 2
        guard self.followers[index].held.count < room, let news = try self.look(index) else {
            return
        }
        if self.draw(3) == 0 { return self.followers[index].held.append(news) }
        try self.settle(news, index)
    }

    private mutating func settle(_ news: News, _ index: Int) throws {
        let follower = self.followers[index]
        guard let hit = news.hit, let from = news.follower else { return }
        if follower.isStream {
            if let told = hit.told {
                try self.own.move(
                    .poll, follower.token, .close(mark: news.position.number, told: told))
            }
            self.followers[index].place = news.position
        } else {
            let stands = try self.own.news(token: follower.token, as: follower.kind).follower
            try self.own.settle(news, token: follower.token, as: follower.kind)
            // Somebody else has told it meanwhile.
            guard stands == from else { return }
        }
        try self.tell(hit, index)
        guard follower.isStream, self.draw(8) == 0 else { return }
        // Its client connects again, and shows what it has taken.
        try self.own.move(
            .poll, follower.token, .advance(from: from, to: news.position, spent: nil))
    }

    private mutating func tell(_ hit: News.Hit, _ index: Int) throws {
        let id = hit.subscription.id
        switch hit.event {
        case .record(_, let record, _):
            self.recordCount += 1
            let tag = record.tag.raw
            self.followers[index].due[id]?.removeAll { $0 <= tag }
            try self.wait(index, besides: nil)
        case .zone(let zone, let tag):
            self.zoneCount += 1
            let pair = Pair(subscription: id, zone: zone)
            try self.wait(index, besides: pair)
            self.followers[index].patience[pair] = nil
            guard self.subscriptions[id] != nil else { return }
            self.followers[index].told[pair] = max(
                tag.raw, self.followers[index].told[pair] ?? 0)
            if let newest = self.newest[zone], self.isOwed(pair, newest, self.followers[index]) {
                try self.expect(pair, at: index)
            }
        }
    }

    private mutating func wait(_ index: Int, besides told: Pair?) throws {
        for (pair, left) in self.followers[index].patience where pair != told {
            guard left > 0 else { throw BenchError("\(pair) is told too late") }
            self.followers[index].patience[pair] = left - 1
        }
    }
}
