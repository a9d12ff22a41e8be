import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusQuery
@testable import StratusRecords

/// One partition with assets, over whatever keeps its rows.
struct AssetBench {
    static var database: DatabaseID { Bench.privateDatabase }

    var rows: Rows
    var state: DataState
    var milliseconds: Int64 = 1_700_000_000_000
    var index: UInt64 = 0
    var rules = AssetRules()
    var changes: [BodyChange] = []

    init(_ rows: Rows, bugs: PlantedBugs = PlantedBugs()) {
        self.rows = rows
        self.state = DataState(bugs: bugs)
        self.rules.pinMilliseconds = 10_000
        self.rules.graceMilliseconds = 2_000
    }

    mutating func apply(_ command: RecordCommand, as principal: Principal = Bench.system) throws
        -> RecordOutcome
    {
        let outcome = try self.apply(
            command.enveloped(
                container: Bench.container, identity: self.drawIdentity(),
                deadlineMilliseconds: .max, schemaVersion: 0, principal: principal))
        guard outcome.verdict == .decided else { throw BenchError("\(outcome.verdict)") }
        return try RecordOutcome(decoding: outcome.body, detail: outcome.detail)
    }

    private mutating func drawIdentity() -> RequestIdentity {
        self.index += 1
        return RequestIdentity(high: 0, low: self.index)
    }

    private mutating func apply(_ envelope: Command) throws -> Outcome {
        self.milliseconds += 10
        // As it is in a log: read from its bytes.
        let position = EntryPosition(
            index: LogIndex(self.index),
            time: HybridTime(milliseconds: self.milliseconds))
        let outcome = try self.state.apply(
            Command(decoding: envelope.encoded()), at: position, over: self.rows)
        self.changes += self.state.takeBodyChanges()
        return outcome
    }

    mutating func ask(_ ask: RecordQuery.Ask, as principal: Principal = Bench.system) throws
        -> RecordAnswer
    {
        let query = RecordQuery(principal: principal, ask).enveloped()
        return try RecordAnswer(decoding: self.state.answer(query, over: self.rows.view).body)
    }

    mutating func apply<Operation: PartitionOperation>(
        _ operation: Operation, as principal: Principal = Bench.system
    ) throws -> Result<Operation.Outcome, Operation.State.Refusal> {
        let outcome = try self.apply(
            operation.enveloped(
                container: Bench.container, identity: self.drawIdentity(),
                deadlineMilliseconds: .max, principal: principal))
        guard outcome.verdict == .decided else { throw BenchError("\(outcome.verdict)") }
        return try Operation.result(decoding: outcome.body)
    }

    /// No question takes more work than it says.
    mutating func ask<Question: PartitionQuestion>(
        _ question: Question, as principal: Principal = Bench.system
    ) throws -> Result<Question.Answer, Question.State.Refusal> {
        let meter = ReadMeter()
        let answer = try self.state.answer(
            question.enveloped(as: principal), within: nil, meter, over: self.rows.view)
        #expect(meter.work.touchCount <= Question.bound.units, "\(question) took \(meter.work)")
        return try Question.result(decoding: answer.body)
    }

    @discardableResult
    mutating func putKey(_ version: UInt32) throws -> Result<DatabaseKey, RequestRefusal> {
        try self.apply(
            PutKey(Self.database) {
                $0.version = version
                $0.key = AssetGoldens.key
            })
    }

    mutating func zone(_ name: String) throws {
        _ = try self.apply(
            .modifyZones(
                ModifyZones(
                    database: Self.database,
                    operations: [
                        ModifyZones.Operation(
                            .create, zone: name,
                            drawnIncarnation: ZoneIncarnation(self.index + 1))
                    ])))
    }

    static func checksum(of number: UInt128) -> String { "sum\(number)" }

