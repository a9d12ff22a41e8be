import StratusCoding
import StratusDoubles
import StratusModel
import StratusRows
import StratusSQLite
import StratusStorage
import Testing

/// Rows that are applied and in memory, and how they come to the file.
@Suite struct PartitionFlushTests {
    typealias Store = PartitionStore<RegisterState>

    private static func limits(_ turns: FlushTurns? = nil) -> Store.Limits {
        var limits = Store.Limits()
        limits.flush.sliceCount = 2
        limits.flush.ageMin = .zero
        limits.flush.ageMax = .milliseconds(250)
        limits.turns = turns
        return limits
    }

    private static let start = MonotonicTime(nanoseconds: 1_000_000_000)

    private static func publish(_ store: Store, _ range: ClosedRange<UInt64>) throws(StoreError) {
        var outcomes: [Outcome] = []
        try store.apply(PartitionBench.entries(range), into: &outcomes)
        try store.publish()
    }

    /// Goal: an end at any write of a flush leaves the rows of one freeze, whole, and nothing that
    /// was durable is lost. Method: entries come between slices, and each file operation is the
    /// last one once.
    @Test(arguments: [DiskRestart.processCrash, .powerLoss, .powerLossLosingAll])
    func `an end at any write of a flush leaves the rows of one freeze`(restart: DiskRestart)
        throws
    {
        func run(_ bench: PartitionBench) -> (durable: LogIndex, frozen: Set<UInt64>) {
            var frozen: Set<UInt64> = [0]
            guard let store = try? bench.open(Self.limits()) else { return (.zero, frozen) }
            var now = Self.start
            do throws(StoreError) {
                while store.applied.raw < PartitionSweepTests.entryCount {
                    let next = store.applied.raw + 1
                    try Self.publish(store, next...min(next + 1, PartitionSweepTests.entryCount))
                    // Any of these may be set aside by the next call.
                    frozen.insert(store.applied.raw)
                    now = now + .milliseconds(250)
                    _ = try store.flushIfDue(at: now)
                    if next % 6 == 1 { try store.checkpoint() }
                }
                while try store.flushIfDue(at: now) == now {}
            } catch {}
            return (store.durable, frozen)
        }
        let whole = PartitionBench()
        _ = run(whole)
        for number in Sweep.operations(whole.files.operationCount, variant: 0) {
            let bench = PartitionBench(seed: UInt64(number) &* 31)
            bench.files.plan(DiskFault(at: number, .crash))
            let (durable, frozen) = run(bench)
            bench.files.restart(after: restart)
            let applied = try bench.open().applied.raw
            #expect(frozen.contains(applied), "crash at \(number): \(applied)")
            try PartitionSweepTests.check(bench, durable: durable, "crash at \(number)")
        }
    }

