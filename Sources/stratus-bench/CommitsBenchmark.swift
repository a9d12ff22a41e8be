import StratusCoding
import StratusModel
import StratusRecords
import StratusRuntime
import StratusSQLite
import StratusStorage
import Synchronization

extension Benchmark {
    /// `stratus-bench commits [--creates N] [--prepared N] [--cache MIB] [--each A,B,…]`
    static let commits = Benchmark(
        name: "commits",
        summary: "What creates cost by how many of them share a commit: pages, bytes, syncs"
    ) { arguments in
        let creates = Int(Self.option("creates", in: arguments) ?? "") ?? 16_000
        let prepared = Int(Self.option("prepared", in: arguments) ?? "") ?? 50_000
        let cache = Int(Self.option("cache", in: arguments) ?? "") ?? 64
        let each = (Self.option("each", in: arguments) ?? "8,20,100,500,2000")
            .split(separator: ",").compactMap { Int($0) }
        let directory = Self.directory(in: arguments)
        print("creates a commit\tpages\tKiB written\tof them to the WAL\tsyncs of 1,000\tCPU µs")
        for number in each where number > 0 {
            try CommitsBench(
                directory: "\(directory)/\(number)", creates: creates, prepared: prepared,
                cache: cache
            ).run(each: number)
        }
    }
}

/// Creates of single records, with random names, in one zone. They have one index. As on a node, a
/// checkpoint runs whenever the WAL has 4 MiB, and its work counts.
struct CommitsBench {
    let directory: String
    let creates: Int
    /// Records that are there before.
    let prepared: Int
    /// Mebibytes of SQLite's cache.
    let cache: Int

    private static let start: Int64 = 1_700_000_000_000
    private static let checkpointSize = 4 << 20
    private static let container = ContainerReference(
        container: "iCloud.org.example.Library", environment: .development)
    private static let database = DatabaseID(
        container: Self.container, scope: .private, owner: "_9c1f0e7a2b3d4c5e6f708192a3b4c5d6")

    func run(each number: Int) throws {
        let files = CountingFiles(try RealFiles(directory: self.directory))
        var limits = PartitionStore<DataState>.Limits()
        limits.cacheSize = .mebibytes(self.cache)
        let store = try PartitionStore(
            DataState(), group: GroupID(2), in: "partitions", of: FileSystem(files), limits: limits)
        var random = SeededGenerator(seed: 1)
        var made = Made()
        try Self.apply(Self.setup(&made), 1, to: store)
        for _ in 0..<(self.prepared / 500) {
            try Self.apply((0..<500).map { _ in Self.create(&random, &made) }, 500, to: store)
        }
        try store.checkpoint()
        let entries = (0..<self.creates).map { _ in Self.create(&random, &made) }
        let before = files.counts
        let began = StorageBenchmark.threadSeconds
        try Self.measure(entries, number, store)
        let spent = StorageBenchmark.threadSeconds - began
        let after = files.counts
        func each(_ value: Int, _ factor: Double = 1) -> String {
            StorageBenchmark.text(Double(value) * factor / Double(self.creates))
        }
        print(
            // A frame of the WAL is a page and 24 bytes.
            number, each(after.walBytes - before.walBytes, 1 / 4_120),
            each(after.bytes - before.bytes, 1 / 1_024),
            each(after.walBytes - before.walBytes, 1 / 1_024),
            each(after.syncs - before.syncs, 1_000),
            StorageBenchmark.text(spent / Double(self.creates) * 1e6), separator: "\t")
    }

    /// Apart, so that callgrind can count it alone: `--toggle-collect=*CommitsBench*measure*`.
    @inline(never)
    private static func measure(
        _ entries: [Entry], _ number: Int, _ store: PartitionStore<DataState>
    ) throws {
        try Self.apply(entries, number, to: store)
    }

    private static func apply(
        _ entries: [Entry], _ number: Int, to store: PartitionStore<DataState>
    ) throws {
        var outcomes: [Outcome] = []
        for start in stride(from: 0, to: entries.count, by: number) {
            for entry in entries[start..<min(start + number, entries.count)] {
                try store.apply([entry][...], into: &outcomes)
                precondition(outcomes.removeLast().verdict == .decided)
            }
            try store.commit()
            if store.walSize.raw > Self.checkpointSize { try store.checkpoint() }
        }
    }

    /// What makes each entry another one.
    private struct Made {
        var count: UInt64 = 0
    }

