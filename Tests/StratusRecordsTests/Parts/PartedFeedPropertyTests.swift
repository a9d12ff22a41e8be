import Foundation
import StratusDoubles
import StratusModel
import Testing

@testable import StratusRecords

/// Clients that follow the feed of a private database in four buckets, page by page, while zones
/// and records come and go between their pages and deletions are forgotten early. The gateway's
/// part is played here: bits, questions, and what is made of the answers (``FeedMerge``). A client
/// at the end has all that is there. `STRATUS_SEEDS` sets the number of seeds.
@Suite struct PartedFeedPropertyTests {
    static let seeds: Range<UInt64> =
        0..<(UInt64(ProcessInfo.processInfo.environment["STRATUS_SEEDS"] ?? "") ?? 12)
    static let stepCount = 600

    @Test(arguments: Self.seeds)
    func `who follows a database in parts has its zones and their records`(seed: UInt64) throws {
        var run = PartedRun(seed: seed)
        do { for _ in 0..<Self.stepCount { try run.step() } } catch {
            Issue.record("seed \(seed): \(error)")
        }
        #expect(run.endCount > 5, "seed \(seed): hardly anybody came to an end")
        #expect(run.skippedCount > 0, "seed \(seed): every page had room for all")
    }

    @Test(arguments: [
        PlantedBug.cutPageAdvances, .moreComingOfLastBucket, .expiredPartRestarted,
        .maskFromMemory, .zoneBeforeBit, .erasureStopsAtHome,
    ])
    func `a planted bug is found`(bug: PlantedBug) throws {
        let found = (0..<UInt64(40)).first { seed in
            var run = PartedRun(seed: seed, bugs: PlantedBugs([bug]))
            do { for _ in 0..<Self.stepCount { try run.step() } } catch { return true }
            return false
        }
        #expect(found != nil, "\(bug) is not found")
    }

    // MARK: Single pages

    private static func page(
        _ names: [String], at turn: UInt64, more: Bool = false, floor: UInt64 = 0
    ) -> DatabaseChangesPage {
        DatabaseChangesPage(
            changes: names.map {
                .init(
                    name: $0, since: nil,
                    zone: ZoneSummary(
                        name: $0, incarnation: ZoneIncarnation(1), lastTag: ChangeTag(1)))
            },
            position: DatabasePosition(
                turn: turn, tag: ChangeTag(1), isMidway: more, floor: floor), moreComing: more)
    }

    @Test func `a limit is shared out, and every bucket is asked for one zone at least`() {
        let merge = FeedMerge(after: nil, count: 16, limit: 10)
        #expect(merge.questions(BucketMask(of: [1, 5])).map(\.limit) == [5, 5])
        #expect(merge.questions(.all).map(\.limit) == Array(repeating: 1, count: 16))
        #expect(merge.questions(.all).allSatisfy { $0.after == nil })
    }

    @Test func `a holder of a token asks an unknown bucket from its start`() {
        let token = PartedPosition(
            count: 4,
            parts: [.init(number: 2, position: DatabasePosition(turn: 7, tag: ChangeTag(3)))])
        let merge = FeedMerge(after: token, count: 4, limit: 200)
        // The token's own buckets are asked, whatever the home has come to know.
        #expect(merge.questions(BucketMask(of: [0])).map(\.number) == [0, 2])
        #expect(
            merge.questions(BucketMask(of: [0])).map(\.after) == [
                .start, DatabasePosition(turn: 7, tag: ChangeTag(3)),
            ])
    }

    @Test func `pages that have no room come first on the next page`() {
        var merge = FeedMerge(after: nil, count: 4, limit: 2)
        for number in 0..<4 {
            merge.take(Self.page(["z\(number)"], at: UInt64(number + 5)), of: number)
        }
        let first = merge.page()
        #expect(first.changes.map(\.name) == ["z0", "z1"] && first.moreComing)
        #expect(first.position.first == 2)
        // Nobody was told of what is deleted in them by now.
        #expect(
            first.position[3]
                == DatabasePosition(turn: 0, tag: ChangeTag(0), isMidway: true, floor: 8))
        #expect(first.position[0]?.isMidway == true)
        var next = FeedMerge(after: first.position, count: 4, limit: 2)
        for number in [0, 1] { next.take(Self.page(["n\(number)"], at: 20), of: number) }
        for number in [2, 3] { next.take(Self.page(["z\(number)"], at: 21), of: number) }
        let second = next.page()
        #expect(second.changes.map(\.name) == ["z2", "z3"] && second.position.first == 0)
    }

    @Test func `a bucket without a zone leaves no trace in a position`() {
        var merge = FeedMerge(after: nil, count: 4, limit: 200)
        merge.take(
            DatabaseChangesPage(changes: [], position: .start, moreComing: false), of: 1)
        #expect(merge.page().position == PartedPosition(count: 4) && !merge.page().moreComing)
    }
}

