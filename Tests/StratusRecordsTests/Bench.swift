import StratusCoding
import StratusDoubles
import StratusModel
import StratusQuery
import StratusRecords
import StratusRows
import Testing

/// One partition with one container, and short words to drive it.
struct Bench {
    static let container = ContainerReference(
        container: "iCloud.org.example.Library", environment: .development)
    static let owner = "_owner"
    static let privateDatabase = DatabaseID(
        container: Self.container, scope: .private, owner: Self.owner)
    static let publicDatabase = DatabaseID(
        container: Self.container, scope: .public, owner: "")
    static let user = Principal(kind: .user, userRecordName: Self.owner)
    static let system = Principal(kind: .system)

    private(set) var rows = Rows()
    var state = DataState()
    var time = HybridTime(milliseconds: 1_700_000_000_000)
    var index: UInt64 = 0
    private(set) var commands: [(Command, EntryPosition)] = []
    var keepsCommands = false
    /// The reader that answers reads; nil: the state over the rows here.
    var reader: ((Query) throws -> QueryAnswer)?

    mutating func apply(
        _ command: RecordCommand, as principal: Principal = Self.user, schemaVersion: UInt64 = 0,
        in container: ContainerReference = Self.container
    ) throws -> RecordOutcome {
        let outcome = try self.apply { identity in
            command.enveloped(
                container: container, identity: identity, deadlineMilliseconds: .max,
                schemaVersion: schemaVersion, principal: principal)
        }
        return try RecordOutcome(decoding: outcome.body, detail: outcome.detail)
    }

    mutating func apply<Operation: PartitionOperation>(
        _ operation: Operation, as principal: Principal = Self.system
    ) throws -> Result<Operation.Outcome, Operation.State.Refusal> {
        let outcome = try self.apply { identity in
            operation.enveloped(
                container: Self.container, identity: identity, deadlineMilliseconds: .max,
                principal: principal)
        }
        return try Operation.result(decoding: outcome.body)
    }

    private mutating func apply(_ envelope: (RequestIdentity) -> Command) throws -> Outcome {
        self.index += 1
        self.time = self.time.successor(wallMilliseconds: self.time.milliseconds + 10)
        let envelope = envelope(RequestIdentity(high: 0, low: self.index))
        let position = EntryPosition(index: LogIndex(self.index), time: self.time)
        if self.keepsCommands { self.commands.append((envelope, position)) }
        let outcome = try self.state.apply(envelope, at: position, over: self.rows)
        #expect(outcome.verdict == .decided)
        return outcome
    }

    /// What a database needs before files are named in it.
    mutating func putKeys() throws {
        for version in [0, 1] as [UInt32] {
            let put = PutKey(Self.privateDatabase) {
                $0.version = version
                $0.key = AssetGoldens.key
            }
            _ = try self.apply(put).get()
        }
    }

    /// The results of a batch that was not refused as a whole.
    @discardableResult
    mutating func modify(
        in zone: String = "Shelves", of database: DatabaseID = Self.privateDatabase,
        atomic: Bool = false, as principal: Principal = Self.user,
        rules: RecordRules = .standard, _ operations: RecordOperation...
    ) throws -> [ModifiedRecords.Result] {
        try self.modify(
            in: zone, of: database, atomic: atomic, as: principal, rules: rules, operations)
    }

    @discardableResult
    mutating func modify(
        in zone: String = "Shelves", of database: DatabaseID = Self.privateDatabase,
        atomic: Bool = false, as principal: Principal = Self.user,
        rules: RecordRules = .standard, _ operations: [RecordOperation]
    ) throws -> [ModifiedRecords.Result] {
        let outcome = try self.apply(
            .modifyRecords(
                ModifyRecords(
                    database: database, zone: zone, isAtomic: atomic,
                    drawnIncarnation: ZoneIncarnation(self.index + 1_000), rules: rules,
                    operations: operations)), as: principal)
        guard case .records(let modified) = outcome else {
            Issue.record("refused: \(outcome)")
            return []
        }
        return modified.results
    }

    /// The refusal of a whole batch.
    mutating func refusal(
        in zone: String = "Shelves", of database: DatabaseID = Self.privateDatabase,
        atomic: Bool = false, as principal: Principal = Self.user,
        _ operations: [RecordOperation]
    ) throws -> RequestRefusal.Reason? {
        let outcome = try self.apply(
            .modifyRecords(
                ModifyRecords(
                    database: database, zone: zone, isAtomic: atomic,
                    drawnIncarnation: ZoneIncarnation(1), operations: operations)), as: principal)
        if case .refused(let refusal) = outcome { return refusal.reason }
        return nil
    }

    @discardableResult
    mutating func zones(
        _ kind: ModifyZones.Kind, _ names: String...,
        in database: DatabaseID = Self.privateDatabase,
        rules: RecordRules = .standard
    ) throws -> [ZoneResult] {
        let outcome = try self.apply(
            .modifyZones(
                ModifyZones(
                    database: database, rules: rules,
                    operations: names.enumerated().map {
                        ModifyZones.Operation(
                            kind, zone: $1,
                            drawnIncarnation: ZoneIncarnation(self.index * 1_000 + UInt64($0)))
                    })))
        guard case .zones(let results) = outcome else {
            Issue.record("refused: \(outcome)")
            return []
        }
        return results
    }

