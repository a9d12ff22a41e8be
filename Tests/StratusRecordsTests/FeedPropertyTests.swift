import Foundation
import StratusModel
import StratusRecords
import Testing

/// Clients that follow feeds page by page, while zones and records come and go between their pages
/// and deletions are forgotten early. A client at the end has all that is there. A client that is
/// sent back could have missed a deletion since it last knew everything, or knew nothing.
/// `STRATUS_SEEDS` sets the number of seeds.
@Suite struct FeedPropertyTests {
    static let seeds: Range<UInt64> =
        0..<(UInt64(ProcessInfo.processInfo.environment["STRATUS_SEEDS"] ?? "") ?? 12)
    static let stepCount = 600

    @Test(arguments: Self.seeds)
    func `who follows a database page by page has its zones and their records`(seed: UInt64) throws
    {
        var run = DatabaseRun(seed: seed)
        do { for _ in 0..<Self.stepCount { try run.step() } } catch {
            Issue.record("seed \(seed): \(error)")
        }
        #expect(run.endCount > 5, "seed \(seed): hardly anybody came to an end")
    }

    @Test(arguments: Self.seeds)
    func `who follows a zone page by page has its records`(seed: UInt64) throws {
        var run = ZoneRun(seed: seed)
        do { for _ in 0..<Self.stepCount { try run.step() } } catch {
            Issue.record("seed \(seed): \(error)")
        }
        #expect(run.endCount > 5, "seed \(seed): hardly anybody came to an end")
    }
}

private struct DatabaseRun {
    /// The simplest client: it passes its tokens on to `changes/zone`, and forgets when told to.
    private struct Client {
        var position: DatabasePosition?
        var zones: [String: [String: Record]] = [:]
        /// Zones deleted when it last knew everything, or nothing.
        var base = 0
    }

    private var bench = Bench()
    private var random: SeededGenerator
    private let remembered: UInt64
    private var clients = Array(repeating: Client(), count: 3)
    private var zones: [String: [String: Record]] = [:]
    private var deletionCount = 0
    private var number = 0
    private(set) var endCount = 0

    init(seed: UInt64) {
        self.random = SeededGenerator(seed: seed)
        self.remembered = seed % 4
        var bounds = RecordState.Bounds()
        bounds.deletedZoneCountMax = self.remembered
        self.bench.state = DataState(bounds: bounds)
    }

    mutating func step() throws {
        switch Int.random(in: 0..<10, using: &self.random) {
        case 0...1: try self.makeZone()
        case 2: try self.deleteZone()
        case 3...4: try self.write()
        case 5:
            // Somebody who has lost what it knew.
            if Int.random(in: 0..<4, using: &self.random) == 0 {
                self.clients[Int.random(in: 0..<3, using: &self.random)] = Client(
                    base: self.deletionCount)
            } else {
                self.fetchByName(Int.random(in: 0..<3, using: &self.random))
            }
        default: try self.follow(Int.random(in: 0..<3, using: &self.random))
        }
    }

    private mutating func makeZone() throws {
        // New names and old ones.
        let name = "Z\(Int.random(in: 0..<14, using: &self.random))"
        if self.zones[name] == nil { self.zones[name] = [:] }
        try self.bench.zones(.create, name)
    }

    private mutating func deleteZone() throws {
        guard let name = self.zones.keys.sorted().randomElement(using: &self.random) else { return }
        self.zones[name] = nil
        self.deletionCount += 1
        try self.bench.zones(.delete, name)
    }

    private mutating func write() throws {
        guard let name = self.zones.keys.sorted().randomElement(using: &self.random) else { return }
        self.number += 1
        let record = "r\(Int.random(in: 0..<4, using: &self.random))"
        let isDeletion = Int.random(in: 0..<3, using: &self.random) == 0
        let results = try self.bench.modify(
            in: name, rules: RecordRules(tombstoneCountMin: 1),
            isDeletion
                ? .delete(record)
                : RecordOperation(
                    .forceUpdate, recordName: record, recordType: "Book",
                    fields: [StratusRecordsTests.number("n", Int64(self.number))]))
        self.zones[name]?[record] = results[0].saved
        try self.bench.finishJobs()
    }

    /// A zone that the database's feed has perhaps not told of. Seed 7614 of the simulator.
    private mutating func fetchByName(_ index: Int) {
        guard let name = self.zones.keys.sorted().randomElement(using: &self.random) else { return }
        self.clients[index].zones[name] = self.zones[name]
    }

