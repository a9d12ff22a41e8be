import StratusCoding
import StratusDoubles
import StratusModel
import StratusSQLite
import StratusStorage
import Testing

/// Entries for a partition, and a store over a simulated disk to apply them to.
struct PartitionBench {
    let world: SimulatedWorld
    var files: SimulatedFiles { self.world.simulatedFiles }
    static let group = GroupID(12)

    init(seed: UInt64 = 1, isSealed: Bool = false) {
        self.world = SimulatedWorld(seed: seed)
        if isSealed { self.world.seal(under: SealedFilesTests.masters()) }
    }

    func open(
        _ limits: PartitionStore<RegisterState>.Limits = .init(), group: GroupID = Self.group
    ) throws(StoreError) -> PartitionStore<RegisterState> {
        try PartitionStore(
            RegisterState(), group: group, in: "partitions", of: FileSystem(self.world.files),
            limits: limits)
    }

    /// Entry `index` writes `value` to the register named by the index modulo `registers`.
    static func entry(
        _ index: UInt64, registers: UInt64 = 7, size: Int = 300, deadline: Int64 = 30_000,
        identity: UInt64? = nil, milliseconds: Int64? = nil
    ) -> Entry {
        let time = milliseconds ?? 1_700_000_000_000 + Int64(index)
        let body = RegisterCommand.write(
            Bytes("r\(index % registers)".utf8),
            value: Bytes("\(index) ".utf8) + Bytes(repeating: 7, count: size))
        let command = Command(
            kind: .reference, identity: RequestIdentity(high: 5, low: identity ?? index),
            deadlineMilliseconds: time + deadline,
            container: ContainerReference(container: "iCloud.test", environment: .production),
            schemaVersion: 0, principal: Principal(kind: .system), body: body.encoded())
        return Entry(
            index: LogIndex(index), term: Term(1), time: HybridTime(milliseconds: time),
            kind: .command, payload: command.encoded())
    }

    static func entries(_ range: ClosedRange<UInt64>) -> ArraySlice<Entry> {
        range.map { Self.entry($0) }[...]
    }
}

extension PartitionStore where State == RegisterState {
    /// Applies and commits.
    func take(_ range: ClosedRange<UInt64>) throws {
        var outcomes: [Outcome] = []
        try self.apply(PartitionBench.entries(range), into: &outcomes)
        try self.commit()
    }

    /// Checks the content of a store that applied the entries 1 to `index`.
    func expectState(through index: UInt64, _ name: String) throws {
        for register in 0..<7 as Range<UInt64> {
            let value = try RegisterState.value(
                in: self.answer(RegisterQuery.value(Bytes("r\(register)".utf8)).query))
            let last = (1...max(1, index)).last { $0 % 7 == register && $0 <= index }
            let prefix = last.map { Bytes("\($0) ".utf8) }
            #expect(value.map { Bytes($0.prefix(prefix?.count ?? 0)) } == prefix, "\(name)")
        }
    }
}

@Suite struct PartitionStoreTests {
    @Test func `no file exists before the first entry, and reads then find nothing`() throws {
        let bench = PartitionBench()
        let store = try bench.open()
        #expect(store.applied == .zero && store.durable == .zero)
        let answer = try store.answer(RegisterQuery.value([1]).query)
        #expect(try RegisterState.value(in: answer) == nil)
        #expect(bench.files.allFiles == [])
        try store.take(1...1)
        #expect(bench.files.allFiles.contains("partitions/00012/rows-1.db"))
    }

    @Test func `durable follows a checkpoint, never a commit`() throws {
        let bench = PartitionBench()
        let store = try bench.open()
        try store.take(1...5)
        #expect(store.applied == LogIndex(5))
        #expect(store.durable == .zero)
        #expect(try store.checkpoint())
        #expect(store.durable == LogIndex(5))
    }

    @Test func `C-06 a restart continues where the last commit left off`() throws {
        let bench = PartitionBench()
        var store: PartitionStore<RegisterState>? = try bench.open()
        try store?.take(1...5)
        let digest = store?.digest
        var outcomes: [Outcome] = []
        try store?.apply(PartitionBench.entries(6...8), into: &outcomes)
        store = nil
        bench.files.restart(after: .processCrash)
        let again = try bench.open()
        #expect(again.applied == LogIndex(5))
        #expect(again.durable == LogIndex(5))
        #expect(again.digest == digest)
        try again.expectState(through: 5, "after the restart")
    }