private struct PartedRun {
    private struct Client {
        var position: PartedPosition?
        var zones: [String: [String: Record]] = [:]
        /// Zones deleted when it last knew everything, or nothing.
        var base = 0
    }

    private static let database = PrivateDatabase(
        of: Bench.owner, in: Bench.container, bucketCount: 4)

    private var bench = Bench()
    private var random: SeededGenerator
    private let bugs: PlantedBugs
    private let remembered: UInt64
    private var clients = Array(repeating: Client(), count: 3)
    private var zones: [String: [String: Record]] = [:]
    private var deletionCount = 0
    private var number = 0
    private var eraCount = 0
    /// What a gateway that never asks the home would know.
    private var remembersMask = BucketMask()
    private(set) var endCount = 0
    private(set) var skippedCount = 0

    init(seed: UInt64, bugs: PlantedBugs = PlantedBugs()) {
        self.bugs = bugs
        self.random = SeededGenerator(seed: seed)
        self.remembered = seed % 4
        var bounds = RecordState.Bounds()
        bounds.deletedZoneCountMax = self.remembered
        self.bench.state = DataState(bounds: bounds, bugs: bugs)
    }

    mutating func step() throws {
        switch Int.random(in: 0..<20, using: &self.random) {
        case 0...3: try self.makeZone()
        case 4...5: try self.deleteZone()
        case 6...9: try self.write()
        case 10:
            // A gateway that dies between bit and zone.
            try self.note(Int.random(in: 0..<4, using: &self.random))
        case 11:
            // Somebody who has lost what it knew.
            if Int.random(in: 0..<4, using: &self.random) == 0 {
                self.clients[Int.random(in: 0..<3, using: &self.random)] = Client(
                    base: self.deletionCount)
            } else {
                self.fetchByName(Int.random(in: 0..<3, using: &self.random))
            }
        case 12 where self.number % 9 == 0: try self.eraseAll()
        default: try self.follow(Int.random(in: 0..<3, using: &self.random))
        }
    }

    private mutating func note(_ number: Int) throws {
        let outcome = try self.bench.apply(
            .noteBuckets(
                NoteBuckets(
                    database: Self.database.home,
                    buckets: ZoneBuckets(count: 4, mask: BucketMask(of: [number])))))
        guard case .bucketsNoted = outcome else { throw BenchError("\(outcome)") }
    }

    private mutating func makeZone() throws {
        let name = "Z\(Int.random(in: 0..<14, using: &self.random))"
        if self.zones[name] == nil { self.zones[name] = [:] }
        guard let number = Self.database.number(of: name) else { return }
        let part = Self.database.part(number)
        if self.bugs.contains(.zoneBeforeBit) {
            try self.bench.zones(.create, name, in: part)
            // And dies.
            if Bool.random(using: &self.random) { return }
        }
        try self.note(number)
        try self.bench.zones(.create, name, in: part)
    }

    private mutating func deleteZone() throws {
        guard let name = self.zones.keys.sorted().randomElement(using: &self.random) else { return }
        self.zones[name] = nil
        self.deletionCount += 1
        try self.bench.zones(.delete, name, in: Self.database.part(of: name))
    }

    private mutating func eraseAll() throws {
        self.deletionCount += Int(self.remembered) + 1
        self.zones = [:]
        let stopsEarly = self.bugs.contains(.erasureStopsAtHome)
        for part in stopsEarly ? [Self.database.home] : Self.database.parts.reversed() {
            var hasMore = true
            while hasMore {
                let outcome = try self.bench.apply(
                    .eraseDatabase(EraseDatabase(database: part)), as: Bench.system)
                guard case .erased(let progress) = outcome else { throw BenchError("\(outcome)") }
                hasMore = progress.hasMore
            }
        }
        // Whoever erases says so to nobody: clients find out by their tokens.
        self.eraCount += 1
    }

    private mutating func write() throws {
        guard let name = self.zones.keys.sorted().randomElement(using: &self.random) else { return }
        self.number += 1
        let record = "r\(Int.random(in: 0..<4, using: &self.random))"
        let isDeletion = Int.random(in: 0..<3, using: &self.random) == 0
        let results = try self.bench.modify(
            in: name, of: Self.database.part(of: name), rules: RecordRules(tombstoneCountMin: 1),
            isDeletion
                ? .delete(record)
                : RecordOperation(
                    .forceUpdate, recordName: record, recordType: "Book",
                    fields: [StratusRecordsTests.number("n", Int64(self.number))]))
        self.zones[name]?[record] = results[0].saved
        try self.bench.finishJobs()
    }

