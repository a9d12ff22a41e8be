import Glibc
import StratusCoding
import StratusModel
import StratusQuery
import StratusRecords
import StratusRows
import StratusRuntime
import StratusSQLite
import StratusStorage

extension Benchmark {
    /// `stratus-bench query [--count 10000,100000] [--pages N] [--directory D]`
    static let query = Benchmark(
        name: "query", summary: "CPU time and rows touched of query pages over SQLite"
    ) { arguments in
        let counts = (Self.option("count", in: arguments) ?? "10000,100000")
            .split(separator: ",").compactMap { Int($0) }
        let pages = Int(Self.option("pages", in: arguments) ?? "") ?? 300
        let directory = Self.directory(in: arguments)
        print("records\tquery\tplan\tCPU µs/page (median)\tindex rows\trecords read\tanswered")
        for count in counts {
            let files = try RealFiles(directory: directory)
            let system = FileSystem(files)
            let path = DiskPath("query.db")
            try RowDatabase.make(path, in: system, fileTag: 0)
            let file = try RowDatabase(
                path, in: system,
                Connection.Options(synchronous: .normal, fileTag: 0, cacheSize: .mebibytes(64)))
            let bench = QueryBench(file: file, rows: Rows(over: file), count: count)
            try bench.load()
            for question in QueryBench.questions { try bench.ask(question, pages: pages) }
            try RowDatabase.discard(path, in: files)
        }
        rmdir(directory)
    }
}

/// The shape of a small app's records: five fields, four of them indexed.
struct QueryBench {
    struct Question: Sendable {
        var name: String
        /// Draws filters and sorts around a point of the data.
        var predicate: @Sendable (inout SeededGenerator, Int) -> RecordPredicate
    }

    static let zone = ZoneScope(
        id: ZoneID(name: "Shelves", owner: "_9c1f0e7a2b3d4c5e6f708192a3b4c5d6"),
        prefix: [0, 0, 0, 1])
    static let schema: IndexedSchema = {
        let both: FieldIndexes = [.queryable, .sortable]
        return IndexedSchema(
            schema: Schema(
                version: 1,
                types: [
                    RecordType(
                        name: "Book",
                        fields: [
                            FieldDefinition(
                                name: "category", type: FieldType(.int64), indexes: both),
                            FieldDefinition(name: "note", type: FieldType(.string)),
                            FieldDefinition(
                                name: "place", type: FieldType(.location), indexes: both),
                            FieldDefinition(
                                name: "rating", type: FieldType(.double), indexes: both),
                            FieldDefinition(
                                name: "title", type: FieldType(.string),
                                indexes: [.queryable, .sortable, .searchable]),
                        ])
                ]))
    }()

    static let questions: [Question] = [
        Question(name: "range, sorted by it") { generator, _ in
            RecordPredicate(
                recordType: "Book",
                filters: [
                    RecordFilter(
                        field: .field("rating"), comparator: .greaterThanOrEquals,
                        operand: .scalar(.double(.random(in: 0..<900, using: &generator))))
                ], sorts: [RecordSort(field: .field("rating"))])
        },
        Question(name: "one of 20 categories, by rating descending") { generator, _ in
            RecordPredicate(
                recordType: "Book",
                filters: [
                    RecordFilter(
                        field: .field("category"), comparator: .equals,
                        operand: .scalar(.int64(.random(in: 0..<20, using: &generator))))
                ], sorts: [RecordSort(field: .field("rating"), ascending: false)])
        },
        Question(name: "exact title") { generator, count in
            RecordPredicate(
                recordType: "Book",
                filters: [
                    RecordFilter(
                        field: .field("title"), comparator: .equals,
                        operand: .scalar(
                            .string(
                                "Volume \(Int.random(in: 0..<count, using: &generator)) of the Sea")
                        ))
                ])
        },
        Question(name: "by category, then rating") { _, _ in
            RecordPredicate(
                recordType: "Book",
                filters: [
                    RecordFilter(
                        field: .field("category"), comparator: .greaterThanOrEquals,
                        operand: .scalar(.int64(3)))
                ],
                sorts: [
                    RecordSort(field: .field("category")),
                    RecordSort(field: .field("rating"), ascending: false),
                ])
        },
        Question(name: "two words") { generator, count in
            RecordPredicate(
                recordType: "Book",
                filters: [
                    RecordFilter(
                        field: .field("title"), comparator: .containsAllTokens,
                        operand: .scalar(
                            .string("sea \(Int.random(in: 0..<count, using: &generator))")))
                ])
        },
        Question(name: "within 50 km, nearest first") { generator, _ in
            let place = Location(
                latitude: .random(in: -60..<60, using: &generator),
                longitude: .random(in: -180..<180, using: &generator))
            return RecordPredicate(
                recordType: "Book",
                filters: [
                    RecordFilter(
                        field: .field("place"), comparator: .near,
                        operand: .scalar(.location(place)), distance: 50_000)
                ], sorts: [RecordSort(field: .field("place"), relativeLocation: place)])
        },
        Question(name: "nearest first") { generator, _ in
            RecordPredicate(
                recordType: "Book",
                filters: [
                    RecordFilter(
                        field: .field("rating"), comparator: .greaterThanOrEquals,
                        operand: .scalar(.double(1)))
                ],
                sorts: [
                    RecordSort(
                        field: .field("place"),
                        relativeLocation: Location(
                            latitude: .random(in: -60..<60, using: &generator),
                            longitude: .random(in: -180..<180, using: &generator)))
                ])
        },
    ]

