import Glibc
import StratusCoding
import StratusModel
import StratusRecords
import StratusRows
import StratusRuntime
import StratusSQLite
import StratusStorage

extension Benchmark {
    /// `stratus-bench records [--count N] [--store memory|sqlite|both] [--directory D]`
    static let records = Benchmark(
        name: "records", summary: "CPU time of commands and reads on the records' state"
    ) { arguments in
        let count = Int(Self.option("count", in: arguments) ?? "") ?? 20_000
        let store = Self.option("store", in: arguments) ?? "both"
        let only = Self.option("only", in: arguments)
        if store != "sqlite" {
            for work in RecordWork.all where only == nil || only == work.name {
                var bench = RecordsBench(rows: Rows(), store: "memory")
                try bench.run(work, count: count)
            }
        }
        if store != "hash" {
            let directory = Self.directory(in: arguments)
            for work in RecordWork.all where only == nil || only == work.name {
                let files = try RealFiles(directory: directory)
                let system = FileSystem(files)
                let path = DiskPath("\(work.name).db")
                try RowDatabase.make(path, in: system, fileTag: 0)
                let file = try RowDatabase(
                    path, in: system,
                    Connection.Options(
                        synchronous: .normal, fileTag: 0, cacheSize: .mebibytes(64)))
                let rows = Rows(over: file)
                var bench = RecordsBench(rows: rows, store: "sqlite")
                bench.begin = { rows.begin() }
                bench.commit = {
                    try rows.commit()
                    if file.walFrameCount > 4_096 { _ = try file.checkpoint() }
                }
                try bench.run(work, count: count)
                try RowDatabase.discard(path, in: files)
            }
            rmdir(directory)
        }
    }
}

/// One kind of work, done many times.
struct RecordWork: Sendable {
    enum Kind: Sendable { case create, update, forceDelete, lookup, changes, batch }

    let name: String
    let kind: Kind
    /// Fields with an index among the five of each record.
    let indexedCount: Int

    static let all = [
        RecordWork(name: "create", kind: .create, indexedCount: 0),
        RecordWork(name: "create-4-indexed", kind: .create, indexedCount: 4),
        RecordWork(name: "update", kind: .update, indexedCount: 0),
        RecordWork(name: "update-4-indexed", kind: .update, indexedCount: 4),
        RecordWork(name: "delete", kind: .forceDelete, indexedCount: 0),
        RecordWork(name: "lookup", kind: .lookup, indexedCount: 0),
        RecordWork(name: "changes-zone", kind: .changes, indexedCount: 0),
        RecordWork(name: "batch-8", kind: .batch, indexedCount: 0),
        RecordWork(name: "batch-8-4-indexed", kind: .batch, indexedCount: 4),
    ]
}

/// One state over one store.
struct RecordsBench {
    private static var container: ContainerReference {
        ContainerReference(container: "iCloud.org.example.Library", environment: .development)
    }
    private static var database: DatabaseID {
        DatabaseID(
            container: Self.container, scope: .private,
            owner: "_9c1f0e7a2b3d4c5e6f708192a3b4c5d6")
    }
    private static var batchSize: Int { 8 }
    /// Commands that share one commit, as the design has it.
    private static var commitSize: Int { 64 }

    private let rows: Rows
    private let store: String
    private var state = DataState()
    private var random = SeededGenerator(seed: 1)
    private var index: UInt64 = 0
    var begin: () throws -> Void = {}
    var commit: () throws -> Void = {}

    init(rows: Rows, store: String) {
        self.rows = rows
        self.store = store
    }

    mutating func run(_ work: RecordWork, count: Int) throws {
        try self.begin()
        try self.prepare(work)
        var names: [String] = []
        names.reserveCapacity(count)
        for _ in 0..<count { names.append(self.drawnName()) }
        var tags: [ChangeTag] = []
        if work.kind != .create, work.kind != .batch {
            for name in names {
                tags.append(try self.apply(self.modify([self.create(name)])))
            }
        }
        try self.commit()

        let shuffled = names.indices.shuffled(using: &self.random)
        switch work.kind {
        case .create:
            let commands = names.map { name in self.envelope(self.modify([self.create(name)])) }
            try self.measure(work, commands)
        case .batch:
            let commands = stride(from: 0, to: names.count, by: Self.batchSize).map { start in
                let slice = names[start..<min(start + Self.batchSize, names.count)]
                return self.envelope(self.modify(slice.map { self.create($0) }))
            }
            try self.measure(work, commands, each: Self.batchSize)
        case .update:
            let commands = shuffled.map { index in
                self.envelope(
                    self.modify([
                        RecordOperation(
                            .update, recordName: names[index], changeTag: tags[index].text,
                            fields: [Self.number("pages", Int64(index))])
                    ]))
            }
            try self.measure(work, commands)
        case .forceDelete:
            let commands = shuffled.map { index in
                self.envelope(
                    self.modify([RecordOperation(.forceDelete, recordName: names[index])]))
            }
            try self.measure(work, commands)
        case .lookup:
            let queries = shuffled.map { index in
                RecordQuery(
                    principal: self.principal,
                    .lookup(
                        RecordLookup(
                            database: Self.database, zone: "Shelves", names: [names[index]]))
                ).enveloped()
            }
            try self.begin()
            var size = 0
            try Self.time(work, on: self.store, count: queries.count, size: { size }) {
                for query in queries {
                    size += try self.state.answer(query, over: self.rows.view).body.count
                }
            }
            try self.commit()
        case .changes: try self.measureFeed(work, count: count)
        }
    }

