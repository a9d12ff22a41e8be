import StratusDoubles
import StratusModel
import StratusSQLite
import StratusStorage
import Testing

/// Rows read back from the disk beside their owner.
@Suite struct PartitionScrubTests {
    private func store(_ world: SimulatedWorld) throws -> PartitionStore<RegisterState> {
        try PartitionStore(
            RegisterState(), group: GroupID(4), in: "partitions", of: FileSystem(world.files))
    }

    private func result(of scrub: PartitionScrub, pieces: ByteCount = .kibibytes(8))
        throws(StoreError) -> PartitionScrub.Step
    {
        for _ in 0..<10_000 {
            let step = try scrub.next(pieces)
            if step != .more { return step }
        }
        return .more
    }

    @Test func `S-40 S-14 every flipped bit in the rows is found`() throws {
        let world = SimulatedWorld(seed: 4)
        let store = try self.store(world)
        try store.take(1...60)
        #expect(try self.result(of: #require(try store.makeScrub())) == .whole)
        let files = world.simulatedFiles
        let path = try #require(files.allFiles.first { $0.raw.hasSuffix("rows-1.db") })
        let length = try #require(files.contents(of: path)).count
        for offset in stride(from: 5, to: length, by: Sweep.isFull ? 1 : 97) {
            files.flip(bit: offset % 8, at: offset, of: path)
            do throws(StoreError) {
                let scrub = try store.makeScrub()!
                let step = try self.result(of: scrub)
                #expect(step == .damaged(page: UInt32(offset / 4_096) + 1), "byte \(offset)")
            } catch {
                // The first pages are read as soon as the file is opened.
                #expect(error.kind == .corrupt, "byte \(offset): \(error)")
            }
            files.flip(bit: offset % 8, at: offset, of: path)
        }
        #expect(try self.result(of: #require(try store.makeScrub())) == .whole)
    }

    @Test func `S-13 rows that are not what was applied are sent to nobody, and stay marked`()
        throws
    {
        let world = SimulatedWorld(seed: 9)
        let store = try self.store(world)
        try store.take(1...60)
        _ = try store.snapshot().whole()
        try store.check().finish()
        try store.rot(.record, Bytes("r1".utf8), to: [0xDE, 0xAD])
        #expect(
            try self.result(of: #require(try store.makeScrub())) == .whole, "each page is sound")
        #expect(throws: StoreError.self) { try store.check().finish() }
        #expect(throws: StoreError.self) { _ = try store.snapshot().whole() }
        for wrong in WrongRows.allCases { try store.mark(wrong) }
        try store.close()
        // What was found outlives the process, and goes with the rows.
        let again = try self.store(world)
        #expect(again.wrongRows == .rotten)
        let sound = try self.store(SimulatedWorld(seed: 10))
        try sound.take(1...60)
        let identity = SnapshotIdentity(
            index: sound.applied, term: Term(1), configuration: Configuration(voters: []),
            digest: sound.digest)
        try again.install(identity, from: sound.snapshot().whole()).finish()
        #expect(again.wrongRows == nil)
        #expect(try self.store(world).wrongRows == nil)
        #expect(!world.simulatedFiles.allFiles.contains { $0.raw.contains("rotten") })
        try again.check().finish()
    }

    /// Clusters of the simulator find such rows by one of them where the other is missing.
    @Test(.enabled(if: PlantedBugs.isPossible))
    func `rows that nobody adds up are found`() throws {
        #if STRATUS_PLANTED
            var limits = PartitionStore<RegisterState>.Limits()
            limits.bugs = PlantedBugs([.spoolUnchecked, .rowsNotChecked])
            let store = try PartitionBench(seed: 9).open(limits)
            try store.take(1...60)
            try store.rot(.record, Bytes("r1".utf8), to: [0xDE, 0xAD])
            try store.check().finish()
            let identity = SnapshotIdentity(
                index: store.applied, term: Term(1), configuration: Configuration(voters: []),
                digest: store.digest)
            let other = try PartitionBench(seed: 10).open()
            // The receiver refuses it, and nobody knows why.
            #expect(throws: StoreError.self) {
                try other.install(identity, from: store.snapshot().whole()).finish()
            }
        #endif
    }

    @Test func `a check gives up where a write-ahead log is full, and hurries nobody`() throws {
        var limits = PartitionStore<RegisterState>.Limits()
        limits.walSizeMax = .kibibytes(64)
        limits.checkSize = ByteCount(500)
        let store = try PartitionBench(seed: 3).open(limits)
        try store.take(1...200)
        let work = try store.check()
        _ = try work.advance()
        var next: UInt64 = 201
        while next < 3_000, store.isSpooling {
            try store.take(next...(next + 9))
            next += 10
        }
        #expect(!store.isSpooling, "it holds no checkpoint back any longer")
        #expect { try work.finish() } throws: { ($0 as? StoreError)?.kind == .busy }
        #expect(try store.checkpoint())
        try store.check().finish()
    }

    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func `S-40 rows that are written, cut off and written again are never taken for damage`(
        seed: UInt64
    ) throws {
        let world = SimulatedWorld(seed: seed)
        var next: UInt64 = 1
        for life in 0..<6 as Range<UInt64> {
            let store = try self.store(world)
            next = store.applied.raw + 1
            let scrub = try store.makeScrub()
            for _ in 0..<8 {
                try store.take(next...(next + 9))
                next += 10
                if let scrub {
                    let step = try scrub.next(.kibibytes(4))
                    #expect([.more, .whole, .busy].contains(step), "life \(life): \(step)")
                }
                if next % 30 == 1 { try store.checkpoint() }
            }
            world.simulatedFiles.restart(after: life % 2 == 0 ? .powerLoss : .processCrash)
        }
        let store = try self.store(world)
        if store.applied > .zero {
            #expect(try self.result(of: #require(try store.makeScrub())) == .whole)
        }
    }
}
