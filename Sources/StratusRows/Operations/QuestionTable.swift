package import StratusCoding
package import StratusModel

/// The questions of a state. It is asked by the number that stands behind the principal.
package struct QuestionTable<State: OperationState>: Sendable {
    package struct Row: Sendable {
        package let type: any PartitionQuestion<State>.Type
        fileprivate let answer:
            @Sendable (inout ByteReader, Principal, inout State, ReadCost, RowView)
                throws(StoreError)
                -> Bytes

        package static func of<Question: SingleQuestion>(_ type: Question.Type) -> Row
        where Question.State == State {
            Row(type: type) { (reader, asker, state, cost, view) throws(StoreError) in
                try QuestionTable.answer(type, from: &reader, to: asker, over: view) {
                    (question) throws(StoreError) in
                    try question.answer(in: &state, to: asker, cost, over: view)
                }
            }
        }

        package static func of<Question: PointQuestion>(_ type: Question.Type) -> Row
        where Question.State == State {
            Row(type: type) { (reader, asker, _, _, view) throws(StoreError) in
                try QuestionTable.answer(type, from: &reader, to: asker, over: view) {
                    (question) throws(StoreError) in
                    try question.answer(to: asker, over: PointReader(view))
                }
            }
        }
    }

    package let rows: [Row]
    private let places: [Row?]

    /// - Parameter family: where the numbers of its questions are registered.
    package init(_ family: NumberFamily, _ rows: Row...) {
        let faults = Self.faults(of: rows.map(\.type), in: family)
        precondition(faults.isEmpty, "\(faults)")
        self.rows = rows
        var places = [Row?](repeating: nil, count: 256)
        for row in rows { places[Int(row.type.number)] = row }
        self.places = places
    }

    /// What is wrong with a list of questions.
    package static func faults(
        of types: [any PartitionQuestion<State>.Type], in family: NumberFamily
    ) -> [String] {
        var faults: [String] = []
        for type in types {
            if family.level(of: type.number) != type.level {
                faults.append("\(type): \(family.name) \(type.number) is not of its level")
            }
            if types.filter({ $0.number == type.number }).count > 1 {
                faults.append("\(type): \(type.number) is the number of another one")
            }
            let fits =
                switch type.bound {
                case .point: type is any PointQuestion<State>.Type
                case .single, .page: type is any SingleQuestion<State>.Type
                case .entry: false
                }
            if !fits || !(1...type.bound.unitsMax).contains(type.bound.units) {
                faults.append("\(type): \(type.bound) is no bound of such a question")
            }
        }
        return faults
    }

    /// Nil: no question of the table has this number.
    package func row(_ number: UInt8) -> Row? { self.places[Int(number)] }

    /// The question in a query and who asks it, for who looks at it without answering it. Nil: it
    /// is none of the table, or cannot be read.
    package func question(in query: Query)
        -> (question: any PartitionQuestion<State>, asker: Principal)?
    {
        guard query.kind == State.kind else { return nil }
        var reader = ByteReader(query.body)
        guard let head = try? QuestionHead(from: &reader), let row = self.row(head.number) else {
            return nil
        }
        guard let question = try? Self.read(row.type, from: &reader) else { return nil }
        return (question, head.principal)
    }

    /// Answers a question that can be read and that its asker may ask.
    private static func answer<Question: PartitionQuestion>(
        _ type: Question.Type, from reader: inout ByteReader, to asker: Principal,
        over view: RowView,
        _ answer: (Question) throws(StoreError) -> Result<Question.Answer, State.Refusal>
    ) throws(StoreError) -> Bytes where Question.State == State {
        guard let question = try? Self.read(type, from: &reader) else {
            return Question.encoded(.failure(State.unreadable))
        }
        let refusal = try State.refusal(
            of: asker, needing: question.need, in: question.namedDatabase, over: view)
        if let refusal { return Question.encoded(.failure(refusal)) }
        return Question.encoded(try answer(question))
    }

    private static func read<Question: PartitionQuestion>(
        _ type: Question.Type, from reader: inout ByteReader
    ) throws(DecodingError) -> Question where Question.State == State {
        let question = try reader.form(type)
        try reader.finish()
        return question
    }
}

extension QuestionTable.Row {
    /// Nothing is answered that its asker may not ask.
    ///
    /// - Parameter reader: behind the head.
    package func answer(
        _ reader: inout ByteReader, to asker: Principal, in state: inout State, _ cost: ReadCost,
        over view: RowView
    ) throws(StoreError) -> QueryAnswer {
        QueryAnswer(body: try self.answer(&reader, asker, &state, cost, view))
    }
}
