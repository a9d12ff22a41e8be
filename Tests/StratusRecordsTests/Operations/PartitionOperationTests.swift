import StratusCoding
import StratusDoubles
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// What holds of every operation and every question in the tables, of values that are drawn.
@Suite struct PartitionOperationTests {
    private static let seeds = 0..<20 as Range<UInt64>

    // MARK: Forms

    @Test(arguments: Self.seeds)
    func `every row of the tables is written and read as it was`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for row in RecordState.operations.rows { try Self.checkForms(row.type, &random) }
        for row in RecordState.questions.rows { try Self.checkForms(row.type, &random) }
    }

    private static func checkForms<Operation: PartitionOperation>(
        _ type: Operation.Type, _ random: inout SeededGenerator
    ) throws {
        let operation = Self.draw(type, &random)
        try Self.check(operation.encoded(), &random) { body in
            try Operation(decoding: body, container: Bench.container).encoded()
        }
        let outcome = Drawing.value(Operation.Outcome.self, from: &random)
        let refusal = Drawing.value(Operation.State.Refusal.self, from: &random)
        for result in [.success(outcome), .failure(refusal)]
            as [Result<Operation.Outcome, Operation.State.Refusal>]
        {
            try Self.check(Operation.encoded(result), &random) {
                Operation.encoded(try Operation.result(decoding: $0))
            }
        }
    }

    private static func checkForms<Question: PartitionQuestion>(
        _ type: Question.Type, _ random: inout SeededGenerator
    ) throws {
        let question = Drawing.value(type, from: &random)
        // Of the principal alone nothing is read again.
        try Self.check(question.encoded(as: Bench.system), &random, isMutated: false) {
            try Question(decoding: $0).encoded(as: Bench.system)
        }
        let answer = Drawing.value(Question.Answer.self, from: &random)
        let refusal = Drawing.value(Question.State.Refusal.self, from: &random)
        for result in [.success(answer), .failure(refusal)]
            as [Result<Question.Answer, Question.State.Refusal>]
        {
            try Self.check(Question.encoded(result), &random) {
                Question.encoded(try Question.result(decoding: $0))
            }
        }
    }

    /// Bytes come back as they were, neither less nor more of them are read, and what is read of
    /// changed bytes is written and read again.
    private static func check(
        _ bytes: Bytes, _ random: inout SeededGenerator, isMutated: Bool = true,
        _ rewrite: (Bytes) throws -> Bytes
    ) throws {
        #expect(try rewrite(bytes) == bytes)
        #expect(throws: DecodingError.self) { try rewrite(bytes + [0]) }
        for count in bytes.indices {
            #expect(throws: DecodingError.self) { try rewrite(Bytes(bytes[..<count])) }
        }
        guard isMutated else { return }
        for _ in 0..<20 {
            var changed = bytes
            let place = Int.random(in: 1..<bytes.count, using: &random)
            changed[place] = .random(in: 0...255, using: &random)
            guard let once = try? rewrite(changed) else { continue }
            #expect(try rewrite(once) == once)
        }
    }

    private static func draw<Operation: PartitionOperation>(
        _ type: Operation.Type, _ random: inout SeededGenerator
    ) -> Operation {
        var operation = Drawing.value(type, from: &random)
        let databases = [Bench.privateDatabase, Bench.publicDatabase]
        let head = OperationHead(database: databases.randomElement(using: &random))
        if !operation.take(head) { _ = operation.take(OperationHead()) }
        return operation
    }

    // MARK: Applying

    /// What does not hold of a table's operations where these bugs are planted.
    private static func faults(_ bugs: PlantedBugs, seed: UInt64) throws -> [String] {
        var random = SeededGenerator(seed: seed)
        var faults: [String] = []
        for row in RecordState.operations.rows {
            faults += try Self.faults(of: row.type, bugs, &random)
        }
        return faults
    }

    private static func faults<Operation: PartitionOperation>(
        of type: Operation.Type, _ bugs: PlantedBugs, _ random: inout SeededGenerator
    ) throws -> [String] {
        let operation = Self.draw(type, &random)
        var (faults, rows) = ([] as [String], Rows())
        func apply(_ body: Bytes, as principal: Principal) throws -> Outcome {
            rows = Rows()
            var state = DataState(bugs: bugs)
            var command = operation.enveloped(
                container: Bench.container, identity: RequestIdentity(high: 0, low: 1),
                deadlineMilliseconds: .max, principal: principal)
            command.body = body
            let position = EntryPosition(index: LogIndex(1), time: .zero)
            return try state.apply(command, at: position, over: rows)
        }
        let outcome = try apply(operation.encoded(), as: Bench.system)
        if (try? Operation.result(decoding: outcome.body)) == nil {
            faults.append("\(type) has an outcome of another kind")
        }
        if try apply(operation.encoded() + [0], as: Bench.system) != Outcome(.unreadable) {
            faults.append("\(type) reads past its form")
        }
        if !rows.contents.isEmpty { faults.append("what cannot be read changes rows") }
        let stranger = Principal(kind: .user, userRecordName: "somebody else")
        if operation.need == .system {
            let refused = try apply(operation.encoded(), as: stranger)
            let isDenied =
                switch try? Operation.result(decoding: refused.body) {
                case .failure(let refusal as RequestRefusal): refusal.reason == .accessDenied
                default: false
                }
            if !isDenied || !rows.contents.isEmpty { faults.append("\(type) asks nobody's need") }
        }
        return faults
    }

    @Test(arguments: Self.seeds)
    func `an operation reads its form alone, and answers those who may`(seed: UInt64) throws {
        #expect(try Self.faults(PlantedBugs(), seed: seed) == [])
    }

    @Test(
        .enabled(if: PlantedBugs.isPossible),
        arguments: [PlantedBug.operationReadsPastItsForm, .outcomeOfOtherKind])
    func `a planted bug is found`(bug: PlantedBug) throws {
        #if STRATUS_PLANTED
            #expect(try !Self.faults(PlantedBugs([bug]), seed: 1).isEmpty)
        #endif
    }

    @Test func `a question that its asker may not ask, or that cannot be read, is refused`() throws
    {
        var random = SeededGenerator(seed: 1)
        for row in RecordState.questions.rows { try Self.checkRefusals(row.type, &random) }
    }

    private static func checkRefusals<Question: PartitionQuestion>(
        _ type: Question.Type, _ random: inout SeededGenerator
    ) throws where Question.State == RecordState {
        var question = Drawing.value(type, from: &random)
        // Some databases do not have what is asked about.
        if var asked = question as? any DatabaseQuestion {
            asked.database = Bench.privateDatabase
            question = try #require(asked as? Question)
        }
        func ask(_ body: Bytes) throws -> Result<Question.Answer, RequestRefusal> {
            var state = DataState()
            let query = Query(kind: .records, body: body)
            return try Question.result(decoding: state.answer(query, over: Rows().view).body)
        }
        func refusal(_ result: Result<Question.Answer, RequestRefusal>) -> RequestRefusal? {
            if case .failure(let refusal) = result { refusal } else { nil }
        }
        // Some questions are about their asker, who has a name.
        let asked = question.encoded(
            as: Principal(kind: .system, userRecordName: Bench.owner))
        #expect(refusal(try ask(asked)) == nil)
        #expect(refusal(try ask(asked + [0])) == RecordState.unreadable)
        if question.need == .system {
            #expect(
                refusal(try ask(question.encoded(as: Bench.user)))
                    == RequestRefusal(.accessDenied))
        }
    }

    // MARK: Tables

    @Test func `a type is called as its number in the registry is`() {
        for row in RecordState.operations.rows {
            let entry = NumberFamily.recordCommand.entries.first { $0.number == row.type.number }
            #expect("\(row.type)" == Self.typeName(entry?.name))
            #expect(RecordCommand.Kind(rawValue: row.type.number) == nil)
        }
        for row in RecordState.questions.rows {
            let entry = NumberFamily.recordQuery.entries.first { $0.number == row.type.number }
            #expect("\(row.type)" == "\(Self.typeName(entry?.name))Ask")
            #expect(RecordQuery.Kind(rawValue: row.type.number) == nil)
        }
    }

    private static func typeName(_ name: String?) -> String {
        (name ?? "").split { $0 == " " || $0 == "-" }.map {
            $0.prefix(1).uppercased() + $0.dropFirst()
        }.joined()
    }

    @Test func `a table without a registered number, with one twice or a wrong bound is found`() {
        let commands = CommandTable<RecordState>.self
        #expect(commands.faults(of: [PutKey.self], in: .recordCommand) == [])
        #expect(commands.faults(of: [PutKey.self, PutKey.self], in: .recordCommand).count == 2)
        #expect(commands.faults(of: [PutKey.self], in: .mail).count == 1)
        #expect(commands.faults(of: [Boundless.self], in: .recordCommand).count == 1)
        let questions = QuestionTable<RecordState>.self
        #expect(questions.faults(of: [KeyAsk.self], in: .recordQuery) == [])
        #expect(questions.faults(of: [KeyAsk.self, KeyAsk.self], in: .recordQuery).count == 2)
        #expect(questions.faults(of: [KeyAsk.self], in: .mail).count == 1)
    }

    private struct Boundless: PartitionOperation {
        static let number: UInt8 = 24
        static let bound = WorkBound.single(1)
        var payer: Payer { .stratus }
        var need: AccessNeed { .system }
        var adds: Bool { false }
        init() {}
        mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {}
        func apply(
            in state: inout RecordState, at entry: borrowing EntryContext, over rows: Rows
        ) throws(StoreError) -> Result<ResealedFields, RequestRefusal> {
            .success(ResealedFields())
        }
    }

    /// Each family that moves to the tables lowers the two numbers. They never rise: what is new is
    /// a type from its first line.
    @Test func `fewer and fewer operations and questions are no types yet`() {
        #expect(RecordCommand.Kind.allCases.count == 12)
        #expect(RecordQuery.Kind.allCases.count == 14)
    }
}
