import CSQLite
import Glibc
import StratusCoding
import StratusModel
import StratusRecords
import StratusRows
import StratusRuntime
import StratusSQLite
import StratusStorage

extension Benchmark {
    /// `stratus-bench batches [--count N] [--rounds N] [--directory D]`
    static let batches = Benchmark(
        name: "batches",
        summary: "Batches as CloudKit sees them, beside bare SQLite with the same rows"
    ) { arguments in
        let count = Int(Self.option("count", in: arguments) ?? "") ?? 2_000
        let rounds = Int(Self.option("rounds", in: arguments) ?? "") ?? 5
        let directory = Self.directory(in: arguments)
        try BatchesBench(directory: directory, count: count).run(rounds: rounds)
        rmdir(directory)
    }
}

/// Batches of 8.5 records and 7 KB, four indexed fields each. A partition's store decides the rows
/// from commands. SQLite, used in the ordinary way, is given the rows ready made. Both commit each
/// batch, WAL, synchronous NORMAL, 4 KiB pages, a cache of 64 MiB, checkpoints of 16 MiB inside the
/// time.
struct BatchesBench {
    private static let group = GroupID(2)
    let directory: String
    /// Batches of each round.
    let count: Int

    /// One row that a batch writes or removes.
    private struct Write {
        var table: UInt8
        var key: Bytes
        /// Nil: removed.
        var row: Bytes?
    }

    func run(rounds: Int) throws {
        var ratios: [(all: Double, app: Double)] = []
        print(
            "round\tstore µs\tsame rows µs\trecords and index rows µs\tratios\trows per batch\tbytes per batch"
        )
        for round in 0..<rounds {
            var library = BatchLibrary(seed: UInt64(round) + 1)
            let setup = library.setup()
            let before = try (0..<self.count).map { _ in try library.batch() }
            let commands = try (0..<self.count).map { _ in try library.batch() }
            let (prepared, writes) = try Self.writes(of: setup, before, commands)
            // The order of the three changes, so that none always comes first.
            var figures = [0.0, 0.0, 0.0]
            for turn in 0..<3 {
                let which = (turn + round) % 3
                figures[which] =
                    which == 0
                    ? try self.store(setup, before, commands)
                    : try self.bare(prepared, writes, appOnly: which == 2)
            }
            let each = figures.map { $0 / Double(self.count) * 1e6 }
            ratios.append((each[1] / each[0], each[2] / each[0]))
            let size = writes.joined().reduce(0) { $0 + $1.key.count + ($1.row?.count ?? 0) }
            print(
                round, Self.text(each[0]), Self.text(each[1]), Self.text(each[2]),
                "\(Self.text(ratios[round].all)) \(Self.text(ratios[round].app))",
                Self.text(Double(writes.joined().count) / Double(self.count)),
                size / self.count, separator: "\t")
        }
        let all = ratios.map(\.all).sorted()[rounds / 2]
        let app = ratios.map(\.app).sorted()[rounds / 2]
        print("median\tas many batches as bare SQLite with all the same rows: \(Self.text(all))")
        print("median\t... with the records and index rows alone: \(Self.text(app))")
    }

    private static func text(_ value: Double) -> String {
        String(Double((value * 100).rounded()) / 100)
    }

    private static var seconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    // MARK: Ours

    private func store(_ setup: [Command], _ before: [Command], _ commands: [Command]) throws
        -> Double
    {
        let path = "\(self.directory)/store"
        let files = try RealFiles(directory: path)
        defer { Self.remove(path) }
        var limits = PartitionStore<DataState>.Limits()
        limits.cacheSize = .mebibytes(64)
        let store = try PartitionStore(
            DataState(), group: Self.group, in: "partitions", of: FileSystem(files),
            limits: limits)
        var index: UInt64 = 0
        func entries(_ commands: [Command]) -> [Entry] {
            commands.map { command in
                index += 1
                return Entry(
                    index: LogIndex(index), term: Term(1),
                    time: HybridTime(milliseconds: BatchLibrary.start + Int64(index)),
                    kind: .command, payload: command.encoded())
            }
        }
        func apply(_ entries: [Entry]) throws {
            var outcomes: [Outcome] = []
            for entry in entries {
                try store.apply([entry][...], into: &outcomes)
                precondition(outcomes[0].verdict == .decided)
                outcomes.removeAll(keepingCapacity: true)
                try store.commit()
            }
        }
        try apply(entries(setup))
        try apply(entries(before))
        try store.checkpoint()
        let measured = entries(commands)
        let start = Self.seconds
        try apply(measured)
        try store.checkpoint()
        return Self.seconds - start
    }

