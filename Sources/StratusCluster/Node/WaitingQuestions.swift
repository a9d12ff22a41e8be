import StratusConsensus
import StratusModel

/// The questions to a node's replicas that are not answered yet, with their total size: everything
/// that its leaders hold uncommitted is in here.
struct WaitingQuestions {
    struct Waiting {
        let question: ReplicaInbox.Question
        /// When it was taken.
        let since: MonotonicTime
        var isCommand: Bool {
            if case .command = self.question.body { true } else { false }
        }
    }

    private var items: [RaftGroup.RequestToken: Waiting] = [:]
    private(set) var size = 0

    var isEmpty: Bool { self.items.isEmpty }
    var count: Int { self.items.count }

    /// Whether there is room for one more. Questions between nodes (jobs, mail, membership) always
    /// find room: their senders are few, wait for each answer, and free resources that clients wait
    /// for.
    func hasRoom(for question: ReplicaInbox.Question, within limits: Limits) -> Bool {
        if case .command(let command) = question.body, command.principal.kind == .system {
            return true
        }
        return self.items.isEmpty
            || self.items.count < limits.waitingCountMax
                && self.size + question.size <= limits.waitingSizeMax.raw
    }

    subscript(token: RaftGroup.RequestToken) -> Waiting? { self.items[token] }

    mutating func add(
        _ question: ReplicaInbox.Question, as token: RaftGroup.RequestToken, at now: MonotonicTime
    ) {
        self.items[token] = Waiting(question: question, since: now)
        self.size += question.size
    }

    mutating func remove(_ token: RaftGroup.RequestToken) -> Waiting? {
        guard let item = self.items.removeValue(forKey: token) else { return nil }
        self.size -= item.question.size
        return item
    }

    /// In the order in which they came.
    func tokens(where isMeant: (ReplicaInbox.Question) -> Bool) -> [RaftGroup.RequestToken] {
        self.items.filter { isMeant($0.value.question) }.keys.sorted { $0.raw < $1.raw }
    }
}
