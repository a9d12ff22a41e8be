import StratusCoding
import StratusDoubles
import StratusModel
import StratusSQLite
import StratusStorage
import Testing

/// Snapshots are spooled and installed a slice at a time, and the partition goes on in between.
@Suite struct SnapshotSlicesTests {
    private typealias Store = PartitionStore<RegisterState>

    private static func limits(wal: ByteCount = .mebibytes(16)) -> Store.Limits {
        var limits = Store.Limits()
        limits.snapshotFrameSize = 1_000
        limits.walSizeMax = wal
        return limits
    }

    private static func identity(of store: Store) -> SnapshotIdentity {
        SnapshotIdentity(
            index: store.applied, term: Term(1), configuration: Configuration(voters: []),
            digest: store.digest)
    }

    private static func installs(_ source: any SnapshotSource, _ identity: SnapshotIdentity) throws
        -> Store
    {
        let other = try PartitionBench(seed: 2).open(Self.limits())
        try other.install(identity, from: source).finish()
        #expect(other.digest == identity.digest)
        #expect(try other.verify() == [])
        return other
    }

    @Test func `what is applied between two slices is not in the snapshot`() throws {
        let one = try PartitionBench(seed: 1).open(Self.limits())
        try one.take(1...30)
        let identity = Self.identity(of: one)
        let work = try one.snapshot()
        var sliceCount = 0
        var next: UInt64 = 31
        while let size = try work.advance() {
            sliceCount += 1
            #expect(size.raw > 0 && size.raw < 3_000)
            try one.take(next...(next + 2))
            next += 3
            // Opened anew, rolled back, checkpointed by its owner: the view stands.
            if sliceCount == 3 { try one.close() }
            if sliceCount == 5 { #expect(try one.reset() == one.applied) }
            if sliceCount == 6 { #expect(try !one.checkpoint(), "a view holds frames back") }
        }
        #expect(sliceCount > 10)
        #expect(one.applied.raw == next - 1)
        let other = try Self.installs(work.source(), identity)
        try other.expectState(through: 30, "as it was")
        try one.expectState(through: next - 1, "as it is")
        #expect(try one.checkpoint())
        #expect(one.durable == one.applied)
    }

    @Test func `checkpoints are incomplete as long as a view is open, and no longer`() throws {
        let one = try PartitionBench().open(Self.limits())
        try one.take(1...30)
        var work: (any SnapshotSpooling)? = try one.snapshot()
        _ = try work?.advance()
        try one.take(31...33)
        let checkpointer = try #require(try one.makeCheckpointer())
        #expect(one.isSpooling)
        #expect(try checkpointer.run() == nil)
        // Nobody wants it any more.
        work = nil
        #expect(!one.isSpooling)
        #expect(try checkpointer.run() == LogIndex(33))
    }

    @Test func `a full WAL hurries a snapshot, and one four times as large has it done at once`()
        throws
    {
        let sizeMax = ByteCount.kibibytes(256)
        let one = try PartitionBench().open(Self.limits(wal: sizeMax))
        try one.take(1...30)
        let identity = Self.identity(of: one)
        let work = try one.snapshot()
        _ = try work.advance()
        var index: UInt64 = 31
        while !work.isUrgent {
            try one.take(index...index)
            index += 1
            #expect(one.walSize.raw <= sizeMax.raw + 200_000)
        }
        #expect(one.isSpooling && one.walSize > sizeMax)
        while one.isSpooling {
            try one.take(index...index)
            index += 1
            #expect(one.walSize.raw <= 4 * sizeMax.raw + 200_000)
        }
        try one.take(index...index)
        #expect(one.walSize < sizeMax, "the WAL begins again")
        #expect(try work.advance() == nil)
        let other = try Self.installs(work.source(), identity)
        try other.expectState(through: 30, "as it was")
    }

    @Test func `a snapshot begun before another is given up`() throws {
        let one = try PartitionBench().open(Self.limits())
        try one.take(1...30)
        let first = try one.snapshot()
        _ = try first.advance()
        try one.take(31...33)
        let identity = Self.identity(of: one)
        let second = try one.snapshot()
        #expect(throws: StoreError.self) { try first.advance() }
        _ = try Self.installs(second.whole(), identity)
    }

    // Nothing was applied that needs a file, when the snapshot began to arrive.
    @Test func `a partition that gets its file while a snapshot is installed`() throws {
        let one = try PartitionBench(seed: 1).open(Self.limits())
        try one.take(1...30)
        let bench = PartitionBench(seed: 2)
        let other = try bench.open(Self.limits())
        let work = try other.install(Self.identity(of: one), from: one.snapshot().whole())
        for _ in 0..<4 { _ = try work.advance() }
        try other.take(1...3)
        try other.checkpoint()
        try other.expectState(through: 3, "until the last slice")
        try work.finish()
        try other.expectState(through: 30, "after it")
        #expect(other.durable == LogIndex(30))
        #expect(bench.files.allFiles.allSatisfy { $0.raw.hasPrefix("partitions/00012/rows-2.db") })
    }

    @Test func `a sliced install that fails leaves the old rows, which went on meanwhile`() throws {
        let one = try PartitionBench(seed: 1).open(Self.limits())
        try one.take(1...30)
        let frames = try PartitionStoreTests.Frames(one.snapshot().whole())
        frames.frames.removeLast()
        let bench = PartitionBench(seed: 2)
        let other = try bench.open(Self.limits())
        try other.take(1...3)
        let work = try other.install(Self.identity(of: one), from: frames)
        for _ in 0..<4 { _ = try work.advance() }
        try other.take(4...5)
        #expect(throws: StoreError.self) { try work.finish() }
        try other.expectState(through: 5, "after the failure")
        #expect(!bench.files.allFiles.contains("partitions/00012/unfinished.db"))
        try other.install(Self.identity(of: one), from: one.snapshot().whole()).finish()
        try other.expectState(through: 30, "the next one")
    }

    /// The written bytes may or may not be on the medium: the database is thrown away, and the next
    /// one is another file.
    @Test(arguments: [0, 1, 4])
    func `a failed sync of a database that is being made fails that one and no other`(
        sliceCount: Int
    ) throws {
        let one = try PartitionBench(seed: 1).open(Self.limits())
        try one.take(1...30)
        let bench = PartitionBench(seed: 2)
        let other = try bench.open(Self.limits())
        try other.take(1...3)
        for round in 0..<2 {
            let work = try other.install(Self.identity(of: one), from: one.snapshot().whole())
            for _ in 0..<sliceCount { _ = try work.advance() }
            bench.files.plan(
                DiskFault(
                    at: bench.files.operationCount + 1, .fail(.io), isSticky: true, kinds: [.sync],
                    prefix: "partitions/00012/unfinished.db"))
            #expect(throws: StoreError.self) { try work.finish() }
            bench.files.clearFaults()
            #expect(!other.hasFailedSync, "round \(round): the rows in use are as sound as before")
            try other.expectState(through: 3, "after the failure")
            #expect(!bench.files.allFiles.contains("partitions/00012/unfinished.db"))
        }
        try other.install(Self.identity(of: one), from: one.snapshot().whole()).finish()
        try other.expectState(through: 30, "the next one")
        bench.files.restart(after: .powerLossLosingAll)
        try bench.open().expectState(through: 30, "and it is durable")
    }

    @Test(arguments: [DiskRestart.processCrash, .powerLoss, .powerLossLosingAll])
    func `C-29 an end between any two slices of an install leaves the old rows`(
        restart: DiskRestart
    ) throws {
        let one = try PartitionBench(seed: 1).open(Self.limits())
        try one.take(1...30)
        var sliceCount = 0
        var isDone = false
        while !isDone {
            let bench = PartitionBench(seed: UInt64(sliceCount) + 3)
            do {
                let other = try bench.open(Self.limits())
                try other.take(1...3)
                try other.checkpoint()
                let work = try other.install(Self.identity(of: one), from: one.snapshot().whole())
                for _ in 0..<sliceCount where !isDone { isDone = try work.advance() == nil }
            }
            bench.files.restart(after: restart)
            let again = try bench.open()
            let name = "\(sliceCount) slices"
            #expect(again.applied.raw == (isDone ? 30 : 3), "\(name)")
            try again.expectState(through: again.applied.raw, name)
            #expect(bench.files.allFiles.allSatisfy { !$0.raw.contains("unfinished") }, "\(name)")
            sliceCount += 1
        }
        #expect(sliceCount > 10)
    }
}