    /// No question takes more work than it says.
    func ask<Question: PartitionQuestion>(
        _ question: Question, as principal: Principal = Self.user
    ) throws -> Result<Question.Answer, Question.State.Refusal> {
        let query = question.enveloped(as: principal)
        if let reader { return try Question.result(decoding: reader(query).body) }
        var state = self.state
        let meter = ReadMeter()
        let answer = try state.answer(query, within: nil, meter, over: self.rows.view)
        #expect(meter.work.touchCount <= Question.bound.units, "\(question) took \(meter.work)")
        return try Question.result(decoding: answer.body)
    }

    func ask(_ ask: RecordQuery.Ask, as principal: Principal = Self.user) throws -> RecordAnswer {
        let query = RecordQuery(principal: principal, ask).enveloped()
        if let reader { return try RecordAnswer(decoding: reader(query).body) }
        var state = self.state
        return try RecordAnswer(decoding: state.answer(query, over: self.rows.view).body)
    }

    func lookup(
        _ name: String, in zone: String = "Shelves",
        database: DatabaseID = Self.privateDatabase, as principal: Principal = Self.user
    ) throws -> Record? {
        let answer = try self.ask(
            .lookup(RecordLookup(database: database, zone: zone, names: [name])), as: principal)
        if case .lookup(let found) = answer, case .found(let record) = found.items[0] {
            return record
        }
        return nil
    }

    func changes(
        in zone: String = "Shelves", after: FeedPosition? = nil, limit: Int = 200,
        reverse: Bool = false, types: [String]? = nil
    ) throws -> ZoneChangesPage {
        let answer = try self.ask(
            .zoneChanges(
                ZoneChangesAsk(
                    database: Self.privateDatabase, zone: zone, after: after, limit: limit,
                    reverse: reverse, recordTypes: types)))
        guard case .zoneChanges(let page) = answer else {
            throw BenchError("no page: \(answer)")
        }
        return page
    }

    func databaseChanges(after: DatabasePosition? = nil, limit: Int = 200) throws
        -> DatabaseChangesPage
    {
        let answer = try self.ask(
            .databaseChanges(
                DatabaseChangesAsk(
                    database: Self.privateDatabase, after: after, limit: limit)))
        guard case .databaseChanges(let page) = answer else {
            throw BenchError("no page: \(answer)")
        }
        return page
    }

    /// Runs jobs to their end. Returns how many slices that took.
    @discardableResult
    mutating func finishJobs(budget: Int = 500) throws -> Int {
        for slice in 1...100_000 {
            let outcome = try self.apply(
                .continueJobs(ContinueJobs(budget: budget)), as: Self.system)
            guard case .jobs(let progress) = outcome else { throw BenchError("\(outcome)") }
            if !progress.hasMore { return slice }
        }
        throw BenchError("jobs do not end")
    }

    /// The same partition, which goes its own way from here on.
    func copied() -> Self {
        var copy = self
        copy.rows = self.rows.copied()
        return copy
    }

    /// Goes back, or forward, to rows that were there once.
    mutating func replaceRows(by rows: Rows) { self.rows = rows }

    /// Whether a replica that remembers nothing between entries comes to the same rows.
    func isRepeatable() throws -> Bool {
        let rows = Rows()
        var state = DataState()
        for (command, position) in self.commands {
            state.forget()
            _ = try state.apply(command, at: position, over: rows)
        }
        return rows.contents == self.rows.contents
    }
}

struct BenchError: Error {
    let text: String
    init(_ text: String) { self.text = text }
}

extension ModifiedRecords.Result {
    var saved: Record? {
        if case .saved(let saved) = self { saved.record } else { nil }
    }

    var refusal: RecordRefusal.Reason? {
        if case .refused(let refusal) = self { refusal.reason } else { nil }
    }

    var isDeleted: Bool {
        if case .deleted = self { true } else { false }
    }
}

extension ZoneChangesPage.Change {
    var name: String {
        switch self {
        case .changed(let record): record.name
        case .deleted(let name, _): name
        }
    }

    var isDeletion: Bool {
        if case .deleted = self { true } else { false }
    }
}

extension RecordOperation {
    static func create(
        _ name: String, _ fields: [Field] = [], type: String = "Book", parent: String? = nil
    ) -> Self {
        Self(
            .create, recordName: name, recordType: type, fields: fields,
            parent: parent.map { .set($0) } ?? .unmentioned)
    }

    static func update(_ name: String, _ tag: ChangeTag?, _ fields: [Field] = []) -> Self {
        Self(.update, recordName: name, changeTag: tag?.text, fields: fields)
    }

    static func delete(_ name: String) -> Self { Self(.forceDelete, recordName: name) }
}

func text(_ name: String, _ value: String) -> Field {
    Field(name: name, value: .scalar(.string(value)))
}

func number(_ name: String, _ value: Int64) -> Field {
    Field(name: name, value: .scalar(.int64(value)))
}

func reference(
    _ field: String, to name: String, _ action: Reference.Action, zone: String = "Shelves",
    owner: String = Bench.owner
) -> Field {
    Field(
        name: field,
        value: .scalar(
            .reference(
                Reference(
                    recordName: name, zone: ZoneID(name: zone, owner: owner), action: action))))
}
