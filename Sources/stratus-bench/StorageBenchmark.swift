import CSQLite
import Glibc
import StratusCoding
import StratusModel
import StratusRows
import StratusRuntime
import StratusSQLite
import StratusSealing
import StratusStorage
import Synchronization

/// The log, the rows and their costs, each compared in the same run with the simplest way to do the
/// same.
extension Benchmark {
    static let storage = Benchmark(
        name: "storage",
        summary:
            "log, replay, state, checkpoints, checks of rows; --only NAME --rounds N --seconds N --records N "
            + "--directory DIR"
    ) { arguments in
        let rounds = Self.option("rounds", in: arguments).flatMap { Int($0) } ?? 5
        let seconds = Self.option("seconds", in: arguments).flatMap { Double($0) } ?? 2
        let directory = Self.directory(in: arguments)
        let only = Self.option("only", in: arguments)
        let bench = StorageBenchmark(directory: directory, rounds: rounds, seconds: seconds)
        defer { bench.removeAll() }
        if only == nil || only == "log" { try await bench.log() }
        if only == nil || only == "replay" { try bench.replay() }
        if only == nil || only == "state" { try bench.state() }
        if only == nil || only == "checkpoint" { try await bench.checkpoint() }
        if only == nil || only == "sealed" { try await bench.sealed() }
        if only == nil || only == "rows" {
            try bench.check(Self.option("records", in: arguments).flatMap { Int($0) } ?? 200_000)
        }
    }
}

struct StorageBenchmark {
    let directory: String
    let rounds: Int
    let seconds: Double

    static let group = GroupID(1)

    func removeAll() {
        let arguments: [UnsafeMutablePointer<CChar>?] = [
            strdup("rm"), strdup("-rf"), strdup(self.directory), nil,
        ]
        var process = pid_t()
        posix_spawnp(&process, "rm", nil, nil, arguments, environ)
        var status: Int32 = 0
        waitpid(process, &status, 0)
        for argument in arguments { free(argument) }
    }

    /// - Parameter isSealed: whether its files are those of a node with `storage.atRest`.
    func world(_ name: String, isSealed: Bool = false) throws -> RealWorld {
        let disk = try RealWorld(dataDirectory: "\(self.directory)/\(name)")
        guard isSealed else { return disk }
        let master = FileMasters.Master(0, SecretBytes(copying: Bytes(repeating: 3, count: 32)))
        let masters = FileMasters(
            sealing: master, directory: RequestIdentity(high: 1, low: 1))
        return RealWorld(
            files: SealedFiles(disk.files, masters: masters) { disk.random() })
    }

    static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

    static func text(_ value: Double) -> String {
        value >= 100 ? String(Int(value.rounded())) : String((value * 100).rounded() / 100)
    }

    static var threadSeconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    static func entry(_ index: UInt64, _ payload: Bytes) -> Entry {
        Entry(
            index: LogIndex(index), term: Term(1), time: HybridTime(milliseconds: 1),
            kind: .command, payload: payload)
    }

    // MARK: The log

    /// Writers of 1-KiB entries, each waiting for its entry to be durable, compared with append and
    /// fdatasync.
    func log() async throws {
        var plain: [Double] = []
        var shared: [Int: [Double]] = [:]
        for round in 0..<self.rounds {
            plain.append(try self.plainLoop(round))
            for writers in [1, 8, 64] {
                let (rate, _) = try await self.sharedLoop("log-\(round)-\(writers)", writers)
                shared[writers, default: []].append(rate)
            }
        }
        print("log, synced 1-KiB entries/s, median of \(self.rounds) rounds of \(self.seconds) s")
        print("  append + fdatasync loop, growing file: \(Self.text(Self.median(plain)))")
        for writers in [1, 8, 64] {
            print("  shared log, \(writers) writers: \(Self.text(Self.median(shared[writers]!)))")
        }
        let ratio = Self.median(shared[64]!) / Self.median(shared[1]!)
        print("  64 writers / 1 writer: \(Self.text(ratio))")
    }

    private func plainLoop(_ round: Int) throws -> Double {
        let world = try self.world("plain-\(round)")
        let file = try world.files.open("plain", create: true)
        let bytes = Bytes(repeating: 7, count: 1_024)
        let start = world.now
        var count: UInt64 = 0
        while (world.now - start) < .seconds(self.seconds) {
            try bytes.withUnsafeBytes { try file.write($0, at: count * 1_024) }
            try file.sync()
            count += 1
        }
        return Double(count) / Self.seconds(world.now - start)
    }

    static func seconds(_ duration: Duration) -> Double {
        Double(duration.clampedNanoseconds) / 1e9
    }

