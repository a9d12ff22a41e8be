import StratusCoding
import StratusDoubles
import StratusModel
import StratusStorage
import Testing

@Suite struct SegmentedLogTests {
    let a = GroupID(1)
    let b = GroupID(2)

    @Test func `S-42 a log says how far it is read back`() throws {
        let bench = LogBench()
        let log = try bench.open()
        for start in stride(from: UInt64(1), to: 200, by: 10) {
            log.append(1, start...start + 9)
            log.flushAll()
        }
        #expect(log.segmentCount > 3)
        var progress: [SegmentedLog.RecoveryProgress] = []
        let again = try SegmentedLog(
            in: "log", of: bench.world, isNew: false, limits: bench.limits, onEvent: { _ in },
            progress: { progress.append($0) })
        #expect(
            progress
                == (0...again.segmentCount).map {
                    .init(segmentsRead: $0, segmentCount: again.segmentCount)
                })
    }

    @Test func `one event for each group tells what one sync made durable`() throws {
        let bench = LogBench()
        let log = try bench.open()
        log.append(1, 1...3)
        log.append(2, 1...1, term: 4)
        log.submit([LogBatch(group: self.b, hardState: HardState(term: Term(4), vote: NodeID(7)))])
        #expect(bench.events == [])
        #expect(try log.indexes(1) == [1, 2, 3], "read back before it is durable")
        log.flushAll()
        #expect(
            bench.events == [
                .durable(self.a, through: LogIndex(3), term: Term(1), hardState: nil),
                .durable(
                    self.b, through: LogIndex(1), term: Term(4),
                    hardState: HardState(term: Term(4), vote: NodeID(7))),
            ])
        #expect(!log.hasWork)
    }

    @Test func `everything is there after a power cut`() throws {
        let bench = LogBench()
        do {
            let log = try bench.open()
            for index in 1...60 as ClosedRange<UInt64> {
                log.append(1, index...index)
                log.append(2, (index * 2 - 1)...(index * 2), term: 3)
                log.flushAll()
            }
            log.submit([LogBatch(group: self.a, hardState: HardState(term: Term(9), vote: nil))])
            log.flushAll()
        }
        bench.files.restart(after: .powerLossLosingAll)
        let log = try bench.open(isNew: false)
        #expect(log.damage == SegmentedLog.Damage())
        #expect(try log.all(1) == LogBench.entries(1...60))
        #expect(try log.all(2) == LogBench.entries(1...120, term: 3))
        #expect(log.hardState(of: self.a) == HardState(term: Term(9), vote: nil))
        #expect(log.segmentCount > 3)
        log.append(1, 61...61)
        log.flushAll()
        #expect(try log.indexes(1).last == 61)
    }

    @Test func `S-21 a cut holds for its group and for no other`() throws {
        let bench = LogBench()
        do {
            let log = try bench.open()
            log.append(1, 1...9)
            log.append(2, 1...9)
            log.flushAll()
            log.submit([
                LogBatch(
                    group: self.a, truncateFrom: LogIndex(4),
                    entries: [LogBench.entry(4, term: 2, mark: 1)])
            ])
            #expect(try log.indexes(1) == [1, 2, 3, 4])
            log.flushAll()
            #expect(
                bench.events.last
                    == .durable(self.a, through: LogIndex(4), term: Term(2), hardState: nil))
        }
        bench.files.restart(after: .powerLoss)
        let log = try bench.open(isNew: false)
        #expect(try log.all(1).map(\.term.raw) == [1, 1, 1, 2])
        #expect(try log.indexes(2).count == 9)
    }

    @Test func `an entry cut while it was being written is not reported`() throws {
        let bench = LogBench()
        let log = try bench.open()
        log.append(1, 1...3)
        log.submit([
            LogBatch(
                group: self.a, truncateFrom: LogIndex(2), entries: [LogBench.entry(2, term: 2)])
        ])
        log.flushAll()
        #expect(try log.all(1).map(\.term.raw) == [1, 2])
        #expect(
            bench.events == [
                .durable(self.a, through: LogIndex(2), term: Term(2), hardState: nil)
            ])
    }

    @Test func `S-22 S-24 a segment is used again only when nothing in it is needed`() throws {
        let bench = LogBench()
        let log = try bench.open()
        log.append(2, 1...1)
        log.flushAll()
        for index in 1...120 as ClosedRange<UInt64> {
            log.append(1, index...index)
            log.release(self.a, through: LogIndex(index))
            log.flushAll()
        }
        let held = log.segmentCount
        #expect(held > 3, "the sleeping group holds the oldest segment and all after it")
        #expect(log.holdersOfOldest == [self.b])
        #expect(try log.indexes(2) == [1])
        log.release(self.b, through: LogIndex(1))
        log.append(1, 121...121)
        log.flushAll()
        #expect(log.segmentCount <= 2)
        for index in 122...300 as ClosedRange<UInt64> {
            log.append(1, index...index)
            log.release(self.a, through: LogIndex(index - 2))
            log.flushAll()
        }
        #expect(bench.files.allFiles.count <= 2 + bench.limits.spareCountMax)
        bench.files.restart(after: .powerLoss)
        let again = try bench.open(isNew: false)
        #expect(
            again.damage == SegmentedLog.Damage(), "old frames of recycled segments are not read")
        #expect(try again.indexes(1).last == 300)
        #expect(again.start(of: self.b).index == LogIndex(1))
    }

    @Test func `an uncommitted tail is moved forward so that its segment can go`() throws {
        let bench = LogBench()
        let log = try bench.open()
        log.append(2, 1...3)
        log.flushAll()
        for index in 1...60 as ClosedRange<UInt64> {
            log.append(1, index...index)
            log.release(self.a, through: LogIndex(index))
            log.flushAll()
        }
        #expect(log.holdersOfOldest == [self.b])
        try log.moveForward(self.b)
        log.release(self.a, through: LogIndex(60))
        log.append(1, 61...61)
        log.flushAll()
        log.release(self.a, through: LogIndex(61))
        log.append(1, 62...62)
        log.flushAll()
        #expect(log.segmentCount <= 2)
        bench.files.restart(after: .powerLoss)
        let again = try bench.open(isNew: false)
        #expect(again.damage == SegmentedLog.Damage())
        #expect(try again.all(2) == LogBench.entries(1...3))
    }

    @Test func `a snapshot takes the place of all entries`() throws {
        let bench = LogBench()
        do {
            let log = try bench.open()
            log.append(1, 1...5)
            log.flushAll()
            log.restart(
                self.a,
                after: SnapshotIdentity(
                    index: LogIndex(50), term: Term(3), configuration: Configuration(voters: []),
                    digest: .empty))
            #expect(try log.indexes(1) == [])
            log.append(1, 51...52, term: 3)
            log.flushAll()
        }
        bench.files.restart(after: .powerLoss)
        let log = try bench.open(isNew: false)
        #expect(log.start(of: self.a) == (LogIndex(50), Term(3)))
        #expect(try log.indexes(1) == [51, 52])
        #expect(log.damage == SegmentedLog.Damage())
        #expect(throws: LogError.self) { _ = try log.read(self.a, from: LogIndex(50), limit: 1) }
    }

    /// Found by the simulation, seed 334 of the mix `tears`: a segment began with a state that
    /// still named entries which the snapshot had left out. The record of the snapshot came only
    /// with the next batch.
    @Test func `S-07 a segment that begins between a snapshot and the record of it owes nothing`()
        throws
    {
        var rotationCount = 0
        for count in 1...60 as ClosedRange<UInt64> {
            let bench = LogBench()
            // One entry fills a batch: what the snapshot changes comes with the next.
            bench.limits.batchSizeMax = ByteCount(250)
            do {
                let log = try bench.open()
                log.append(1, 1...5)
                log.append(2, 1...count)
                log.flushAll()
                let segmentCount = log.segmentCount
                log.append(2, (count + 1)...(count + 1))
                log.restart(
                    self.a,
                    after: SnapshotIdentity(
                        index: LogIndex(50), term: Term(3),
                        configuration: Configuration(voters: []), digest: .empty))
                #expect(log.flush(), "the record of the snapshot waits")
                if log.segmentCount > segmentCount { rotationCount += 1 }
            }
            bench.files.restart(after: .powerLossLosingAll)
            let log = try bench.open(isNew: false)
            #expect(log.damage == SegmentedLog.Damage(), "behind \(count) entries: \(log.damage)")
            #expect([[], [1, 2, 3, 4, 5]].contains(try log.indexes(1)))
            #expect(try log.indexes(2) == Array(1...(count + 1)))
        }
        #expect(rotationCount > 0, "no segment began")
    }

    @Test func `S-01 S-23 a failed sync fails every group, once, for good`() throws {
        let bench = LogBench()
        let log = try bench.open()
        log.append(1, 1...1)
        log.flushAll()
        _ = bench.events
        bench.files.plan(
            DiskFault(at: bench.files.operationCount + 2, .fail(.io), kinds: [.sync]))
        log.append(1, 2...2)
        log.append(2, 1...1)
        log.flushAll()
        let events = bench.events
        #expect(events.count == 1)
        guard case .failed = events[0] else {
            Issue.record("\(events)")
            return
        }
        bench.files.clearFaults()
        log.append(1, 3...3)
        log.flushAll()
        #expect(bench.events == [], "the second sync would say success and prove nothing")
        #expect(log.fault != nil)
        bench.files.restart(after: .processCrash)
        let again = try bench.open(isNew: false)
        let shown = try again.indexes(1)
        bench.files.restart(after: .powerLossLosingAll)
        #expect(try bench.open(isNew: false).indexes(1) == shown, "what a start showed is durable")
    }

    @Test
    func `S-03 a full disk holds up the batch that needs a segment, and nothing acknowledged`()
        throws
    {
        let bench = LogBench()
        let log = try bench.open()
        log.append(1, 1...1)
        log.flushAll()
        bench.files.setCapacity(10_000)
        for index in 2...60 as ClosedRange<UInt64> {
            log.append(1, index...index)
            log.flushAll()
        }
        #expect(log.isFull && log.fault == nil)
        var durable = LogIndex.zero
        for case .durable(_, let through, _, _) in bench.events { durable = max(durable, through) }
        #expect(durable > LogIndex(1))
        bench.files.setCapacity(nil)
        bench.files.restart(after: .powerLossLosingAll)
        let again = try bench.open(isNew: false)
        #expect(try again.indexes(1) == Array(1...durable.raw))
    }

    /// Core audit 9: development has smaller segments than production, and a directory goes from
    /// one to the other.
    @Test(arguments: [[8_192, 16_384, 8_192], [16_384, 4_096, 65_536, 8_192]])
    func `each segment keeps its size, and new ones have the one that is set`(
        sizes: [Int]
    ) throws {
        let bench = LogBench()
        var end: UInt64 = 0
        for size in sizes {
            bench.limits.segmentSize = ByteCount(size)
            let log = try bench.open(isNew: end == 0)
            #expect(log.damage == SegmentedLog.Damage())
            #expect(try log.all(1) == (end == 0 ? [] : LogBench.entries(1...end)))
            for _ in 0..<40 {
                log.append(1, end + 1...end + 3)
                log.flushAll()
                end += 3
            }
            bench.files.restart(after: .powerLossLosingAll)
        }
        let log = try bench.open(isNew: false)
        #expect(log.damage == SegmentedLog.Damage())
        #expect(try log.all(1) == LogBench.entries(1...end))
        // What is let go is used again only where its size is that of new ones.
        log.release(self.a, through: LogIndex(end))
        log.append(1, end + 1...end + 1)
        log.flushAll()
        for _ in 0..<200 {
            end += 1
            log.append(1, end + 1...end + 1)
            log.flushAll()
            log.release(self.a, through: LogIndex(end))
        }
        let lengths = try bench.files.list("log").map { name in
            try bench.files.open(DiskPath("log").appending(name.raw), create: false).length
        }
        #expect(Set(lengths) == [UInt64(sizes[sizes.count - 1])])
    }

    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func `S-22 a segment stays until the record of its release is on disk`(last: UInt64) throws {
        let bench = LogBench(segmentSize: 4_096)
        bench.limits.spareCountMax = 0
        let log = try bench.open()
        for index in 1...last {
            log.append(1, index...index)
            #expect(log.beginFlush())
            // While the batch is being synced: its record goes with the next one.
            log.release(self.a, through: LogIndex(index - 1))
            log.endFlush()
        }
        bench.files.restart(after: .processCrash)
        let again = try bench.open(isNew: false)
        #expect(again.damage.isNone, "\(again.damage)")
        #expect(again.last(of: self.a).index == LogIndex(last))
    }

    @Test func `S-03 S-05 a disk without room for a segment makes the log wait, not fail`() throws {
        let bench = LogBench(segmentSize: 4_096)
        bench.limits.spareCountMax = 0
        let log = try bench.open()
        log.append(1, 1...2)
        log.flushAll()
        bench.files.setCapacity(bench.files.usedSize)
        _ = bench.events
        for index in 3...40 as ClosedRange<UInt64> { log.append(1, index...index) }
        while log.flush() {}
        #expect(log.isFull)
        #expect(log.fault == nil)
        let durable = log.durable(of: self.a)
        #expect(durable < LogIndex(40))
        #expect(bench.files.allFiles.count == 1, "half a segment is not left behind")
        #expect(!log.flush(), "still full")
        bench.files.setCapacity(nil)
        log.flushAll()
        #expect(!log.isFull)
        #expect(log.durable(of: self.a) == LogIndex(40))
        #expect(try log.indexes(1) == Array(1...40))
    }

    @Test func `a forgotten group begins at one again, and keeps what it voted`() throws {
        let bench = LogBench()
        let vote = HardState(term: Term(4), vote: NodeID(2))
        do {
            let log = try bench.open()
            log.append(1, 1...20)
            log.append(2, 1...3)
            log.submit([LogBatch(group: self.a, hardState: vote)])
            log.flushAll()
            log.release(self.a, through: LogIndex(10))
            log.append(2, 4...4)
            log.flushAll()
            log.forget(self.a)
            #expect(log.hasUnsyncedCut(of: self.a))
            log.flushAll()
            #expect(!log.hasUnsyncedCut(of: self.a))
            #expect(log.last(of: self.a).index == .zero && log.hardState(of: self.a) == vote)
            // Entries at the very indexes that were there before.
            log.append(1, 1...7, term: 5)
            log.flushAll()
        }
        bench.files.restart(after: .powerLoss)
        let log = try bench.open(isNew: false)
        #expect(log.start(of: self.a).index == .zero)
        #expect(try log.all(1) == LogBench.entries(1...7, term: 5))
        #expect(try log.indexes(2) == [1, 2, 3, 4])
        #expect(log.hardState(of: self.a) == vote && log.damage == SegmentedLog.Damage())
    }

    @Test func `what was forgotten stays forgotten when its segments are gone`() throws {
        let bench = LogBench()
        do {
            let log = try bench.open()
            log.append(1, 1...20)
            log.flushAll()
            log.forget(self.a)
            log.append(2, 1...60)
            log.flushAll()
            log.release(self.b, through: LogIndex(60))
            log.append(2, 61...61)
            log.flushAll()
            #expect(log.segmentCount <= 2, "nothing holds the old segments")
        }
        bench.files.restart(after: .powerLoss)
        let log = try bench.open(isNew: false)
        #expect(try log.indexes(1) == [] && log.start(of: self.a).index == .zero)
        #expect(log.damage == SegmentedLog.Damage())
    }
}
