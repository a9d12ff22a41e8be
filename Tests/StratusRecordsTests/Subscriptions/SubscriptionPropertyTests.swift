import Foundation
import StratusModel
import StratusRows
import Testing

@testable import StratusQuery
@testable import StratusRecords

/// Random subscriptions, changes and followers against a model that asks every subscription of
/// every change: what is taken is exactly what fired, in order and once. `STRATUS_SEEDS` sets the
/// number of seeds.
@Suite struct SubscriptionPropertyTests {
    static let seeds: Range<UInt64> =
        0..<(UInt64(ProcessInfo.processInfo.environment["STRATUS_SEEDS"] ?? "") ?? 20)

    @Test(arguments: Self.seeds)
    func `P-16: nothing is missed, nothing invented, and everything told once`(seed: UInt64) throws
    {
        var run = try NewsRun(seed: seed, nil)
        do { for _ in 0..<400 { try run.step() } } catch {
            Issue.record("seed \(seed): \(error)")
        }
        #expect(run.takenCount > 20, "seed \(seed): hardly anything fired")
        #expect(try run.own.bench.isRepeatable(), "seed \(seed): another replica has other rows")
    }

    /// A model that does not notice these is too tame.
    @Test(arguments: NewsRun.Fault.allCases)
    func `a planted fault is found`(_ fault: NewsRun.Fault) throws {
        let found = (0..<40).contains { seed in
            do {
                var run = try NewsRun(seed: UInt64(seed), fault)
                for _ in 0..<400 { try run.step() }
                return false
            } catch {
                return true
            }
        }
        #expect(found, "\(fault) was not found within 40 seeds")
    }
}

struct NewsRun {
    /// What the run does to the partition, against the rules.
    enum Fault: String, CaseIterable {
        case eventLost, sinceIgnored, onceKept, settledTwice, neverSettled, markKept
        case interestForgotten
    }

    private struct Pending: Equatable {
        var id: String
        var text: String
        /// The zone, where it is a zone's change.
        var mark: String?
        var order = 0
    }

    private(set) var own: SubscriptionBench
    private var random: SeededGenerator
    private let fault: Fault?
    private var records: [String: [String: String]] = ["Shelves": [:], "Other": [:]]
    private var subscriptions: [String: Subscription] = [:]
    private let tokens = [Bytes(repeating: 1, count: 16), Bytes(repeating: 2, count: 16)]
    private var pending: [[Pending]] = [[], []]
    private(set) var takenCount = 0
    /// Numbers the events, and the marks of zones among them.
    private var order = 0
    private var marks: [String: [Int]] = [:]
    /// Where each token stands, and how far any has come: marks through there are not renewed.
    private var places = [0, 0]
    private var front = 0

    init(seed: UInt64, _ fault: Fault?) throws {
        self.random = SeededGenerator(seed: seed)
        self.fault = fault
        self.own = try SubscriptionBench(keepsCommands: true)
        for token in self.tokens { try self.own.follow(token: token) }
    }

    private mutating func draw(_ count: Int) -> Int {
        Int.random(in: 0..<count, using: &self.random)
    }

    mutating func step() throws {
        switch self.draw(12) {
        case 0...1: try self.subscribe()
        case 2: try self.unsubscribe()
        case 3...6: try self.change()
        case 7: self.own.bench.state.forget()
        default: try self.take(self.draw(2))
        }
    }

    // MARK: Subscriptions

    private mutating func subscribe() throws {
        let id = "s\(self.draw(6))"
        let zone = ["Shelves", "Other"][self.draw(2)]
        let subscription: Subscription
        switch self.draw(6) {
        case 0: subscription = SubscriptionBench.zone(id, zone)
        case 1: subscription = SubscriptionBench.database(id)
        default:
            subscription = SubscriptionBench.query(
                id, self.draw(2) == 0 ? [SubscriptionBench.titled("Sea")] : [],
                on: Subscription.Reasons(rawValue: UInt8(1 + self.draw(7))),
                zone: self.draw(2) == 0 ? zone : nil, once: self.draw(4) == 0)
        }
        guard try self.own.modify(.create(subscription)) == [.saved] else {
            throw BenchError("\(id) was not saved")
        }
        if self.subscriptions[id] != subscription {
            self.subscriptions[id] = subscription
            self.drop(id)
            if subscription.watchesZones { self.front = self.order }
        }
        if self.fault == .sinceIgnored { try self.forgetSince(subscription) }
        if self.fault == .interestForgotten, self.draw(4) == 0 {
            let rows = self.own.bench.rows
            for key in rows.keys(.subscription) where key[0] == 2 {
                try self.own.bench.rows.remove(.subscription, key)
            }
        }
    }

    private mutating func forgetSince(_ subscription: Subscription) throws {
        let database = try self.number()
        let key = Keys.subscription(
            database, isShared: false, of: Bench.owner, subscription.id)
        try self.own.bench.rows.put(
            .subscription, key, SubscriptionRow(since: 0, subscription).encoded())
    }

