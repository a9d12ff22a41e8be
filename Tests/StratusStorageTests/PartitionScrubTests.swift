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
