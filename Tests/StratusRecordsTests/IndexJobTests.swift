import StratusDoubles
import StratusModel
import StratusQuery
import StratusRecords
import Testing

/// New indexes over existing records: built in slices, kept up to date meanwhile, and used by
/// nobody before they are complete.
@Suite struct IndexJobTests {
    static func schema(_ text: String, version: UInt64) throws -> RecordCommand {
        var schema = try SchemaText.read(
            "DEFINE SCHEMA RECORD TYPE Book (\(text), GRANT READ, CREATE TO \"_icloud\");")
        schema.version = version
        return .schema(.install(schema))
    }

    static func rated(_ rating: Int64?, title: String = "x") -> [Field] {
        (rating.map { [Field(name: "rating", value: .scalar(.int64($0)))] } ?? [])
            + [Field(name: "title", value: .scalar(.string(title)))]
    }

    static func query(
        _ bench: Bench, atLeast rating: Int64, in database: DatabaseID = Bench.privateDatabase,
        zone: String? = nil
    ) throws -> Result<[String], BenchError> {
        let predicate = RecordPredicate(
            recordType: "Book",
            filters: [
                RecordFilter(
                    field: .field("rating"), comparator: .greaterThanOrEquals,
                    operand: .scalar(.int64(rating)))
            ], sorts: [RecordSort(field: .field("rating"))])
        let ask = QueryPageAsk(database: database, zone: zone, predicate: predicate)
        switch try bench.ask(.page(ask)) {
        case .page(let page): return .success(page.records.map(\.name))
        case .refused(let refusal): return .failure(BenchError(refusal.subject))
        case let other: return .failure(BenchError("\(other)"))
        }
    }

