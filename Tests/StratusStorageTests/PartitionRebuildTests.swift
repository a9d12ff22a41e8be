import StratusCoding
import StratusDoubles
import StratusModel
import StratusSQLite
import StratusStorage
import Testing

/// A partition's file is made anew after an erasure: what was erased is then in no file.
@Suite struct PartitionRebuildTests {
    typealias Store = PartitionStore<ErasingState>
    static let secret = "the secret of somebody"

    static func open(_ bench: PartitionBench) throws(StoreError) -> Store {
        var limits = Store.Limits()
        limits.snapshotFrameSize = 1_000
        return try PartitionStore(
            ErasingState(), group: PartitionBench.group, in: "partitions",
            of: FileSystem(bench.world.files), limits: limits)
    }

    static func entry(_ index: UInt64, _ body: RegisterCommand, at milliseconds: Int64? = nil)
        -> Entry
    {
        // From 46 on it is a minute later.
        let late: Int64 = index < 46 ? 0 : 60_000
        let time = milliseconds ?? 1_700_000_000_000 + late + Int64(index)
        let command = Command(
            kind: .reference, identity: RequestIdentity(high: 5, low: index),
            deadlineMilliseconds: time + 30_000,
            container: ContainerReference(container: "iCloud.test", environment: .production),
            schemaVersion: 0, principal: Principal(kind: .system), body: body.encoded())
        return Entry(
            index: LogIndex(index), term: Term(1), time: HybridTime(milliseconds: time),
            kind: .command, payload: command.encoded())
    }

    /// Entries 1…40 write registers, 21…25 of them secrets; 41…45 erase those; 46 forgets outcomes; the
    /// rest writes.
    static func entry(_ index: UInt64) -> Entry {
        switch index {
        case 21...25:
            let text = "\(Self.secret) \(index) "
            return Self.entry(
                index,
                .write(
                    Bytes("secret\(index)".utf8),
                    value: Bytes(String(repeating: text, count: 9).utf8)
                ))
        case 41...45: return Self.entry(index, .remove(Bytes("secret\(index - 20)".utf8)))
        case 46: return Self.entry(index, .remove(Bytes("outcomes".utf8)))
        default:
            let value = Bytes("\(index) ".utf8) + Bytes(repeating: 7, count: 300)
            return Self.entry(index, .write(Bytes("r\(index % 7)".utf8), value: value))
        }
    }

    static func take(_ range: ClosedRange<UInt64>, _ store: Store) throws(StoreError) {
        var outcomes: [Outcome] = []
        try store.apply(range.map { Self.entry($0) }[...], into: &outcomes)
        try store.commit()
    }

    /// A log that holds all entries, three of them at a time.
    static func rebuild(_ store: Store) throws(StoreError) -> any RebuildWork {
        try store.rebuild { from in (from.raw..<(from.raw + 3)).map { Self.entry($0) } }
    }

    static func holds(_ bench: PartitionBench, _ text: String = Self.secret) -> Bool {
        bench.files.allFiles.contains { path in
            guard let bytes = bench.files.contents(of: path) else { return false }
            return String(decoding: bytes, as: UTF8.self).contains(text)
        }
    }

    @Test func `X-33 after an erasure the file is made anew, and what was erased is gone`() throws {
        let bench = PartitionBench()
        let store = try Self.open(bench)
        try Self.take(1...40, store)
        #expect(store.erasure == nil)
        try Self.take(41...45, store)
        #expect(store.erasure?.index == LogIndex(45))
        try Self.take(46...46, store)
        try store.checkpoint()
        #expect(store.erasure?.index == LogIndex(46))
        #expect(try store.erasureStanding() == .over)
        #expect(Self.holds(bench), "the search finds nothing, and proves nothing")
        let (applied, digest) = (store.applied, store.digest)
        try Self.rebuild(store).finish()
        #expect(store.erasure == nil && store.applied == applied && store.digest == digest)
        #expect(store.durable == applied)
        #expect(!Self.holds(bench))
        #expect(try store.verify() == [])
        try Self.take(47...60, store)
        #expect(try Self.open(bench).digest == store.digest)
    }

