import StratusCoding
import StratusDoubles
import StratusModel
import StratusRecords
import Testing

/// Work is bounded by bytes as well as by count: a small request can name large records.
@Suite struct ByteBoundTests {
    /// A zone with records `r0`, `r1`, … of a thousand bytes each.
    private static func bench(
        count: Int, modifySizeMax: Int = 48 << 20, jobSizeMax: Int = 4 << 20,
        _ fields: (Int) -> [Field] = { _ in [] }
    ) throws -> Bench {
        var bounds = RecordState.Bounds()
        bounds.modifySizeMax = modifySizeMax
        bounds.jobSizeMax = jobSizeMax
        var bench = Bench()
        bench.state = DataState(bounds: bounds)
        try bench.zones(.create, "Shelves")
        for number in 0..<count {
            try bench.modify(
                .create(
                    "r\(number)",
                    [text("body", String(repeating: "x", count: 1_000))] + fields(number)))
        }
        return bench
    }

    @Test
    func `a small request over large records is carried out in parts, and every part gets further`()
        throws
    {
        var bench = try Self.bench(count: 20, modifySizeMax: 10_000)
        var open = (0..<20).map { "r\($0)" }
        var rounds = 0
        while !open.isEmpty {
            let results = try bench.modify(
                open.map { RecordOperation(.forceUpdate, recordName: $0, fields: [number("n", 1)]) }
            )
            let left = zip(open, results).filter { $1.refusal == .deferred }.map(\.0)
            #expect(left.count < open.count)
            #expect(zip(open, results).allSatisfy { $1.saved != nil || left.contains($0) })
            open = left
            rounds += 1
        }
        // Each reads and writes a little more than a thousand bytes; the one that passes the bound
        // is the last.
        #expect(rounds == 4)
        #expect(try bench.lookup("r19")?.fields.contains { $0.name == "n" } == true)
    }

    @Test func `an atomic batch over too many bytes is refused whole and names its culprits`()
        throws
    {
        var bench = try Self.bench(count: 20, modifySizeMax: 10_000)
        let before = bench.rows.contents
        let results = try bench.modify(
            atomic: true,
            (0..<20).map {
                RecordOperation(.forceUpdate, recordName: "r\($0)", fields: [number("n", 1)])
            })
        #expect(results.prefix(5).allSatisfy { $0.refusal == .atomicFailure })
        #expect(results.suffix(14).allSatisfy { $0.refusal == .batchTooLarge })
        #expect(bench.rows.contents == before)
    }

    @Test func `the largest request that replaces records of its own size is carried out`() throws {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        // Sixteen megabytes are the most a request brings.
        let body = [text("body", String(repeating: "x", count: (1 << 20) - 64))]
        let names = (0..<16).map { "r\($0)" }
        try bench.modify(names.map { .create($0, body) })
        let results = try bench.modify(
            atomic: true,
            names.map {
                RecordOperation(.forceReplace, recordName: $0, recordType: "Book", fields: body)
            })
        #expect(results.allSatisfy { $0.saved != nil })
    }

    @Test func `a cascade of few large records becomes a job, whose slices are bounded too`() throws
    {
        var bench = try Self.bench(count: 40, modifySizeMax: 10_000, jobSizeMax: 5_000) {
            $0 == 0 ? [] : [reference("up", to: "r0", .deleteSelf)]
        }
        #expect(try bench.modify(.delete("r0"))[0].isDeleted)
        #expect(try bench.lookup("r39") != nil)
        // Four or five records in a slice.
        let slices = try bench.finishJobs()
        #expect((8...10).contains(slices))
        #expect(bench.rows.count(.reference) == 0)
        for number in 0..<40 { #expect(try bench.lookup("r\(number)") == nil) }
    }

    @Test func `a chain of large records is deleted to its end`() throws {
        var bench = try Self.bench(count: 40, modifySizeMax: 10_000, jobSizeMax: 1) {
            $0 == 0 ? [] : [reference("up", to: "r\($0 - 1)", .deleteSelf)]
        }
        try bench.modify(.delete("r0"))
        #expect((39...41).contains(try bench.finishJobs()))
        for number in 0..<40 { #expect(try bench.lookup("r\(number)") == nil) }
    }

    @Test func `a deleted zone of large records is purged in slices bounded by bytes`() throws {
        var bench = try Self.bench(count: 40, jobSizeMax: 5_000)
        try bench.zones(.delete, "Shelves")
        #expect((8...11).contains(try bench.finishJobs()))
        #expect(bench.rows.count(.record) == 0 && bench.rows.count(.feed) == 0)
    }

    @Test func `an index over large records is built in slices bounded by bytes`() throws {
        var bench = Bench()
        var bounds = RecordState.Bounds()
        bounds.jobSizeMax = 5_000
        bench.state = DataState(bounds: bounds)
        _ = try bench.apply(
            try IndexJobTests.schema("title STRING, rating INT64", version: 1))
        try bench.zones(.create, "Shelves")
        for number in 0..<40 {
            try bench.modify(
                .create(
                    "b\(number)",
                    IndexJobTests.rated(
                        Int64(number), title: String(repeating: "x", count: 1_000))))
        }
        _ = try bench.apply(
            try IndexJobTests.schema("title STRING, rating INT64 QUERYABLE SORTABLE", version: 2))
        #expect((8...11).contains(try bench.finishJobs()))
        let found = try IndexJobTests.query(bench, atLeast: 0, zone: "Shelves").get()
        #expect(found == (0..<40).map { "b\($0)" })
    }
}
