package import StratusCoding
package import StratusModel

/// A read of one partition: its fields, its answer, and how it is answered. It is a
/// ``SingleQuestion`` or a ``PointQuestion``.
///
/// What must be said of every question has no default.
package protocol PartitionQuestion<State>: FormValue, FixedLevel, Askable
where Response == Answer, Refusal == State.Refusal {
    associatedtype State: OperationState
    associatedtype Answer: FormValue & Sendable
    /// Its number in the registry, for ever.
    static var number: UInt8 { get }
    static var bound: WorkBound { get }
    var payer: Payer { get }
    var need: AccessNeed { get }
    /// Nil: the question is about a container or a partition.
    var namedDatabase: DatabaseID? { get }
}

/// A question about one database, which is among its fields.
package protocol DatabaseQuestion<State>: PartitionQuestion {
    var database: DatabaseID { get set }
}

/// A question that is answered in one piece, or with as much as its meter allows.
package protocol SingleQuestion<State>: PartitionQuestion {
    associatedtype State
    associatedtype Answer
    /// - Parameter cost: what the answer takes is counted here.
    func answer(in state: inout State, to asker: Principal, _ cost: ReadCost, over view: RowView)
        throws(StoreError) -> Result<Answer, State.Refusal>
}

/// What one answer takes, and the time at which it is given.
package struct ReadCost {
    package let meter: ReadMeter
    /// Nil where the same rows must always give the same answer.
    package let now: MonotonicTime?

    package init(_ meter: ReadMeter, at now: MonotonicTime? = nil) {
        self.meter = meter
        self.now = now
    }
}

/// A question about single rows, answered without the state and what it keeps.
package protocol PointQuestion<State>: PartitionQuestion {
    associatedtype State
    associatedtype Answer
    func answer(to asker: Principal, over points: PointReader)
        throws(StoreError) -> Result<Answer, State.Refusal>
}

// Question, format 1: the body of a `Query`. Never stored.
//
// | bytes | what                                                                           |
// | ----- | ------------------------------------------------------------------------------ |
// | 1     | format, 1                                                                      |
// | …     | principal: 1 kind, text user record name, count of roles, each a text           |
// | 1     | number of the question                                                         |
// | …     | the fields of the question                                                     |

/// What stands before the fields of every question: who asks, and what.
package struct QuestionHead: Sendable {
    package var principal: Principal
    package var number: UInt8

    package init(from reader: inout ByteReader) throws(DecodingError) {
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        self.principal = try reader.principal()
        self.number = try reader.byte()
    }
}

extension DatabaseQuestion {
    package init(_ database: DatabaseID, _ fill: (inout Self) -> Void) {
        self.init()
        self.database = database
        fill(&self)
    }

    package var namedDatabase: DatabaseID? { self.database }
}

extension PartitionQuestion {
    package static var level: FeatureLevel { .one }
    package var namedDatabase: DatabaseID? { nil }

    package func encoded(as principal: Principal) -> Bytes {
        if let database = self.namedDatabase {
            precondition(!database.container.container.isEmpty, "a question that names no database")
        }
        var writer = ByteWriter(reserving: 256)
        writer.write(1 as UInt8)
        writer.write(principal)
        writer.write(Self.number)
        writer.write(form: self)
        return writer.bytes
    }

    package init(decoding body: Bytes) throws(DecodingError) {
        var reader = ByteReader(body)
        guard try QuestionHead(from: &reader).number == Self.number else {
            throw DecodingError(.malformed, at: reader.offset - 1)
        }
        self = try reader.form(Self.self)
        try reader.finish()
    }

    /// The envelope around this question.
    package func enveloped(as principal: Principal) -> Query {
        Query(kind: State.kind, body: self.encoded(as: principal))
    }

    package static func encoded(_ result: Result<Answer, State.Refusal>) -> Bytes {
        Reply.encoded(result, to: Self.number)
    }

    /// The answer to a question of this type, or its refusal. What answers another kind is
    /// malformed.
    package static func result(decoding body: Bytes) throws(DecodingError)
        -> Result<Answer, State.Refusal>
    { try Reply.result(decoding: body, to: Self.number) }

    package static var family: Command.Kind { State.kind }

    package static func answer(decoding body: Bytes) throws -> Answer {
        try Self.result(decoding: body).mapError { PartitionError.refused($0) }.get()
    }
}
