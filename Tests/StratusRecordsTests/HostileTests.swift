import Foundation
import StratusCoding
import StratusDoubles
import StratusModel
import StratusQuery
import StratusRecords
import StratusRows
import Testing

/// Input that means harm: bounded work, a refusal or nothing, never a trap.
@Suite struct HostileTests {
    @Test func `X-23 a chain ten thousand deep is deleted in bounded slices`() throws {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        let depth = 10_000
        for start in stride(from: 0, to: depth, by: 200) {
            try bench.modify(
                (start..<(start + 200)).map {
                    .create("r\($0)", [reference("up", to: "r\($0 - 1)", .deleteSelf)])
                })
        }
        try bench.modify(.delete("r0"))
        // What is open is one row, however deep the chain.
        #expect(bench.rows.count(.job) == 1)
        let slices = try bench.finishJobs(budget: 1_000)
        #expect((9...11).contains(slices))
        #expect(bench.rows.count(.reference) == 0)
        #expect(bench.rows.count(.record) == depth)
    }

    @Test func `a chain of parents and targets as long as a request is decided without recursion`()
        throws
    {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        let results = try bench.modify(
            (0..<200).map { index -> RecordOperation in
                index == 199
                    ? .create("r199")
                    : .create(
                        "r\(index)", [reference("next", to: "r\(index + 1)", .validate)],
                        parent: "r\(index + 1)")
            })
        #expect(results.allSatisfy { $0.saved != nil })
    }

    @Test func `a wide cascade is deleted in bounded slices`() throws {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        try bench.modify(.create("t"))
        let rules = RecordRules(deleteSelfReferrerCountMax: 1_000_000)
        // `STRATUS_WIDTH` makes it as wide as one likes.
        let width = Int(ProcessInfo.processInfo.environment["STRATUS_WIDTH"] ?? "") ?? 3_000
        for start in stride(from: 0, to: width, by: 200) {
            try bench.modify(
                rules: rules,
                (start..<(start + 200)).map {
                    .create("r\($0)", [reference("t", to: "t", .deleteSelf)])
                })
        }
        try bench.modify(.delete("t"))
        #expect(try bench.lookup("r\(width - 1)") != nil, "more than one entry may delete")
        var sliceCount = 0
        while try bench.ask(.jobs) == .jobs(isWaiting: true) {
            let before = try self.lastTag(bench)
            _ = try bench.apply(.continueJobs(ContinueJobs(budget: 500)), as: Bench.system)
            #expect(try self.lastTag(bench) - before <= 500)
            sliceCount += 1
        }
        #expect((width / 500...width / 490 + 2).contains(sliceCount))
        #expect(bench.rows.count(.reference) == 0)
    }

    private func lastTag(_ bench: Bench) throws -> UInt64 {
        let answer = try bench.ask(.zones(Bench.privateDatabase, names: ["Shelves"]))
        guard case .zones(let zones) = answer, case .zone(let zone) = zones[0] else { return 0 }
        return zone.lastTag.raw
    }

