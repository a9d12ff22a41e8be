package import StratusModel
import Synchronization

/// The memory of one request's answer, counted until the answer has left.
package final class AnswerRoom: Sendable {
    private let budget: AnswerBudget
    private let shares = Mutex<[any AnyObject & Sendable]>([])

    package init(of budget: AnswerBudget) { self.budget = budget }

    /// A room of the same budget, for an answer of which it is not known yet whether it is used.
    package func another() -> AnswerRoom { AnswerRoom(of: self.budget) }

    /// Counts an answer until the response has left. An answer from this node is counted already
    /// and stays counted; a peer's answer is counted from here on.
    func keep(_ answer: inout QueryAnswer) throws(RouteError) {
        guard self.budget.admit(&answer) else { throw .notExecuted(retryAfter: .seconds(1)) }
        if let share = answer.share { self.shares.withLock { $0.append(share) } }
    }

    /// Counts what another room holds.
    package func take(over other: AnswerRoom) {
        let shares = other.shares.withLock { shares in
            defer { shares = [] }
            return shares
        }
        if !shares.isEmpty { self.shares.withLock { $0 += shares } }
    }

    /// Nothing was made of what it holds.
    package func clear() { self.shares.withLock { $0 = [] } }

    /// The answer is written, and what it was made of is gone.
    package func settle(_ size: Int) throws(RouteError) {
        self.clear()
        guard size > AnswerBudget.freeSizeMax else { return }
        guard let share = self.budget.share(size) else {
            throw .notExecuted(retryAfter: .seconds(1))
        }
        self.shares.withLock { $0 = [share] }
    }
}