    @Test func `applied rows are read before they are in the file, and while they get there`()
        throws
    {
        let bench = PartitionBench()
        var store: Store? = try bench.open(Self.limits())
        try #require(store).take(1...1)
        let size = try #require(store).walSize
        try Self.publish(#require(store), 2...9)
        var (now, sliceCount) = (Self.start, 0)
        #expect(try store?.flushIfDue(at: now) == now + .milliseconds(250))
        now = now + .milliseconds(250)
        while try store?.flushIfDue(at: now) == now {
            sliceCount += 1
            try store?.expectState(through: 9, "slice \(sliceCount)")
            #expect(store?.walSize == size)
            #expect(try store?.makeCheckpointer()?.run() == LogIndex(1))
        }
        #expect(sliceCount > 3)
        #expect(try #require(store).walSize > size)
        #expect(try store?.makeCheckpointer()?.run() == LogIndex(9))
        // What comes later is in memory, and goes with the process.
        try Self.publish(#require(store), 10...12)
        try store?.expectState(through: 12, "in memory")
        #expect(store?.durable == .zero)
        store = nil
        bench.files.restart(after: .processCrash)
        let again = try bench.open()
        #expect(again.applied == LogIndex(9))
        #expect(try again.verify() == [])
        try again.expectState(through: 9, "after the end")
    }

    @Test func `S-04 a flush that finds no room is tried again, and nothing is applied twice`()
        throws
    {
        let bench = PartitionBench()
        let store = try bench.open(Self.limits())
        try store.take(1...1)
        try Self.publish(store, 2...9)
        let digest = store.digest
        bench.files.setCapacity(bench.files.usedSize)
        let now = Self.start
        _ = try store.flushIfDue(at: now)
        func flush() throws(StoreError) {
            while try store.flushIfDue(at: now + .seconds(1)) == now + .seconds(1) {}
        }
        for _ in 0..<3 {
            #expect(throws: StoreError.self) { try flush() }
            #expect(!store.mustReset && store.digest == digest && store.applied == LogIndex(9))
            try store.expectState(through: 9, "without room")
        }
        try Self.publish(store, 10...10)
        bench.files.setCapacity(nil)
        try flush()
        bench.files.restart(after: .processCrash)
        let again = try bench.open()
        #expect(again.applied == LogIndex(9) && again.digest == digest)
    }

    @Test func `memory has a bound, beyond which nothing is to be applied`() throws {
        var limits = Self.limits()
        limits.flush.countMax = 10
        let store = try PartitionBench().open(limits)
        var index: UInt64 = 0
        while !store.isFull {
            index += 1
            try #require(index < 100)
            try Self.publish(store, index...index)
        }
        let now = Self.start
        while try store.flushIfDue(at: now) == now {}
        #expect(!store.isFull)
        try store.expectState(through: index, "flushed")
    }

    @Test func `after a loss of memory entries give the same again, and nobody looks meanwhile`()
        throws
    {
        let store = try PartitionBench().open(Self.limits())
        try store.take(1...3)
        var (outcomes, again): ([Outcome], [Outcome]) = ([], [])
        try store.apply(PartitionBench.entries(4...9), into: &outcomes)
        try store.publish()
        let digest = store.digest
        #expect(try store.reset() == LogIndex(3))
        #expect(store.isReplaying)
        #expect(throws: StoreError.self) { _ = try store.bodies(from: BodyID(0), limit: 1) }
        try store.apply(PartitionBench.entries(4...9), into: &again)
        try store.publish()
        #expect(!store.isReplaying && again == outcomes && store.digest == digest)
    }

    @Test func `one partition of a node flushes at a time`() throws {
        let turns = FlushTurns(countMax: 1_000)
        let bench = PartitionBench()
        let one = try bench.open(Self.limits(turns))
        let other = try bench.open(Self.limits(turns), group: GroupID(13))
        let now = Self.start + .seconds(1)
        for store in [one, other] {
            try Self.publish(store, 1...9)
            _ = try store.flushIfDue(at: Self.start)
        }
        #expect(try one.flushIfDue(at: now) == now)
        let later = try #require(try other.flushIfDue(at: now))
        #expect(later > now && other.durable == .zero)
        while try one.flushIfDue(at: now) == now {}
        #expect(try other.flushIfDue(at: later) == later)
    }

    @Test func `a node with too much in memory flushes where the most is`() throws {
        let turns = FlushTurns(countMax: 20)
        let bench = PartitionBench()
        let one = try bench.open(Self.limits(turns))
        let other = try bench.open(Self.limits(turns), group: GroupID(13))
        let now = Self.start
        try Self.publish(one, 1...1)
        #expect(try one.flushIfDue(at: now) == now + .milliseconds(250))
        try Self.publish(other, 1...16)
        #expect(try one.flushIfDue(at: now) == now + .milliseconds(250))
        #expect(try other.flushIfDue(at: now) == now)
    }

    @Test func `a digest is told when all rows that it counts are in the file`() throws {
        let store = try PartitionBench().open(Self.limits())
        try store.take(1...1)
        var now = Self.start
        func flush() throws(StoreError) {
            _ = try store.flushIfDue(at: now)
            now = now + .milliseconds(250)
            while try store.flushIfDue(at: now) == now {}
        }
        try Self.publish(store, 2...5)
        store.noteDigest()
        let digest = store.digest
        _ = try store.flushIfDue(at: now)
        now = now + .milliseconds(250)
        // Set aside, and not yet written: what comes now waits for the next flush.
        #expect(try store.flushIfDue(at: now) == now)
        try Self.publish(store, 6...7)
        store.noteDigest()
        #expect(store.takeDigests() == [])
        while try store.flushIfDue(at: now) == now {}
        #expect(store.takeDigests().map(\.index) == [LogIndex(5)])
        #expect(store.takeDigests() == [])
        #expect(store.digest != digest)
        try flush()
        #expect(store.takeDigests().map(\.digest) == [store.digest])
        // What a loss of memory takes away is noted again by whoever applies it again.
        try Self.publish(store, 8...9)
        store.noteDigest()
        _ = try store.reset()
        try flush()
        #expect(store.takeDigests() == [])
    }
}