    /// - Parameter content: two files of one content are equal. Nil: never shared.
    mutating func pin(
        _ number: UInt128, content: UInt128?, size: UInt64, upload: UInt128? = nil,
        keyVersion: UInt32 = 1, orphanAfter: Int64? = nil
    ) throws -> Result<PinnedAsset, RequestRefusal> {
        var pin = AssetGoldens.pin(
            number, body: number + 1_000_000, upload: upload ?? number, digest: content,
            size: size)
        pin.fileChecksum = Self.checksum(of: content ?? number)
        pin.stored.keyVersion = keyVersion
        pin.rules = self.rules
        pin.stored.orphanAfterMilliseconds = orphanAfter ?? self.milliseconds + 3_600_000
        return try self.apply(pin, as: Bench.user)
    }

    static func pinned(_ asset: UInt128, _ checksum: String, isShared: Bool = false)
        -> Result<PinnedAsset, RequestRefusal>
    {
        .success(
            PinnedAsset {
                $0.asset = AssetID(asset)
                $0.fileChecksum = checksum
                $0.isShared = isShared
            })
    }

    /// What a receipt for the asset says: nothing, if it is not there.
    func reference(_ number: UInt128, receipt: UInt128? = nil) throws -> AssetReference? {
        guard let row = try AssetRows.asset(AssetID(number), over: self.rows.view) else {
            return nil
        }
        return AssetReference(
            fileChecksum: row.fileChecksum, size: Int64(row.size), asset: AssetID(number),
            receipt: receipt.map { UploadID($0).text } ?? "no receipt")
    }

    @discardableResult
    mutating func modify(
        in zone: String, atomic: Bool = false, rules: RecordRules = .standard,
        _ operations: [RecordOperation]
    ) throws -> [ModifiedRecords.Result] {
        var modify = ModifyRecords(
            database: Self.database, zone: zone, isAtomic: atomic,
            drawnIncarnation: ZoneIncarnation(self.index + 1), rules: rules,
            operations: operations)
        modify.resolvesAssets = operations.contains { !$0.kind.isDelete }
        guard case .records(let modified) = try self.apply(.modifyRecords(modify), as: Bench.user)
        else { return [] }
        return modified.results
    }

    /// Replaces a record by one that holds these assets, each with its receipt.
    @discardableResult
    mutating func save(_ name: String, in zone: String, _ assets: [UInt128]) throws
        -> ModifiedRecords.Result?
    {
        var list: [Scalar] = []
        for asset in assets {
            list.append(
                .asset(
                    try self.reference(asset)
                        ?? AssetReference(fileChecksum: "gone", size: 1, asset: AssetID(asset))))
        }
        return try self.modify(
            in: zone,
            [
                RecordOperation(
                    .forceReplace, recordName: name, recordType: "Book",
                    fields: [Field(name: "pages", value: .list(.asset, list))])
            ]
        ).first
    }

    /// What the audit of a partition's rows finds.
    mutating func rowFaults() throws -> [AssetRowFault] {
        var (faults, place): ([AssetRowFault], AssetRowsPlace?) = ([], nil)
        for _ in 0..<100_000 {
            let page = try self.ask(AssetRowsAsk { $0.after = place }).get()
            faults += page.faults
            guard let next = page.next else { return faults }
            place = next
        }
        throw BenchError("the audit does not end")
    }

    @discardableResult
    mutating func jobs(budget: Int = 500) throws -> JobProgress {
        let outcome = try self.apply(.continueJobs(ContinueJobs(budget: budget)))
        guard case .jobs(let progress) = outcome else { throw BenchError("\(outcome)") }
        return progress
    }

    mutating func finishJobs(budget: Int = 500) throws {
        for _ in 0..<100_000 { if try !self.jobs(budget: budget).hasMore { return } }
        throw BenchError("jobs do not end")
    }

    func row(_ number: UInt128) throws -> AssetRow? {
        try AssetRows.asset(AssetID(number), over: self.rows.view)
    }
}

extension AssetBench {
    init(bugs: PlantedBugs = PlantedBugs()) { self.init(Rows(), bugs: bugs) }
}