    private static func entry(_ command: RecordCommand, _ made: inout Made) -> Entry {
        made.count += 1
        let time = Self.start + Int64(made.count)
        let command = command.enveloped(
            container: Self.container, identity: RequestIdentity(high: 1, low: made.count),
            deadlineMilliseconds: time + 30_000, schemaVersion: 0,
            principal: Principal(kind: .user, userRecordName: Self.database.owner))
        return Entry(
            index: LogIndex(made.count), term: Term(1), time: HybridTime(milliseconds: time),
            kind: .command, payload: command.encoded())
    }

    private static func setup(_ made: inout Made) -> [Entry] {
        let fields = [
            FieldDefinition(name: "body", type: FieldType(.string)),
            FieldDefinition(
                name: "rating", type: FieldType(.int64), indexes: [.queryable, .sortable]),
        ]
        let schema = Schema(version: 1, types: [RecordType(name: "Note", fields: fields)])
        let zone = ModifyZones.Operation(
            .create, zone: "Notes", drawnIncarnation: ZoneIncarnation(7))
        return [
            Self.entry(.schema(.install(schema)), &made),
            Self.entry(
                .modifyZones(ModifyZones(database: Self.database, operations: [zone])), &made),
        ]
    }

    private static func create(_ random: inout SeededGenerator, _ made: inout Made) -> Entry {
        let name = String(random.next(), radix: 16) + "-" + String(random.next(), radix: 16)
        let operation = RecordOperation(
            .create, recordName: name, recordType: "Note",
            fields: [
                Field(name: "body", value: .scalar(.string(String(repeating: "x", count: 300)))),
                Field(
                    name: "rating",
                    value: .scalar(.int64(.random(in: 0..<100_000, using: &random)))),
            ])
        return Self.entry(
            .modifyRecords(
                ModifyRecords(
                    database: Self.database, zone: "Notes", isAtomic: false,
                    drawnIncarnation: ZoneIncarnation(1), operations: [operation])), &made)
    }
}

/// The disk, with its writes and syncs counted.
private final class CountingFiles: Files {
    struct Counts: Sendable {
        var bytes = 0
        var walBytes = 0
        var syncs = 0
    }

    private let files: RealFiles
    private let noted = Mutex(Counts())

    init(_ files: RealFiles) { self.files = files }

    var counts: Counts { self.noted.withLock { $0 } }

    func note(_ bytes: Int, inWAL isWAL: Bool) {
        self.noted.withLock {
            $0.bytes += bytes
            if isWAL { $0.walBytes += bytes }
        }
    }

    func noteSync() { self.noted.withLock { $0.syncs += 1 } }

    func open(_ path: DiskPath, create: Bool) throws(DiskError) -> any File {
        CountingFile(
            try self.files.open(path, create: create), isWAL: path.raw.hasSuffix("-wal"), self)
    }
    func rename(_ from: DiskPath, to: DiskPath) throws(DiskError) {
        try self.files.rename(from, to: to)
    }
    func remove(_ path: DiskPath) throws(DiskError) { try self.files.remove(path) }
    func exists(_ path: DiskPath) throws(DiskError) -> Bool { try self.files.exists(path) }
    func makeDirectory(_ path: DiskPath) throws(DiskError) { try self.files.makeDirectory(path) }
    func syncDirectory(_ path: DiskPath) throws(DiskError) {
        self.noteSync()
        try self.files.syncDirectory(path)
    }
    func list(_ path: DiskPath) throws(DiskError) -> [DiskPath] { try self.files.list(path) }
    func lock(_ path: DiskPath) throws(DiskError) -> any DiskLock { try self.files.lock(path) }
    func space() throws(DiskError) -> DiskSpace { try self.files.space() }
}

private final class CountingFile: File {
    private let file: any File
    private let isWAL: Bool
    private let counts: CountingFiles

    init(_ file: any File, isWAL: Bool, _ counts: CountingFiles) {
        self.file = file
        self.isWAL = isWAL
        self.counts = counts
    }

    func read(_ into: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(DiskError) -> Int {
        try self.file.read(into, at: offset)
    }
    func write(_ from: UnsafeRawBufferPointer, at offset: UInt64) throws(DiskError) {
        self.counts.note(from.count, inWAL: self.isWAL)
        try self.file.write(from, at: offset)
    }
    func sync() throws(DiskError) {
        self.counts.noteSync()
        try self.file.sync()
    }
    func resize(_ length: UInt64) throws(DiskError) { try self.file.resize(length) }
    var length: UInt64 { get throws(DiskError) { try self.file.length } }
}
