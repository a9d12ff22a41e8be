import Glibc
import StratusCoding
import StratusModel
import StratusRecords
import StratusRuntime
import StratusSQLite
import StratusStorage

extension Benchmark {
    /// `stratus-bench scale [--count 10000,1000000] [--work N] [--directory D]`
    static let scale = Benchmark(
        name: "scale", summary: "Creates, look-ups, sorted queries and the feed as one zone grows"
    ) { arguments in
        let counts = (Self.option("count", in: arguments) ?? "10000,1000000")
            .split(separator: ",").compactMap { Int($0) }
        let work = Int(Self.option("work", in: arguments) ?? "") ?? 20_000
        let directory = Self.directory(in: arguments)
        print(
            "records\twork\tCPU µs each\tmedian µs\tp99 µs\tindex rows and records read, most\tMB/s\tpeak MiB\tfile MiB"
        )
        for count in counts {
            let bench = try ScaleBench(directory: "\(directory)-\(count)", count: count)
            try bench.run(work: work)
            bench.remove()
        }
        rmdir(directory)
    }
}

/// One partition's store with one zone of so many records, like those of the comparison with
/// PocketBase. A record has a title, a body of 300 letters, and an indexed number; a hundred
/// records share each value. Loaded in key order, in batches of 200.
final class ScaleBench {
    private static let container = ContainerReference(
        container: "iCloud.org.example.Library", environment: .development)
    private static let database = DatabaseID(
        container: ScaleBench.container, scope: .private,
        owner: "_9c1f0e7a2b3d4c5e6f708192a3b4c5d6")
    private static let principal = Principal(
        kind: .user, userRecordName: ScaleBench.database.owner)
    private static let start: Int64 = 1_700_000_000_000
    private static let group = GroupID(2)

    private let directory: String
    private let count: Int
    private let store: PartitionStore<DataState>
    private var index: UInt64 = 0
    private var random = SeededGenerator(seed: 1)

    init(directory: String, count: Int) throws {
        self.directory = directory
        self.count = count
        var limits = PartitionStore<DataState>.Limits()
        limits.cacheSize = .mebibytes(64)
        self.store = try PartitionStore(
            DataState(), group: Self.group, in: "partitions",
            of: FileSystem(try RealFiles(directory: directory)), limits: limits)
    }

    func run(work: Int) throws {
        try self.load()
        // From here on the peak is of the work, not of the loading.
        Self.forgetPeak()
        try self.creates(work)
        try self.lookups(work)
        try self.queries(min(work, 5_000))
        try self.feed()
    }

    // MARK: Loading

    private func load() throws {
        let type = RecordType(
            name: "Note",
            fields: [
                FieldDefinition(name: "body", type: FieldType(.string)),
                FieldDefinition(
                    name: "rating", type: FieldType(.int64), indexes: [.queryable, .sortable]),
                FieldDefinition(name: "title", type: FieldType(.string)),
            ])
        let zone = ModifyZones.Operation(
            .create, zone: "Shelves", drawnIncarnation: ZoneIncarnation(7))
        let start = Self.now
        try self.apply(.schema(.install(Schema(version: 1, types: [type]))))
        try self.apply(
            .modifyZones(ModifyZones(database: Self.database, operations: [zone])))
        for first in stride(from: 0, to: self.count, by: 200) {
            try self.apply(
                self.modify(
                    (first..<min(first + 200, self.count)).map {
                        Self.create(Self.name($0), rating: Int64($0 / 100))
                    }))
        }
        try self.store.checkpoint()
        self.report("load", spent: Self.now - start, count: self.count)
    }

    private static func name(_ number: Int) -> String {
        let digits = String(number)
        return "r" + String(repeating: "0", count: 14 - digits.count) + digits
    }

    private static func create(_ name: String, rating: Int64) -> RecordOperation {
        RecordOperation(
            .create, recordName: name, recordType: "Note",
            fields: [
                Field(name: "body", value: .scalar(.string(String(repeating: "x", count: 300)))),
                Field(name: "rating", value: .scalar(.int64(rating))),
                Field(name: "title", value: .scalar(.string("a title of thirty letters or so"))),
            ])
    }

    private func modify(_ operations: [RecordOperation]) -> RecordCommand {
        .modifyRecords(
            ModifyRecords(
                database: Self.database, zone: "Shelves", drawnIncarnation: ZoneIncarnation(1),
                operations: operations))
    }

    private func entry(_ command: RecordCommand) -> Entry {
        self.index += 1
        let milliseconds = Self.start + Int64(self.index)
        return Entry(
            index: LogIndex(self.index), term: Term(1),
            time: HybridTime(milliseconds: milliseconds), kind: .command,
            payload: command.enveloped(
                container: Self.container, identity: RequestIdentity(high: 1, low: self.index),
                deadlineMilliseconds: milliseconds + 30_000, schemaVersion: 0,
                principal: Self.principal
            ).encoded())
    }

    private func apply(_ command: RecordCommand) throws {
        try self.apply([self.entry(command)])
    }

    private func apply(_ entries: [Entry]) throws {
        var outcomes: [Outcome] = []
        try self.store.apply(entries[...], into: &outcomes)
        for outcome in outcomes { precondition(outcome.verdict == .decided) }
        if self.store.unpublishedWriteCount >= 512 { try self.store.commit() }
    }

    // MARK: Work