    @Test func `C-07 a known identity answers what it answered and does nothing`() throws {
        let store = try PartitionBench().open()
        let entries = [
            PartitionBench.entry(1, identity: 9), PartitionBench.entry(2, identity: 9),
            PartitionBench.entry(3, identity: 10),
        ]
        var outcomes: [Outcome] = []
        try store.apply(entries[...], into: &outcomes)
        #expect(outcomes[0] == outcomes[1])
        #expect(outcomes[0].verdict == .decided)
        let feed = try RegisterState.changes(
            in: store.answer(RegisterQuery.feed(after: 0, limit: 10).query))
        #expect(feed.map(\.position) == [1, 3])
    }

    @Test func `C-51 an entry stamped after its command's deadline does nothing`() throws {
        let store = try PartitionBench().open()
        var outcomes: [Outcome] = []
        let late = PartitionBench.entry(1, deadline: -1)
        let inTime = PartitionBench.entry(2, deadline: 0)
        try store.apply([late, inTime][...], into: &outcomes)
        #expect(outcomes.map(\.verdict) == [.expired, .decided])
        #expect(outcomes[0].expiredAtMilliseconds == late.time.milliseconds)
        #expect(outcomes[1].expiredAtMilliseconds == nil)
    }

    @Test func `C-07 identities are remembered through a restart and forgotten after the deadline`()
        throws
    {
        let bench = PartitionBench()
        let start: Int64 = 1_700_000_000_000
        do {
            let store = try bench.open()
            var outcomes: [Outcome] = []
            for index in 1...200 as ClosedRange<UInt64> {
                try store.apply(
                    [PartitionBench.entry(index, deadline: 100, milliseconds: start)][...],
                    into: &outcomes)
            }
            try store.commit()
        }
        bench.files.restart(after: .processCrash)
        let store = try bench.open()
        var outcomes: [Outcome] = []
        // A copy in time finds its outcome; one after the first deadline, with a later deadline of
        // its own, does not.
        try store.apply(
            [
                PartitionBench.entry(201, identity: 3, milliseconds: start + 100),
                PartitionBench.entry(202, identity: 3, milliseconds: start + 101),
            ][...], into: &outcomes)
        let feed = try RegisterState.changes(
            in: store.answer(RegisterQuery.feed(after: 200, limit: 10).query))
        #expect(feed.map(\.position) == [202])
        for index in 203...400 as ClosedRange<UInt64> {
            try store.apply(
                [PartitionBench.entry(index, milliseconds: start + 1_000)][...], into: &outcomes)
        }
        #expect(store.rememberedCount == 199, "expired identities are cleaned up")
    }

    @Test func `C-34 an entry that cannot be read is answered, not obeyed`() throws {
        let store = try PartitionBench().open()
        var outcomes: [Outcome] = []
        let time = HybridTime(milliseconds: 1)
        let entries = [
            Entry(index: LogIndex(1), term: Term(1), time: time, kind: .noop, payload: []),
            Entry(index: LogIndex(2), term: Term(1), time: time, kind: .command, payload: [1, 1]),
            Entry(index: LogIndex(3), term: Term(1), time: time, kind: .mail, payload: [1]),
            Entry(
                index: LogIndex(4), term: Term(2), time: time, kind: .configuration, payload: [5]),
        ]
        try store.apply(entries[...], into: &outcomes)
        #expect(outcomes.map(\.verdict) == [.none, .unreadable, .unreadable, .none])
        #expect(store.appliedPosition.configuration == [5])
        #expect(store.appliedPosition.term == Term(2))
    }

    @Test func `mail and commands are not taken for each other`() throws {
        let store = try PartitionBench().open()
        var outcomes: [Outcome] = []
        let command = PartitionBench.entry(1)
        let route = MailRoute(from: GroupID(1), to: GroupID(2))
        let mail = MailCommand.release(MailReceipt(route, through: 2, at: .zero)).enveloped(
            identity: RequestIdentity(high: 1, low: 1), deadlineMilliseconds: .max)
        func entry(_ index: UInt64, _ kind: Entry.Kind, _ payload: Bytes) -> Entry {
            Entry(
                index: LogIndex(index), term: Term(1), time: command.time, kind: kind,
                payload: payload)
        }
        try store.apply(
            [
                entry(1, .mail, command.payload), entry(2, .command, mail.encoded()),
                entry(3, .command, command.payload),
            ][...], into: &outcomes)
        #expect(outcomes.map(\.verdict) == [.unreadable, .unreadable, .decided])
        // Nothing is remembered of what was not decided.
        #expect(store.rememberedCount == 1)
    }

