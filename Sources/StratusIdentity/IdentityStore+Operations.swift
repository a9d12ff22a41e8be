package import StratusCluster
package import StratusModel
package import StratusRows

// Operations and questions to partitions of databases, as Stratus itself, by the same path as any
// client's.
extension IdentityStore {
    /// - Parameters:
    ///   - deadline: as in ``submit(_:to:by:)``.
    ///   - patience: how long the caller waits.
    package func submit<Operation: DatabaseOperation>(
        _ operation: Operation, by deadline: Int64? = nil, within patience: Duration = Self.patience
    ) async throws(RouteError) -> Result<Operation.Outcome, Operation.State.Refusal> {
        let database = operation.database
        let outcome = try await self.router.submit(
            operation.enveloped(
                container: database.container, identity: self.world.drawIdentity(),
                deadlineMilliseconds: deadline
                    ?? self.now + patience.clampedNanoseconds / 1_000_000,
                principal: Principal(kind: .system)),
            to: .database(database), deadline: self.world.now + patience,
            mayRunLater: deadline == nil)
        guard outcome.verdict == .decided else { throw .notExecuted(retryAfter: .seconds(1)) }
        guard let result = try? Operation.result(decoding: outcome.body) else {
            throw .refused("an outcome of another kind")
        }
        return result
    }

    package func ask<Question: DatabaseQuestion>(
        _ question: Question, within patience: Duration = Self.patience
    ) async throws(RouteError) -> Question.Answer {
        try Self.answer(
            to: question,
            try await self.router.read(
                question.enveloped(as: Principal(kind: .system)), at: .database(question.database),
                deadline: self.world.now + patience))
    }

    /// To a partition by its number, for who looks through all of them.
    package func ask<Question: PartitionQuestion>(
        _ question: Question, at group: GroupID, within patience: Duration = Self.patience
    ) async throws(RouteError) -> Question.Answer {
        try Self.answer(
            to: question,
            try await self.router.read(
                question.enveloped(as: Principal(kind: .system)), at: group,
                deadline: self.world.now + patience))
    }

    private static func answer<Question: PartitionQuestion>(
        to question: Question, _ answer: QueryAnswer
    ) throws(RouteError) -> Question.Answer {
        switch try? Question.result(decoding: answer.body) {
        case .success(let answer): return answer
        case .failure(let refusal): throw .refused("\(refusal)")
        case nil: throw .refused("an answer of another kind")
        }
    }
}