    @Test
    func `a new index is refused until built, and then holds what was saved before and meanwhile`()
        throws
    {
        var bench = Bench()
        _ = try bench.apply(try Self.schema("title STRING, rating INT64", version: 1))
        try bench.zones(.create, "Shelves", "Attic")
        for number in 0..<30 {
            try bench.modify(
                in: number % 2 == 0 ? "Shelves" : "Attic",
                .create("b\(number)", Self.rated(number % 5 == 0 ? nil : Int64(number))))
            try bench.modify(
                in: "_defaultZone", of: Bench.publicDatabase,
                .create("p\(number)", Self.rated(Int64(number))))
        }
        #expect(bench.rows.count(.index) == 0)
        _ = try bench.apply(
            try Self.schema("title STRING, rating INT64 QUERYABLE SORTABLE", version: 2))
        #expect(try bench.ask(.jobs) == .jobs(isWaiting: true))
        var slices = 0
        while try bench.ask(.jobs) == .jobs(isWaiting: true) {
            guard case .failure(let error) = try Self.query(bench, atLeast: 0) else {
                Issue.record("an index was used before it was built")
                return
            }
            #expect(error.text == "Field 'rating' is not marked sortable")
            // Writes go on: before the job's place and after it.
            try bench.modify(in: "Attic", .create("m\(slices)", Self.rated(100 + Int64(slices))))
            try bench.modify(
                in: "Shelves",
                RecordOperation(
                    .forceUpdate, recordName: "b\(slices * 2 % 30)", recordType: "Book",
                    fields: Self.rated(50)))
            try bench.modify(in: "Attic", .delete("b\(slices * 2 % 30 + 1)"))
            let outcome = try bench.apply(.continueJobs(ContinueJobs(budget: 7)), as: Bench.system)
            guard case .jobs(let progress) = outcome else { throw BenchError("\(outcome)") }
            #expect(progress.rowCount <= 7 * 3)
            slices += 1
        }
        #expect(slices > 5)
        let live = try ["Shelves", "Attic"].flatMap { zone in
            try bench.changes(in: zone).changes.compactMap { change -> Record? in
                if case .changed(let record) = change { record } else { nil }
            }
        }
        let expected = live.filter { $0.value(of: "rating") != nil }.map(\.name).sorted()
        #expect(try Self.query(bench, atLeast: 0).get().sorted() == expected)
        #expect(
            try Self.query(bench, atLeast: 25, in: Bench.publicDatabase, zone: "_defaultZone").get()
                == ["p25", "p26", "p27", "p28", "p29"])
        // One row for every record: a value's or a missing one's.
        #expect(bench.rows.count(.index) == live.count + 30)
        // Dropping the index removes its rows, in slices as well.
        _ = try bench.apply(try Self.schema("title STRING, rating INT64", version: 3))
        #expect(try bench.finishJobs(budget: 11) > 3)
        #expect(bench.rows.count(.index) == 0)
        #expect(bench.rows.count(.job) == 0)
    }

    @Test func `records saved before there was a schema are found once it is built`() throws {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        try bench.modify(.create("a", Self.rated(1)), .create("b", Self.rated(nil)))
        _ = try bench.apply(
            try Self.schema("title STRING, rating INT64 QUERYABLE SORTABLE", version: 1))
        #expect(throws: BenchError.self) { try Self.query(bench, atLeast: 0).get() }
        try bench.finishJobs()
        #expect(try Self.query(bench, atLeast: 0).get() == ["a"])
    }

    @Test func `a zone without records has nothing to build`() throws {
        var bench = Bench()
        try bench.zones(.create, "Shelves", "Attic")
        try bench.modify(.create("a", Self.rated(1)))
        try bench.modify(.delete("a"))
        _ = try bench.apply(
            try Self.schema("title STRING, rating INT64 QUERYABLE SORTABLE", version: 1))
        #expect(try bench.ask(.jobs) == .jobs(isWaiting: false))
        try bench.modify(.create("b", Self.rated(2)))
        #expect(try Self.query(bench, atLeast: 0).get() == ["b"])
    }

    @Test func `the index of creators is built, serves its creators, and goes`() throws {
        func schema(_ grants: String, version: UInt64) throws -> RecordCommand {
            var schema = try SchemaText.read(
                "DEFINE SCHEMA RECORD TYPE Book (rating INT64 QUERYABLE, GRANT \(grants));")
            schema.version = version
            return .schema(.install(schema))
        }
        func found(_ bench: Bench, by user: String) throws -> Result<[String], RequestRefusal> {
            let predicate = RecordPredicate(
                recordType: "Book",
                filters: [
                    RecordFilter(
                        field: .field("rating"), comparator: .equals, operand: .scalar(.int64(1)))
                ])
            let ask = QueryPageAsk(
                database: Bench.publicDatabase, zone: ZoneID.defaultName, predicate: predicate)
            switch try bench.ask(.page(ask), as: Principal(kind: .user, userRecordName: user)) {
            case .page(let page): return .success(page.records.map(\.name))
            case .refused(let refusal): return .failure(refusal)
            case let other: throw BenchError("\(other)")
            }
        }
        let open = "READ TO \"_world\", GRANT CREATE TO \"_icloud\""
        let own = "WRITE TO \"_creator\", GRANT CREATE TO \"_icloud\""
        var bench = Bench()
        _ = try bench.apply(try schema(open, version: 1))
        try bench.zones(.create, "Shelves")
        for number in 0..<30 {
            let record = RecordOperation.create(
                "b\(number)",
                [
                    Field(name: "rating", value: .scalar(.int64(1)))
                ])
            try bench.modify(
                in: ZoneID.defaultName, of: Bench.publicDatabase,
                as: Principal(kind: .user, userRecordName: number % 10 == 0 ? "_bob" : "_eve"),
                record)
            try bench.modify(in: "Shelves", record)
        }
        let before = bench.rows.count(.index)
        _ = try bench.apply(try schema(own, version: 2))
        #expect(try found(bench, by: "_bob") == .failure(RequestRefusal(.indexBuilding)))
        #expect(try bench.finishJobs(budget: 7) > 3)
        #expect(try found(bench, by: "_bob") == .success(["b0", "b10", "b20"]))
        #expect(try found(bench, by: "_dave") == .success([]))
        // A row for each record of the public database, and for none of a private one.
        #expect(bench.rows.count(.index) == before + 30)
        try bench.modify(
            in: ZoneID.defaultName, of: Bench.publicDatabase,
            as: Principal(kind: .user, userRecordName: "_bob"),
            RecordOperation(.forceDelete, recordName: "b10", fields: []))
        #expect(try found(bench, by: "_bob") == .success(["b0", "b20"]))
        _ = try bench.apply(try schema(open, version: 3))
        try bench.finishJobs(budget: 7)
        #expect(bench.rows.count(.index) == 29 + 30)
        #expect(try found(bench, by: "_dave").get().count == 29)
    }

    @Test func `a field comes back with another type, and a job clears its old values`() throws {
        var bench = Bench()
        _ = try bench.apply(
            try Self.schema("title STRING, rating INT64 QUERYABLE SORTABLE", version: 1))
        try bench.zones(.create, "Shelves", "Attic")
        for number in 0..<30 { try bench.modify(.create("b\(number)", Self.rated(Int64(number)))) }
        let before = try #require(try bench.lookup("b7"))
        _ = try bench.apply(try Self.schema("title STRING", version: 2))
        #expect(
            try bench.apply(
                try Self.schema("title STRING, rating STRING QUERYABLE", version: 3))
                == .schema(version: 3))
        // Between two slices the state may be that of another process.
        for _ in 0..<40 {
            bench.state = DataState()
            _ = try bench.apply(.continueJobs(ContinueJobs(budget: 7)), as: Bench.system)
        }
        try bench.finishJobs()
        let after = try #require(try bench.lookup("b7"))
        #expect(
            after.value(of: "rating") == nil
                && after.value(of: "title") == before.value(of: "title"))
        #expect(after.tag > before.tag, "clients hear of it")
        #expect(after.created == before.created)
        try bench.modify(
            RecordOperation(
                .forceUpdate, recordName: "b7", recordType: "Book",
                fields: [text("rating", "good")]))
        #expect(try bench.lookup("b7")?.value(of: "rating") == .scalar(.string("good")))
    }

    @Test func `many large records are cleared in slices, none left out`() throws {
        var bench = Bench()
        _ = try bench.apply(try Self.schema("title STRING, rating INT64", version: 1))
        try bench.zones(.create, "Shelves")
        let title = String(repeating: "x", count: 200_000)
        for number in 0..<40 {
            try bench.modify(.create("b\(number)", Self.rated(1, title: title)))
        }
        _ = try bench.apply(try Self.schema("title STRING, rating DOUBLE", version: 2))
        try bench.finishJobs()
        for number in 0..<40 {
            #expect(try bench.lookup("b\(number)")?.value(of: "rating") == nil, "b\(number)")
        }
    }

    @Test func `a partition that misses the version in between clears all the same`() throws {
        var bench = Bench()
        _ = try bench.apply(try Self.schema("title STRING, rating INT64", version: 1))
        try bench.zones(.create, "Shelves")
        try bench.modify(.create("a", Self.rated(1)))
        _ = try bench.apply(try Self.schema("title STRING, rating DOUBLE", version: 3))
        try bench.finishJobs()
        #expect(try bench.lookup("a")?.value(of: "rating") == nil)
    }

    @Test func `in production no field changes its type`() throws {
        var bench = Bench()
        let production = ContainerReference(
            container: Bench.container.container, environment: .production)
        func install(_ fields: String, _ version: UInt64) throws -> RecordOutcome {
            guard case .schema(let change) = try Self.schema(fields, version: version) else {
                throw BenchError("no schema")
            }
            return try bench.apply(.schema(change), as: Bench.system, in: production)
        }
        #expect(try install("title STRING, rating INT64", 1) == .schema(version: 1))
        guard case .refused(let refusal) = try install("title STRING, rating STRING", 2) else {
            Issue.record("it was taken")
            return
        }
        #expect(refusal.reason == .schemaConflict)
        #expect(
            refusal.subject == "field 'rating' of 'Book' was INT64 and cannot come back as STRING:"
                + " records may hold it still")
    }

    @Test func `a schema that arrives while an index is built starts the job again`() throws {
        var bench = Bench()
        _ = try bench.apply(try Self.schema("title STRING, rating INT64", version: 1))
        try bench.zones(.create, "Shelves")
        for number in 0..<20 { try bench.modify(.create("b\(number)", Self.rated(Int64(number)))) }
        _ = try bench.apply(
            try Self.schema("title STRING, rating INT64 QUERYABLE SORTABLE", version: 2))
        _ = try bench.apply(.continueJobs(ContinueJobs(budget: 10)), as: Bench.system)
        _ = try bench.apply(
            try Self.schema("title STRING QUERYABLE, rating INT64 QUERYABLE SORTABLE", version: 3))
        try bench.finishJobs(budget: 10)
        #expect(try Self.query(bench, atLeast: 0).get().count == 20)
        #expect(bench.rows.count(.index) == 40)
    }

    @Test func `just in time: a save of a new type is found at once`() throws {
        var bench = Bench()
        let fields = Self.rated(4)
        let type = try #require(
            JustInTime.missing(in: Schema(), recordType: "Book", fields: fields))
        #expect(try bench.apply(.schema(.extend([type]))) == .schema(version: 1))
        #expect(try bench.apply(.schema(.extend([type]))) == .schema(version: 1))
        try bench.zones(.create, "Shelves")
        try bench.modify(.create("a", fields))
        #expect(try Self.query(bench, atLeast: 0).get() == ["a"])
        // Another type while there are records: nothing to build.
        let loan = JustInTime.recordType(
            named: "Loan", holding: [Field(name: "due", value: .scalar(.timestamp(1)))])
        #expect(try bench.apply(.schema(.extend([loan]))) == .schema(version: 2))
        #expect(try bench.ask(.jobs) == .jobs(isWaiting: false))
        // A new field of a known type: its values are known, the records that lack it are not yet.
        let more = RecordType(
            name: "Book",
            fields: [
                FieldDefinition(
                    name: "due", type: FieldType(.timestamp), indexes: [.queryable, .sortable])
            ])
        _ = try bench.apply(.schema(.extend([more])))
        #expect(try bench.ask(.jobs) == .jobs(isWaiting: true))
        try bench.finishJobs()
    }

    @Test func `an extension that contradicts the rules is refused in words`() throws {
        var bench = Bench()
        let bad = RecordType(
            name: "Book", fields: [FieldDefinition(name: "a b", type: FieldType(.string))])
        #expect(
            try bench.apply(.schema(.extend([bad])))
                == .refused(
                    RequestRefusal(
                        .schemaConflict, "record type 'Book': 'a b' is no name for a field")))
    }
}