    @Test func `equal entries give equal digests, however they were cut into commits`() throws {
        let one = try PartitionBench(seed: 1).open()
        let other = try PartitionBench(seed: 2).open()
        try one.take(1...40)
        for index in 1...40 as ClosedRange<UInt64> { try other.take(index...index) }
        #expect(one.digest == other.digest)
        #expect(one.digest != .empty)
        #expect(try one.verify() == [])
        try other.take(41...41)
        #expect(one.digest != other.digest)
    }

    /// A node of a cluster took 25 batches of 200 saves at once, and said nothing for seconds.
    @Test func `no more is applied at once than writes so many rows`() throws {
        var limits = PartitionStore<RegisterState>.Limits()
        limits.writeCountMax = 6
        let store = try PartitionBench().open(limits)
        var rest = PartitionBench.entries(1...40)
        var roundCount = 0
        while !rest.isEmpty {
            var outcomes: [Outcome] = []
            try store.apply(rest, into: &outcomes)
            try #require(!outcomes.isEmpty && outcomes.count <= 6)
            #expect(store.newer == nil)
            rest = rest.dropFirst(outcomes.count)
            try store.commit()
            roundCount += 1
        }
        #expect(roundCount > 6)
        try store.expectState(through: 40, "in pieces")
        let whole = try PartitionBench().open()
        try whole.take(1...40)
        #expect(store.digest == whole.digest)
    }

    @Test func `an idle partition closes and opens again by itself`() throws {
        let store = try PartitionBench().open()
        try store.take(1...5)
        try store.close()
        #expect(!store.isOpen)
        #expect(store.durable == LogIndex(5))
        try store.expectState(through: 5, "closed")
        #expect(store.isOpen)
        try store.take(6...9)
        try store.expectState(through: 9, "open again")
    }

    @Test func `S-45 the WAL stays bounded: a full one is copied before the next transaction`()
        throws
    {
        var limits = PartitionStore<RegisterState>.Limits()
        limits.walSizeMax = .kibibytes(64)
        let store = try PartitionBench().open(limits)
        for index in 1...200 as ClosedRange<UInt64> {
            try store.take(index...index)
            #expect(store.walSize <= .kibibytes(64 + 64))
        }
        #expect(store.durable > .zero)
    }

    @Test func `S-45 a checkpoint from another connection moves durable to the last commit`() throws
    {
        let store = try PartitionBench().open()
        try store.take(1...3)
        let checkpointer = try #require(try store.makeCheckpointer())
        try store.take(4...6)
        let index = try checkpointer.run()
        #expect(index == LogIndex(6))
        if let index { store.noteDurable(through: index) }
        #expect(store.durable == LogIndex(6))
    }

    @Test func `a checkpointer that is kept copies what was committed since its last run`() throws {
        let store = try PartitionBench().open()
        try store.take(1...3)
        let checkpointer = try #require(try store.makeCheckpointer())
        for last in stride(from: 6, through: 30, by: 6) as StrideThrough<UInt64> {
            try store.take((store.applied.raw + 1)...last)
            let index = try #require(try checkpointer.run())
            #expect(index == LogIndex(last))
            store.noteDurable(through: index)
            #expect(store.durable == LogIndex(last))
        }
        #expect(store.isCurrent(checkpointer))
        #expect(try store.verify() == [])
    }