    @Test func `what is applied while a file is made anew is in it, and an erasure is owed anew`()
        throws
    {
        let bench = PartitionBench()
        let store = try Self.open(bench)
        try Self.take(1...42, store)
        let work = try Self.rebuild(store)
        var next: UInt64 = 43
        while try work.advance() != nil {
            if next <= 80 { try Self.take(next...next, store) }
            next += 1
            if next == 60 { try store.close() }
            if next == 62 { try store.checkpoint() }
        }
        #expect(next > 70, "only \(next) slices")
        let reference = try Self.open(PartitionBench(seed: 9))
        try Self.take(1...store.applied.raw, reference)
        #expect(store.digest == reference.digest && store.applied == reference.applied)
        #expect(try store.verify() == [])
        // The erasures of 43…45 came too late for this file, and outcomes were forgotten behind them.
        #expect(store.erasure?.index == LogIndex(46))
        try Self.rebuild(store).finish()
        #expect(store.erasure == nil && !Self.holds(bench))
    }

    @Test func `what jobs have still to remove is waited for`() throws {
        let bench = PartitionBench()
        let store = try Self.open(bench)
        func take(_ index: UInt64, _ body: RegisterCommand) throws {
            var outcomes: [Outcome] = []
            try store.apply([Self.entry(index, body)], into: &outcomes)
            try store.commit()
        }
        try take(1, .write(Bytes("slow".utf8), value: Bytes(Self.secret.utf8)))
        try take(2, .remove(Bytes("slow".utf8)))
        #expect(store.erasure?.horizon == 2)
        #expect(try store.erasureStanding() == .removing)
        // A peer that gets these rows has them to remove too.
        let identity = SnapshotIdentity(
            index: store.applied, term: Term(1), configuration: Configuration(voters: []),
            digest: store.digest)
        let other = try Self.open(PartitionBench(seed: 2))
        try other.install(identity, from: store.snapshot().whole()).finish()
        #expect(other.erasure?.horizon == 2)
        #expect(try other.erasureStanding() == .removing)
        try take(3, .remove(Bytes("jobs".utf8)))
        // The outcomes of all these commands, until 30 s after each; those of 1 and 2 are in the way.
        let deadline: Int64 = 1_700_000_030_000
        #expect(try store.erasureStanding() == .remembering(through: deadline + 2))
        var outcomes: [Outcome] = []
        var late = Self.entry(9, .remove(Bytes("outcomes".utf8)), at: deadline + 10)
        late.index = LogIndex(4)
        try store.apply([late], into: &outcomes)
        try store.commit()
        #expect(try store.erasureStanding() == .over)
        // Wherever outcomes were forgotten, the file has them.
        #expect(store.erasure?.index == LogIndex(4))
        // What was erased later is another's.
        try take(5, .remove(Bytes("slower".utf8)))
        #expect(store.erasure?.horizon == 5)
        #expect(try store.erasureStanding() == .removing)
    }

    @Test func `outcomes are forgotten on every replica, also on one that had no mark`() throws {
        let store = try Self.open(PartitionBench())
        try Self.take(1...45, store)
        let through = try #require(store.erasure?.outcomesThrough)
        #expect(through == 1_700_000_030_045)
        // The rows of a newcomer have the outcomes, and nothing says that they name what was erased.
        let identity = SnapshotIdentity(
            index: store.applied, term: Term(1), configuration: Configuration(voters: []),
            digest: store.digest)
        let newcomer = try Self.open(PartitionBench(seed: 2))
        try newcomer.install(identity, from: store.snapshot().whole()).finish()
        #expect(newcomer.erasure == nil)
        // They may go by themselves: the mark still asks for the command.
        let later = (46...400 as ClosedRange<UInt64>).map {
            Self.entry($0, .write(Bytes("r\($0 % 7)".utf8), value: [1]))
        }
        let forget = Self.entry(401, .remove(Bytes("outcomes".utf8)))
        for one in [store, newcomer] {
            var outcomes: [Outcome] = []
            try one.apply(later[...], into: &outcomes)
            try one.commit()
            #expect(try one.erasureStanding() == .over)
            #expect(one.erasure?.outcomesThrough == (one === store ? through : nil))
            try one.apply([forget], into: &outcomes)
            try one.commit()
            #expect(one.erasure?.index == LogIndex(401) && one.erasure?.outcomesThrough == 0)
        }
        #expect(store.digest == newcomer.digest)
    }

