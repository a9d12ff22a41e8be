import Foundation
import StratusCoding
import StratusDoubles
import StratusModel
import StratusRows
import Testing

@testable import StratusQuery
@testable import StratusRecords

/// A page whose polls go round the nodes: each asks before the last one's answer is settled.
@Suite struct HandOutTests {
    /// Polls one after the other, each with a number of its own.
    private struct Round {
        var own: SubscriptionBench
        var random: SeededGenerator
        var now = MonotonicTime(nanoseconds: 1_000_000_000)
        var polls: UInt64 = 0
        var told: [String] = []
        /// Settlements under way, and when they arrive.
        var late: [(at: MonotonicTime, news: News)] = []

        init(seed: UInt64, _ bugs: PlantedBugs) throws {
            self.random = SeededGenerator(seed: seed)
            self.own = try SubscriptionBench()
            self.own.bench.state = DataState(bounds: RecordState.Bounds(), bugs: bugs)
            try self.own.follow()
            try self.own.modify(.create(SubscriptionBench.query("q")))
        }

        private mutating func arrive() throws {
            for (at, news) in self.late where at <= self.now { try self.own.settle(news) }
            self.late.removeAll { $0.at <= self.now }
        }

        private mutating func look(waits: Bool) throws -> News {
            let now = self.now
            let ask = NewsAsk(self.own.database) {
                $0.token = SubscriptionBench.token
                $0.poll = self.polls
                $0.waits = waits
            }
            let query = ask.enveloped(as: self.own.principal)
            let answer = try self.own.bench.state.answer(
                query, within: ReadTime(until: now + .seconds(1), clock: { now }),
                over: self.own.bench.rows.view)
            return try NewsAsk.answer(decoding: answer.body)
        }

        /// One poll, as the gateway asks. `isCut`: its client goes away before it has the answer.
        mutating func poll(isCut: Bool, settlesWithin delay: Int64) throws {
            self.polls += 1
            for count in 0...10 {
                try self.arrive()
                let news = try self.look(waits: count < 10)
                if news.isPending {
                    self.now = self.now + .milliseconds(25)
                    continue
                }
                guard let hit = news.hit, !isCut else { return }
                self.told.append(SubscriptionBench.text(hit))
                let wait = Duration.milliseconds(Int64.random(in: 0...delay, using: &self.random))
                self.late.append((self.now + wait, news))
                self.now = self.now + .milliseconds(1)
                return
            }
            throw BenchError("a poll waits for ever")
        }

        mutating func run(cuts: Bool, delay: Int64) throws -> [String] {
            var saved = 0
            for _ in 0..<200 {
                if Bool.random(using: &self.random) {
                    try self.own.bench.modify(.create("r\(saved)"))
                    saved += 1
                }
                let isCut = cuts && Int.random(in: 0..<5, using: &self.random) == 0
                try self.poll(isCut: isCut, settlesWithin: delay)
                self.now = self.now + .milliseconds(Int64.random(in: 0...40, using: &self.random))
            }
            for _ in 0..<400 {
                try self.poll(isCut: false, settlesWithin: delay)
                self.now = self.now + .seconds(1)
            }
            return (0..<saved).map { "q 1 Shelves/r\($0)" }
        }
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `polls in turn are told everything once, though settlements are late`(seed: UInt64) throws
    {
        var round = try Round(seed: seed, PlantedBugs())
        let due = try round.run(cuts: false, delay: 200)
        #expect(round.told == due && due.count > 60, "seed \(seed)")
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `what did not arrive is told again, after a quarter of a second`(seed: UInt64) throws {
        var round = try Round(seed: seed, PlantedBugs())
        let due = try round.run(cuts: true, delay: 200)
        #expect(round.told == due, "seed \(seed)")
    }

    @Test func `a settlement that takes longer is told again under its identity`() throws {
        var round = try Round(seed: 1, PlantedBugs())
        let due = try round.run(cuts: false, delay: 2_000)
        #expect(round.told.count > due.count)
        #expect(Set(round.told) == Set(due))
    }

    #if STRATUS_PLANTED
        @Test func `a poll that settles what another was given is found`() throws {
            let found = try (0..<20).contains { seed in
                var round = try Round(seed: UInt64(seed), PlantedBugs([.handOutSettlesAlone]))
                let due = try round.run(cuts: true, delay: 200)
                return Set(round.told) != Set(due)
            }
            #expect(found)
        }
    #endif

    // MARK: The memory

    private static func follower(_ number: Int) -> Bytes { Bytes("f\(number)".utf8) }
    private static let place = NewsPosition(number: 4)
    private static let start = MonotonicTime(nanoseconds: 1_000_000_000)

    private static func pending(
        _ handOuts: HandOuts, _ number: Int, _ poll: UInt64, after time: Duration = .zero,
        at place: NewsPosition = Self.place
    ) -> Bool {
        handOuts.pending(
            Self.follower(number), at: place, besides: poll, now: Self.start + time) != nil
    }

    @Test func `it counts for another poll, at the same place, for five seconds`() {
        var handOuts = HandOuts()
        handOuts.give(
            Self.follower(1), from: Self.place, to: NewsPosition(number: 5), to: 7,
            at: Self.start)
        #expect(Self.pending(handOuts, 1, 8))
        #expect(!Self.pending(handOuts, 1, 7) && !Self.pending(handOuts, 2, 8))
        #expect(!Self.pending(handOuts, 1, 8, at: NewsPosition(number: 5)))
        #expect(Self.pending(handOuts, 1, 8, after: .milliseconds(4_999)))
        #expect(!Self.pending(handOuts, 1, 8, after: .seconds(5)))
    }

    @Test func `it has a bound, and the oldest are forgotten`() {
        var handOuts = HandOuts(countMax: 10)
        for number in 0..<1_000 {
            handOuts.give(
                Self.follower(number % 40), from: Self.place, to: NewsPosition(number: 5), to: 7,
                at: Self.start + .milliseconds(Int64(number)))
            #expect(handOuts.count <= 10)
        }
        #expect(Self.pending(handOuts, 39, 8, after: .seconds(1)))
        #expect(!Self.pending(handOuts, 20, 8, after: .seconds(1)))
    }
}