    private static func remove(_ path: String) {
        guard let handle = opendir(path) else { return }
        while let entry = readdir(handle) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name == "." || name == ".." { continue }
            if unlink("\(path)/\(name)") != 0 { Self.remove("\(path)/\(name)") }
        }
        closedir(handle)
        rmdir(path)
    }

    // MARK: The rows

    /// The rows that the same commands write, batch by batch.
    private static func writes(
        of setup: [Command], _ before: [Command], _ commands: [Command]
    ) throws -> (before: [[Write]], measured: [[Write]]) {
        let noted = NotedRows()
        let rows = Rows(over: noted)
        var state = DataState()
        var index: UInt64 = 0
        func run(_ commands: [Command]) throws -> [[Write]] {
            try commands.map { command in
                index += 1
                noted.writes = []
                let position = EntryPosition(
                    index: LogIndex(index),
                    time: HybridTime(milliseconds: BatchLibrary.start + Int64(index)))
                _ = try state.apply(command, at: position, over: rows)
                try rows.commit()
                return noted.writes
            }
        }
        _ = try run(setup)
        return (try run(before), try run(commands))
    }

    /// A file in memory that notes what is written to it.
    private final class NotedRows: RowFile {
        private let rows = Rows()
        var writes: [Write] = []
        private(set) var isInTransaction = false

        func withRow(
            _ table: Table, _ key: borrowing RawSpan, _ body: (_ row: borrowing RawSpan) -> Void
        ) throws(StoreError) { _ = try self.rows.withRow(table, key, body) }

        func scan(
            _ table: Table, from: borrowing RawSpan, to: borrowing RawSpan, descending: Bool,
            _ body: (_ key: borrowing RawSpan, _ row: borrowing RawSpan) -> ScanStep
        ) throws(StoreError) {
            try self.rows.scan(table, from: from, to: to, descending: descending, body)
        }

        func begin() { self.isInTransaction = true }

        func write(_ changes: ArraySlice<RowChange>, to table: Table) throws(StoreError)
            -> StateDigest
        {
            for change in changes {
                self.writes.append(
                    Write(table: table.rawValue, key: change.key, row: change.row))
                if let row = change.row {
                    try self.rows.put(table, change.key, row)
                } else {
                    try self.rows.remove(table, change.key)
                }
            }
            // Nobody asks for the digest here.
            return .empty
        }

        func commit() throws(StoreError) {
            self.isInTransaction = false
            try self.rows.commit()
        }

        func rollBack() throws(StoreError) {
            self.isInTransaction = false
            try self.rows.discard()
        }
    }

    // MARK: Bare SQLite

    private func bare(_ before: [[Write]], _ measured: [[Write]], appOnly: Bool) throws -> Double {
        mkdir(self.directory, 0o755)
        let path = "\(self.directory)/bare.db"
        defer { for end in ["", "-wal", "-shm"] { unlink(path + end) } }
        let sqlite = try PlainSQLite(path: path)
        let tables: Set<UInt8>? =
            appOnly ? [Table.record.rawValue, Table.index.rawValue] : nil
        func apply(_ batches: [[Write]]) throws {
            for batch in batches {
                try sqlite.execute("BEGIN")
                for write in batch where tables?.contains(write.table) ?? true {
                    if let row = write.row {
                        try sqlite.put(write.table, write.key, row)
                    } else {
                        try sqlite.remove(write.table, write.key)
                    }
                }
                try sqlite.execute("COMMIT")
            }
        }
        try apply(before)
        try sqlite.execute("PRAGMA wal_checkpoint(PASSIVE)")
        let start = Self.seconds
        try apply(measured)
        try sqlite.execute("PRAGMA wal_checkpoint(PASSIVE)")
        return Self.seconds - start
    }
}

/// SQLite with its own file system, one table for each of ours, statements kept.
private final class PlainSQLite {
    struct Failure: Error { let code: Int32 }
    private var handle: OpaquePointer?
    private var puts: [OpaquePointer?] = Array(repeating: nil, count: 256)
    private var removals: [OpaquePointer?] = Array(repeating: nil, count: 256)

    init(path: String) throws {
        try self.check(sqlite3_open(path, &self.handle))
        for sql in [
            "PRAGMA page_size=4096", "PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL",
            "PRAGMA wal_autocheckpoint=4096", "PRAGMA cache_size=-65536",
            "PRAGMA secure_delete=OFF",
        ] { try self.execute(sql) }
    }

    deinit {
        for statement in self.puts + self.removals { sqlite3_finalize(statement) }
        sqlite3_close(self.handle)
    }

    func execute(_ sql: String) throws {
        try self.check(sqlite3_exec(self.handle, sql, nil, nil, nil))
    }