    // MARK: Measuring

    private mutating func measure(_ work: RecordWork, _ commands: [Command], each: Int = 1) throws {
        try Self.time(work, on: self.store, count: commands.count * each) {
            for start in stride(from: 0, to: commands.count, by: Self.commitSize) {
                try self.begin()
                for command in commands[start..<min(start + Self.commitSize, commands.count)] {
                    self.index += 1
                    let outcome = try self.state.apply(
                        command, at: self.position, over: self.rows)
                    precondition(outcome.verdict == .decided && !outcome.detail.isEmpty)
                }
                try self.commit()
            }
        }
    }

    private mutating func measureFeed(_ work: RecordWork, count: Int) throws {
        var size = 0
        try self.begin()
        try Self.time(work, on: self.store, count: count, size: { size }) {
            var after: FeedPosition?
            while true {
                let ask = ZoneChangesAsk(
                    database: Self.database, zone: "Shelves", after: after)
                let query = RecordQuery(principal: self.principal, .zoneChanges(ask))
                let body = try self.state.answer(query.enveloped(), over: self.rows.view).body
                size += body.count
                guard case .zoneChanges(let page) = try RecordAnswer(decoding: body) else {
                    preconditionFailure("no page")
                }
                after = page.position
                if !page.moreComing { break }
            }
        }
        try self.commit()
    }

    private static func time(
        _ work: RecordWork, on store: String, count: Int, size: () -> Int = { 0 },
        _ body: () throws -> Void
    ) throws {
        let start = Self.threadNanoseconds
        try body()
        let spent = Double(Self.threadNanoseconds - start)
        let each = (spent / Double(count) / 10).rounded() / 100
        var line = "\(store)\t\(work.name)\t\(count)\t\(each) µs CPU each"
        if size() > 0 {
            let rate = (Double(size()) / spent * 1e3).rounded()
            line += "\t\(rate) MB/s of answers"
        }
        print(line)
    }

    private static var threadNanoseconds: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    // MARK: Commands

    private var principal: Principal {
        Principal(kind: .user, userRecordName: Self.database.owner)
    }

    private var position: EntryPosition {
        EntryPosition(
            index: LogIndex(self.index),
            time: HybridTime(milliseconds: 1_700_000_000_000 + Int64(self.index)))
    }

    private mutating func prepare(_ work: RecordWork) throws {
        let types: [(String, FieldType)] = [
            ("digest", FieldType(.bytes)), ("pages", FieldType(.int64)),
            ("published", FieldType(.timestamp)), ("rating", FieldType(.double)),
            ("title", FieldType(.string)),
        ]
        let fields = types.enumerated().map { index, type in
            FieldDefinition(
                name: type.0, type: type.1,
                indexes: index > 0 && index <= work.indexedCount ? [.queryable, .sortable] : [])
        }
        let schema = Schema(version: 1, types: [RecordType(name: "Book", fields: fields)])
        _ = try self.state.apply(
            self.envelope(.schema(.install(schema))), at: self.position, over: self.rows)
        let zone = ModifyZones.Operation(
            .create, zone: "Shelves", drawnIncarnation: ZoneIncarnation(7))
        _ = try self.state.apply(
            self.envelope(
                .modifyZones(ModifyZones(database: Self.database, operations: [zone]))),
            at: self.position, over: self.rows)
    }

    private func envelope(_ command: RecordCommand) -> Command {
        command.enveloped(
            container: Self.container, identity: RequestIdentity(high: 0, low: 1),
            deadlineMilliseconds: .max, schemaVersion: 1, principal: self.principal)
    }

    private func modify(_ operations: [RecordOperation]) -> RecordCommand {
        .modifyRecords(
            ModifyRecords(
                database: Self.database, zone: "Shelves", drawnIncarnation: ZoneIncarnation(1),
                operations: operations))
    }

    private mutating func apply(_ command: RecordCommand) throws -> ChangeTag {
        self.index += 1
        let outcome = try self.state.apply(
            self.envelope(command), at: self.position, over: self.rows)
        guard
            case .records(let modified) = try RecordOutcome(
                decoding: outcome.body, detail: outcome.detail),
            case .saved(let saved) = modified.results[0]
        else { preconditionFailure("not saved") }
        return saved.tag
    }

    /// A record of about 800 bytes, as §17 of the design counts them.
    private mutating func create(_ name: String) -> RecordOperation {
        var digest = Bytes()
        for _ in 0..<75 {
            digest.append(
                contentsOf: [UInt8](
                    repeating: UInt8.random(in: 0...255, using: &self.random), count: 8))
        }
        return RecordOperation(
            .create, recordName: name, recordType: "Book",
            fields: [
                Field(name: "digest", value: .scalar(.bytes(digest))),
                Self.number("pages", .random(in: 0..<1_000, using: &self.random)),
                Field(
                    name: "published",
                    value: .scalar(
                        .timestamp(.random(in: 0..<1_700_000_000_000, using: &self.random)))),
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

    private static func number(_ name: String, _ value: Int64) -> Field {
        Field(name: name, value: .scalar(.int64(value)))
    }

    private mutating func drawnName() -> String {
        let digits = Array("0123456789ABCDEF")
        var name = ""
        for position in 0..<32 {
            if [8, 12, 16, 20].contains(position) { name.append("-") }
            name.append(digits[Int.random(in: 0..<16, using: &self.random)])
        }
        return name
    }
}