    @Test func `more acting references than one request may write are refused`() throws {
        var bench = Bench()
        let zone = ZoneID(name: ZoneID.defaultName, owner: Bench.owner)
        let list = Field(
            name: "all",
            value: .list(
                .reference,
                (0..<20_001).map {
                    .reference(
                        Reference(recordName: "r\($0)", zone: zone, action: .deleteSelf))
                }))
        #expect(
            try bench.modify(in: ZoneID.defaultName, .create("a", [list]))[0].refusal
                == .tooManyReferences)
    }

    @Test(arguments: 0..<300 as Range<UInt64>)
    func `X-22 damaged commands, outcomes, queries and answers never trap a decoder`(
        seed: UInt64
    ) throws {
        var random = SeededGenerator(seed: seed)
        let typed = Set(GoldenTests.typed.map(\.name))
        for sample in GoldenTests.samples {
            var bytes = sample.bytes
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(
                    in: 0...255, using: &random)
            }
            if Bool.random(using: &random) {
                bytes = Bytes(bytes.prefix(Int.random(in: 0...bytes.count, using: &random)))
            }
            _ = try? RecordCommand(decoding: bytes, container: Bench.container)
            _ = try? RecordOutcome(decoding: bytes)
            _ = try? RecordOutcome(decoding: sample.bytes, detail: bytes)
            _ = try? RecordQuery(decoding: bytes)
            _ = try? RecordAnswer(decoding: bytes)
            let outcome = try self.apply(bytes)
            #expect(outcome.verdict == .decided || outcome.verdict == .unreadable)
            let query = Query(kind: .records, body: bytes)
            var state = DataState()
            _ = try state.answer(query, over: Rows().view)
            guard typed.contains(sample.name) else { continue }
            for row in RecordState.operations.rows { Self.read(row.type, bytes) }
            for row in RecordState.questions.rows { Self.read(row.type, bytes) }
        }
    }

    private static func read<Operation: PartitionOperation>(
        _ type: Operation.Type, _ bytes: Bytes
    ) {
        _ = try? Operation(decoding: bytes, container: Bench.container)
        _ = try? Operation.result(decoding: bytes)
    }

    private static func read<Question: PartitionQuestion>(_ type: Question.Type, _ bytes: Bytes) {
        _ = try? Question(decoding: bytes)
        _ = try? Question.result(decoding: bytes)
    }

    @Test(arguments: 0..<300 as Range<UInt64>)
    func `X-22 random bytes are an unreadable command and change nothing`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let bytes = (0..<Int.random(in: 0...200, using: &random)).map { _ in
            UInt8.random(in: 0...255, using: &random)
        }
        #expect(try self.apply(bytes).verdict == .unreadable)
    }

    private func apply(_ body: Bytes) throws -> Outcome {
        let rows = Rows()
        var state = DataState()
        let command = Command(
            kind: .records, identity: RequestIdentity(high: 0, low: 1),
            deadlineMilliseconds: .max, container: Bench.container, schemaVersion: 0,
            principal: Bench.user, body: body)
        return try state.apply(
            command, at: EntryPosition(index: LogIndex(1), time: .zero), over: rows)
    }

    @Test func `a command of another kind is unreadable`() throws {
        let rows = Rows()
        var state = DataState()
        var command = RecordCommand.continueJobs(ContinueJobs()).enveloped(
            container: Bench.container, identity: RequestIdentity(high: 0, low: 1),
            deadlineMilliseconds: .max, schemaVersion: 0, principal: Bench.system)
        command.kind = .reference
        let position = EntryPosition(index: LogIndex(1), time: .zero)
        #expect(try state.apply(command, at: position, over: rows) == Outcome(.unreadable))
    }

    @Test func `jobs are Stratus' own business`() throws {
        var bench = Bench()
        #expect(
            try bench.apply(.continueJobs(ContinueJobs()), as: Bench.user)
                == .refused(RequestRefusal(.accessDenied)))
    }

    @Test func `look-ups of names nobody could have are not found`() throws {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        for name in ["", "\u{0}", "naïve", String(repeating: "x", count: 100_000)] {
            #expect(try bench.lookup(name) == nil)
        }
        let many = RecordLookup(
            database: Bench.privateDatabase, names: Array(repeating: "a", count: 201))
        #expect(
            try bench.ask(.lookup(many)) == .refused(RequestRefusal(.tooManyItems, "200")))
    }

    @Test func `rows that do not decode are a fault of the store, not a trap`() throws {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        try bench.modify(.create("a", [text("title", "x")]))
        for table in [Table.database, .zone, .record, .feed] {
            var damaged = bench.copied()
            damaged.state.forget()
            var keys: [Bytes] = []
            try damaged.rows.scan(
                table, from: Bytes().span.bytes, to: Bytes().span.bytes, descending: false
            ) { key, _ in
                keys.append(Bytes(copying: key))
                return .next
            }
            for key in keys { try damaged.rows.put(table, key, [0xEE]) }
            #expect(throws: StoreError.self, "\(table)") {
                _ = try damaged.changes()
                _ = try damaged.lookup("a")
                _ = try damaged.modify(.create("b"))
            }
        }
    }
}