    /// One page.
    private mutating func follow(_ index: Int) throws {
        var client = self.clients[index]
        // Who asks without a token forgets what it has.
        if client.position == nil { client = Client(base: self.deletionCount) }
        let answer = try self.bench.ask(
            .databaseChanges(
                DatabaseChangesAsk(
                    database: Bench.privateDatabase, after: client.position,
                    limit: .random(in: 1...3, using: &self.random))))
        switch answer {
        case .zoneRefused(.positionExpired) where client.position != nil:
            guard self.deletionCount - client.base > Int(self.remembered) else {
                throw BenchError(
                    "refused after \(self.deletionCount - client.base) deletions: "
                        + "\(String(describing: client.position))")
            }
            self.clients[index] = Client(base: self.deletionCount)
        case .databaseChanges(let page):
            for change in page.changes {
                client.zones[change.name] =
                    change.isDeleted ? nil : try self.fetch(change, from: client)
            }
            client.position = page.position
            if !page.moreComing {
                guard client.zones == self.zones else {
                    throw BenchError(
                        "client \(index) has \(client.zones.keys.sorted()), "
                            + "there are \(self.zones.keys.sorted())")
                }
                client.base = self.deletionCount
                self.endCount += 1
            }
            self.clients[index] = client
        default: throw BenchError("\(answer)")
        }
    }

    private func fetch(_ change: DatabaseChangesPage.Change, from client: Client) throws
        -> [String: Record]
    {
        guard let zone = change.zone else { throw BenchError("a zone without itself") }
        var records = client.zones[change.name] ?? [:]
        // As the gateway says where the state says nothing.
        let start = FeedPosition(incarnation: zone.incarnation, tag: ChangeTag(0))
        var position: FeedPosition? = change.since ?? start
        while true {
            let answer = try self.bench.ask(
                .zoneChanges(
                    ZoneChangesAsk(
                        database: Bench.privateDatabase, zone: change.name, after: position,
                        limit: 2)))
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

private struct ZoneRun {
    private struct Client {
        var position: FeedPosition?
        var records: [String: Record] = [:]
        /// Deletions when it last knew everything, or nothing.
        var base = 0
    }

    private static let tombstoneCountMin = 8
    private var bench = Bench()
    private var random: SeededGenerator
    private var clients = Array(repeating: Client(), count: 3)
    private var records: [String: Record] = [:]
    private var deletionCount = 0
    private var number = 0
    private(set) var endCount = 0

    init(seed: UInt64) {
        self.random = SeededGenerator(seed: seed)
    }

    mutating func step() throws {
        if self.number == 0 { try self.bench.zones(.create, "Shelves") }
        switch Int.random(in: 0..<10, using: &self.random) {
        case 0...4: try self.write()
        case 5:
            if Int.random(in: 0..<4, using: &self.random) == 0 {
                self.clients[Int.random(in: 0..<3, using: &self.random)] = Client()
            }
        default: try self.follow(Int.random(in: 0..<3, using: &self.random))
        }
    }

    private mutating func write() throws {
        self.number += 1
        let name = "r\(Int.random(in: 0..<30, using: &self.random))"
        let isDeletion = Bool.random(using: &self.random)
        let results = try self.bench.modify(
            rules: RecordRules(tombstoneCountMin: Self.tombstoneCountMin),
            isDeletion
                ? .delete(name)
                : RecordOperation(
                    .forceUpdate, recordName: name, recordType: "Book",
                    fields: [StratusRecordsTests.number("n", Int64(self.number))]))
        if isDeletion, self.records[name] != nil { self.deletionCount += 1 }
        self.records[name] = results[0].saved
        try self.bench.finishJobs()
    }

    /// One page.
    private mutating func follow(_ index: Int) throws {
        if self.number == 0 { return }
        var client = self.clients[index]
        if client.position == nil { client.base = self.deletionCount }
        let answer = try self.bench.ask(
            .zoneChanges(
                ZoneChangesAsk(
                    database: Bench.privateDatabase, zone: "Shelves", after: client.position,
                    limit: .random(in: 1...4, using: &self.random))))
        switch answer {
        case .zoneRefused(.positionExpired) where client.position != nil:
            // A deletion is dropped only where as many younger ones stay.
            let kept = Self.tombstoneCountMin - Self.tombstoneCountMin / 8
            guard self.deletionCount - client.base > kept else {
                throw BenchError(
                    "refused after \(self.deletionCount - client.base) deletions: "
                        + "\(String(describing: client.position))")
            }
            self.clients[index] = Client()
        case .zoneChanges(let page):
            for change in page.changes {
                switch change {
                case .changed(let record): client.records[record.name] = record
                case .deleted(let name, _): client.records[name] = nil
                }
            }
            client.position = page.position
            if !page.moreComing {
                guard client.records == self.records else {
                    throw BenchError("client \(index) has other records than there are")
                }
                client.base = self.deletionCount
                self.endCount += 1
            }
            self.clients[index] = client
        default: throw BenchError("\(answer)")
        }
    }
}