    private mutating func fetchByName(_ index: Int) {
        guard let name = self.zones.keys.sorted().randomElement(using: &self.random) else { return }
        self.clients[index].zones[name] = self.zones[name]
    }

    /// One page, as a gateway makes it. Nil: expired.
    private mutating func page(_ after: PartedPosition?) throws -> FeedMerge.Page? {
        var merge = FeedMerge(
            after: after, count: 4, limit: .random(in: 1...5, using: &self.random),
            bugs: self.bugs)
        let answer = try self.bench.ask(
            .buckets(BucketsAsk(database: Self.database.home, count: 4)))
        guard case .buckets(let home) = answer else { throw BenchError("\(answer)") }
        var mask = home.mask
        if self.bugs.contains(.maskFromMemory), !self.remembersMask.isEmpty {
            mask = self.remembersMask
        }
        self.remembersMask = mask
        // Some buckets are known before the home answers, and are asked with others' shares.
        let known = BucketMask(.random(in: 0..<16, using: &self.random) & mask.raw)
        for mask in [known, mask] {
            for question in merge.questions(mask) {
                let part = Self.database.part(question.number)
                func ask(_ after: DatabasePosition?) throws -> RecordAnswer {
                    try self.bench.ask(
                        .databaseChanges(
                            DatabaseChangesAsk(
                                database: part, after: after, limit: question.limit)))
                }
                var answer = try ask(question.after)
                if answer == .zoneRefused(.positionExpired) {
                    guard self.bugs.contains(.expiredPartRestarted) else { return nil }
                    answer = try ask(nil)
                }
                guard case .databaseChanges(let page) = answer else {
                    throw BenchError("\(answer)")
                }
                merge.take(page, of: question.number)
            }
        }
        let page = merge.page()
        if page.position.first != 0 { self.skippedCount += 1 }
        guard Set(page.changes.map(\.name)).count == page.changes.count else {
            throw BenchError("a zone is twice on one page")
        }
        return page
    }

    private mutating func follow(_ index: Int) throws {
        var client = self.clients[index]
        if client.position == nil { client = Client(base: self.deletionCount) }
        guard let page = try self.page(client.position) else {
            guard client.position != nil, self.deletionCount - client.base > Int(self.remembered)
            else {
                throw BenchError(
                    "refused after \(self.deletionCount - client.base) deletions: "
                        + "\(String(describing: client.position))")
            }
            self.clients[index] = Client(base: self.deletionCount)
            return
        }
        for change in page.changes {
            client.zones[change.name] =
                change.isDeleted ? nil : try self.fetch(change, from: client)
        }
        let before = client.position
        client.position = page.position
        if !page.moreComing {
            guard client.zones == self.zones else {
                throw BenchError(
                    "client \(index) has \(client.zones.keys.sorted()), "
                        + "there are \(self.zones.keys.sorted())")
            }
            client.base = self.deletionCount
            self.endCount += 1
            // At rest a token stands still.
            if page.changes.isEmpty, let before, !before.parts.contains(where: \.position.isMidway),
                before != page.position
            {
                throw BenchError("nothing happened, and \(before) became \(page.position)")
            }
        } else if page.position == before {
            throw BenchError("a page that does not move: \(page.position)")
        }
        self.clients[index] = client
    }

    private func fetch(_ change: DatabaseChangesPage.Change, from client: Client) throws
        -> [String: Record]
    {
        guard let zone = change.zone else { throw BenchError("a zone without itself") }
        var records = client.zones[change.name] ?? [:]
        let start = FeedPosition(incarnation: zone.incarnation, tag: ChangeTag(0))
        var position: FeedPosition? = change.since ?? start
        while true {
            let answer = try self.bench.ask(
                .zoneChanges(
                    ZoneChangesAsk(
                        database: Self.database.part(of: change.name), zone: change.name,
                        after: position, limit: 2)))
            if answer == .zoneRefused(.positionExpired), position != nil {
                (records, position) = ([:], nil)
                continue
            }
            guard case .zoneChanges(let page) = answer else { throw BenchError("\(answer)") }
            for change in page.changes {
                switch change {
                case .changed(let record): records[record.name] = record
                case .deleted(let name, _): records[name] = nil
                }
            }
            position = page.position
            if !page.moreComing { return records }
        }
    }
}