    /// The state that the writers share, on their own thread.
    private final class Writers: Sendable {
        struct State {
            var log: SegmentedLog?
            var started: [MonotonicTime]
            var latencies: [Double] = []
            var isStopped = false
        }
        let state: Mutex<State>
        let payload = Bytes(repeating: 7, count: 1_024)
        init(_ count: Int) {
            self.state = Mutex(
                State(started: Array(repeating: MonotonicTime(nanoseconds: 0), count: count + 1)))
        }
    }

    /// Returns entries a second and the latencies in ms, sorted.
    func sharedLoop(_ name: String, _ count: Int, isSealed: Bool = false) async throws
        -> (Double, [Double])
    {
        let world = try self.world(name, isSealed: isSealed)
        let owner = WorkerThread(name: "owner")
        let thread = WorkerThread(name: "log")
        let writers = Writers(count)
        @Sendable func next(_ group: GroupID, after index: LogIndex) {
            let log = writers.state.withLock { state -> SegmentedLog? in
                let now = world.now
                let started = state.started[Int(group.raw)]
                if started.nanoseconds > 0 {
                    state.latencies.append(Self.seconds(now - started) * 1_000)
                }
                state.started[Int(group.raw)] = now
                return state.isStopped ? nil : state.log
            }
            guard let log else { return }
            // Nothing keeps the state behind: what is durable in the log may go.
            if index.raw % 256 == 0 { log.release(group, through: index) }
            log.submit([
                LogBatch(group: group, entries: [Self.entry(index.next.raw, writers.payload)])
            ])
        }
        let log = try SegmentedLog(in: "log", of: world, isNew: true) { event in
            guard case .durable(let group, let through, _, _) = event else { return }
            owner.submit { next(group, after: through) }
        }
        writers.state.withLock { $0.log = log }
        log.prepareSpare()
        log.start(on: thread)
        let start = world.now
        owner.submit { for group in 1...count { next(GroupID(UInt16(group)), after: .zero) } }
        try await Task.sleep(for: .seconds(self.seconds))
        let latencies = writers.state.withLock { state -> [Double] in
            state.isStopped = true
            state.log = nil
            return state.latencies
        }
        let rate = Double(latencies.count) / Self.seconds(world.now - start)
        _ = await owner.run { 0 }
        _ = await thread.run { 0 }
        owner.stop()
        thread.stop()
        return (rate, latencies.sorted())
    }

    // MARK: Replay

    func replay() throws {
        let world = try self.world("replay")
        let entryCount: UInt64 = 1_024 * 1_024
        do {
            let log = try SegmentedLog(in: "log", of: world, isNew: true) { _ in }
            let payload = Bytes(repeating: 7, count: 1_024)
            var index: UInt64 = 1
            while index <= entryCount {
                log.submit([
                    LogBatch(
                        group: Self.group,
                        entries: (index..<(index + 64)).map { Self.entry($0, payload) })
                ])
                index += 64
                if !log.flush(), log.fault != nil { throw log.fault! }
            }
        }
        var opening: [Double] = []
        var reading: [Double] = []
        for _ in 0..<self.rounds {
            let start = world.now
            let log = try SegmentedLog(in: "log", of: world, isNew: false) { _ in }
            opening.append(Self.seconds(world.now - start))
            let begin = world.now
            var from = LogIndex(1)
            while from.raw <= entryCount {
                let entries = try log.read(Self.group, from: from, limit: .mebibytes(1))
                from = entries[entries.count - 1].index.next
            }
            reading.append(Self.seconds(world.now - begin))
        }
        let size = Double(entryCount) / 1_024
        print(
            "replay of \(Int(size)) MiB of 1-KiB entries, page cache warm, median of \(self.rounds)"
        )
        print(
            "  open, every checksum, index rebuilt: \(Self.text(Self.median(opening) * 1_000)) ms, "
                + "\(Self.text(size / Self.median(opening))) MiB/s")
        print("  read every entry back: \(Self.text(size / Self.median(reading))) MiB/s")
    }

    // MARK: The state

    /// Puts one row of 300 bytes and some index rows, as a save of a record would.
    struct BenchState: ReplicatedState {
        let indexCount: Int

        mutating func apply(
            _ command: Command, at position: EntryPosition, over rows: Rows
        ) throws(StoreError) -> Outcome {
            let key = Bytes(command.body[..<16])
            let row = Bytes(command.body[16...])
            try rows.put(.record, key.span.bytes, row.span.bytes)
            for number in 0..<self.indexCount {
                let index = StorageBenchmark.indexKey(key, number)
                try rows.put(.index, index.span.bytes, Bytes().span.bytes)
            }
            return Outcome(.decided)
        }
        func answer(_ query: Query, over rows: RowView) -> QueryAnswer {
            QueryAnswer(body: [])
        }
        mutating func forget() {}
    }

