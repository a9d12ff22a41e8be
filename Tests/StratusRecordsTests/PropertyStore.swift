import StratusCoding
import StratusDoubles
import StratusModel
import StratusRecords
import StratusRows
import StratusSQLite
import StratusStorage

/// A partition's store on a simulated disk, and the log that it is brought forward by.
final class PropertyStore {
    private static let group = GroupID(3)

    private struct Applied {
        var entry: Entry
        /// Nil until it was applied once.
        var outcome: Outcome?
    }

    private let world: SimulatedWorld
    private var store: PartitionStore<DataState>?
    private var random: SeededGenerator
    /// The entries that a crash may take: everything after the durable index.
    private var tail: [Applied] = []
    private var all: [Entry] = []

    init(seed: UInt64) throws {
        self.world = SimulatedWorld(seed: seed)
        self.random = SeededGenerator(seed: seed ^ 0x5EED)
        self.store = try Self.open(in: self.world)
    }

    private static func open(in world: SimulatedWorld) throws(StoreError)
        -> PartitionStore<DataState>
    {
        var limits = PartitionStore<DataState>.Limits()
        // Small, so that the WAL is full and pages leave the cache.
        limits.walSizeMax = .kibibytes(256)
        limits.cacheSize = .kibibytes(64)
        return try PartitionStore(
            DataState(), group: Self.group, in: "partitions",
            of: FileSystem(world.simulatedFiles), limits: limits)
    }

    private var opened: PartitionStore<DataState> {
        guard let store else { preconditionFailure("used while it is down") }
        return store
    }

    func answer(_ query: Query) throws -> QueryAnswer {
        do { return try self.opened.answer(query) } catch {
            guard self.world.simulatedFiles.isCrashed else { throw error }
            try self.restart()
            return try self.opened.answer(query)
        }
    }

    func apply(_ command: Command, at position: EntryPosition) throws -> Outcome {
        let entry = Entry(
            index: position.index, term: Term(1), time: position.time, kind: .command,
            payload: command.encoded())
        self.all.append(entry)
        self.tail.append(Applied(entry: entry))
        // Now and then the disk goes away in the middle of something.
        if Int.random(in: 0..<400, using: &self.random) == 0 {
            self.world.simulatedFiles.plan(
                DiskFault(
                    at: self.world.simulatedFiles.operationCount
                        + .random(in: 1...30, using: &self.random), .crash))
        }
        var outcomes: [Outcome] = []
        do {
            try self.opened.apply([entry][...], into: &outcomes)
            self.tail[self.tail.count - 1].outcome = outcomes[0]
            if self.opened.unpublishedWriteCount >= 512 { try self.opened.commit() }
        } catch {
            guard self.world.simulatedFiles.isCrashed else { throw error }
            try self.restart()
        }
        guard let outcome = self.tail[self.tail.count - 1].outcome else {
            throw BenchError("an entry without an outcome")
        }
        return outcome
    }

    func commit() throws {
        do { try self.opened.commit() } catch {
            guard self.world.simulatedFiles.isCrashed else { throw error }
            try self.restart()
        }
    }

    func checkpoint() throws {
        do { try self.opened.checkpoint() } catch {
            guard self.world.simulatedFiles.isCrashed else { throw error }
            try self.restart()
        }
        let durable = self.opened.durable
        self.tail.removeAll { $0.entry.index <= durable }
    }

    /// Loses applied entries in one of several ways, and checks that the log gives the same answers
    /// and rows again.
    func crash() throws {
        if self.world.simulatedFiles.isCrashed { try self.restart() }
        self.world.simulatedFiles.clearFaults()
        let before = self.opened.digest
        switch Int.random(in: 0..<4, using: &self.random) {
        case 0:
            _ = try self.opened.reset()
            try self.replay()
        case 1:
            try self.opened.close()
        default:
            self.world.simulatedFiles.crash()
            try self.restart()
        }
        guard self.opened.digest == before else { throw BenchError("other rows after replay") }
    }

    private func restart() throws {
        self.store = nil
        let ways: [DiskRestart] = [.processCrash, .powerLoss, .powerLossLosingAll]
        self.world.simulatedFiles.restart(after: ways.randomElement(using: &self.random)!)
        self.world.simulatedFiles.clearFaults()
        self.store = try Self.open(in: self.world)
        try self.replay()
    }

    private func replay() throws {
        let applied = self.opened.applied
        for position in self.tail.indices where self.tail[position].entry.index > applied {
            var outcomes: [Outcome] = []
            try self.opened.apply([self.tail[position].entry][...], into: &outcomes)
            if let known = self.tail[position].outcome, known != outcomes[0] {
                throw BenchError("another outcome in replay")
            }
            self.tail[position].outcome = outcomes[0]
        }
    }

    /// Checks that a replica that has seen nothing else gets the same rows from the same log, and
    /// that both are whole.
    func finish() throws {
        self.world.simulatedFiles.clearFaults()
        let other = try Self.open(in: SimulatedWorld(seed: 1))
        var outcomes: [Outcome] = []
        for entry in self.all {
            try other.apply([entry][...], into: &outcomes)
            outcomes.removeAll(keepingCapacity: true)
            if other.unpublishedWriteCount >= 512 { try other.commit() }
        }
        guard other.digest == self.opened.digest else { throw BenchError("replicas differ") }
        for store in [other, self.opened] {
            let faults = try store.verify()
            guard faults.isEmpty else { throw BenchError("\(faults)") }
        }
    }
}
