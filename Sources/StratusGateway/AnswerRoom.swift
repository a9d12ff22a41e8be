import StratusCluster
import StratusModel
import Synchronization

/// What was read for one request's answer, counted until the answer has left.
final class AnswerRoom: Sendable {
    private let budget: AnswerBudget
    private let shares = Mutex<[any AnyObject & Sendable]>([])

    init(of budget: AnswerBudget) { self.budget = budget }

    /// What the partition's node counted goes on to count here; a peer's answer begins to.
    func keep(_ answer: QueryAnswer) throws(RouteError) {
        var answer = answer
        guard self.budget.admit(&answer) else { throw .notExecuted(retryAfter: .seconds(1)) }
        if let share = answer.share { self.shares.withLock { $0.append(share) } }
    }

    /// What another room counted goes on to count here.
    func keep(_ other: AnswerRoom) {
        let shares = other.shares.withLock { shares in
            defer { shares = [] }
            return shares
        }
        self.shares.withLock { $0 += shares }
    }

    /// The answer is written, and what it was made of is gone.
    func settle(_ size: Int) throws(RouteError) {
        self.shares.withLock { $0.removeAll() }
        guard size > AnswerBudget.freeSizeMax else { return }
        guard let share = self.budget.share(size) else {
            throw .notExecuted(retryAfter: .seconds(1))
        }
        self.shares.withLock { $0 = [share] }
    }
}