    static func indexKey(_ key: Bytes, _ number: Int) -> Bytes {
        var generator = SeededGenerator(
            seed: UInt64(key[0]) << 8 | UInt64(key[1]) &+ UInt64(number))
        let value = generator.next()
        return [UInt8(number)] + (0..<8).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } + key
    }

    static func body(_ random: inout SeededGenerator) -> Bytes {
        // 30,000 live records, in random order.
        var key = SeededGenerator(seed: random.next() % 30_000)
        let (high, low) = (key.next(), key.next())
        return (0..<8).map { UInt8(truncatingIfNeeded: high >> (8 * $0)) }
            + (0..<8).map { UInt8(truncatingIfNeeded: low >> (8 * $0)) }
            + Bytes(repeating: UInt8(truncatingIfNeeded: random.next()), count: 300)
    }

    func state() throws {
        let count = 10_000
        print(
            "state, CPU µs an entry, upserts of 300 bytes over 30,000 keys, median of \(self.rounds)"
        )
        for indexCount in [0, 4] {
            var ours: [Double] = []
            var bare: [Double] = []
            for round in 0..<self.rounds {
                let name = "\(indexCount)-\(round)"
                bare.append(try self.bare("bare-\(name)", count, indexCount) * 1e6)
                ours.append(try self.store("store-\(name)", count, indexCount) * 1e6)
            }
            let (store, sqlite) = (Self.median(ours), Self.median(bare))
            print(
                "  \(indexCount) index rows: bare SQLite, same rows \(Self.text(sqlite)); partition store "
                    + "\(Self.text(store)); ratio \(Self.text(sqlite / store))")
        }
    }

    func store(_ name: String, _ count: Int, _ indexCount: Int, isSealed: Bool = false) throws
        -> Double
    {
        let world = try self.world(name, isSealed: isSealed)
        var limits = PartitionStore<BenchState>.Limits()
        limits.cacheSize = .mebibytes(64)
        let store = try PartitionStore(
            BenchState(indexCount: indexCount), group: Self.group, in: "partitions",
            of: FileSystem(world.files), limits: limits)
        var random = SeededGenerator(seed: 1)
        var index: UInt64 = 0
        func run(_ count: Int) throws -> Double {
            let entries = (0..<count).map { _ in
                index += 1
                return Entry(
                    index: LogIndex(index), term: Term(1),
                    time: HybridTime(milliseconds: Int64(index)), kind: .command,
                    payload: Command(
                        kind: .reference, identity: RequestIdentity(high: 1, low: index),
                        deadlineMilliseconds: Int64(index) + 30_000,
                        container: ContainerReference(container: "b", environment: .production),
                        schemaVersion: 0, principal: Principal(kind: .system),
                        body: Self.body(&random)
                    ).encoded())
            }
            let start = Self.threadSeconds
            var outcomes: [Outcome] = []
            for entry in entries {
                try store.apply([entry][...], into: &outcomes)
                if store.unpublishedWriteCount >= 512 { try store.commit() }
            }
            try store.checkpoint()
            return (Self.threadSeconds - start) / Double(count)
        }
        _ = try run(30_000)
        return try run(count)
    }

    private func bare(_ name: String, _ count: Int, _ indexCount: Int) throws -> Double {
        _ = try self.world(name)
        let sqlite = try BareSQLite(path: "\(self.directory)/\(name)/bare.db")
        var random = SeededGenerator(seed: 1)
        func run(_ count: Int) throws -> Double {
            let bodies = (0..<count).map { _ in Self.body(&random) }
            let start = Self.threadSeconds
            var pending = 0
            for body in bodies {
                if pending == 0 { try sqlite.execute("BEGIN") }
                let key = Bytes(body[..<16])
                try sqlite.put(record: key, Bytes(body[16...]))
                for number in 0..<indexCount { try sqlite.put(index: Self.indexKey(key, number)) }
                pending += 1 + indexCount
                if pending >= 512 {
                    try sqlite.execute("COMMIT")
                    pending = 0
                }
            }
            if pending > 0 { try sqlite.execute("COMMIT") }
            try sqlite.execute("PRAGMA wal_checkpoint(PASSIVE)")
            return (Self.threadSeconds - start) / Double(count)
        }
        _ = try run(30_000)
        return try run(count)
    }

    // MARK: Checkpoints

    /// The latency of a synced entry with 8 writers: alone, and during the constant checkpoints of
    /// a partition.
    func checkpoint() async throws {
        var quiet: [Double] = []
        var beside: [Double] = []
        for round in 0..<self.rounds {
            quiet.append(Self.p99(try await self.sharedLoop("quiet-\(round)", 8).1))
            let sign = StopSign()
            let world = try self.world("busy-\(round)")
            let worker = WorkerThread(name: "partition")
            await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    await worker.run { Self.churn(world, until: sign) }
                }
                if let loop = try? await self.sharedLoop("beside-\(round)", 8) {
                    beside.append(Self.p99(loop.1))
                }
                sign.isStopped.store(true, ordering: .relaxed)
            }
            worker.stop()
        }
        print("synced entry with 8 writers, p99 in ms, median of \(self.rounds)")
        print("  alone: \(Self.text(Self.median(quiet)))")
        print("  beside a partition that checkpoints: \(Self.text(Self.median(beside)))")
    }

    private final class StopSign: Sendable {
        let isStopped = Atomic(false)
    }

    private static func p99(_ sorted: [Double]) -> Double { sorted[sorted.count * 99 / 100] }

    private static func churn(_ world: RealWorld, until sign: StopSign) {
        guard
            let store = try? PartitionStore(
                BenchState(indexCount: 4), group: Self.group, in: "partitions",
                of: FileSystem(world.files))
        else { return }
        var random = SeededGenerator(seed: 1)
        var index: UInt64 = 0
        while !sign.isStopped.load(ordering: .relaxed) {
            for _ in 0..<500 {
                index += 1
                let command = Command(
                    kind: .reference, identity: RequestIdentity(high: 1, low: index),
                    deadlineMilliseconds: Int64(index) + 30_000,
                    container: ContainerReference(container: "b", environment: .production),
                    schemaVersion: 0, principal: Principal(kind: .system), body: Self.body(&random))
                var outcomes: [Outcome] = []
                try? store.apply(
                    [
                        Entry(
                            index: LogIndex(index), term: Term(1),
                            time: HybridTime(milliseconds: Int64(index)), kind: .command,
                            payload: command.encoded())
                    ][...], into: &outcomes)
                if store.unpublishedWriteCount >= 512 { try? store.commit() }
            }
            _ = try? store.checkpoint()
        }
    }
}

