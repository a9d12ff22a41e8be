import Foundation
import StratusDoubles
import StratusModel
import Testing

@testable import StratusRecords

/// Random ends of zones, and clients that follow the database's feed in pages of any size while it
/// goes on. A model keeps, for each client, which ends it has not heard of. No reason is told that
/// is not among them, and no purge is lost. `STRATUS_SEEDS` sets the number of seeds.
@Suite struct ZoneEndPropertyTests {
    private static let seedCount =
        ProcessInfo.processInfo.environment["STRATUS_SEEDS"].flatMap { UInt64($0) } ?? 24
    private static let names = ["A", "B", "C", "D", "E"]

    private struct Client {
        /// Nil: it begins from nothing.
        var position: DatabasePosition?
        /// The ends of each zone since its last walk ended until this one began, and since then.
        var unheard: [String: [DeletionReason]] = [:]
        var since: [String: [DeletionReason]] = [:]
        var isWalking = false
        var told: [String: Set<DeletionReason>] = [:]
    }

    private struct Life {
        var random: SeededGenerator
        var bench = Bench()
        var live: Set<String> = []
        var clients = [Client(), Client(), Client()]
        var purgeCount = 0

        init(_ seed: UInt64, bugs: PlantedBugs) {
            self.random = SeededGenerator(seed: seed)
            self.bench.state = DataState(bugs: bugs)
        }

        private mutating func draw(_ count: Int) -> Int {
            Int.random(in: 0..<count, using: &self.random)
        }

        mutating func step() throws -> String? {
            if self.draw(2) == 0 { return try self.fetch(self.draw(self.clients.count)) }
            let name = ZoneEndPropertyTests.names[self.draw(ZoneEndPropertyTests.names.count)]
            guard self.live.contains(name) else {
                try self.bench.zones(.create, name)
                self.live.insert(name)
                return nil
            }
            if self.draw(3) > 0 {
                _ = try self.bench.modify(in: name, .create("r\(self.bench.index)"))
                return nil
            }
            let reasons: [DeletionReason] = [.deleted, .purged, .encryptedDataReset]
            let reason = reasons[self.draw(reasons.count)]
            var operation = ModifyZones.Operation(
                .delete, zone: name, drawnIncarnation: ZoneIncarnation(0))
            operation.reason = reason
            let modify = ModifyZones(database: Bench.privateDatabase, operations: [operation])
            _ = try self.bench.apply(.modifyZones(modify))
            self.live.remove(name)
            if self.draw(2) == 0 {
                try self.bench.zones(.create, name)
                self.live.insert(name)
            }
            for index in self.clients.indices {
                self.clients[index].since[name, default: []].append(reason)
            }
            return nil
        }

        /// One page of a walk.
        private mutating func fetch(_ index: Int) throws -> String? {
            var client = self.clients[index]
            defer { self.clients[index] = client }
            if !client.isWalking {
                client.isWalking = true
                client.unheard = client.since
                client.since = [:]
                client.told = [:]
                if client.position == nil { client.unheard = [:] }
            }
            let page = try self.bench.databaseChanges(
                after: client.position, limit: 1 + self.draw(3))
            client.position = page.position
            for change in page.changes {
                guard let reason = change.deletion ?? change.deletedBefore else { continue }
                client.told[change.name, default: []].insert(reason)
                let possible =
                    (client.unheard[change.name] ?? []) + (client.since[change.name] ?? [])
                if !possible.contains(reason) {
                    return "client \(index) hears of \(change.name): \(reason), not \(possible)"
                }
            }
            guard !page.moreComing else { return nil }
            client.isWalking = false
            // Nothing happens between the last page and here: it has told all that there is.
            client.unheard.merge(client.since) { $0 + $1 }
            client.since = [:]
            for (name, reasons) in client.unheard where reasons.contains(.purged) {
                self.purgeCount += 1
                if client.told[name]?.contains(.purged) != true {
                    return "client \(index) does not hear that \(name) was purged: "
                        + "\(client.told[name] ?? [])"
                }
            }
            if self.draw(30) == 0 {
                client = Client()
            }
            return nil
        }
    }

    private static func live(
        _ seed: UInt64, bugs: PlantedBugs = PlantedBugs()
    ) throws -> (problem: String?, purgeCount: Int) {
        var life = Life(seed, bugs: bugs)
        for step in 0..<400 {
            if let problem = try life.step() {
                return ("seed \(seed) step \(step): \(problem)", life.purgeCount)
            }
        }
        return (nil, life.purgeCount)
    }

    @Test func `no purge is lost, and no reason is told that was none`() throws {
        var purgeCount = 0
        for seed in 1...Self.seedCount {
            let life = try Self.live(seed)
            #expect(life.problem == nil)
            purgeCount += life.purgeCount
        }
        #expect(purgeCount > 10 * Int(Self.seedCount), "only \(purgeCount)")
    }

    @Test(.enabled(if: PlantedBugs.isPossible)) func `a planted bug is found`() throws {
        #if STRATUS_PLANTED
            let isFound = try (1...120).contains { seed in
                try Self.live(seed, bugs: PlantedBugs([.purgeReasonLost])).problem != nil
            }
            #expect(isFound)
        #endif
    }
}
