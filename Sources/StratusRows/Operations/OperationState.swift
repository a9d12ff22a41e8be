package import StratusCoding
package import StratusModel

/// A state whose operations and questions are types: each stands in one file, and has one line in
/// a table.
package protocol OperationState: Sendable {
    /// Why an operation or a question was refused.
    associatedtype Refusal: FormValue & Error
    /// Of the envelopes around its operations and questions.
    static var kind: Command.Kind { get }
    static var operations: CommandTable<Self> { get }
    static var questions: QuestionTable<Self> { get }
    /// The refusal of a question that cannot be read.
    static var unreadable: Refusal { get }
    /// Nil: `principal` is what is needed.
    static func refusal(
        of principal: Principal, needing need: AccessNeed, in database: DatabaseID?,
        over rows: RowView
    ) throws(StoreError) -> Refusal?
}
