import StratusCoding
import StratusDoubles
import StratusModel
import StratusStorage
import Testing

/// After an erasure no segment from before stays: neither in use, nor as one that waits for its
/// next use, nor behind what was written into one that was used again.
@Suite struct LogExpiryTests {
    private func holds(_ bench: LogBench, entry index: UInt64) -> Bool {
        let text = LogBench.entry(index).payload
        return bench.files.allFiles.contains { path in
            guard let bytes = bench.files.contents(of: path) else { return false }
            return bytes.indices.contains { bytes[$0...].starts(with: text) }
        }
    }

    private func release(_ log: SegmentedLog, _ group: UInt16) {
        log.release(GroupID(group), through: log.last(of: GroupID(group)).index)
    }

    @Test func `nothing of what was released is left in any segment, nor what it had overwritten`()
        throws
    {
        let bench = LogBench()
        let log = try bench.open()
        log.submit([
            LogBatch(group: GroupID(1), hardState: HardState(term: Term(1), vote: nil))
        ])
        for index in 1...200 as ClosedRange<UInt64> {
            log.append(1, index...index)
            log.flushAll()
            // So that segments are used again, and wait for it.
            if index % 20 == 0 { self.release(log, 1) }
        }
        #expect(self.holds(bench, entry: 199), "the search finds nothing, and proves nothing")
        // The record of the last release: segments wait for their next use now.
        log.append(1, 201...201)
        log.flushAll()
        #expect((1...180).contains { self.holds(bench, entry: $0) }, "no segment was kept")
        log.expire()
        self.release(log, 1)
        for _ in 0..<3 {
            log.advanceExpiry()
            log.flushAll()
        }
        #expect(log.hasExpired)
        #expect((1...201).allSatisfy { !self.holds(bench, entry: $0) })
        log.append(1, 202...230)
        log.flushAll()
        bench.files.restart(after: .processCrash)
        let again = try bench.open(isNew: false)
        #expect(again.damage.isNone)
        #expect(try again.indexes(1) == Array(202...230))
    }

    @Test func `what is needed is waited for, and moved`() throws {
        let bench = LogBench()
        let log = try bench.open()
        for index in 1...40 as ClosedRange<UInt64> {
            log.append(1, index...index)
            log.append(2, index...index)
            log.flushAll()
        }
        log.expire()
        self.release(log, 1)
        log.submit([
            LogBatch(group: GroupID(1), hardState: HardState(term: Term(1), vote: nil))
        ])
        for _ in 0..<3 {
            log.advanceExpiry()
            log.flushAll()
        }
        #expect(!log.hasExpired, "group 2 has not let go")
        for _ in 0..<50 where !log.hasExpired {
            try log.moveForward(GroupID(2))
            log.advanceExpiry()
            log.flushAll()
        }
        #expect(log.hasExpired)
        bench.files.restart(after: .powerLoss)
        let again = try bench.open(isNew: false)
        #expect(again.damage.isNone)
        #expect(try again.indexes(1) == [] && again.indexes(2) == Array(1...40))
    }

    @Test(arguments: 0..<6 as Range<UInt64>)
    func `an end anywhere while the log lets go loses nothing that is needed`(seed: UInt64) throws {
        func run(_ bench: LogBench) throws -> UInt64 {
            let log = try bench.open()
            var synced: UInt64 = 0
            for index in 1...30 as ClosedRange<UInt64> {
                log.append(1, index...index)
                log.append(2, index...index)
                log.flushAll()
                if log.fault == nil, !bench.files.isCrashed { synced = index }
            }
            log.expire()
            self.release(log, 1)
            for _ in 0..<20 where !log.hasExpired && log.fault == nil {
                log.advanceExpiry()
                try? log.moveForward(GroupID(2))
                log.flushAll()
            }
            return synced
        }
        let whole = LogBench(seed: seed)
        _ = try run(whole)
        let count = whole.files.operationCount
        for number in stride(from: count - 60, to: count, by: 1) where number > 0 {
            let bench = LogBench(seed: seed)
            bench.files.plan(DiskFault(at: number, .crash))
            guard let synced = try? run(bench) else { continue }
            bench.files.restart(
                after: [.processCrash, .powerLoss, .powerLossLosingAll][number % 3])
            let again = try bench.open(isNew: false)
            #expect(!again.damage.hasUnknownLoss, "end at \(number), seed \(seed)")
            let kept = try again.indexes(2)
            // What was written and not yet synced may be there.
            #expect(
                kept.count >= synced && kept == kept.indices.map { UInt64($0) + 1 },
                "end at \(number), seed \(seed): \(kept)")
        }
    }
}
