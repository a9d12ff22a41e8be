import StratusModel
import StratusSimulation
import StratusStorage
import Testing

/// A scripted log of two groups, failed and cut off at every one of its file operations, and random
/// scripts against a model.
@Suite struct LogSweepTests {
    /// The content that a log must have after any fault: all that was reported durable and not cut
    /// or released since.
    struct Model {
        struct Group {
            /// Submitted and not cut, by index.
            var entries: [UInt64: Entry] = [:]
            var start: UInt64 = 0
            var durable: UInt64 = 0
            var hardTerm: UInt64 = 0
            var durableHardTerm: UInt64 = 0
            var last: UInt64 { self.entries.keys.max() ?? self.start }
        }
        var groups: [UInt16: Group] = [1: Group(), 2: Group(), 3: Group()]
        var hasFailed = false

        mutating func note(_ events: [LogEvent]) {
            for event in events {
                switch event {
                case .durable(let group, let through, _, let hardState):
                    #expect(!self.hasFailed, "an acknowledgement after a failure")
                    self.groups[group.raw]!.durable = through.raw
                    self.groups[group.raw]!.durableHardTerm = hardState?.term.raw ?? 0
                case .failed: self.hasFailed = true
                }
            }
        }

        func check(_ log: SegmentedLog, _ name: String) throws {
            #expect(log.damage.isNone, "\(name): \(log.damage)")
            for (number, group) in self.groups {
                let id = GroupID(number)
                let start = log.start(of: id).index.raw
                #expect(start <= group.start, "\(name): start")
                #expect(
                    (log.hardState(of: id)?.term.raw ?? 0) >= group.durableHardTerm, "\(name): vote"
                )
                guard log.last(of: id).index.raw > start else {
                    #expect(group.durable <= group.start, "\(name): group \(number) is empty")
                    continue
                }
                let held = try log.read(id, from: LogIndex(start + 1), limit: .mebibytes(64))
                let byIndex = Dictionary(uniqueKeysWithValues: held.map { ($0.index.raw, $0) })
                if group.durable > group.start {
                    for index in (group.start + 1)...group.durable {
                        #expect(
                            byIndex[index] == group.entries[index],
                            "\(name): entry \(index) of \(number)")
                    }
                }
            }
        }
    }

    /// Random work from a seed. Stops at the first failure.
    static func run(
        _ bench: LogBench, _ model: inout Model, seed: UInt64, steps: Int, isNew: Bool = true
    ) {
        _ = bench.events
        guard let log = try? bench.open(isNew: isNew) else { return }
        model.hasFailed = false
        var random = SeededGenerator(seed: seed)
        // What a restart showed is what the model goes on from.
        for number in model.groups.keys.sorted() {
            let last = log.last(of: GroupID(number)).index.raw
            let start = log.start(of: GroupID(number)).index.raw
            var held: [Entry] = []
            if last > start {
                // A fault may strike here already.
                guard
                    let read = try? log.read(
                        GroupID(number), from: LogIndex(start + 1), limit: .mebibytes(64))
                else { return }
                held = read
            }
            model.groups[number]!.entries = Dictionary(
                uniqueKeysWithValues: held.map { ($0.index.raw, $0) })
            model.groups[number]!.start = start
            model.groups[number]!.durable = last
            model.groups[number]!.hardTerm = log.hardState(of: GroupID(number))?.term.raw ?? 0
        }
        for step in 0..<steps {
            let number = UInt16.random(in: 1...3, using: &random)
            var group = model.groups[number]!
            var batch = LogBatch(group: GroupID(number))
            if Int.random(in: 0..<8, using: &random) == 0, group.last > group.durable {
                let from = UInt64.random(in: (group.durable + 1)...group.last, using: &random)
                batch.truncateFrom = LogIndex(from)
                group.entries = group.entries.filter { $0.key < from }
            }
            if Int.random(in: 0..<4, using: &random) == 0 {
                group.hardTerm += 1
                batch.hardState = HardState(term: Term(group.hardTerm), vote: NodeID(2))
            }
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                // As consensus has it, terms never fall.
                let least =
                    group.entries[group.last]?.term
                    ?? log.term(of: GroupID(number), at: LogIndex(group.last)) ?? .zero
                let entry = LogBench.entry(
                    group.last + 1, term: max(least.raw, UInt64(step / 10 + 1) + seed % 3),
                    size: .random(in: 0...600, using: &random), mark: UInt64(step) + seed)
                group.entries[entry.index.raw] = entry
                batch.entries.append(entry)
            }
            model.groups[number] = group
            log.submit([batch])
            if Int.random(in: 0..<3, using: &random) > 0 { log.flushAll() }
            model.note(bench.events)
            if model.hasFailed { return }
            if Int.random(in: 0..<4, using: &random) == 0 {
                let durable = model.groups[number]!.durable
                let start = model.groups[number]!.start
                if durable > start {
                    let through = UInt64.random(in: (start + 1)...durable, using: &random)
                    log.release(GroupID(number), through: LogIndex(through))
                    model.groups[number]!.start = through
                    model.groups[number]!.entries = model.groups[number]!.entries.filter {
                        $0.key > through
                    }
                }
            }
            for holder in log.holdersOfOldest where log.segmentCount > 4 {
                try? log.moveForward(holder)
            }
        }
        log.flushAll()
        model.note(bench.events)
    }

    static func operationCount(seed: UInt64, steps: Int, isSealed: Bool = false) -> Int {
        let bench = LogBench(seed: seed, segmentSize: 4_096, isSealed: isSealed)
        var model = Model()
        Self.run(bench, &model, seed: seed, steps: steps)
        return bench.files.operationCount
    }

    @Test(arguments: [DiskRestart.processCrash, .powerLoss, .powerLossLosingAll], [false, true])
    func `S-07 S-20 S-18 an end at any file operation loses nothing reported durable`(
        restart: DiskRestart, isSealed: Bool
    ) throws {
        let steps = 30
        let variant = [.powerLoss: 0, .processCrash: 1][restart, default: 2]
        let count = Self.operationCount(seed: 5, steps: steps, isSealed: isSealed)
        for number in Sweep.operations(count, variant: variant) {
            let bench = LogBench(seed: UInt64(number), segmentSize: 4_096, isSealed: isSealed)
            bench.files.plan(DiskFault(at: number, .crash))
            var model = Model()
            Self.run(bench, &model, seed: 5, steps: steps)
            bench.files.restart(after: restart)
            // Nothing at all may have been made yet.
            let isNew = bench.files.allFiles.isEmpty
            let log = try bench.open(isNew: true)
            if !isNew { try model.check(log, "crash at \(number)") }
        }
    }

    @Test(arguments: [false, true], [DiskError.Kind.io, .full])
    func `S-01 S-06 S-23 a failure at any file operation acknowledges nothing that is not there`(
        isSticky: Bool, kind: DiskError.Kind
    ) throws {
        let steps = 30
        let count = Self.operationCount(seed: 6, steps: steps)
        for number in Sweep.operations(count, variant: isSticky ? 1 : 0) {
            let bench = LogBench(seed: UInt64(number), segmentSize: 4_096)
            bench.files.plan(DiskFault(at: number, .fail(kind), isSticky: isSticky))
            var model = Model()
            Self.run(bench, &model, seed: 6, steps: steps)
            bench.files.clearFaults()
            bench.files.restart(after: number % 2 == 0 ? .powerLoss : .processCrash)
            try model.check(try bench.open(isNew: true), "\(kind) at \(number)")
            bench.files.restart(after: .powerLossLosingAll)
            try model.check(try bench.open(isNew: true), "\(kind) at \(number), then a power cut")
        }
    }

    @Test(arguments: 0..<40 as Range<UInt64>, [false, true])
    func `S-34 S-24 life after life with power cuts at random, nothing durable is lost`(
        seed: UInt64, isSealed: Bool
    )
        throws
    {
        let bench = LogBench(seed: seed, segmentSize: 4_096, isSealed: isSealed)
        var random = SeededGenerator(seed: seed)
        var model = Model()
        for life in 0..<6 as Range<UInt64> {
            bench.files.plan(
                DiskFault(
                    at: bench.files.operationCount + Int.random(in: 5...120, using: &random), .crash
                ))
            Self.run(bench, &model, seed: seed &* 8 &+ life, steps: 60)
            bench.files.clearFaults()
            bench.files.restart(
                after: [.powerLoss, .powerLossLosingAll, .processCrash].randomElement(
                    using: &random)!)
            let log = try bench.open(isNew: true)
            try model.check(log, "seed \(seed), life \(life)")
        }
    }
}
