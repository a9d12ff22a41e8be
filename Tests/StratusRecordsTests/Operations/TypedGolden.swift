import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// A form of an operation or a question that is a type, and by its name a file of `Golden/`.
struct TypedGolden: Sendable {
    let name: String
    let bytes: Bytes
    /// Reads the file as the type it is of, and writes it again.
    let rewrite: @Sendable (Bytes) throws -> Bytes

    static func command<Operation: PartitionOperation>(_ name: String, _ operation: Operation)
        -> Self
    {
        Self(name: name, bytes: operation.encoded()) {
            try Operation(decoding: $0, container: Bench.container).encoded()
        }
    }

    static func outcome<Operation: PartitionOperation>(
        _ name: String, of type: Operation.Type, _ outcome: Operation.Outcome
    ) -> Self {
        Self(name: name, bytes: Operation.encoded(.success(outcome))) {
            Operation.encoded(try Operation.result(decoding: $0))
        }
    }

    static func query<Question: PartitionQuestion>(_ name: String, _ question: Question) -> Self {
        Self(name: name, bytes: question.encoded(as: AccessTests.editor)) {
            try Question(decoding: $0).encoded(as: AccessTests.editor)
        }
    }

    static func answer<Question: PartitionQuestion>(
        _ name: String, to type: Question.Type, _ answer: Question.Answer
    ) -> Self {
        Self(name: name, bytes: Question.encoded(.success(answer))) {
            Question.encoded(try Question.result(decoding: $0))
        }
    }
}
