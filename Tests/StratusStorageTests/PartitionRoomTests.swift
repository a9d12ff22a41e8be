import StratusDoubles
import StratusModel
import StratusStorage
import Testing

/// Committed data fits into the WAL, but the checkpoint's additions to the database do not fit
/// beside it.
@Suite struct PartitionRoomTests {
    private static let pageSize = 4_096
    private static let durable: UInt64 = 5
    private static let committed: UInt64 = 90

    enum Way: CaseIterable { case ownThread, checkpointer, closing }

    /// A store with a durable beginning, and much that only the WAL holds.
    private static func fill(_ bench: PartitionBench) throws -> PartitionStore<RegisterState> {
        let store = try bench.open()
        try store.take(1...Self.durable)
        try store.checkpoint()
        for index in (Self.durable + 1)...Self.committed { try store.take(index...index) }
        return store
    }

    private static func checkpoint(_ store: PartitionStore<RegisterState>, _ way: Way)
        throws(StoreError)
    {
        switch way {
        case .ownThread: try store.checkpoint()
        case .checkpointer:
            if let index = try store.makeCheckpointer()?.run() {
                store.noteDurable(through: index)
            }
        case .closing: try store.close()
        }
    }

    /// Every amount of room that is too little, page by page. Returns how many there are.
    private static func inEveryShortage(
        _ way: Way, _ body: (PartitionBench, PartitionStore<RegisterState>, String) throws -> Void
    ) throws -> Int {
        for pages in 0...64 {
            let bench = PartitionBench(seed: UInt64(pages) + 1)
            let store = try Self.fill(bench)
            let room = bench.files.usedSize.raw + pages * Self.pageSize
            bench.files.setCapacity(ByteCount(room))
            do throws(StoreError) {
                try Self.checkpoint(store, way)
                return pages
            } catch {
                #expect(error.kind == .full, "\(way), room for \(pages) pages: \(error)")
            }
            try body(bench, store, "\(way), room for \(pages) pages")
        }
        return .max
    }

    @Test(arguments: Way.allCases)
    func `S-04 a checkpoint that finds no room makes nothing durable, and one with room does`(
        way: Way
    ) throws {
        let shortages = try Self.inEveryShortage(way) { bench, store, name in
            #expect(store.durable.raw == Self.durable, "\(name)")
            #expect(store.applied.raw == Self.committed, "\(name)")
            try store.expectState(through: Self.committed, name)
            bench.files.setCapacity(nil)
            try store.checkpoint()
            #expect(store.durable.raw == Self.committed, "\(name)")
            try store.take((Self.committed + 1)...(Self.committed + 20))
            try store.checkpoint()
            bench.files.restart(after: .powerLossLosingAll)
            let again = try bench.open()
            #expect(again.applied.raw == Self.committed + 20, "\(name)")
            try again.expectState(through: Self.committed + 20, name)
            #expect(try again.verify() == [], "\(name)")
        }
        #expect((3...60).contains(shortages), "too few pages to be short of: \(shortages)")
    }

    /// Half of the pages may have been copied, and none of them synced.
    @Test(arguments: Way.allCases, [DiskRestart.processCrash, .powerLoss, .powerLossLosingAll])
    func `S-04 S-26 what a checkpoint without room leaves behind is whole at the next start`(
        way: Way, restart: DiskRestart
    ) throws {
        let shortages = try Self.inEveryShortage(way) { bench, store, name in
            bench.files.restart(after: restart)
            bench.files.setCapacity(nil)
            let again = try bench.open()
            #expect(again.applied.raw >= Self.durable, "\(name): durable went back")
            #expect(again.applied.raw <= Self.committed, "\(name)")
            try again.expectState(through: again.applied.raw, name)
            #expect(try again.verify() == [], "\(name)")
            if again.applied.raw < Self.committed {
                try again.take((again.applied.raw + 1)...Self.committed)
            }
            try again.checkpoint()
            #expect(again.durable.raw == Self.committed, "\(name)")
            #expect(again.digest == store.digest, "\(name)")
        }
        #expect(shortages >= 3)
    }
}
