import StratusCluster
import StratusModel
import Synchronization

/// The memory of one request's answer, counted until the answer has left.
final class AnswerRoom: Sendable {
    private let budget: AnswerBudget
    private let shares = Mutex<[any AnyObject & Sendable]>([])

    init(of budget: AnswerBudget) { self.budget = budget }

    /// Counts an answer until the response has left. An answer from this node is counted already
    /// and stays counted; a peer's answer is counted from here on.
    func keep(_ answer: inout QueryAnswer) throws(RouteError) {
        guard self.budget.admit(&answer) else { throw .notExecuted(retryAfter: .seconds(1)) }
        if let share = answer.share { self.shares.withLock { $0.append(share) } }
    }

    /// An answer that was kept is gone, and nothing was made of it.
    func drop(_ share: (any AnyObject & Sendable)?) {
        self.shares.withLock { $0.removeAll { $0 === share } }
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