    private func prepare(_ table: UInt8) throws {
        try self.execute(
            "CREATE TABLE IF NOT EXISTS t\(table) (k BLOB NOT NULL PRIMARY KEY, r BLOB NOT NULL) WITHOUT ROWID"
        )
        try self.check(
            sqlite3_prepare_v2(
                self.handle, "INSERT OR REPLACE INTO t\(table) VALUES (?1, ?2)", -1,
                &self.puts[Int(table)], nil))
        try self.check(
            sqlite3_prepare_v2(
                self.handle, "DELETE FROM t\(table) WHERE k = ?1", -1,
                &self.removals[Int(table)], nil))
    }

    func put(_ table: UInt8, _ key: Bytes, _ row: Bytes) throws {
        if self.puts[Int(table)] == nil { try self.prepare(table) }
        let statement = self.puts[Int(table)]
        let transient = stratus_sqlite_transient()
        sqlite3_bind_blob(statement, 1, key, Int32(key.count), transient)
        if row.isEmpty {
            sqlite3_bind_zeroblob(statement, 2, 0)
        } else {
            sqlite3_bind_blob(statement, 2, row, Int32(row.count), transient)
        }
        guard sqlite3_step(statement) == SQLITE_DONE else { throw Failure(code: -1) }
        sqlite3_reset(statement)
    }

    func remove(_ table: UInt8, _ key: Bytes) throws {
        if self.puts[Int(table)] == nil { try self.prepare(table) }
        let statement = self.removals[Int(table)]
        sqlite3_bind_blob(statement, 1, key, Int32(key.count), stratus_sqlite_transient())
        guard sqlite3_step(statement) == SQLITE_DONE else { throw Failure(code: -1) }
        sqlite3_reset(statement)
    }

    private func check(_ code: Int32) throws {
        guard code == SQLITE_OK else { throw Failure(code: code) }
    }
}

/// Draws batches: eight or nine new records of about 800 bytes.
struct BatchLibrary {
    static let start: Int64 = 1_700_000_000_000
    private static let container = ContainerReference(
        container: "iCloud.org.example.Library", environment: .development)
    private static let database = DatabaseID(
        container: Self.container, scope: .private, owner: "_9c1f0e7a2b3d4c5e6f708192a3b4c5d6")
    private static let names = ["pages", "published", "rating", "title"]

    private var random: SeededGenerator
    private var count: UInt64 = 0

    init(seed: UInt64) { self.random = SeededGenerator(seed: seed) }

    private mutating func envelope(_ command: RecordCommand) -> Command {
        self.count += 1
        return command.enveloped(
            container: Self.container, identity: RequestIdentity(high: 1, low: self.count),
            deadlineMilliseconds: Self.start + Int64(self.count) + 30_000, schemaVersion: 0,
            principal: Principal(kind: .user, userRecordName: Self.database.owner))
    }

    /// A schema, and a zone.
    mutating func setup() -> [Command] {
        let types: [FieldType] = [
            FieldType(.int64), FieldType(.timestamp), FieldType(.double), FieldType(.string),
        ]
        var fields = zip(Self.names, types).map {
            FieldDefinition(name: $0, type: $1, indexes: [.queryable, .sortable])
        }
        fields.insert(FieldDefinition(name: "digest", type: FieldType(.bytes)), at: 0)
        let schema = Schema(version: 1, types: [RecordType(name: "Book", fields: fields)])
        let zone = ModifyZones.Operation(
            .create, zone: "Shelves", drawnIncarnation: ZoneIncarnation(7))
        return [
            self.envelope(.schema(.install(schema))),
            self.envelope(.modifyZones(ModifyZones(database: Self.database, operations: [zone]))),
        ]
    }

    mutating func batch() throws -> Command {
        let size = self.count.isMultiple(of: 2) ? 8 : 9
        let operations = (0..<size).map { _ in self.create() }
        return self.envelope(
            .modifyRecords(
                ModifyRecords(
                    database: Self.database, zone: "Shelves", isAtomic: true,
                    drawnIncarnation: ZoneIncarnation(1), operations: operations)))
    }

    private mutating func create() -> RecordOperation {
        var digest = Bytes()
        for _ in 0..<70 {
            withUnsafeBytes(of: self.random.next()) { digest.append(contentsOf: $0) }
        }
        let name =
            String(self.random.next(), radix: 16) + "-" + String(self.random.next(), radix: 16)
        return RecordOperation(
            .create, recordName: name, recordType: "Book",
            fields: [
                Field(name: "digest", value: .scalar(.bytes(digest))),
                Field(
                    name: "pages",
                    value: .scalar(.int64(.random(in: 0..<1_000, using: &self.random)))),
                Field(
                    name: "published",
                    value: .scalar(.timestamp(.random(in: 0..<Self.start, using: &self.random)))),
                Field(
                    name: "rating", value: .scalar(.double(.random(in: 0..<5, using: &self.random)))
                ),
                Field(
                    name: "title",
                    value: .scalar(
                        .string(
                            "The title of book \(UInt32.random(in: 0..<1_000_000, using: &self.random))"
                        ))),
            ])
    }
}
