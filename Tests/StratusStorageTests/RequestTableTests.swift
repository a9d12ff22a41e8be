import StratusDoubles
import StratusModel
import StratusRows
import StratusSQLite
import StratusStorage
import Testing

@Suite struct RequestTableTests {
    /// A file that notes how much one scan hands over.
    private final class MeasuredRows: RowFile {
        private let file: RowDatabase
        var largestScan = 0

        init(_ file: RowDatabase) { self.file = file }

        func scan(
            _ table: Table, from: borrowing RawSpan, to: borrowing RawSpan, descending: Bool,
            _ body: (borrowing RawSpan, borrowing RawSpan) -> ScanStep
        ) throws(StoreError) {
            var size = 0
            try self.file.scan(table, from: from, to: to, descending: descending) { key, row in
                size += row.byteCount
                return body(key, row)
            }
            self.largestScan = max(self.largestScan, size)
        }

        func withRow(
            _ table: Table, _ key: borrowing RawSpan, _ body: (borrowing RawSpan) -> Void
        ) throws(StoreError) { try self.file.withRow(table, key, body) }
        func write(_ changes: ArraySlice<RowChange>, to table: Table) throws(StoreError)
            -> StateDigest
        { try self.file.write(changes, to: table) }
        var isInTransaction: Bool { self.file.isInTransaction }
        func begin() throws(StoreError) { try self.file.begin() }
        func commit() throws(StoreError) { try self.file.commit() }
        func rollBack() throws(StoreError) { try self.file.rollBack() }
    }

    @Test func `large outcomes are forgotten a megabyte at a time, and all of them`() throws {
        let system = FileSystem(SimulatedFiles(seed: 1))
        try RowDatabase.make("rows.db", in: system, fileTag: 7)
        let database = try RowDatabase(
            "rows.db", in: system, Connection.Options(synchronous: .normal, fileTag: 7))
        let file = MeasuredRows(database)
        let rows = Rows(over: file)
        var table = RequestTable()
        let outcome = Outcome(.decided, body: Bytes(repeating: 7, count: 100_000))
        func identity(_ number: UInt64) -> RequestIdentity {
            RequestIdentity(high: 1, low: number)
        }
        rows.begin()
        for number in 0..<50 as Range<UInt64> {
            try table.remember(
                outcome, of: identity(number), deadlineMilliseconds: 1_000 + Int64(number / 40),
                in: rows)
        }
        try rows.commit()
        file.largestScan = 0
        rows.begin()
        // The forty whose deadline is past.
        let time = HybridTime(milliseconds: 1_001)
        try table.forgetExpired(at: time, in: rows)
        #expect(file.largestScan < 1_200_000)
        #expect(table.count == 10)
        try rows.commit()
        #expect(try rows.computeDigest() == rows.digest)
        for number in [0, 39] as [UInt64] {
            #expect(try table.outcome(of: identity(number), at: time, in: rows.view) == nil)
        }
        #expect(try table.outcome(of: identity(40), at: time, in: rows.view) == outcome)
    }

    /// Core audit 3.4: the time of a partition stands still for as long as it is ahead.
    @Test func `what is remembered has a bound, and nothing that was forgotten runs twice`() throws
    {
        let bound = 100
        let rows = Rows()
        var application = CommandApplication(RegisterState(), rememberedCountMax: bound)
        func command(_ number: UInt64, deadline: Int64) -> Command {
            Command(
                kind: .reference, identity: RequestIdentity(high: 1, low: number),
                deadlineMilliseconds: deadline,
                container: ContainerReference(container: "c", environment: .development),
                schemaVersion: 0, principal: Principal(kind: .administrator),
                body: RegisterCommand.write([1], value: [UInt8(truncatingIfNeeded: number)])
                    .encoded())
        }
        var index: UInt64 = 0
        func apply(_ command: Command, to application: inout CommandApplication<RegisterState>)
            throws -> Outcome
        {
            index += 1
            return try application.apply(
                command,
                at: EntryPosition(
                    index: LogIndex(index),
                    time: HybridTime(milliseconds: 1_000_000, count: UInt16(index))), over: rows)
        }
        for number in 1...1_000 as ClosedRange<UInt64> {
            let outcome = try apply(
                command(number, deadline: 1_000_000 + Int64(number)), to: &application)
            #expect(outcome.verdict == .decided)
            #expect(application.rememberedCount <= bound + 64)
        }
        // After a restart the bound is known from the rows.
        var other = CommandApplication(RegisterState(), rememberedCountMax: bound)
        for number in [1, 500, 900, 1_000] as [UInt64] {
            let first = try apply(
                command(number, deadline: 1_000_000 + Int64(number)), to: &other)
            #expect(first.verdict == (number > 960 ? .decided : first.verdict))
            if number <= 800 {
                // Sent again behind what it names, it would run.
                #expect(first.verdict == .expired)
                #expect((first.expiredAtMilliseconds ?? 0) >= 1_000_000 + 800)
            }
        }
        let floor = try #require(
            try apply(command(1, deadline: 1_000_001), to: &other).expiredAtMilliseconds)
        #expect(try apply(command(2_000, deadline: floor + 1), to: &other).verdict == .decided)
    }
}
