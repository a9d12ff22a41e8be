import StratusDoubles
import StratusModel
import StratusStorage
import Testing

/// Consensus relies on this promise of the log: items become durable in the order of submission.
@Suite struct SubmissionOrderTests {
    /// The items submitted for one group, identified by numbers that only rise.
    private struct Group {
        struct Written {
            var number: UInt64
            /// The number of the entry that stood before it in the log.
            var parent: UInt64
            /// The number of the newest hard state submitted before it.
            var hardState: UInt64
        }
        /// By the entry's number, which is its payload's mark.
        var written: [UInt64: Written] = [:]
        /// The log as submitted: the number of each entry from index 1.
        var log: [UInt64] = []
        var hardState: UInt64 = 0
        var reportedHardState: UInt64 = 0
        /// Numbers of the entries reported durable and not cut since.
        var reported: [UInt64] = []
    }

    private static let groups: [UInt16] = [1, 2, 3]

    /// Submits at random, flushes in two halves with more submitted in between, until the disk
    /// fails.
    private static func run(_ bench: LogBench, seed: UInt64) throws -> [UInt16: Group] {
        var random = SeededGenerator(seed: seed)
        var groups: [UInt16: Group] = [1: Group(), 2: Group(), 3: Group()]
        guard let log = try? bench.open(isNew: true) else { return groups }
        var number: UInt64 = 0
        func submit() {
            let id = UInt16.random(in: 1...3, using: &random)
            var group = groups[id]!
            var batch = LogBatch(group: GroupID(id))
            if Int.random(in: 0..<3, using: &random) == 0 {
                number += 1
                batch.hardState = HardState(term: Term(number), vote: NodeID(1))
            }
            if group.log.count > 1, Int.random(in: 0..<5, using: &random) == 0 {
                let keep = Int.random(in: 1..<group.log.count, using: &random)
                batch.truncateFrom = LogIndex(UInt64(keep) + 1)
                group.log.removeLast(group.log.count - keep)
                if group.reported.count > keep {
                    group.reported.removeLast(group.reported.count - keep)
                }
            }
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                number += 1
                group.written[number] = .init(
                    number: number, parent: group.log.last ?? 0, hardState: group.hardState)
                group.log.append(number)
                batch.entries.append(
                    LogBench.entry(
                        UInt64(group.log.count), term: number,
                        size: .random(in: 8...700, using: &random), mark: number))
            }
            if let hardState = batch.hardState { group.hardState = hardState.term.raw }
            groups[id] = group
            log.submit([batch])
        }
        for _ in 0..<60 {
            for _ in 0..<Int.random(in: 1...4, using: &random) { submit() }
            guard log.beginFlush() else { break }
            for _ in 0..<Int.random(in: 0...3, using: &random) { submit() }
            log.endFlush()
            var hasFailed = false
            for event in bench.events {
                switch event {
                case .durable(let id, let through, let term, let hardState):
                    var group = groups[id.raw]!
                    group.reported = Array(group.log.prefix(Int(through.raw)))
                    #expect(
                        group.reported.last ?? 0 == term.raw,
                        "seed \(seed): reported an entry that was replaced")
                    group.reportedHardState = hardState?.term.raw ?? 0
                    groups[id.raw] = group
                case .failed: hasFailed = true
                }
            }
            if hasFailed { break }
        }
        return groups
    }

    private static func check(_ log: SegmentedLog, _ groups: [UInt16: Group], _ name: String) throws
    {
        for id in Self.groups {
            let group = groups[id]!
            let hardState = log.hardState(of: GroupID(id))?.term.raw ?? 0
            let last = log.last(of: GroupID(id)).index
            let held =
                last > .zero
                ? try log.read(GroupID(id), from: LogIndex(1), limit: .mebibytes(64)) : []
            let numbers = held.map(\.term.raw)
            #expect(hardState >= group.reportedHardState, "\(name): group \(id) forgot its vote")
            #expect(
                Array(numbers.prefix(group.reported.count)) == group.reported,
                "\(name): group \(id) lost what was reported")
            var parent: UInt64 = 0
            for number in numbers {
                let written = try #require(group.written[number], "\(name): never submitted")
                #expect(
                    written.parent == parent,
                    "\(name): \(number) is there without \(written.parent)")
                #expect(
                    written.hardState <= hardState,
                    "\(name): entry \(number) is there, hard state \(written.hardState) before it is not"
                )
                parent = number
            }
        }
    }

    @Test(arguments: [DiskRestart.processCrash, .powerLoss, .powerLossLosingAll])
    func `an entry that survives has all before it, and every hard state before it`(
        restart: DiskRestart
    ) throws {
        for seed in 0..<150 as Range<UInt64> {
            var random = SeededGenerator(seed: seed &* 3)
            let bench = LogBench(seed: seed, segmentSize: 8_192)
            let at = Int.random(in: 3...70, using: &random)
            let effects: [DiskFault.Effect] = [.crash, .crash, .fail(.io), .fail(.full)]
            bench.files.plan(
                DiskFault(at: at, effects.randomElement(using: &random)!))
            let groups = try Self.run(bench, seed: seed)
            bench.files.clearFaults()
            bench.files.restart(after: restart)
            try Self.check(try bench.open(isNew: true), groups, "seed \(seed)")
            // And what a start has shown, the next one shows too.
            bench.files.restart(after: .powerLossLosingAll)
            try Self.check(try bench.open(isNew: true), groups, "seed \(seed), once more")
        }
    }

    @Test func `an entry replaced while its batch is synced is not reported by that sync`() throws {
        let bench = LogBench(seed: 1, segmentSize: 8_192)
        let log = try bench.open(isNew: true)
        let group = GroupID(1)
        log.submit([
            LogBatch(
                group: group, entries: [LogBench.entry(1), LogBench.entry(2), LogBench.entry(3)])
        ])
        #expect(log.beginFlush())
        log.submit([
            LogBatch(
                group: group, hardState: HardState(term: Term(2), vote: nil),
                truncateFrom: LogIndex(2), entries: [LogBench.entry(2, term: 2)])
        ])
        log.endFlush()
        #expect(
            bench.events == [
                .durable(group, through: LogIndex(1), term: Term(1), hardState: nil)
            ])
        log.flush()
        #expect(
            bench.events == [
                .durable(
                    group, through: LogIndex(2), term: Term(2),
                    hardState: HardState(term: Term(2), vote: nil))
            ])
    }

    @Test func `the oldest unsynced write is told until its sync, and a release is none`() throws {
        let bench = LogBench(seed: 1, segmentSize: 8_192)
        let log = try bench.open(isNew: true)
        #expect(log.oldestUnsyncedAt == nil)
        log.submit([LogBatch(group: GroupID(1), entries: [LogBench.entry(1)])])
        let first = bench.world.now
        bench.world.advance(by: .seconds(1))
        #expect(log.beginFlush())
        log.submit([LogBatch(group: GroupID(1), entries: [LogBench.entry(2)])])
        #expect(log.oldestUnsyncedAt == first)
        log.endFlush()
        #expect(log.oldestUnsyncedAt == bench.world.now)
        log.flush()
        #expect(log.oldestUnsyncedAt == nil)
        log.release(GroupID(1), through: LogIndex(1))
        #expect(log.oldestUnsyncedAt == nil)
    }

    @Test func `S-16 a log that was begun and holds no segment is refused`() throws {
        let bench = LogBench(seed: 1, segmentSize: 8_192)
        _ = try bench.open(isNew: true)
        bench.files.restart(after: .powerLossLosingAll)
        #expect(bench.files.allFiles.count == 1, "the first segment is there at once")
        _ = try bench.open(isNew: false)
        bench.files.restart(after: .processCrash)
        for path in bench.files.allFiles { bench.files.uproot(path) }
        #expect(throws: LogError.self) { _ = try bench.open(isNew: false) }
    }
}