    let file: RowDatabase
    let rows: Rows
    let count: Int

    /// Loads in key order, table by table, as a sorted import does.
    func load() throws {
        var generator = SeededGenerator(seed: 7)
        var index: [IndexRow] = []
        var records: [IndexRow] = []
        for number in 0..<self.count {
            let name = String(generator.next(), radix: 36) + "-" + String(number, radix: 36)
            let stamp = ChangeStamp(
                milliseconds: 1_700_000_000_000 + Int64(number), userRecordName: Self.zone.id.owner,
                deviceID: "2")
            let record = Record(
                name: name, type: "Book", zone: Self.zone.id, tag: ChangeTag(UInt64(number)),
                created: stamp, modified: stamp,
                fields: [
                    Field(
                        name: "category",
                        value: .scalar(.int64(.random(in: 0..<20, using: &generator)))),
                    Field(
                        name: "note", value: .scalar(.string(String(repeating: "word ", count: 20)))
                    ),
                    Field(
                        name: "place",
                        value: .scalar(
                            .location(
                                Location(
                                    latitude: .random(in: -80..<80, using: &generator),
                                    longitude: .random(in: -180..<180, using: &generator))))),
                    Field(
                        name: "rating",
                        value: .scalar(.double(.random(in: 0..<1_000, using: &generator)))),
                    Field(name: "title", value: .scalar(.string("Volume \(number) of the Sea"))),
                ])
            var row = ByteWriter(reserving: 320)
            row.write(recordBody: record)
            records.append(IndexRow(key: Self.zone.prefix + name.utf8, row: row.bytes))
            index += IndexMaintenance.rows(of: record, in: Self.schema, zone: Self.zone)
        }
        try self.put(.record, &records)
        try self.put(.index, &index)
    }

    private func put(_ table: Table, _ rows: inout [IndexRow]) throws {
        rows.sort { Bytes.isOrdered($0.key, before: $1.key) }
        for start in stride(from: 0, to: rows.count, by: 10_000) {
            self.rows.begin()
            for row in rows[start..<min(rows.count, start + 10_000)] {
                try self.rows.put(table, row.key, row.row)
            }
            try self.rows.commit()
            if self.file.walFrameCount > 4_096 { _ = try self.file.checkpoint() }
        }
        rows = []
    }

    func ask(_ question: Question, pages: Int) throws {
        var generator = SeededGenerator(seed: 9)
        let executor = QueryExecutor(Self.schema, BenchRecords())
        var times: [Int] = []
        var counters: [QueryCounters] = []
        var answered = 0
        self.rows.begin()
        for page in 0..<(pages + 20) {
            let predicate = question.predicate(&generator, self.count)
            let request = QueryPageRequest(predicate, zones: [Self.zone], limit: 20)
            let start = Self.cpuNanoseconds()
            let result = try executor.page(request, over: self.rows.view).get()
            let end = Self.cpuNanoseconds()
            guard page >= 20 else { continue }
            times.append(end - start)
            counters.append(result.counters)
            answered += result.records.count
        }
        try self.rows.commit()
        times.sort()
        func mean(_ values: some Collection<Int>) -> Double {
            Double(values.reduce(0, +)) / Double(max(1, values.count))
        }
        let plans = Set(counters.compactMap(\.plan).map { "\($0)" }).sorted().joined(separator: "+")
        print(
            self.count, question.name, plans, Double(times[times.count / 2] / 100) / 10,
            mean(counters.map(\.indexRowCount)), mean(counters.map(\.recordCount)),
            Double(answered) / Double(pages), separator: "\t")
    }

    private static func cpuNanoseconds() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}

/// Record rows as this benchmark writes them.
private struct BenchRecords: RecordSource {
    func typeAndCreator(of row: Bytes) throws(StoreError) -> (type: String, creator: String)? {
        try self.record(
            row, name: "", zone: ZoneID(name: "", owner: ""), wanted: WantedParts(fields: [])
        ).map {
            ($0.type, $0.created.userRecordName)
        }
    }

    func record(_ row: Bytes, name: String, zone: ZoneID, wanted: WantedParts)
        throws(StoreError) -> Record?
    {
        do {
            var reader = ByteReader(row)
            return try reader.recordBody(name: name, zone: zone, wanted: wanted)
        } catch {
            throw StoreError(.unreadable, "\(error)")
        }
    }
}