/// SQLite as anybody would use it: its own file system, two tables, statements kept.
private final class BareSQLite {
    struct Failure: Error { let code: Int32 }
    private var handle: OpaquePointer?
    private var record: OpaquePointer?
    private var index: OpaquePointer?

    init(path: String) throws {
        try self.check(sqlite3_open(path, &self.handle))
        for sql in [
            "PRAGMA page_size=4096", "PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL",
            "PRAGMA wal_autocheckpoint=4096", "PRAGMA cache_size=-65536",
            "PRAGMA secure_delete=OFF",
            "CREATE TABLE r (k BLOB NOT NULL PRIMARY KEY, r BLOB NOT NULL) WITHOUT ROWID",
            "CREATE TABLE i (k BLOB NOT NULL PRIMARY KEY, r BLOB NOT NULL) WITHOUT ROWID",
        ] { try self.execute(sql) }
        try self.check(
            sqlite3_prepare_v2(
                self.handle, "INSERT OR REPLACE INTO r VALUES (?1, ?2)", -1, &self.record, nil))
        try self.check(
            sqlite3_prepare_v2(
                self.handle, "INSERT OR REPLACE INTO i VALUES (?1, x'')", -1, &self.index, nil))
    }

    deinit {
        sqlite3_finalize(self.record)
        sqlite3_finalize(self.index)
        sqlite3_close(self.handle)
    }

    func execute(_ sql: String) throws {
        try self.check(sqlite3_exec(self.handle, sql, nil, nil, nil))
    }

    func put(record key: Bytes, _ row: Bytes) throws {
        let transient = stratus_sqlite_transient()
        sqlite3_bind_blob(self.record, 1, key, Int32(key.count), transient)
        sqlite3_bind_blob(self.record, 2, row, Int32(row.count), transient)
        guard sqlite3_step(self.record) == SQLITE_DONE else { throw Failure(code: -1) }
        sqlite3_reset(self.record)
    }

    func put(index key: Bytes) throws {
        sqlite3_bind_blob(self.index, 1, key, Int32(key.count), stratus_sqlite_transient())
        guard sqlite3_step(self.index) == SQLITE_DONE else { throw Failure(code: -1) }
        sqlite3_reset(self.index)
    }

    private func check(_ code: Int32) throws {
        guard code == SQLITE_OK else { throw Failure(code: code) }
    }
}