    @Test func `a snapshot carries everything to another replica`() throws {
        var limits = PartitionStore<RegisterState>.Limits()
        limits.snapshotFrameSize = 1_000
        let one = try PartitionBench(seed: 1).open(limits)
        try one.take(1...60)
        let other = try PartitionBench(seed: 2).open(limits)
        try other.take(1...3)
        let identity = SnapshotIdentity(
            index: one.applied, term: Term(1), configuration: Configuration(voters: []),
            digest: one.digest)
        try other.install(identity, from: one.snapshot().whole()).finish()
        #expect(other.digest == one.digest)
        #expect(other.applied == LogIndex(60) && other.durable == LogIndex(60))
        try other.expectState(through: 60, "installed")
        #expect(try other.verify() == [])
        // Identities travel with it.
        var outcomes: [Outcome] = []
        try other.apply([PartitionBench.entry(61, identity: 60)][...], into: &outcomes)
        try one.apply([PartitionBench.entry(61, identity: 60)][...], into: &outcomes)
        #expect(outcomes[0] == outcomes[1])
        #expect(one.digest == other.digest)
    }

    final class Frames: SnapshotSource {
        var frames: [Bytes]
        init(_ source: any SnapshotSource) throws {
            self.frames = []
            while let frame = try source.next() { self.frames.append(frame) }
        }
        func next() throws(StoreError) -> Bytes? {
            self.frames.isEmpty ? nil : self.frames.removeFirst()
        }
    }