    /// Random names and ratings, 64 at a time, as a busy node applies them.
    private func creates(_ count: Int) throws {
        var times: [Double] = []
        let groups = (0..<(count / 64)).map { _ in
            (0..<64).map { _ in
                self.entry(
                    self.modify([
                        Self.create(
                            String(self.random.next(), radix: 36),
                            rating: .random(
                                in: 0..<Int64(max(1, self.count / 100)), using: &self.random))
                    ]))
            }
        }
        let start = Self.now
        for group in groups {
            let began = Self.now
            try self.apply(group)
            try self.store.commit()
            times.append((Self.now - began) / 64)
        }
        try self.store.checkpoint()
        self.report("create", spent: Self.now - start, count: groups.count * 64, times: times)
    }

    private func lookups(_ count: Int) throws {
        var times: [Double] = []
        var size = 0
        let start = Self.now
        for _ in 0..<count {
            let query = self.query(
                .lookup(
                    RecordLookup(
                        database: Self.database, zone: "Shelves",
                        names: [
                            Self.name(.random(in: 0..<self.count, using: &self.random))
                        ])))
            let began = Self.now
            let answer = try self.store.answer(query)
            times.append(Self.now - began)
            guard case .lookup(let found) = try RecordAnswer(decoding: answer.body),
                case .found? = found.items.first
            else { preconditionFailure("not found") }
            size += answer.body.count
        }
        self.report("lookup", spent: Self.now - start, count: count, times: times, size: size)
    }

    /// The first 20 with `rating >= x`, by rating.
    private func queries(_ count: Int) throws {
        var times: [Double] = []
        var size = 0
        var touched = 0
        let start = Self.now
        for _ in 0..<count {
            let least = Int64.random(in: 0..<Int64(max(1, self.count / 200)), using: &self.random)
            let query = self.query(
                .page(
                    QueryPageAsk(
                        database: Self.database, zone: "Shelves",
                        predicate: RecordPredicate(
                            recordType: "Note",
                            filters: [
                                RecordFilter(
                                    field: .field("rating"), comparator: .greaterThanOrEquals,
                                    operand: .scalar(.int64(least)))
                            ], sorts: [RecordSort(field: .field("rating"))]), limit: 20)))
            let began = Self.now
            let answer = try self.store.answer(query)
            times.append(Self.now - began)
            guard case .page(let page) = try RecordAnswer(decoding: answer.body),
                page.records.count == 20
            else { preconditionFailure("no page") }
            touched = max(touched, page.touchCount)
            size += answer.body.count
        }
        self.report(
            "sorted query, first 20", spent: Self.now - start, count: count, times: times,
            size: size, touched: touched)
    }

    /// The whole feed from the beginning, or as much of it as 500 MB are.
    private func feed() throws {
        var times: [Double] = []
        var size = 0
        var count = 0
        var spent = 0.0
        var after: FeedPosition?
        while size < 500_000_000 {
            let query = self.query(
                .zoneChanges(
                    ZoneChangesAsk(database: Self.database, zone: "Shelves", after: after)))
            let began = Self.now
            let answer = try self.store.answer(query)
            spent += Self.now - began
            times.append(Self.now - began)
            guard case .zoneChanges(let page) = try RecordAnswer(decoding: answer.body) else {
                preconditionFailure("no page")
            }
            size += answer.body.count
            count += page.changes.count
            after = page.position
            if !page.moreComing { break }
        }
        self.report(
            "changes/zone, a page", spent: spent, count: times.count, times: times, size: size)
    }

    private func query(_ ask: RecordQuery.Ask) -> Query {
        RecordQuery(principal: Self.principal, ask).enveloped()
    }

    // MARK: Figures

    private static var now: Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    private func report(
        _ work: String, spent: Double, count: Int, times: [Double] = [], size: Int = 0,
        touched: Int? = nil
    ) {
        func microseconds(_ seconds: Double) -> String {
            String((seconds * 1e7).rounded() / 10)
        }
        let sorted = times.sorted()
        print(
            self.count, work, microseconds(spent / Double(max(1, count))),
            sorted.isEmpty ? "" : microseconds(sorted[sorted.count / 2]),
            sorted.isEmpty ? "" : microseconds(sorted[sorted.count * 99 / 100]),
            touched.map { String($0) } ?? "",
            size > 0 ? String((Double(size) / spent / 1e5).rounded() / 10) : "",
            Self.peakMebibytes, self.fileMebibytes, separator: "\t")
        fflush(nil)
    }

    private static func forgetPeak() {
        let file = open("/proc/self/clear_refs", O_WRONLY)
        if file >= 0 {
            _ = write(file, "5", 1)
            close(file)
        }
    }

    private static var peakMebibytes: Int {
        guard let file = fopen("/proc/self/status", "r") else { return 0 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        while fgets(&line, 256, file) != nil {
            let text = line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            let word = String(decoding: text, as: UTF8.self)
            if word.hasPrefix("VmHWM:") {
                return (Int(word.filter(\.isNumber)) ?? 0) / 1_024
            }
        }
        return 0
    }

    private var file: String { "\(self.directory)/partitions/00002/rows-1.db" }

    private var fileMebibytes: Int {
        var status = stat()
        return stat(self.file, &status) == 0 ? Int(status.st_size) >> 20 : 0
    }

    func remove() {
        try? self.store.close()
        for end in ["", "-wal", "-shm"] { unlink(self.file + end) }
        rmdir("\(self.directory)/partitions/00002")
        rmdir("\(self.directory)/partitions")
        rmdir(self.directory)
    }
}