    private func number() throws -> DatabaseNumber {
        guard
            let row = try StoredRows.database(Bench.privateDatabase, over: self.own.bench.rows.view)
        else { throw BenchError("no database") }
        return row.number
    }

    private mutating func unsubscribe() throws {
        guard let id = self.subscriptions.keys.sorted().first else { return }
        guard try self.own.modify(.delete(id)) == [.deleted] else {
            throw BenchError("\(id) was not deleted")
        }
        self.subscriptions[id] = nil
        self.drop(id)
    }

    private mutating func drop(_ id: String) {
        for index in self.pending.indices { self.pending[index].removeAll { $0.id == id } }
    }

    // MARK: Changes

    private mutating func change() throws {
        let zone = ["Shelves", "Other"][self.draw(2)]
        var operations: [RecordOperation] = []
        var fired: [Pending] = []
        var hasChanged = false
        let first = self.draw(5)
        for offset in 0...self.draw(3) {
            let name = "r\((first + offset) % 5)"
            let before = self.records[zone]?[name]
            if self.draw(3) == 0 {
                operations.append(.delete(name))
                guard let before else { continue }
                self.records[zone]?[name] = nil
                fired += self.fires(.deleted, zone, name, before)
            } else {
                let title = ["Sea", "Road"][self.draw(2)]
                operations.append(
                    RecordOperation(
                        .forceUpdate, recordName: name, recordType: "Book",
                        fields: [text("title", title)]))
                self.records[zone]?[name] = title
                fired += self.fires(before == nil ? .created : .updated, zone, name, title)
            }
            hasChanged = true
        }
        try self.own.bench.modify(in: zone, operations)
        guard hasChanged else { return }
        for index in self.pending.indices { self.pending[index] += fired }
        self.mark(zone)
        if self.fault == .eventLost, self.draw(4) == 0 {
            let keys = self.own.bench.rows.keys(.event)
            if let last = keys.last { try self.own.bench.rows.remove(.event, last) }
        }
    }

    /// A zone's mark stays where it is, and stands for all that follows, until somebody has come to
    /// it. Of those before it only what a token has still to take stays.
    private mutating func mark(_ zone: String) {
        guard self.subscriptions.values.contains(where: \.watchesZones) else { return }
        if let newest = self.marks[zone]?.last, newest > self.front, self.fault != .markKept {
            return
        }
        self.order += 1
        let marks = (self.marks[zone] ?? []) + [self.order]
        let fired = self.subscriptions.values.filter {
            $0.kind == .database || ($0.kind == .zone && $0.zone == zone)
        }.map {
            Pending(id: $0.id, text: "\($0.id) zone \(zone)", mark: zone, order: self.order)
        }.sorted { $0.id < $1.id }
        var kept: Set = [self.order]
        for place in self.places {
            kept.formUnion(marks.filter { $0 == place })
            kept.formUnion(marks.first { $0 > place }.map { [$0] } ?? [])
        }
        self.marks[zone] = marks.filter(kept.contains)
        for index in self.pending.indices {
            self.pending[index] += fired
            self.pending[index].removeAll { $0.mark == zone && !kept.contains($0.order) }
        }
    }

    private mutating func fires(
        _ reason: Subscription.Reasons, _ zone: String, _ name: String, _ title: String
    ) -> [Pending] {
        self.order += 1
        let order = self.order
        return self.subscriptions.values.filter { subscription in
            subscription.kind == .query && subscription.reasons.contains(reason)
                && (subscription.zone == nil || subscription.zone == zone)
                && (subscription.predicate?.filters.isEmpty == true || title == "Sea")
        }.map(\.id).sorted().map {
            Pending(id: $0, text: "\($0) \(reason.rawValue) \(zone)/\(name)", order: order)
        }
    }

    // MARK: Taking

    private mutating func take(_ index: Int) throws {
        let token = self.tokens[index]
        var news = try self.own.news(token: token)
        var rounds = 0
        while news.hit == nil, news.hasMore, rounds < 100 {
            news = try self.own.news(token: token, after: news.position)
            rounds += 1
        }
        let expected = self.pending[index].first
        guard news.hit.map(SubscriptionBench.text) == expected?.text else {
            throw BenchError(
                "told \(news.hit.map(SubscriptionBench.text) ?? "nothing"), due \(expected?.text ?? "nothing")"
            )
        }
        guard let hit = news.hit else { return }
        // Now and then a client goes away before it has it all.
        if self.draw(5) == 0 { return }
        self.takenCount += 1
        let order = self.pending[index].removeFirst().order
        self.places[index] = order
        self.front = max(self.front, order)
        if self.fault == .neverSettled { return }
        if self.fault == .onceKept, hit.subscription.firesOnce {
            news.hit = nil
        }
        try self.own.settle(news, token: token)
        if self.fault == .settledTwice {
            try self.own.settle(try self.own.news(token: token), token: token)
        }
        if hit.subscription.firesOnce {
            self.subscriptions[hit.subscription.id] = nil
            self.drop(hit.subscription.id)
        }
    }
}