    @Test func `C-30 S-39 a snapshot that is cut, mixed or flipped is refused whole`() throws {
        var limits = PartitionStore<RegisterState>.Limits()
        limits.snapshotFrameSize = 1_000
        let one = try PartitionBench(seed: 1).open(limits)
        try one.take(1...20)
        let identity = SnapshotIdentity(
            index: one.applied, term: Term(1), configuration: Configuration(voters: []),
            digest: one.digest)
        let sound = try Frames(one.snapshot().whole()).frames
        try one.take(21...30)
        let later = try Frames(one.snapshot().whole()).frames
        var flipped = sound
        flipped[2][40] ^= 4
        var swapped = sound
        swapped.swapAt(1, 2)
        let rows: [(name: String, frames: [Bytes])] = [
            ("cut before its end", Array(sound.dropLast())), ("nothing", []),
            ("a frame missing", Array(sound[..<1] + sound[2...])), ("two swapped", swapped),
            ("a bit flipped", flipped), ("of another index", later),
            ("ended by another", Array(sound.dropLast()) + later.suffix(1)),
        ]
        let other = try PartitionBench(seed: 2).open(limits)
        try other.take(1...3)
        let before = other.digest
        for row in rows {
            let source = try Frames(one.snapshot().whole())
            source.frames = row.frames
            #expect(throws: StoreError.self, "\(row.name)") {
                try other.install(identity, from: source).finish()
            }
            #expect(other.digest == before && other.applied == LogIndex(3), "\(row.name)")
        }
        let source = try Frames(one.snapshot().whole())
        source.frames = sound
        try other.install(identity, from: source).finish()
        try other.expectState(through: 20, "the sound one")
    }

    @Test func `S-14 S-28 a flipped bit in the database is never served`() throws {
        let bench = PartitionBench()
        do {
            let store = try bench.open()
            try store.take(1...30)
            try store.close()
        }
        let path: DiskPath = "partitions/00012/rows-1.db"
        // Everything is in the database; with the WAL there, SQLite would read from that.
        bench.files.uproot("partitions/00012/rows-1.db-wal")
        let length = try #require(bench.files.contents(of: path)).count
        var random = SeededGenerator(seed: 3)
        for _ in 0..<(Sweep.isFull ? 2_000 : 60) {
            let offset = Int.random(in: 0..<length, using: &random)
            let bit = Int.random(in: 0..<8, using: &random)
            bench.files.flip(bit: bit, at: offset, of: path)
            bench.files.restart(after: .processCrash)
            var faults = 0
            do {
                let store = try bench.open()
                if try !store.verify().isEmpty { faults += 1 }
            } catch { faults += 1 }
            // A page on no list holds nothing that could be served; this file has none of those.
            #expect(faults == 1, "bit \(bit) of byte \(offset)")
            bench.files.flip(bit: bit, at: offset, of: path)
        }
        try bench.open().expectState(through: 30, "mended")
    }

    @Test func `S-11 S-12 a page of another partition or place is damage`() throws {
        let bench = PartitionBench()
        for group in [GroupID(12), GroupID(13)] {
            let store = try bench.open(group: group)
            try store.take(1...30)
            try store.close()
        }
        let ours: DiskPath = "partitions/00012/rows-1.db"
        let theirs: DiskPath = "partitions/00013/rows-1.db"
        let sound = try #require(bench.files.contents(of: ours))
        let other = try #require(bench.files.contents(of: theirs))
        var foreign = sound
        foreign.replaceSubrange(8_192..<12_288, with: other[8_192..<12_288])
        var moved = sound
        moved.replaceSubrange(8_192..<12_288, with: sound[12_288..<16_384])
        var short = sound
        short.removeLast(4_096)
        for (name, bytes) in [("foreign", foreign), ("moved", moved), ("short", short)] {
            bench.files.plant(bytes, at: ours)
            bench.files.uproot("partitions/00012/rows-1.db-wal")
            bench.files.restart(after: .processCrash)
            var isFound = false
            do { isFound = try !bench.open().verify().isEmpty } catch { isFound = true }
            #expect(isFound, "\(name)")
        }
    }

    @Test func `S-28 a frame of the WAL that rots is not served`() throws {
        let bench = PartitionBench()
        var limits = PartitionStore<RegisterState>.Limits()
        // No cache to speak of: reads must come from the file.
        limits.cacheSize = .kibibytes(1)
        let store = try bench.open(limits)
        try store.take(1...200)
        let path: DiskPath = "partitions/00012/rows-1.db-wal"
        let length = try #require(bench.files.contents(of: path)).count
        for offset in stride(from: 32 + 24 + 4_000, to: length, by: 4_120) {
            bench.files.flip(bit: 1, at: offset, of: path)
        }
        #expect(throws: StoreError.self) { _ = try store.verify() }
    }

    @Test func `S-25 what an earlier process left beside the database is not merged`() throws {
        let bench = PartitionBench()
        do {
            let store = try bench.open()
            try store.take(1...9)
            try store.close()
        }
        let wal = try #require(bench.files.contents(of: "partitions/00012/rows-1.db-wal"))
        bench.files.plant(wal, at: "partitions/00012/rows-2.db.new-wal")
        bench.files.plant([1, 2, 3], at: "partitions/00012/rows-2.db.new")
        bench.files.plant([1, 2, 3], at: "partitions/00012/snapshot")
        bench.files.plant(wal, at: "partitions/00012/rows-0.db-wal")
        let store = try bench.open()
        try store.expectState(through: 9, "with leftovers")
        #expect(
            bench.files.allFiles == [
                "partitions/00012/rows-1.db", "partitions/00012/rows-1.db-wal",
            ])
    }

    @Test func `S-16 a partition whose database is gone says that it holds nothing`() throws {
        let bench = PartitionBench()
        do { try bench.open().take(1...9) }
        bench.files.uproot("partitions/00012/rows-1.db")
        bench.files.restart(after: .processCrash)
        let store = try bench.open()
        #expect(store.applied == .zero && store.durable == .zero)
        #expect(bench.files.allFiles == [], "the WAL of a lost database is not kept for a new one")
    }

    @Test func `S-36 a second process is refused the data directory`() throws {
        let world = SimulatedWorld(seed: 1)
        let first = try DataDirectory(in: world)
        #expect(throws: DataDirectory.Refusal.inUse) { _ = try DataDirectory(in: world) }
        world.simulatedFiles.restart(after: .processCrash)
        let second = try DataDirectory(in: world)
        #expect(first.isNew && !second.isNew)
        #expect(first.identity == second.identity)
    }

    @Test func `S-38 a data directory of a newer Stratus is refused before a byte is written`()
        throws
    {
        let world = SimulatedWorld(seed: 1)
        do { _ = try DataDirectory(in: world) }
        var stamp = try #require(world.simulatedFiles.contents(of: "STRATUS"))
        stamp[8] = 17
        world.simulatedFiles.plant(stamp, at: "STRATUS")
        #expect(throws: DataDirectory.Refusal.newerVersion(17)) { _ = try DataDirectory(in: world) }
        #expect(world.simulatedFiles.contents(of: "STRATUS") == stamp)
        for position in [0, 12, 20, 28] {
            var damaged = stamp
            damaged[8] = 1
            damaged[position] ^= 1
            world.simulatedFiles.plant(damaged, at: "STRATUS")
            #expect(throws: DataDirectory.Refusal.self) { _ = try DataDirectory(in: world) }
        }
    }
}