    /// Rotten rows must never pass for sound ones.
    @Test func `rows that have rotted are not copied`() throws {
        let store = try Self.open(PartitionBench())
        try Self.take(1...45, store)
        try store.rot(.record, Bytes("r1".utf8), to: [1])
        #expect(throws: StoreError.self) { try Self.rebuild(store).finish() }
        #expect(store.erasure != nil)
        #expect(try store.verify() != [])
    }

    // MARK: Ends and failures

    /// - Returns: what was durable at the end.
    private static func run(_ bench: PartitionBench) -> LogIndex {
        guard let store = try? Self.open(bench) else { return .zero }
        do throws(StoreError) {
            if store.applied == .zero {
                try Self.take(1...45, store)
                try store.checkpoint()
            }
            let work = try Self.rebuild(store)
            var next = store.applied.raw + 1
            while try work.advance() != nil {
                if next <= 50 { try Self.take(next...next, store) }
                next += 1
            }
        } catch {}
        return store.durable
    }

    private static let begun: Int = {
        let bench = PartitionBench()
        guard let store = try? Self.open(bench) else { return 0 }
        try? Self.take(1...45, store)
        _ = try? store.checkpoint()
        return bench.files.operationCount
    }()
    private static let operationCount: Int = {
        let bench = PartitionBench()
        _ = Self.run(bench)
        return bench.files.operationCount
    }()

    /// Those of the rebuild.
    private static func operations(_ variant: Int) -> [Int] {
        Sweep.operations(Self.operationCount, variant: variant, step: 7).filter {
            $0 >= Self.begun
        }
    }

    @Test(arguments: [DiskRestart.processCrash, .powerLoss, .powerLossLosingAll])
    func `an end at any file operation leaves the old file with its mark, or the new one`(
        restart: DiskRestart
    ) throws {
        #expect(Self.operationCount > Self.begun + 50)
        for number in Self.operations([.powerLoss: 0, .processCrash: 1][restart, default: 2]) {
            let bench = PartitionBench(seed: UInt64(number) &* 31)
            bench.files.plan(DiskFault(at: number, .crash))
            let durable = Self.run(bench)
            bench.files.restart(after: restart)
            try Self.check(bench, durable, "end at \(number)")
        }
    }

    @Test(arguments: [false, true], [DiskError.Kind.io, .full])
    func `a failure at any file operation leaves the old file with its mark, or the new one`(
        isSticky: Bool, kind: DiskError.Kind
    ) throws {
        for number in Self.operations(3 + (isSticky ? 1 : 0) + (kind == .full ? 2 : 0)) {
            let bench = PartitionBench(seed: UInt64(number))
            bench.files.plan(DiskFault(at: number, .fail(kind), isSticky: isSticky))
            let durable = Self.run(bench)
            bench.files.clearFaults()
            bench.files.restart(after: number % 2 == 0 ? .powerLoss : .processCrash)
            try Self.check(bench, durable, "\(kind) at \(number)")
        }
    }

    private static func check(_ bench: PartitionBench, _ durable: LogIndex, _ name: String) throws {
        let store = try Self.open(bench)
        #expect(store.applied >= durable, "\(name): durable went back")
        #expect(try store.verify() == [], "\(name)")
        let reference = try Self.open(PartitionBench(seed: 9))
        try Self.take(1...max(45, store.applied.raw), reference)
        #expect(store.digest == reference.digest, "\(name)")
        if Self.holds(bench) { #expect(store.erasure != nil, "\(name): nobody knows") }
        if store.erasure != nil { try Self.rebuild(store).finish() }
        #expect(!Self.holds(bench), "\(name)")
        #expect(store.digest == reference.digest, "\(name)")
    }
}
